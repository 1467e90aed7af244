"""Change points of an autocorrelated series, and decomposition of the change of a ratio into mix and rates."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.results.types import ReadOnly
from judged.stats.inputs import check_resampling
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged.results.types import Floats


_BATCH_VALUES = 1 << 18  # simulated values in memory at a time
# Largest autocorrelation of a series without a change: beyond it, a change and a slow drift look the same.
_MAX_SLOPE = 0.5
_WINDOW = 5  # points of the Hampel filter
_OUTLIER = 6.0  # distance from the median, in robust standard deviations, from which on a point is an outlier
_MAD = 1.4826  # standard deviation of a normal distribution divided by its median absolute deviation
# The slope of the simulated series is larger than the estimate by this many standard errors, 1 / sqrt(n), because a
# slope that is too small makes too many changes significant.
_SLOPE_ERRORS = 2.0


@dataclass(frozen=True)
class LevelChange:
    """Change of the level of a series."""

    point: int  # index of the first point of the new level
    before: float  # weighted mean of the segment before it, back to the previous change
    after: float  # weighted mean of the segment after it, up to the next change
    p: float  # p-value of the best split of its segment, if the level did not change


def change_points(
    values: Floats,  # (n,) in order of time. NaN: no point.
    weights: Floats,
    *,
    alpha: float = 0.01,
    shortest: int = 5,
    resamples: int = 999,  # simulated series without a change, at least 100
    seed: int = 0,
) -> tuple[LevelChange, ...]:
    """Detect changes of the level of a series.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.31, 0.30, 0.25, 0.24, 0.25, 0.26, 0.24, 0.25])
    >>> (change,) = change_points(values, np.ones(12))
    >>> change.point, round(change.before, 3), round(change.after, 3)
    (6, 0.302, 0.248)
    """
    # Points may be autocorrelated. The best split of an autoregression of order 1 is compared with the best splits of
    # such series without a change, simulated from the residuals: the sup F test of Andrews (Econometrica 1993) with the
    # bootstrap of Diebold and Chen (Journal of Econometrics 1996). Both segments of a split are then tested in turn.
    # Error rates: docs/calibration.md. `weights`: (n,) positive, proportional to `1 / errors**2` and thus to the sample
    # size. A series of fewer than `2 * shortest` points has no changes.
    check_resampling(resamples, seed)
    if not 0 < alpha < 1 or shortest < 2:
        problem = f"`alpha` must be between 0 and 1, and `shortest` at least 2, got {alpha} and {shortest}"
        raise InputError(problem, fix="use alpha=0.01 and shortest=5")
    if (resamples + 1) * alpha < 1:
        needed = int(np.ceil(1 / alpha))
        raise InputError(f"`resamples` must be at least 1 / alpha - 1, got {resamples}", fix=f"use {needed}")
    valid = np.flatnonzero(np.isfinite(values) & np.isfinite(weights) & (weights > 0))
    x, w = values[valid], weights[valid]
    filtered = _replace_outliers(x)
    p_values: dict[int, float] = {}
    segments = [(0, len(x))]
    while segments:
        start, end = segments.pop()
        rng = np.random.default_rng((seed, start, end))
        cut, p = _best_split(filtered[start:end], w[start:end], shortest, resamples, rng)
        if p <= alpha:
            p_values[start + cut] = p
            segments += [(start, start + cut), (start + cut, end)]
    edges = [0, *sorted(p_values), len(x)]
    means = [float(np.average(x[a:b], weights=w[a:b])) for a, b in itertools.pairwise(edges) if b > a]
    splits = enumerate(edges[1:-1])
    return tuple(LevelChange(int(valid[cut]), means[i], means[i + 1], p_values[cut]) for i, cut in splits)


def _replace_outliers(x: Floats) -> Floats:
    """Replace isolated outliers by the median of their window (Hampel filter), because they would hide a change."""
    if len(x) < _WINDOW:
        return x
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, _WINDOW // 2, mode="edge"), _WINDOW)
    median = np.median(windows, axis=1)
    scale = _MAD * np.median(np.abs(x - median))
    jumps = np.abs(np.diff(x, prepend=np.inf, append=np.inf))
    # A point of a new level is far from the median, but close to a neighbor, so it is no outlier.
    distance = np.minimum(np.abs(x - median), np.minimum(jumps[:-1], jumps[1:]))
    return np.where((scale > 0) & (distance > _OUTLIER * scale), median, x)


def _best_split(x: Floats, w: Floats, shortest: int, resamples: int, rng: np.random.Generator) -> tuple[int, float]:
    """Return the best split and its p-value: the share of simulated series without a change that have a better one."""
    if len(x) < max(2 * shortest, 5):
        return 0, 1.0
    centered = x - np.average(x, weights=w)
    largest = np.abs(centered).max()
    if largest <= 1e-12 * np.abs(x).max():
        return 0, 1.0
    centered, w = centered / largest, w / w.max()
    scores, slopes = (row[0] for row in _split_scores(centered[None, :], w, shortest))
    best = int(scores.argmax())
    cut, slope = best + shortest, float(slopes[best])
    residuals = centered[1:] - slope * centered[:-1]
    for side in (slice(0, cut - 1), slice(cut - 1, None)):
        residuals[side] -= np.average(residuals[side], weights=w[1:][side])
    residuals *= np.sqrt(w[1:])  # equal variances make the residuals exchangeable
    slope = min(slope + _SLOPE_ERRORS / math.sqrt(len(x)), _MAX_SLOPE)
    exceedances = 1  # the observed series counts too, so that p is never 0
    batch = max(1, _BATCH_VALUES // len(x))
    for start in range(0, resamples, batch):
        count = min(batch, resamples - start)
        series = _simulate_series(residuals, slope, w, count, rng)
        exceedances += int((_split_scores(series, w, shortest)[0].max(axis=1) >= scores[best] * (1.0 - 1e-12)).sum())
    return cut, exceedances / (resamples + 1)


def _simulate_series(residuals: Floats, slope: float, w: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Simulate autoregressive series without a change from the residuals in random order; shape (count, n)."""
    orders = rng.permuted(np.broadcast_to(residuals, (count, len(residuals))), axis=1)
    starts = rng.choice(residuals, size=(count, 1)) / math.sqrt(1.0 - slope**2)
    series = np.concatenate([starts, orders], axis=1) / np.sqrt(w)
    for t in range(1, series.shape[1]):
        series[:, t] += slope * series[:, t - 1]
    return series


