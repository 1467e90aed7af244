"""Means in which topics count differently: by traffic, by relevant documents, or each group of topics the same.

The plain mean of n topics is one of these. Sees only numbers: one row per quantity, one column per topic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.interval import IntervalMethod, acceleration, bca_limits, times_drawn
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class WeightedMeans:
    """Weighted means over topics, one a row."""

    values: Floats  # (S,): NaN where no topic counts
    limits: Floats  # (S, 2): low and high of the interval; NaN where there is none
    n: Ints  # (S,): topics that count
    # (S,): Kish's effective number of topics: as many topics of equal weight would give a mean as sure. 0 without
    # topics.
    effective: Floats


def weighted_means(values: ArrayLike, weights: ArrayLike, method: IntervalMethod | None = None) -> WeightedMeans:
    """Give the weighted mean of each row, sum(w x) / sum(w), with an interval over topics.

    Parameters
    ----------
    values
        (S, T): S quantities over T topics. NaN: the topic does not count for that quantity.
    weights
        (T,): from 0. NaN, and 0: the topic does not count.
    method
        How intervals are made; Student's t if left out. ``bootstrap``: topics are resampled with their weights,
        bias-corrected and accelerated, the acceleration by leaving out one topic at a time. ``t``: linearised
        (the delta method), with Student's t for one less than the effective number of topics, rounded up: a few
        topics that carry most of the weight are what the interval rests on. ``adjusted`` is for plain means.

    Returns
    -------
    WeightedMeans
        A row with fewer than two topics has no interval, nor has one whose values are all the same.

    Raises
    ------
    InputError
        If a weight is negative or infinite, the shapes do not fit, or the method is for plain means alone.

    Notes
    -----
    Both intervals take the topics as a sample of which weights and values vary together. Where a few topics carry most
    of the weight, intervals are too narrow: look at `effective`.

    Examples
    --------
    >>> found = weighted_means([[0.2, 0.4, 0.9]], [1, 1, 2], IntervalMethod("t"))
    >>> found.values.round(3).tolist(), found.limits.round(3).tolist(), round(float(found.effective[0]), 2)
    ([0.6], [[-0.386, 1.586]], 2.67)
    """
    method = method or IntervalMethod("t")
    scores, shares = _checked(values, weights)
    counted = ~np.isnan(scores) & (shares > 0)
    table = np.where(counted, shares, 0.0)
    totals, n = table.sum(axis=1), counted.sum(axis=1)
    filled = np.where(counted, scores, 0.0)
    with np.errstate(invalid="ignore"):
        means = (table * filled).sum(axis=1) / totals
        effective = np.where(n > 0, totals**2 / (table**2).sum(axis=1), 0.0)
    limits = np.full((len(scores), 2), np.nan)
    lowest, highest = np.where(counted, scores, np.inf).min(axis=1), np.where(counted, scores, -np.inf).max(axis=1)
    level = (n > 1) & (lowest == highest)
    means[level] = lowest[level]  # the quotient may differ from it in the last bit
    rows = np.flatnonzero((n > 1) & ~level)
    if method.name == "adjusted":
        raise InputError("weighted means have no adjusted interval", fix="take t or bootstrap")
    if method.name == "t":
        apart = table[rows] * (filled[rows] - means[rows, None])
        limits[rows] = _linearised(means[rows], apart, totals[rows], effective[rows], n[rows], method.level)
    elif method.name == "bootstrap" and len(rows):
        masks, mask_of = np.unique(counted[rows], axis=0, return_inverse=True)
        for at, mask in enumerate(masks):
            alike = rows[mask_of.ravel() == at]  # one resample serves all rows that count the same topics
            limits[alike] = _resampled(filled[np.ix_(alike, mask)], shares[mask], means[alike], method)
    if method.name == "none":
        limits[:] = np.nan
    return WeightedMeans(means, limits, n.astype(np.int64), effective)


def means_of_groups(values: ArrayLike, groups: ArrayLike, level: float | None = 0.95) -> WeightedMeans:
    """Give the mean of the groups' means: each group counts the same, however many topics it has.

    >>> found = means_of_groups([[0.2, 0.4, 0.9, 0.5]], [0, 0, 1, 1])
    >>> found.values.round(3).tolist(), found.limits.round(3).tolist()
    ([0.5], [[-0.921, 1.921]])
    """
    # `values`: (S, T). NaN: the topic does not count for that quantity. `groups`: (T,) whole numbers; a negative one:
    # the topic is in no group. `level`: of the intervals; None: no intervals. The groups are taken as they are, their
    # topics as samples; the means' errors add up, with Satterthwaite's degrees of freedom. Returns NaN where a group
    # has no topic, and no interval where one has fewer than two.
    codes = np.asarray(groups, dtype=np.int64)
    if codes.ndim != 1:
        raise InputError(f"groups of shape {codes.shape} are not a list", fix="give one whole number a topic")
    scores, _ = _checked(values, np.ones(len(codes)))
    kinds = np.unique(codes[codes >= 0])
    counts, means, squares = (np.full((len(scores), len(kinds)), np.nan) for _ in range(3))
    for at, kind in enumerate(kinds.tolist()):
        part = scores[:, codes == kind]
        counted = ~np.isnan(part)
        counts[:, at] = n = counted.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, at] = mean = np.where(counted, part, 0.0).sum(axis=1) / n
            apart = np.where(counted, part - mean[:, None], 0.0)
            squares[:, at] = (apart**2).sum(axis=1) / (n - 1) / n
    whole = means.mean(axis=1) if len(kinds) else np.full(len(scores), np.nan)
    limits = np.full((len(scores), 2), np.nan)
    for row in np.flatnonzero((counts >= 2).all(axis=1)).tolist() if level is not None and len(kinds) else ():
        limits[row] = _satterthwaite(float(whole[row]), squares[row], counts[row], level or 0.0)
    effective = np.zeros(len(scores))
    if len(kinds):
        with np.errstate(divide="ignore"):
            effective = len(kinds) ** 2 / (1 / counts).sum(axis=1)
    return WeightedMeans(whole, limits, counts.sum(axis=1).astype(np.int64), effective)


def _checked(values: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    scores, shares = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if scores.ndim != 2 or shares.shape != scores.shape[1:]:
        raise InputError(
            f"scores of shape {scores.shape} and weights of shape {shares.shape} do not fit",
            fix="give one row per quantity, and one weight a topic",
        )
    if np.isinf(scores).any():
        raise InputError("a score is infinite", fix="give finite scores, NaN where a topic has none")
    if np.isinf(shares).any() or (shares < 0).any():
        raise InputError("a weight is negative or infinite", fix="give weights from 0, such as how often a query came")
    return scores, shares


def _linearised(means: Floats, apart: Floats, totals: Floats, effective: Floats, n: Ints, level: float) -> Floats:
    """Give the limits of the delta method: the weighted residuals (S, T) over the sum of weights."""
    errors = np.sqrt((apart**2).sum(axis=1) * n / (n - 1)) / totals
    freedom = np.maximum(np.ceil(effective - 1e-9).astype(np.int64) - 1, 1)
    halves = errors * [student_quantile((1 + level) / 2, df) for df in freedom.tolist()]
    return np.stack([means - halves, means + halves], axis=1)


def _resampled(scores: Floats, weights: Floats, means: Floats, method: IntervalMethod) -> Floats:
    """Give the bias-corrected and accelerated limits of rows that count the same topics: (S, 2)."""
    share = weights / weights.sum()
    products = scores * share
    # The draws are those of the plain mean's interval, which equal weights therefore give.
    ratios = np.concatenate(
        [(products @ times.T) / (times @ share) for times in times_drawn(len(share), method)], axis=1
    )
    left_out = (means[:, None] - products) / (1 - share)  # of each mean, were this topic not there
    pulls = left_out.mean(axis=1, keepdims=True) - left_out
    limits = [
        bca_limits(resampled, mean, acceleration(pull), method.level)
        for resampled, mean, pull in zip(ratios, means.tolist(), pulls, strict=True)
    ]
    return np.array(limits)


def _satterthwaite(mean: float, squares: Floats, counts: Floats, level: float) -> tuple[float, float]:
    """Give the limits of a mean of independent means whose squared errors and numbers of topics these are."""
    total = float(squares.sum())
    if not total > 0:
        return math.nan, math.nan
    freedom = max(math.floor(total**2 / float((squares**2 / (counts - 1)).sum()) + 1e-9), 1)
    half = student_quantile((1 + level) / 2, freedom) * math.sqrt(total) / len(squares)
    return mean - half, mean + half


def groups_of(members: Bools) -> Ints | None:
    """Give each topic the group that it is in, -1 for none: (G, T) to (T,); None where groups overlap.

    >>> groups_of(np.array([[True, False, False], [False, True, False]])).tolist()
    [0, 1, -1]
    """
    if len(members) and (members.sum(axis=0) > 1).any():
        return None
    found = np.full(members.shape[1], -1, dtype=np.int64)
    group, topic = np.nonzero(members)
    found[topic] = group
    return found
