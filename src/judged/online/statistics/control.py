"""Control charts for a series of estimates, with Laney's correction, and CUSUM charts with a frozen baseline.

A standard error describes how far a point deviates due to its own sample. Days differ by more than that. Laney's
correction estimates the factor from the points themselves: limits are at ``3 * error * sigma_z`` from the center
(Laney, Quality Engineering 2002). Three changes to his chart keep its rate for few, rare, or autocorrelated days:

- sigma_z is Gini's mean difference of all pairs of standardized points, not of neighbors only: positive
  autocorrelation makes the latter too small. Runs are longer for the same reason.
- Where values are bounded, limits follow the skewness of a count near the bound (Cornish and Fisher).
- Points outside of the base are compared with a prediction interval, by Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Rule: TypeAlias = Literal["nelson-1", "nelson-2"]
Side: TypeAlias = Literal["above", "below"]

MIN_POINTS = 8
"""Minimum number of points for limits."""

RUN = 9
"""Points in a row on one side of the center that are a signal: a run length with probability 2 / 2**9."""

_SIGMAS = 3.0
_BELOW_3_SIGMA = 0.9986501019683699  # P(Z < 3) of a standard normal Z
_NORMAL_GINI = 2.0 / math.sqrt(math.pi)  # Gini's mean difference of a standard normal distribution
# Largest skewness of the Cornish-Fisher correction: beyond it, at about 0.4 events a day, the lower limit would exceed
# 0.
_MAX_SKEWNESS = 1.5
_MIN_WEEKS = 4  # days of each weekday that are required for weekday effects


@dataclass(frozen=True)
class Signal:
    """Point that violates a rule of Nelson (Journal of Quality Technology 1984)."""

    # `nelson-1`: a point outside of the limits. `nelson-2`: `Control.run` points in a row on one side of the center,
    # reported once per run.
    rule: Rule
    point: int  # index of the point; for `nelson-2`, of the one that completes the run
    first: int  # index of the first point of the run; `point` itself for `nelson-1`
    side: Side


@dataclass(frozen=True, eq=False)
class Control:
    """Control limits of a series."""

    center: float  # weighted mean of the base; NaN for too few points
    sigma_z: float  # standard deviation of the standardized points; 1: sampling explains all variance
    low: Floats  # (n,) lower limit of each point; NaN: no limit
    high: Floats  # (n,) upper limit of each point
    errors: Floats  # (n,) standard errors behind the limits
    base: int  # number of points behind center and limits
    run: int  # points in a row on one side that are a signal: `RUN`, or more for autocorrelated points
    signals: tuple[Signal, ...]  # in order of points


def control_limits(
    values: Floats,  # values, errors: (n,) estimates in order of time, and their standard errors. NaN: no point.
    errors: Floats,
    *,
    weights: Floats | None = None,
    base: Bools | None = None,  # (n,) whether a point contributes to center and limits; None: all do
    bounds: tuple[float, float] = (-math.inf, math.inf),  # range of values and limits, (0, 1) for shares
    seasonal: Floats
    | None = None,  # (n,) by how much points lie above the center as a rule: `weekly`; None: not at all
) -> Control:
    """Compute the individuals chart of a series with Laney's correction, and its signals.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.29, 0.31, 0.30, 0.20])
    >>> control = control_limits(values, np.full(10, 0.01), base=np.arange(10) < 9)
    >>> round(control.center, 4), round(float(control.low[0]), 4), control.signals
    (0.3022, 0.2727, (Signal(rule='nelson-1', point=9, first=9, side='below'),))
    """
    # `weights`: (n,) sample sizes. With them, errors are pooled over all points, as in a p chart, so that a day without
    # a click has one too. Without, errors are used as they are, the center is weighted by `1 / errors**2`, and points
    # with an error of 0 are ignored. No limits for a base of fewer than `MIN_POINTS` points, or without variance.
    errors = errors if weights is None else pooled_errors(errors, weights, base)
    usable = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    in_base = usable if base is None else usable & base
    no_limits = np.full(len(values), np.nan)
    missing = Control(math.nan, math.nan, no_limits, no_limits, errors, int(in_base.sum()), RUN, ())
    if missing.base < MIN_POINTS:
        return missing
    deseasonalized = values if seasonal is None else values - seasonal
    center_weights = (1.0 / errors[in_base] ** 2) if weights is None else weights[in_base]
    center = float((deseasonalized[in_base] * center_weights).sum() / center_weights.sum())
    z = (deseasonalized[in_base] - center) / errors[in_base]
    sigma_z = _mean_difference(z) / _NORMAL_GINI
    if sigma_z == 0:
        return missing
    centers = center + (values - deseasonalized)
    # Prediction interval of a new point, given that center and sigma_z are estimated.
    t_factor = student_quantile(_BELOW_3_SIGMA, missing.base - 1) * math.sqrt(1.0 + 1.0 / missing.base)
    sigmas = np.where(in_base, _SIGMAS, t_factor)
    low, high = _limits(centers, np.where(usable, sigma_z * errors, np.nan), sigmas, bounds)
    run = _run_length(z)
    signals = _signals(values, centers, (low, high), run)
    return Control(center, sigma_z, low, high, errors, missing.base, run, signals)


def _limits(centers: Floats, spread: Floats, sigmas: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return limits at `sigmas` spreads from the centers, shifted for the skewness of a count with this spread."""
    distances = centers - bounds[0], bounds[1] - centers
    below, above = (np.maximum(distance, spread / _MAX_SKEWNESS) for distance in distances)
    # Cornish-Fisher: quantile = mean + sigma (z + (z**2 - 1) skewness / 6). The skewness of Poisson and binomial values
    # is sigma / (mean - lower bound) - sigma / (upper bound - mean).
    shifted = centers + spread * (spread / below - spread / above) * (_SIGMAS**2 - 1.0) / 6.0
    low, high = shifted - sigmas * spread, shifted + sigmas * spread
    return np.clip(low, *bounds), np.clip(high, *bounds)


