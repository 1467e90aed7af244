"""Similarity of two rankings of documents: rank-biased overlap, overlap, Kendall's tau of the union.

A ranking is an array with one rank per document. Tied documents share the rank of the first of them; 0 means that the
document is not ranked. In comments and names, S and L are the shorter and the longer ranking of Webber et al. 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal
from judged.results.spelling import use_one_of
from judged.stats.rankings import kendall_tau

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints

TieVariant: TypeAlias = Literal["w", "a", "b"]

_CHUNK = 256  # tied documents held at a time


@dataclass(frozen=True)
class Overlap:
    """Rank-biased overlap of two rankings."""

    # RBO_EXT: assumes that agreement below the rankings continues as at their end. NaN if a ranking is empty.
    value: float
    # RBO_MIN and RBO_MAX: bounds over all possible continuations of the rankings
    low: float
    high: float
    p: float
    ties: TieVariant
    lengths: tuple[int, int]  # of the two rankings
    shared: int  # documents in both rankings

    @property
    def residual(self) -> float:
        """Uncertainty due to the unseen documents (RBO_RES)."""
        return self.high - self.low

    @property
    def sentence(self) -> str:
        """Result in one sentence."""
        if math.isnan(self.value):
            return "RBO is undefined: a ranking is empty."
        return (
            f"RBO (p = {self.p:g}) is {decimal(self.value, 3)}, with bounds {decimal(self.low, 3)} and"
            f" {decimal(self.high, 3)}: the rankings of {self.lengths[0]} and {self.lengths[1]}"
            f" documents have {self.shared} documents in common."
        )


def rbo(first: Ints, second: Ints, p: float = 0.9, ties: TieVariant = "a") -> Overlap:
    """Compute the rank-biased overlap of two rankings (Webber, Moffat and Zobel 2010).

    RBO is the expected share of common documents for a reader who continues from each rank to the next with
    probability ``p``. The rankings may differ in length, and their continuations are unknown.

    Parameters
    ----------
    first, second : (N,) int64
        Rank of each document in both rankings; tied documents share a rank, 0 means not ranked. Only the order of the
        ranks matters.
    p
        Persistence, between 0 and 1. With 0.9, the first 10 ranks carry 86% of the weight.
    ties
        Meaning of ties (Corsi and Urbano 2024). ``a``: the order is unknown, and a document counts at each rank of
        its tie group with the probability of being there. Then `Overlap.low` is the mean over all orders; so are the
        value and `Overlap.high` for rankings of equal length, but not otherwise: see the example. ``b``: as ``a``,
        corrected for the information that ties hide, so that a ranking agrees fully with itself. ``w``: tied
        documents are at the same rank, as in sports (the definition of Webber et al.). Without ties, all are equal.

    Raises
    ------
    InputError
        If the rankings differ in length, or an option is invalid.

    Examples
    --------
    >>> overlap = rbo(np.array([1, 2, 3, 0]), np.array([2, 1, 0, 3]), p=0.5)
    >>> round(overlap.value, 4)  # overlap 0/1, 1, 2/3, and 2/3 of all below: 0.5 (0 + 1/2 + 2/3/4) + 2/3/8
    0.4167
    >>> round(overlap.low, 4), round(overlap.high, 4)
    (0.3863, 0.4583)

    Two documents against four, of which the last three are tied, and the mean over their six orders:

    >>> from itertools import permutations
    >>> two = np.array([1, 2, 0, 0])
    >>> orders = [np.array([1, *order]) for order in permutations((2, 3, 4))]
    >>> round(rbo(two, np.array([1, 2, 2, 2]), 0.8).value, 4)
    0.8234
    >>> round(float(np.mean([rbo(two, order, 0.8).value for order in orders])), 4)
    0.8329
    """
    if not 0 < p < 1:
        raise InputError(f"the persistence `p` must be between 0 and 1, got {p}", fix="use 0.9, for example")
    if ties not in get_args(TieVariant):
        raise InputError(f"unknown `ties` {ties!r}", fix=use_one_of(get_args(TieVariant)))
    a, b = _tie_ranks(first), _tie_ranks(second)
    if a.top.shape != b.top.shape:
        problem = f"both rankings must have one rank per document, got {len(a.top)} and {len(b.top)} ranks"
        raise InputError(problem, fix="use 0 for a document that is not ranked")
    lengths = (a.length, b.length)
    in_both = int(((a.top > 0) & (b.top > 0)).sum())
    if not min(lengths):
        return Overlap(math.nan, math.nan, math.nan, p, ties, lengths, in_both)
    short, long = (a, b) if a.length <= b.length else (b, a)
    return Overlap(*_bounds(short, long, p, ties), p, ties, lengths, in_both)


def rbo_weight(p: float, cutoff: int) -> float:
    """Return the share of the weight of RBO on the first `cutoff` ranks (Webber et al. 2010, equation 21).

    Parameters
    ----------
    p
        Persistence, above 0 and below 1.
    cutoff
        Number of ranks.

    Examples
    --------
    >>> round(rbo_weight(0.9, 10), 4)
    0.8556
    """
    ranks = np.arange(1, cutoff)
    tail = math.log(1 / (1 - p)) - float((p**ranks / ranks).sum())
    return 1 - p ** (cutoff - 1) + (1 - p) / p * cutoff * tail


def overlap_at(first: Ints, second: Ints, depth: int) -> float:
    """Return the share of the first ``depth`` documents that two rankings have in common.

    >>> overlap_at(np.array([1, 2, 3, 0]), np.array([2, 0, 1, 3]), 2)
    0.5
    """
    # If both rankings are shorter than `depth`, the longer one gives the denominator. Ties at `depth` must be broken by
    # the caller, because the result depends on which documents are within it.
    shared, n_first, n_second = _first_documents(first, second, depth)
    return shared / max(n_first, n_second) if max(n_first, n_second) else math.nan


def union_tau(first: Ints, second: Ints, depth: int | None = None) -> float:
    """Compute Kendall's tau of the union of two rankings (Breuer et al. 2020).

    >>> union_tau(np.array([1, 2, 3, 0]), np.array([1, 2, 0, 3]))  # places 1 2 3 and 1 2 4
    1.0
    >>> round(union_tau(np.array([1, 2, 3, 4, 0, 0]), np.array([0, 1, 3, 0, 2, 4])), 4)  # 1 2 3 4 and 2 5 3 6
    0.6667
    """
    # The union is the first ranking followed by the other documents of the second. Each ranking becomes the list of
    # positions of its documents in the union; the longer list is truncated. NaN for fewer than two documents.
    # (repro_eval sorts the union by document id, so that its tau depends on how documents are named.)
    documents = [_sorted_documents(ranks, depth) for ranks in (first, second)]
    position = {doc: i for i, doc in enumerate(dict.fromkeys([*documents[0], *documents[1]]))}
    size = min(len(ranking) for ranking in documents)
    positions = [np.array([position[doc] for doc in ranking[:size]], dtype=np.float64) for ranking in documents]
    return kendall_tau(positions[0], positions[1]).value


def _first_documents(first: Ints, second: Ints, depth: int) -> tuple[int, int, int]:
    if depth < 1:
        raise InputError(f"`depth` must be a positive integer, got {depth}", fix="use 10, for example")
    in_first, in_second = ((ranks > 0) & (ranks <= depth) for ranks in (np.asarray(first), np.asarray(second)))
    return int((in_first & in_second).sum()), int(in_first.sum()), int(in_second.sum())


def _sorted_documents(ranks: Ints, depth: int | None) -> list[int]:
    """Return the documents of a ranking from first to last."""
    ranks = np.asarray(ranks)
    ranked = np.flatnonzero(ranks > 0)
    return ranked[np.argsort(ranks[ranked], kind="stable")][:depth].tolist()


class _TieRanks(NamedTuple):
    """First and last rank of each document's tie group: (N,), 0 if it is not ranked."""

    top: Ints
    bottom: Ints
    length: int


