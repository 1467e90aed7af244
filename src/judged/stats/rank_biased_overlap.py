"""How alike two rankings of documents are: rank-biased overlap, overlap, Kendall's tau of the union. Sees only ranks.

A ranking is an array with one rank a document; documents that are tied share the rank of the first of them, and 0
stands for a document that is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal
from judged.stats.rankings import kendall_tau

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints

TieVariant: TypeAlias = Literal["w", "a", "b"]

_CHUNK = 256  # tied documents held at a time


@dataclass(frozen=True)
class Overlap:
    """The rank-biased overlap of two rankings."""

    # the estimate (RBO_EXT): agreement goes on below what was seen as it was there. NaN where a ranking is empty.
    value: float
    # low, high: what no documents below could undercut, and what none could surpass (RBO_MIN and RBO_MAX)
    low: float
    high: float
    p: float
    ties: TieVariant
    lengths: tuple[int, int]  # of the two rankings
    shared: int  # how many documents are in both

    @property
    def residual(self) -> float:
        """What the unseen documents leave open (RBO_RES)."""
        return self.high - self.low

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        if math.isnan(self.value):
            return "RBO is undefined: a ranking is empty."
        return (
            f"RBO (p = {self.p:g}) is {decimal(self.value, 3)}: {self.shared} documents are shared by rankings of"
            f" {self.lengths[0]} and {self.lengths[1]}; whatever stands below, it is between {decimal(self.low, 3)} and"
            f" {decimal(self.high, 3)}."
        )


def rbo(first: Ints, second: Ints, p: float = 0.9, ties: TieVariant = "a") -> Overlap:
    """Give the rank-biased overlap of two rankings (Webber, Moffat and Zobel 2010).

    A reader who goes on from each rank to the next with probability ``p`` sees, on average, this share of documents in
    common. The rankings may be of different length, and what stands below them is unknown.

    Parameters
    ----------
    first, second : (N,) int64
        The rank of each document in both; tied documents share a rank, 0: not there. Only the order of the ranks
        counts.
    p
        Persistence; the first 10 ranks carry 86 % of the weight for 0.9.
    ties
        What a tie means (Corsi and Urbano 2024). ``a``: the order is not known, and a document counts at each rank of
        its tie by its chance to stand there: `Overlap.low` is the mean over all orders, and so are the value and
        `Overlap.high` for rankings of one length. Of different lengths these two look below the shorter one at the
        shares of ties, not order by order: see the example. ``b``: the same, corrected for what ties hide, so that a
        ranking agrees fully with itself. ``w``: the documents do stand at one rank, as in sports; this is the reading
        of Webber et al. Without ties all are the same.

    Returns
    -------
    Overlap

    Raises
    ------
    InputError
        If the rankings do not fit each other, or an option makes no sense.

    Examples
    --------
    >>> found = rbo(np.array([1, 2, 3, 0]), np.array([2, 1, 0, 3]), p=0.5)
    >>> round(found.value, 4)  # overlap 0/1, 1, 2/3, and 2/3 of all below: 0.5 (0 + 1/2 + 2/3/4) + 2/3/8
    0.4167
    >>> round(found.low, 4), round(found.high, 4)
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
        raise InputError(f"the persistence {p} is not between 0 and 1", fix="use 0.9, for example")
    if ties not in get_args(TieVariant):
        raise InputError(f"no treatment of ties {ties!r}", fix=f"use one of {', '.join(get_args(TieVariant))}")
    one, other = _placed(first), _placed(second)
    if one.top.shape != other.top.shape:
        raise InputError(f"{len(one.top)} and {len(other.top)} ranks", fix="give one rank a document in both")
    lengths = (one.length, other.length)
    in_both = int(((one.top > 0) & (other.top > 0)).sum())
    if not min(lengths):
        return Overlap(math.nan, math.nan, math.nan, p, ties, lengths, in_both)
    short, long = (one, other) if one.length <= other.length else (other, one)
    return Overlap(*_bounds(short, long, p, ties), p, ties, lengths, in_both)