def _mean_difference(z: Floats) -> float:
    """Return Gini's mean difference: the mean absolute difference of all pairs."""
    n = len(z)
    return float((2.0 * np.arange(n) - n + 1.0) @ np.sort(z)) * 2.0 / (n * (n - 1))


def _run_length(z: Floats) -> int:
    """Return the run length that is as rare under the autocorrelation of `z` as a run of `RUN` independent points."""
    autocorrelation = float(np.clip((z[1:] * z[:-1]).sum() / (z * z).sum(), 0.0, 0.95))
    # P(next point on the same side) of a bivariate normal distribution is 1/2 + asin(correlation) / pi.
    same_side = 0.5 + math.asin(autocorrelation) / math.pi
    return math.ceil(1 + (RUN - 1) * math.log(0.5) / math.log(same_side) - 1e-9)


def weekday_effects(values: Floats, weights: Floats, weekdays: Ints) -> Floats:
    """Estimate the deviation of each weekday from the mean of all days, shrunk towards 0.

    >>> days = np.arange(28) % 7
    >>> values = np.where(days < 5, 0.3, 0.2) + 0.001 * (np.arange(28) // 14)
    >>> weekday_effects(values, np.ones(28), days)[:7].round(3).tolist()
    [0.029, 0.029, 0.029, 0.029, 0.029, -0.071, -0.071]
    """
    # The shrinkage factor is 1 - 1 / F, with F of a one-way analysis of variance (empirical Bayes): without a weekly
    # pattern, the effects are close to 0. They are 0 if some weekday has fewer than `_MIN_WEEKS` values.
    valid = np.isfinite(values) & (weights > 0)
    x, w, day = values[valid], weights[valid], weekdays[valid]
    if np.bincount(day, minlength=7).min() < _MIN_WEEKS:
        return np.zeros(len(values))
    sums = np.bincount(day, w, minlength=7)
    means, center = np.bincount(day, w * x, minlength=7) / sums, float((w * x).sum() / w.sum())
    between, within = float((sums * (means - center) ** 2).sum()) / 6.0, float((w * (x - means[day]) ** 2).sum())
    shrinkage = max(0.0, 1.0 - within / (len(x) - 7) / between) if between > 0 else 0.0
    return (shrinkage * (means - center))[weekdays]


def pooled_errors(errors: Floats, weights: Floats, base: Bools | None = None) -> Floats:
    """Return the standard error of each point from the pooled variance and the size of its sample.

    >>> pooled_errors(np.array([0.1, 0.1, 0.0]), np.array([100.0, 100.0, 25.0])).round(4).tolist()
    [0.0816, 0.0816, 0.1633]
    """
    # sqrt(mean(w * error**2) / w), with the mean over the points of the base that have an error; NaN without weight.
    valid = np.isfinite(errors) & (weights > 0) & (True if base is None else base)
    if not valid.any():
        return np.full(len(errors), np.nan)
    pooled = float((weights[valid] * errors[valid] ** 2).mean())
    return np.sqrt(pooled / np.where(weights > 0, weights, np.nan))