def _tie_ranks(ranks: Ints) -> _TieRanks:
    ranks = np.asarray(ranks)
    if ranks.ndim != 1 or ranks.dtype.kind not in "iu":
        raise InputError("ranks must be a list of integers", fix="pass one rank per document, 0 if it is not ranked")
    is_ranked = ranks > 0
    sorted_ranks = np.sort(ranks[is_ranked])
    top, bottom = np.zeros(len(ranks), dtype=np.int64), np.zeros(len(ranks), dtype=np.int64)
    top[is_ranked] = np.searchsorted(sorted_ranks, ranks[is_ranked], side="left") + 1
    bottom[is_ranked] = np.searchsorted(sorted_ranks, ranks[is_ranked], side="right")
    return _TieRanks(top, bottom, len(sorted_ranks))


class _Prefix(NamedTuple):
    """Prefix of a ranking at each depth from 1: (D,) each."""

    n_complete: Ints  # documents in tie groups that end within the depth
    group_start: Ints  # first rank of the tie group at the depth
    group_size: Ints
    crossing_share: Floats  # share of that group within the depth; 0 if the group ends there


def _prefix(ranking: _TieRanks, depth: Ints) -> _Prefix:
    tops, counts = np.unique(ranking.top[ranking.top > 0], return_counts=True)
    group = np.searchsorted(tops, np.minimum(depth, ranking.length), side="right") - 1
    first, size = tops[group], counts[group]
    within = np.minimum(depth - first + 1, size)
    is_complete = within == size
    return _Prefix(
        np.where(is_complete, first + size - 1, first - 1), first, size, np.where(is_complete, 0.0, within / size)
    )