def rbo_weight(p: float, cutoff: int) -> float:
    """Give the share of the weight of RBO that the first ranks carry (Webber et al. 2010, equation 21).

    >>> round(rbo_weight(0.9, 10), 4)
    0.8556
    """
    ranks = np.arange(1, cutoff)
    rest = math.log(1 / (1 - p)) - float((p**ranks / ranks).sum())
    return 1 - p ** (cutoff - 1) + (1 - p) / p * cutoff * rest


def overlap_at(first: Ints, second: Ints, depth: int) -> float:
    """Give the share of the first ``depth`` documents that two rankings have in common.

    >>> overlap_at(np.array([1, 2, 3, 0]), np.array([2, 0, 1, 3]), 2)
    0.5
    """
    # Of shorter rankings as many documents count as the longer one has. Tied documents at the depth must have ranks of
    # their own: this asks which documents are seen.
    shared, one, other = _first_documents(first, second, depth)
    return shared / max(one, other) if max(one, other) else math.nan


def union_tau(first: Ints, second: Ints, depth: int | None = None) -> float:
    """Give Kendall's tau of the union of two rankings (Breuer et al. 2020).

    >>> union_tau(np.array([1, 2, 3, 0]), np.array([1, 2, 0, 3]))  # places 1 2 3 and 1 2 4
    1.0
    >>> round(union_tau(np.array([1, 2, 3, 4, 0, 0]), np.array([0, 1, 3, 0, 2, 4])), 4)  # 1 2 3 4 and 2 5 3 6
    0.6667
    """
    # The union is the first ranking followed by what the second has besides. Each ranking is written as the places of
    # its documents in the union, and tau compares the two lists place by place; the longer one is cut. NaN below two
    # documents. (repro_eval sorts the union by document id, so that its tau depends on how documents are named.)
    one, other = (_listed(side, depth) for side in (first, second))
    place = {doc: at for at, doc in enumerate(dict.fromkeys([*one, *other]))}
    size = min(len(one), len(other))
    places = [np.array([place[doc] for doc in side[:size]], dtype=np.float64) for side in (one, other)]
    return kendall_tau(places[0], places[1]).value


def _first_documents(first: Ints, second: Ints, depth: int) -> tuple[int, int, int]:
    if depth < 1:
        raise InputError(f"the depth {depth} makes no sense", fix="give a whole number from 1")
    one, other = ((side > 0) & (side <= depth) for side in (np.asarray(first), np.asarray(second)))
    return int((one & other).sum()), int(one.sum()), int(other.sum())


def _listed(ranks: Ints, depth: int | None) -> list[int]:
    """Give the documents of a ranking from the first to the last."""
    ranks = np.asarray(ranks)
    there = np.flatnonzero(ranks > 0)
    return there[np.argsort(ranks[there], kind="stable")][:depth].tolist()


class _Placed(NamedTuple):
    """A ranking: the first and last rank of each document's tie, 0 where it is not there."""

    top: Ints
    bottom: Ints
    length: int


def _placed(ranks: Ints) -> _Placed:
    ranks = np.asarray(ranks)
    if ranks.ndim != 1 or ranks.dtype.kind not in "iu":
        raise InputError("ranks are not a list of whole numbers", fix="give one rank a document, 0 if it is not there")
    there = ranks > 0
    rising = np.sort(ranks[there])
    top, bottom = np.zeros(len(ranks), dtype=np.int64), np.zeros(len(ranks), dtype=np.int64)
    top[there] = np.searchsorted(rising, ranks[there], side="left") + 1
    bottom[there] = np.searchsorted(rising, ranks[there], side="right")
    return _Placed(top, bottom, len(rising))


class _Depths(NamedTuple):
    """What stands down to each depth from 1; (D,) each."""

    full: Ints
    first: Ints
    size: Ints
    seen: Floats


def _depths(ranking: _Placed, depth: Ints) -> _Depths:
    tops, counts = np.unique(ranking.top[ranking.top > 0], return_counts=True)
    at = np.searchsorted(tops, np.minimum(depth, ranking.length), side="right") - 1
    first, size = tops[at], counts[at]
    inside = np.minimum(depth - first + 1, size)
    done = inside == size
    return _Depths(np.where(done, first + size - 1, first - 1), first, size, np.where(done, 0.0, inside / size))


