"""Weighted means over topics, such as by traffic or with equal weights for groups of topics.

Arrays have one row per quantity and one column per topic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.interval import IntervalMethod, acceleration, bca_limits, resampling_weights
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class WeightedMeans:
    """Weighted means over topics, one per row."""

    values: Floats  # (S,): NaN without topics
    limits: Floats  # (S, 2): low and high of the interval; NaN without one
    n: Ints  # (S,): topics that count
    effective: Floats  # (S,): Kish's effective number of topics


def weighted_means(values: ArrayLike, weights: ArrayLike, method: IntervalMethod | None = None) -> WeightedMeans:
    """Compute the weighted mean of each row, sum(w x) / sum(w), with an interval over topics.

    Parameters
    ----------
    values
        (S, T): S quantities over T topics. NaN: the topic does not count for that quantity.
    weights
        (T,): 0 or more. Topics with 0 or NaN do not count.
    method
        Interval method. Default: Student's t. ``bootstrap``: topics are resampled with their weights; BCa with the
        acceleration from leaving out one topic at a time. ``t``: delta method, with Student's t for the effective
        number of topics, rounded up, minus 1, because the interval depends on the few topics with most of the weight.
        ``adjusted`` is not available.

    Returns
    -------
    WeightedMeans
        Rows with fewer than two topics and constant rows have no interval.

    Raises
    ------
    InputError
        If a weight is negative or infinite, the shapes differ, or the method is ``adjusted``.

    Notes
    -----
    Both intervals treat topics as a sample of pairs of weight and value. If a few topics have most of the weight (see
    `effective`), the intervals are too narrow.

    Examples
    --------
    >>> means = weighted_means([[0.2, 0.4, 0.9]], [1, 1, 2], IntervalMethod("t"))
    >>> means.values.round(3).tolist(), means.limits.round(3).tolist(), round(float(means.effective[0]), 2)
    ([0.6], [[-0.386, 1.586]], 2.67)
    """
    method = method or IntervalMethod("t")
    scores, topic_weights = _check_scores(values, weights)
    is_counted = ~np.isnan(scores) & (topic_weights > 0)
    row_weights = np.where(is_counted, topic_weights, 0.0)
    totals, n = row_weights.sum(axis=1), is_counted.sum(axis=1)
    filled = np.where(is_counted, scores, 0.0)
    with np.errstate(invalid="ignore"):
        means = (row_weights * filled).sum(axis=1) / totals
        effective = np.where(n > 0, totals**2 / (row_weights**2).sum(axis=1), 0.0)
    limits = np.full((len(scores), 2), np.nan)
    lowest = np.where(is_counted, scores, np.inf).min(axis=1)
    highest = np.where(is_counted, scores, -np.inf).max(axis=1)
    is_constant = (n > 1) & (lowest == highest)
    means[is_constant] = lowest[is_constant]  # removes the rounding error of the quotient
    rows = np.flatnonzero((n > 1) & ~is_constant)
    if method.name == "adjusted":
        raise InputError(
            "the interval method 'adjusted' is not available for weighted means", fix="use the method t or bootstrap"
        )
    if method.name == "t":
        weighted_residuals = row_weights[rows] * (filled[rows] - means[rows, None])
        limits[rows] = _delta_method_limits(
            means[rows], weighted_residuals, totals[rows], effective[rows], n[rows], method.level
        )
    elif method.name == "bootstrap" and len(rows):
        masks, mask_index = np.unique(is_counted[rows], axis=0, return_inverse=True)
        for i, mask in enumerate(masks):
            same_topics = rows[mask_index.ravel() == i]  # rows with the same topics share their resamples
            limits[same_topics] = _bootstrap_limits(
                filled[np.ix_(same_topics, mask)], topic_weights[mask], means[same_topics], method
            )
    if method.name == "none":
        limits[:] = np.nan
    return WeightedMeans(means, limits, n.astype(np.int64), effective)


def group_balanced_means(values: ArrayLike, groups: ArrayLike, level: float | None = 0.95) -> WeightedMeans:
    """Compute the mean of group means: all groups have the same weight, whatever their number of topics.

    >>> means = group_balanced_means([[0.2, 0.4, 0.9, 0.5]], [0, 0, 1, 1])
    >>> means.values.round(3).tolist(), means.limits.round(3).tolist()
    ([0.5], [[-0.921, 1.921]])
    """
    # `values`: (S, T), NaN for topics that do not count. `groups`: (T,) integers; topics with a negative number are in
    # no group. `level`: None for no intervals. The groups are fixed and their topics are samples, with Satterthwaite's
    # degrees of freedom. NaN if a group has no topic; no interval if a group has fewer than two topics.
    codes = np.asarray(groups, dtype=np.int64)
    if codes.ndim != 1:
        raise InputError(f"`groups` must have 1 dimension, got shape {codes.shape}", fix="pass one integer per topic")
    scores, _ = _check_scores(values, np.ones(len(codes)))
    groups_present = np.unique(codes[codes >= 0])
    counts, means, squared_errors = (np.full((len(scores), len(groups_present)), np.nan) for _ in range(3))
    for column, group in enumerate(groups_present.tolist()):
        group_scores = scores[:, codes == group]
        is_counted = ~np.isnan(group_scores)
        counts[:, column] = n = is_counted.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, column] = mean = np.where(is_counted, group_scores, 0.0).sum(axis=1) / n
            deviations = np.where(is_counted, group_scores - mean[:, None], 0.0)
            squared_errors[:, column] = (deviations**2).sum(axis=1) / (n - 1) / n
    balanced_means = means.mean(axis=1) if len(groups_present) else np.full(len(scores), np.nan)
    limits = np.full((len(scores), 2), np.nan)
    for row in np.flatnonzero((counts >= 2).all(axis=1)).tolist() if level is not None and len(groups_present) else ():
        limits[row] = _satterthwaite_limits(float(balanced_means[row]), squared_errors[row], counts[row], level or 0.0)
    effective = np.zeros(len(scores))
    if len(groups_present):
        with np.errstate(divide="ignore"):
            effective = len(groups_present) ** 2 / (1 / counts).sum(axis=1)
    return WeightedMeans(balanced_means, limits, counts.sum(axis=1).astype(np.int64), effective)


def _check_scores(values: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    scores, topic_weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if scores.ndim != 2 or topic_weights.shape != scores.shape[1:]:
        raise InputError(
            f"weights must have one value per topic, got shapes {scores.shape} and {topic_weights.shape}",
            fix="pass one row of scores per quantity, and one weight per topic",
        )
    if np.isinf(scores).any():
        raise InputError("scores must be finite, got an infinite score", fix="use NaN for missing scores")
    if np.isinf(topic_weights).any() or (topic_weights < 0).any():
        raise InputError("weights must be finite and not negative", fix="use weights such as query frequencies")
    return scores, topic_weights


def _delta_method_limits(
    means: Floats, weighted_residuals: Floats, totals: Floats, effective: Floats, n: Ints, level: float
) -> Floats:
    """Compute limits by the delta method, from weighted residuals (S, T) and sums of weights."""
    errors = np.sqrt((weighted_residuals**2).sum(axis=1) * n / (n - 1)) / totals
    dfs = np.maximum(np.ceil(effective - 1e-9).astype(np.int64) - 1, 1)
    half_widths = errors * [student_quantile((1 + level) / 2, df) for df in dfs.tolist()]
    return np.stack([means - half_widths, means + half_widths], axis=1)


def _bootstrap_limits(scores: Floats, weights: Floats, means: Floats, method: IntervalMethod) -> Floats:
    """Compute BCa limits of rows with the same topics: (S, 2)."""
    shares = weights / weights.sum()
    products = scores * shares
    # With equal weights, the resamples and so the limits are those of the plain mean.
    ratios = np.concatenate(
        [(products @ counts.T) / (counts @ shares) for counts in resampling_weights(len(shares), method)], axis=1
    )
    leave_one_out = (means[:, None] - products) / (1 - shares)  # mean without each topic
    influences = leave_one_out.mean(axis=1, keepdims=True) - leave_one_out
    limits = [
        bca_limits(resampled, mean, acceleration(influence), method.level)
        for resampled, mean, influence in zip(ratios, means.tolist(), influences, strict=True)
    ]
    return np.array(limits)


def _satterthwaite_limits(mean: float, squared_errors: Floats, counts: Floats, level: float) -> tuple[float, float]:
    """Compute the limits of the mean of independent means from their squared errors and numbers of topics."""
    total = float(squared_errors.sum())
    if not total > 0:
        return math.nan, math.nan
    df = max(math.floor(total**2 / float((squared_errors**2 / (counts - 1)).sum()) + 1e-9), 1)
    half_width = student_quantile((1 + level) / 2, df) * math.sqrt(total) / len(squared_errors)
    return mean - half_width, mean + half_width


def encode_groups(members: Bools) -> Ints | None:
    """Return the group of each topic, -1 for none: (G, T) to (T,); None if groups overlap.

    >>> encode_groups(np.array([[True, False, False], [False, True, False]])).tolist()
    [0, 1, -1]
    """
    if len(members) and (members.sum(axis=0) > 1).any():
        return None
    codes = np.full(members.shape[1], -1, dtype=np.int64)
    group, topic = np.nonzero(members)
    codes[topic] = group
    return codes