def _signals(values: Floats, centers: Floats, limits: tuple[Floats, Floats], length: int) -> tuple[Signal, ...]:
    """Apply both rules; a missing point neither ends a run nor counts in it."""
    signals: list[Signal] = []
    run: list[int] = []
    last_side = 0
    for i, (value, center, low, high) in enumerate(zip(values, centers, *limits, strict=True)):
        if math.isnan(low):
            continue
        side = int(value > center) - int(value < center)
        run = [*run, i] if side == last_side and side != 0 else [i]
        last_side = side
        side_name: Side = "above" if side > 0 else "below"
        if not low <= value <= high:
            signals.append(Signal("nelson-1", i, i, side_name))
        if len(run) == length:
            signals.append(Signal("nelson-2", i, run[0], side_name))
    return tuple(signals)


_PATHS, _YEAR, _BURN_IN = 1000, 365, 20  # simulated paths, days, and discarded days
_MIN_DAYS = 28  # days of a baseline that are required for weekday effects
_MAX_AUTOCORRELATION = 0.8
_RATE_SHARE = 0.8  # simulated share of the declared rate: real days vary in ways that the simulation does not model


@dataclass(frozen=True, eq=False)
class Baseline:
    """Frozen baseline of a series, and the series standardized by it.

    ``center``: mean of the baseline. ``z``: (n,) standardized points. ``errors``: (n,) standard deviation of each point
    in the unit of the metric. ``autocorrelation``: lag-1 autocorrelation, plus its standard error. ``days``: number of
    points in the baseline. All but `days` are NaN for too few points, or points without variance.
    """

    center: float
    z: Floats
    errors: Floats
    autocorrelation: float
    days: int


def fit_baseline(values: Floats, errors: Floats, sizes: Floats, weekdays: Ints, base: Bools) -> Baseline:
    """Standardize a series by its baseline, with weekday effects and Laney's correction.

    Parameters
    ----------
    values, errors, sizes
        (n,) estimates, standard errors, and sample sizes of each day; NaN: no data.
    weekdays
        (n,) 0 to 6.
    base
        (n,) whether a day belongs to the baseline.
    """
    inside = np.where(base, values, np.nan)
    seasonal = weekday_effects(inside, sizes, weekdays)
    control = control_limits(values, errors, weights=sizes, base=base, seasonal=seasonal)
    if math.isnan(control.center):
        no_values = np.full(len(values), np.nan)
        return Baseline(math.nan, no_values, no_values, math.nan, control.base)
    spread = control.sigma_z * control.errors * _noise_factor(inside, sizes, seasonal)
    z = (values - seasonal - control.center) / spread
    z_baseline = z[base & np.isfinite(z)]
    autocorrelation = float((z_baseline[1:] * z_baseline[:-1]).sum() / (z_baseline * z_baseline).sum())
    conservative = min(max(autocorrelation + 1.0 / math.sqrt(len(z_baseline)), 0.0), _MAX_AUTOCORRELATION)
    return Baseline(control.center, z, spread, conservative, control.base)


def _noise_factor(values: Floats, sizes: Floats, seasonal: Floats) -> float:
    """Return the factor that restores the noise which fitting weekday effects removed."""
    valid = np.isfinite(values) & (sizes > 0)
    x, w, u, n = values[valid], sizes[valid], seasonal[valid], int(valid.sum())
    if not u.any():
        return 1.0
    shrinkage = float((w * u * u).sum() / (w * u * x).sum())  # sum(w * u) is 0, so no centering
    # Six free weekday means use up 6 degrees of freedom; shrunk by s, they use up 1 - (1 - s)**2 of that.
    return math.sqrt((n - 1.0) / (n - 1.0 - 6.0 * shrinkage * (2.0 - shrinkage)))