def _split_scores(x: Floats, w: Floats, shortest: int) -> tuple[Floats, Floats]:
    """Return, for each series and split, the share of residual squares that the split explains, and the slope.

    Residuals are those of an autoregression of order 1 with a slope from 0 to `_MAX_SLOPE`, with one intercept, and
    with one on each side of the split.
    """
    w = w[1:]
    total = w.sum()
    y, lag = (column - (column @ w / total)[:, None] for column in (x[:, 1:], x[:, :-1]))
    yy, ylag, laglag = (y * y) @ w, (y * lag) @ w, (lag * lag) @ w
    slope = np.clip(ylag / np.maximum(laglag, 1e-300), 0.0, _MAX_SLOPE)
    one_level = yy - 2.0 * slope * ylag + slope**2 * laglag

    def sum_after(terms: Floats) -> Floats:
        sums = np.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]
        return sums[..., shortest - 1 : x.shape[1] - shortest]

    # Frisch-Waugh: remove from y and its lag the projection on the indicator of points after each split.
    weight = sum_after(w)
    step = weight * (1.0 - weight / total)
    y_after, lag_after = sum_after(y * w), sum_after(lag * w)
    yy, ylag = yy[:, None] - y_after**2 / step, ylag[:, None] - y_after * lag_after / step
    laglag = np.maximum(laglag[:, None] - lag_after**2 / step, 0.0)
    slopes = np.clip(ylag / np.maximum(laglag, 1e-300), 0.0, _MAX_SLOPE)
    two_levels = yy - 2.0 * slopes * ylag + slopes**2 * laglag
    return 1.0 - two_levels / np.maximum(one_level, 1e-300)[:, None], slopes