def _bounds(short: _TieRanks, long: _TieRanks, p: float, ties: TieVariant) -> tuple[float, float, float]:
    """Compute RBO_EXT, RBO_MIN, and RBO_MAX (Webber et al. 2010, section 4)."""
    s, n = short.length, long.length
    depth = np.arange(1, n + 1)
    overlap, size = _overlaps(short, long, depth, ties), _sizes(short, long, depth, ties)
    unseen = np.maximum(depth - s, 0)
    max_unseen, mean_unseen = _unseen(short, long, depth, ties)
    agreement = overlap[s - 1] / size[s - 1]
    weights = p**depth
    log_tail = math.log(1 / (1 - p)) - float((weights / depth).sum())
    shared = float(overlap[-1])
    # f = l + s - X_l of Webber et al.: from this depth on, both rankings could consist of the same documents
    full_agreement_depth = math.ceil(n + s - shared - 1e-9)
    depths_below = np.arange(n + 1, full_agreement_depth + 1)
    largest_tail = float((p**depths_below * (2 * depths_below - n - s + shared) / depths_below).sum())
    largest_tail += p ** (full_agreement_depth + 1) / (1 - p)
    extrapolated = (shared + (n - s) * agreement) / n * p ** (n + 1) / (1 - p)
    factor = (1 - p) / p
    low = factor * (float((weights * overlap / size).sum()) + shared * log_tail)
    high = factor * (float((weights * (overlap + max_unseen) / size).sum()) + largest_tail)
    value = factor * (float((weights * (overlap + unseen * agreement * mean_unseen) / size).sum()) + extrapolated)
    return float(value), float(low), float(high)


def _overlaps(short: _TieRanks, long: _TieRanks, depth: Ints, ties: TieVariant) -> Floats:
    """Return the overlap at each depth, X_d. Documents of a tie group that crosses the depth count in part."""
    in_both = (short.top > 0) & (long.top > 0)
    tie_ranks = (short.top[in_both], short.bottom[in_both], long.top[in_both], long.bottom[in_both])
    if ties == "w":
        both_seen = np.maximum(tie_ranks[0], tie_ranks[2])
        return np.cumsum(np.bincount(both_seen - 1, minlength=len(depth))).astype(np.float64)
    tied = (tie_ranks[0] < tie_ranks[1]) | (tie_ranks[2] < tie_ranks[3])
    both_seen = np.maximum(tie_ranks[0], tie_ranks[2])[~tied]
    total = np.cumsum(np.bincount(both_seen - 1, minlength=len(depth))).astype(np.float64)
    rows = np.flatnonzero(tied)
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        first_share = _share_within(tie_ranks[0][chunk], tie_ranks[1][chunk], depth)
        second_share = _share_within(tie_ranks[2][chunk], tie_ranks[3][chunk], depth)
        total += (first_share * second_share).sum(axis=0)
    return total


def _share_within(top: Ints, bottom: Ints, depth: Ints) -> Floats:
    """Return the probability that each document is within each depth: (R,) to (R, D)."""
    return np.clip((depth - top[:, None] + 1) / (bottom - top + 1)[:, None], 0.0, 1.0)


def _sizes(short: _TieRanks, long: _TieRanks, depth: Ints, ties: TieVariant) -> Floats:
    """Return the denominator of the agreement at each depth; unseen documents of the shorter ranking are untied."""
    if ties == "a":
        return depth.astype(np.float64)
    sizes: list[Floats] = []
    for ranking in (short, long):
        prefix = _prefix(ranking, depth)
        crossing = prefix.crossing_share > 0
        crossing_size = np.where(
            crossing, prefix.group_size if ties == "w" else prefix.group_size * prefix.crossing_share**2, 0.0
        )
        sizes.append(np.where(depth > ranking.length, depth, prefix.n_complete + crossing_size))
    return (sizes[0] + sizes[1]) / 2 if ties == "w" else np.sqrt(sizes[0]) * np.sqrt(sizes[1])


def _unseen(short: _TieRanks, long: _TieRanks, depth: Ints, ties: TieVariant) -> tuple[Floats, Floats]:
    """Return the largest and the mean overlap that unseen documents of the shorter ranking could add at each depth."""
    prefix = _prefix(long, depth)
    bottoms = np.sort(long.bottom[(long.top > 0) & (short.top == 0)])
    tops = np.sort(long.top[(long.top > 0) & (short.top == 0)])
    n_complete = np.searchsorted(bottoms, prefix.n_complete, side="right")
    n_started = np.searchsorted(tops, depth, side="right")
    partial = np.where(prefix.crossing_share > 0, 1.0 if ties == "w" else prefix.crossing_share, 0.0)
    unseen = np.maximum(depth - short.length, 0)
    max_overlap = np.minimum(unseen, n_complete) + np.maximum(unseen - n_complete, 0) * partial
    mean_overlap = np.divide(
        n_complete + (n_started - n_complete) * partial, n_started, out=np.ones(len(depth)), where=n_started > 0
    )
    return max_overlap, mean_overlap