def cusum(z: Floats, k: float, threshold: float) -> tuple[Floats, Ints]:
    """Compute a lower CUSUM (Page, Biometrika 1954): the sums, and the start of the current alarm (-1: no alarm).

    An alarm ends when the sum is back at 0. The sum is capped at twice the threshold, so that it can return there.

    >>> sums, since = cusum(np.array([0.0, -2.0, -3.0, 0.0, 9.0]), 0.5, 3.0)
    >>> sums.tolist(), since.tolist()
    ([0.0, 1.5, 4.0, 3.5, 0.0], [-1, -1, 1, 1, -1])
    """
    sums, since = np.zeros(len(z)), np.zeros(len(z), dtype=np.int64)
    total, start, alarm = 0.0, 0, False
    for i, value in enumerate(z.tolist()):
        if total == 0.0:
            start = i
        if not math.isnan(value):
            # S_i = max(0, S_(i-1) - z_i - k), with an alarm at S_i > h = `threshold`; k is half of the shift to detect.
            total = min(max(total - value - k, 0.0), 2.0 * threshold)
        alarm = total > 0.0 and (alarm or total > threshold)
        sums[i], since[i] = total, start if alarm else -1
    return sums, since


@cache
def threshold(days: int, autocorrelation: float, rate: float, k: float, seed: int = 0) -> float:
    """Compute by simulation the CUSUM threshold with at most this rate of false alarms in a year without a change.

    Parameters
    ----------
    days
        Number of days of the baseline.
    autocorrelation
        Lag-1 autocorrelation of the noise.
    rate
        False alarms per day.
    k
        As for `cusum`.
    seed
        Seed of the simulation.

    Examples
    --------
    A longer baseline has a lower threshold:

    >>> threshold(28, 0.0, 0.001, 0.5) > threshold(90, 0.0, 0.001, 0.5) > 5
    True
    """
    rng = np.random.default_rng(seed)
    noise = _noise(rng, days + _YEAR, autocorrelation)
    weekdays = 7 if days >= _MIN_DAYS else 1
    baseline_noise = noise[:days]
    centers = np.stack([baseline_noise[day::weekdays].mean(axis=0) for day in range(weekdays)])
    residuals = noise[: days + _YEAR] - centers[np.arange(days + _YEAR) % weekdays]
    # As in `fit_baseline`: the baseline's mean and variance are estimated, which makes false alarms more frequent.
    spread = np.sqrt((residuals[:days] ** 2).sum(axis=0) / (days - weekdays))
    z = residuals[days:] / spread
    low, high = 0.5, 200.0  # bisection on a logarithmic scale: the number of alarms falls with the threshold
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _alarms(z, k, middle) > _RATE_SHARE * rate * _YEAR else (low, middle)
    return high


@cache
def delay(
    shift: float, autocorrelation: float, k: float, level: float, share: float = 0.8, seed: int = 1,
    missing: float = 0.0,
) -> float:  # fmt: skip
    """Compute by simulation the days within which a share of the drops is detected; infinite beyond a year.

    Parameters
    ----------
    shift
        Size of the drop, in standard deviations of a day.
    autocorrelation, k
        As for `threshold`.
    level
        The threshold.
    share
        Share of the drops to detect.
    seed
        Seed of the simulation.
    missing
        Share of days without a value, which leave the sum unchanged.
    """
    rng = np.random.default_rng(seed)
    z = _noise(rng, _YEAR, autocorrelation) - shift
    has_value = rng.random((_YEAR, _PATHS)) >= missing
    total, detected_after = np.zeros(_PATHS), np.full(_PATHS, math.inf)
    for day in range(_YEAR):
        total = np.where(has_value[day], np.maximum(total - z[day] - k, 0.0), total)
        detected_after = np.where(np.isinf(detected_after) & (total > level), day + 1.0, detected_after)
    return float(np.sort(detected_after)[math.ceil(share * _PATHS) - 1])


def _noise(rng: np.random.Generator, days: int, autocorrelation: float) -> Floats:
    """Simulate (days, paths) of autoregressive noise with variance 1."""
    noise = rng.standard_normal((_BURN_IN + days, _PATHS))
    innovation_sd = math.sqrt(1.0 - autocorrelation * autocorrelation)
    for day in range(1, len(noise)):
        noise[day] = autocorrelation * noise[day - 1] + innovation_sd * noise[day]
    return noise[_BURN_IN:]


def _alarms(z: Floats, k: float, level: float) -> float:
    """Return the number of alarms of `cusum` per simulated path."""
    total, was_alarm, count = np.zeros(z.shape[1]), np.zeros(z.shape[1], dtype=bool), 0
    for values in z:
        total = np.minimum(np.maximum(total - values - k, 0.0), 2.0 * level)
        is_alarm = (total > 0.0) & (was_alarm | (total > level))
        count += int((is_alarm & ~was_alarm).sum())
        was_alarm = is_alarm
    return count / z.shape[1]