@dataclass(frozen=True, eq=False)
class Decomposition(ReadOnly):
    """Change of a ratio over S strata, as the sum of a mix effect and a within-stratum effect.

    Parameters
    ----------
    mix
        Effect of the strata's shares of the denominator.
    within
        Effect of their ratios.
    by_stratum
        (S,) contribution of each stratum to `within`.
    mix_weights, within_weights
        (2, 2, S), by period, then numerator or denominator: derivative of the effect with respect to these sums. The
        weighted sum over a unit's values is its influence; squares of the influences give the variance.
    """

    mix: float
    within: float
    by_stratum: Floats
    mix_weights: Floats
    within_weights: Floats


def decomposition(numerators: Floats, denominators: Floats) -> Decomposition:
    """Decompose the change of a ratio (Kitagawa, Journal of the American Statistical Association 1955).

    Weights are means over both periods, so that the order of the periods does not matter. A stratum without a
    denominator in one period is assumed to have its ratio of the other period.

    Parameters
    ----------
    numerators, denominators
        (2, S) sums of the strata, before and after.

    Examples
    --------
    Of two queries, one is always clicked and the other never; the share of the first falls by half:

    >>> effects = decomposition(np.array([[60.0, 0.0], [30.0, 0.0]]), np.array([[60.0, 40.0], [30.0, 70.0]]))
    >>> round(effects.mix, 3), round(effects.within, 3)
    (-0.3, 0.0)
    """
    totals = denominators.sum(axis=1, keepdims=True)
    shares = denominators / totals
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = numerators / denominators
        inverse = np.where(denominators > 0, 1.0 / denominators, 0.0)
    ratios = np.where(np.isnan(ratios), ratios[::-1], ratios)
    ratios = np.where(np.isnan(ratios), 0.0, ratios)
    signs = np.array([[-1.0], [1.0]])
    share, ratio = shares.mean(axis=0), ratios.mean(axis=0)
    share_change, ratio_change = shares[1] - shares[0], ratios[1] - ratios[0]

    def weights(by_share: Floats, by_ratio: Floats) -> Floats:
        """Apply the chain rule to the derivatives with respect to each share and each ratio."""
        through_shares = (by_share - (by_share * shares).sum(axis=1, keepdims=True)) / totals
        return np.stack([by_ratio * inverse, through_shares - by_ratio * ratios * inverse], axis=1)

    return Decomposition(
        mix=float(share_change @ ratio),
        within=float(share @ ratio_change),
        by_stratum=share * ratio_change,
        mix_weights=weights(signs * ratio, np.broadcast_to(share_change / 2.0, shares.shape)),
        within_weights=weights(np.broadcast_to(ratio_change / 2.0, shares.shape), signs * share),
    )


def part_interval(value: float, squares: float, units: float, effective: float, level: float) -> tuple[float, float]:
    """Compute the interval of an effect from the sum of squared influences of units, with Student's t.

    >>> [round(limit, 3) for limit in part_interval(0.1, 0.0016, 100, 50, 0.95)]
    [0.019, 0.181]
    """
    # `effective`: effective number of units (Kish). The interval is NaN for fewer than two.
    if not min(units, effective) >= 2 or math.isnan(value):
        return math.nan, math.nan
    half_width = student_quantile(0.5 + level / 2.0, max(int(effective) - 1, 1)) * math.sqrt(
        squares * units / (units - 1.0)
    )
    return value - half_width, value + half_width
