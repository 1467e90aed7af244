"""How alike the wordings of one need are: the rankings that a run gives to them, and its scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.judging.dense import all_returned
from judged.judging.policies import Ranking
from judged.judging.segments import segment_starts
from judged.stats.options import ROUNDING
from judged.stats.rbo import overlap_at, rbo
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints
    from judged.data import Run
    from judged.judging import Precision, TiePolicy

_MOST_PAIRS = 300  # of one need; of more, as many are taken at even distances


def alike(
    run: Run,
    groups: Sequence[Sequence[str]],
    *,
    depth: int = 10,
    p: float = 0.9,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> tuple[Floats, Floats]:
    """Give the mean overlap, and the mean rank-biased overlap, of the rankings of every two wordings of a need.

    >>> from judged.data import Run
    >>> run = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"b": 2.0, "a": 1.0}, "3": {"a": 2.0, "c": 1.0}})
    >>> overlap, _ = alike(run, [["1", "2", "3"]], depth=2)
    >>> round(float(overlap[0]), 3)  # 1 and 2 share both, the others one of two
    0.667
    """
    # Returns overlap, rbo: (N,): NaN for a need with fewer than two wordings that returned something.
    query_ids = tuple(sorted({query for group in groups for query in group}))
    place = {query: at for at, query in enumerate(query_ids)}
    shown = all_returned(run, query_ids, Ranking(ties, depth, precision))
    docs = shown.doc.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    starts = segment_starts(shown.topic, len(query_ids))
    lists = [docs[starts[at] : starts[at + 1]] for at in range(len(query_ids))]
    likeness = np.full((2, len(groups)), np.nan)
    for need, group in enumerate(groups):
        there = [lists[place[query]] for query in group if len(lists[place[query]])]
        first, second = np.triu_indices(len(there), 1)
        if len(first):
            some = np.linspace(0, len(first) - 1, min(len(first), _MOST_PAIRS)).round().astype(np.int64)
            found = [_two(there[first[at]], there[second[at]], depth, p) for at in np.unique(some).tolist()]
            likeness[:, need] = [np.mean(column) for column in zip(*found, strict=True)]
    return likeness[0], likeness[1]


def _two(one: Ints, other: Ints, depth: int, p: float) -> tuple[float, float]:
    union = np.unique(np.concatenate((one, other)))
    ranks = np.zeros((2, len(union)), dtype=np.int64)
    for row, docs in enumerate((one, other)):
        ranks[row, np.searchsorted(union, docs)] = np.arange(1, len(docs) + 1)
    return overlap_at(ranks[0], ranks[1], depth), rbo(ranks[0], ranks[1], p).value


@dataclass(frozen=True)
class Consistency:
    """The share of the variance of scores that lies between needs."""

    # from 0, where wordings of one need differ as much as needs do, to 1, where they all score alike. NaN where it is
    # not defined: fewer than two needs, no need with two wordings, or scores that do not vary.
    value: float
    interval: tuple[float, float] | None  # over needs
    needs: int
    variants: int


def consistency(scores: Floats, need: Ints, *, level: float = 0.95) -> Consistency:
    """Estimate the share of the variance that lies between needs.

    >>> found = consistency(np.array([0.1, 0.3, 0.5, 0.7]), np.array([0, 0, 1, 1]))
    >>> round(found.value, 3)  # mean squares 0.16 and 0.02: between (0.16 - 0.02) / 2 = 0.07
    0.778
    """
    # This is the intraclass correlation ICC(1) of a one-way random-effects analysis of variance, for groups of unequal
    # size: `between / (between + within)`. A negative estimate of the part between needs counts as 0. The interval
    # leaves out whole needs, one at a time, as wordings of one need are not independent: a jackknife of the logarithm
    # of the ratio of mean squares. (In simulations it held the true share 93 to 96 times out of 100 for 15 to 100
    # needs; percentiles of resampled needs did so 89 to 94 times.) `scores`: (T,): one a variant; NaN is left out.
    # `need`: (T,): which need each variant words.
    known = ~np.isnan(scores)
    values, codes = scores[known], need[known]
    _, group = np.unique(codes, return_inverse=True)
    size = np.bincount(group).astype(np.float64)
    needs = len(size)
    if not len(values) or np.ptp(values) <= ROUNDING * np.abs(values).max():
        return Consistency(math.nan, None, needs, len(values))
    centred = values - values.mean()
    total = np.bincount(group, weights=centred).astype(np.float64)
    inside = (centred - (total / size)[group]) ** 2
    within = np.bincount(group, weights=np.where(inside <= ROUNDING**2, 0.0, inside)).astype(np.float64)
    between, rest, usual = (float(part[0]) for part in _mean_squares(np.ones((1, needs)), size, total, within))
    if math.isnan(between) or math.isnan(rest) or between + rest <= 0:
        return Consistency(math.nan, None, needs, len(values))
    value = 1.0 if rest == 0 else _share(between / rest, usual)
    interval = None
    if between > 0 and rest > 0:
        left_out = _mean_squares(np.ones((needs, needs)) - np.eye(needs), size, total, within)
        interval = _jackknifed(between / rest, left_out[0], left_out[1], usual, level)
    return Consistency(value, interval, needs, len(values))


def _mean_squares(times: Floats, size: Floats, total: Floats, within: Floats) -> tuple[Floats, Floats, Floats]:
    """Give the mean squares between and within needs, and the usual size, for each row of weights of the needs."""
    needs, variants, grand = times.sum(axis=1), times @ size, times @ total
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (times @ (total**2 / size) - grand**2 / variants) / (needs - 1)
        rest = (times @ within) / (variants - needs)
        usual = (variants - (times @ size**2) / variants) / (needs - 1)
    return between, rest, usual


def _share(ratio: float, usual: float) -> float:
    """Give the share of the variance between needs by the ratio of the mean squares."""
    return max(0.0, (ratio - 1) / (ratio - 1 + usual))


def _jackknifed(ratio: float, between: Floats, rest: Floats, usual: float, level: float) -> tuple[float, float] | None:
    """Give the interval by the ratios that are left when each need is left out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(between / rest)
    if not np.isfinite(logs).all():
        return None
    needs = len(logs)
    error = math.sqrt((needs - 1) / needs * float(((logs - logs.mean()) ** 2).sum()))
    half = student_quantile((1 + level) / 2, needs - 1) * error
    return _share(math.exp(math.log(ratio) - half), usual), _share(math.exp(math.log(ratio) + half), usual)