def _bounds(short: _Placed, long: _Placed, p: float, ties: TieVariant) -> tuple[float, float, float]:
    """Give the estimate and both bounds."""
    s, n = short.length, long.length
    depth = np.arange(1, n + 1)
    overlap, size = _overlaps(short, long, depth, ties), _sizes(short, long, depth, ties)
    unseen = np.maximum(depth - s, 0)
    most, mean = _unseen(short, long, depth, ties)
    rate = overlap[s - 1] / size[s - 1]
    weights = p**depth
    tail = math.log(1 / (1 - p)) - float((weights / depth).sum())
    shared = float(overlap[-1])
    level = math.ceil(n + s - shared - 1e-9)  # from this depth on everything can agree
    below = np.arange(n + 1, level + 1)
    best = float((p**below * (2 * below - n - s + shared) / below).sum()) + p ** (level + 1) / (1 - p)
    goes_on = (shared + (n - s) * rate) / n * p ** (n + 1) / (1 - p)
    scale = (1 - p) / p
    low = scale * (float((weights * overlap / size).sum()) + shared * tail)
    high = scale * (float((weights * (overlap + most) / size).sum()) + best)
    value = scale * (float((weights * (overlap + unseen * rate * mean) / size).sum()) + goes_on)
    return float(value), float(low), float(high)


def _overlaps(short: _Placed, long: _Placed, depth: Ints, ties: TieVariant) -> Floats:
    """Give how many documents are shared down to each depth; those of a tie that goes on below count in part."""
    both = (short.top > 0) & (long.top > 0)
    parts = (short.top[both], short.bottom[both], long.top[both], long.bottom[both])
    if ties == "w":
        since = np.maximum(parts[0], parts[2])
        return np.cumsum(np.bincount(since - 1, minlength=len(depth))).astype(np.float64)
    tied = (parts[0] < parts[1]) | (parts[2] < parts[3])
    since = np.maximum(parts[0], parts[2])[~tied]
    total = np.cumsum(np.bincount(since - 1, minlength=len(depth))).astype(np.float64)
    rows = np.flatnonzero(tied)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        one, other = (_share(parts[at][part], parts[at + 1][part], depth) for at in (0, 2))
        total += (one * other).sum(axis=0)
    return total


def _share(top: Ints, bottom: Ints, depth: Ints) -> Floats:
    """Give the chance that each document stands at each depth or above: (R,) to (R, D)."""
    return np.clip((depth - top[:, None] + 1) / (bottom - top + 1)[:, None], 0.0, 1.0)


def _sizes(short: _Placed, long: _Placed, depth: Ints, ties: TieVariant) -> Floats:
    """Give what the overlap down to each depth is divided by; unseen documents of the shorter one are untied."""
    if ties == "a":
        return depth.astype(np.float64)
    sizes: list[Floats] = []
    for ranking in (short, long):
        found = _depths(ranking, depth)
        crossing = found.seen > 0
        held = np.where(crossing, found.size if ties == "w" else found.size * found.seen**2, 0.0)
        sizes.append(np.where(depth > ranking.length, depth, found.full + held))
    return (sizes[0] + sizes[1]) / 2 if ties == "w" else np.sqrt(sizes[0]) * np.sqrt(sizes[1])


def _unseen(short: _Placed, long: _Placed, depth: Ints, ties: TieVariant) -> tuple[Floats, Floats]:
    """Say what the unseen documents of the shorter ranking could add down to each depth, and each on average."""
    found = _depths(long, depth)
    only = np.sort(long.bottom[(long.top > 0) & (short.top == 0)])
    tops = np.sort(long.top[(long.top > 0) & (short.top == 0)])
    ended = np.searchsorted(only, found.full, side="right")
    begun = np.searchsorted(tops, depth, side="right")
    part = np.where(found.seen > 0, 1.0 if ties == "w" else found.seen, 0.0)
    unseen = np.maximum(depth - short.length, 0)
    most = np.minimum(unseen, ended) + np.maximum(unseen - ended, 0) * part
    mean = np.divide(ended + (begun - ended) * part, begun, out=np.ones(len(depth)), where=begun > 0)
    return most, mean
