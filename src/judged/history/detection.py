"""Changes in a series of evaluations: when one was detected, and with which evaluation it began."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.student import student_cdf

if TYPE_CHECKING:
    from judged.results.types import Floats

REFERENCE_VALUE = 0.5
"""Reference value k of the CUSUM, in standard deviations: half of the shift that it detects fastest."""
MIN_EVALUATIONS = 8
"""Number of first evaluations that cannot be detected as changes, because they estimate the noise."""
_MAX_Z = 8.0  # most that one evaluation can add to the CUSUM
_MAX_AUTOCORRELATION = 0.9
_ROUNDING = 1e-12
_DETECTABLE = 2.0  # standard deviations
_MAX_DELAY, _PATHS = 200, 1000  # of the simulation of the delay
# Ratios of the variance of changes over topics to the variance of noise, over which the likelihood is averaged
_RATIOS = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0])
_STEPS = 4  # iterations that alternate between the position of the change and the variances
_PRIOR_DF = 4.0  # prior weight, in degrees of freedom, of the variance averaged over topics


@dataclass(frozen=True, eq=False)
class Shift:
    """Change of the mean score.

    Parameters
    ----------
    start
        Index of the first evaluation after the change.
    detected
        Index of the evaluation at which it was detected.
    probabilities
        ``probabilities[i]``: probability that the change began with evaluation ``offset + i``, given exactly one change
        between the previous and the next one.
    """

    start: int
    detected: int
    probabilities: Floats
    offset: int

    def likely(self, level: float = 0.9) -> range:
        """Return the shortest range of evaluations around `start` with at least this probability."""
        low = high = self.start - self.offset
        while self.probabilities[low : high + 1].sum() < level - 1e-9:
            before = self.probabilities[low - 1] if low else -1.0
            after = self.probabilities[high + 1] if high + 1 < len(self.probabilities) else -1.0
            low, high = (low - 1, high) if before > after else (low, high + 1)
        return range(self.offset + low, self.offset + high + 1)


@dataclass(frozen=True, eq=False)
class Detection:
    """Changes of one series, and the noise between its evaluations.

    Parameters
    ----------
    shifts
        Changes, in order of time.
    deviation
        Standard deviation of the mean score of one evaluation, if nothing changes, increased for autocorrelation; NaN
        for fewer than `MIN_EVALUATIONS`.
    evaluations
        Degrees of freedom of the standard deviation, plus 1.
    threshold
        Threshold of the CUSUM.
    """

    shifts: tuple[Shift, ...]
    deviation: float
    evaluations: int
    threshold: float

    @property
    def detectable(self) -> float:
        """Change of two standard deviations, for which `delay` is computed."""
        return _DETECTABLE * self.deviation

    @property
    def delay(self) -> float:
        """Number of evaluations within which 80% of changes of this size are detected.

        NaN for too few evaluations; infinite if more than 200 are needed.
        """
        return math.nan if math.isnan(self.deviation) else _delay(_DETECTABLE, self.evaluations, self.threshold)


@cache
def _delay(shift: float, evaluations: int, threshold: float) -> float:
    """Compute the delay by simulation, for a shift in standard deviations; infinite beyond `_MAX_DELAY`."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((evaluations + _MAX_DELAY, _PATHS))
    values[evaluations:] += shift
    counts = np.arange(1, len(values) + 1)[:, None]
    means = np.cumsum(values, axis=0) / counts
    variances = (np.cumsum(values**2, axis=0) - counts * means**2) / np.maximum(counts - 1, 1)
    total, delays = np.zeros(_PATHS), np.full(_PATHS, np.inf)
    for i in range(evaluations, len(values)):
        t = (values[i] - means[i - 1]) / np.sqrt(variances[i - 1] * (1.0 + 1.0 / i))
        # Normal approximation of Student's t (Wallace, Annals of Mathematical Statistics, 1959).
        z = np.sign(t) * np.sqrt((i - 1) * np.log1p(t * t / (i - 1))) * (8 * i - 7) / (8 * i - 5)
        total = np.maximum(total + z - REFERENCE_VALUE, 0.0)
        delays = np.where(np.isinf(delays) & (total > threshold), i - evaluations + 1.0, delays)
    return float(np.sort(delays)[math.ceil(0.8 * _PATHS) - 1])


@cache
def alarm_threshold(evaluations: float) -> float:
    """Return the threshold of a two-sided CUSUM with one false alarm in this many evaluations.

    Average run length by Siegmund (Sequential Analysis, 1985), within 1% for normal noise.

    >>> round(alarm_threshold(465), 1)  # Montgomery (2009): 465 for both sides at k = 0.5 and h = 5
    5.0
    """
    k = REFERENCE_VALUE
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2.0
        b = middle + 1.166
        run_length = (math.exp(2.0 * k * b) - 2.0 * k * b - 1.0) / (2.0 * k * k) / 2.0
        low, high = (middle, high) if run_length < evaluations else (low, middle)
    return high


def detect(values: Floats, threshold: float, margin_relative: float) -> Detection:
    """Detect changes of the mean score by a self-starting CUSUM (Hawkins, Journal of Quality Technology, 1987).

    Each evaluation is compared with the mean of the evaluations since the last change, by its Student's t, which is
    transformed to a standard normal value. The first `MIN_EVALUATIONS` only estimate the noise. Each decision uses only
    evaluations up to the one at which it is made.

    Parameters
    ----------
    values
        (n, topics) scores in order of time.
    threshold
        As from `alarm_threshold`.
    margin_relative
        Smallest change that is reported, as a share of the mean score before it.
    """
    means = values.mean(axis=1)
    residuals = _Residuals()
    starts, alarms = [0], list[int]()
    start, i, sums, excursion = 0, 1, [0.0, 0.0], [0, 0]
    while i < len(means):
        # A change increases the estimated autocorrelation: evaluations that may be after one are left out there.
        end = min((first for first, total in zip(excursion, sums, strict=True) if total > 0.0), default=i)
        z = residuals.standardize(means[start:i], float(means[i]), residuals.extended(means[start:end]).inflation)
        for side, sign in enumerate((1.0, -1.0)):
            if sums[side] == 0.0:
                excursion[side] = i
            # Capped, so that the sum can return after changes below the margin.
            sums[side] = min(max(sums[side] + sign * z - REFERENCE_VALUE, 0.0), 2.0 * threshold)
        side = int(sums[1] > sums[0])
        first = excursion[side]
        before = float(means[start:first].mean())
        change = float(means[first : i + 1].mean()) - before
        if sums[side] > threshold and abs(change) > margin_relative * abs(before):
            alarms.append(i)
            starts.append(starts[-1] + 1 + int(np.argmax(change_probabilities(values[starts[-1] : i + 1]))))
            residuals = residuals.extended(means[start : max(first, starts[-1])])
            # Evaluations that raised an alarm together are extreme, so later ones are not compared with them. One that
            # raised it alone has changed by so much that this does not matter.
            start = starts[-1] if abs(z) > threshold + REFERENCE_VALUE else i + 1
            i, sums = start, [0.0, 0.0]
        i += 1
    residuals = residuals.extended(means[start:])
    return Detection(
        tuple(_relocate(values, starts, alarms)), residuals.deviation * residuals.inflation, residuals.df + 1, threshold
    )


def _relocate(values: Floats, starts: list[int], alarms: list[int]) -> list[Shift]:
    """Locate each change once more, now with all evaluations up to the next change."""
    shifts: list[Shift] = []
    ends = [*starts[1:], len(values)]
    begin = 0
    for alarm, end in zip(alarms, ends[1:], strict=True):
        probabilities = change_probabilities(values[begin:end])
        start = begin + 1 + int(np.argmax(probabilities))
        shifts.append(Shift(start, alarm, probabilities, begin + 1))
        begin = start
    return shifts


@dataclass(frozen=True)
class _Residuals:
    """Sums over the residuals of finished segments: squares, products of neighbors, and degrees of freedom."""

    squares: float = 0.0
    products: float = 0.0
    df: int = 0

    def extended(self, means: Floats) -> _Residuals:
        """Add the residuals of one more segment."""
        if not len(means):
            return self
        residuals = means - means.mean()
        products = float(residuals[1:] @ residuals[:-1])
        return _Residuals(
            self.squares + float(residuals @ residuals), self.products + products, self.df + len(means) - 1
        )

    @property
    def autocorrelation(self) -> float:
        """Lag-1 autocorrelation, at least 0."""
        if not self.squares:
            return 0.0
        # Plus one standard error, because too low an estimate raises false alarms.
        return min(max(self.products / self.squares + 1.0 / math.sqrt(self.df), 0.0), _MAX_AUTOCORRELATION)

    @property
    def inflation(self) -> float:
        """Factor that corrects the standard error of a mean for autocorrelation: sqrt((1 + r) / (1 - r))."""
        return math.sqrt((1.0 + self.autocorrelation) / (1.0 - self.autocorrelation))

    @property
    def deviation(self) -> float:
        """Standard deviation of one evaluation, if nothing changes; NaN for too few evaluations."""
        return math.sqrt(self.squares / self.df) if self.df >= MIN_EVALUATIONS - 1 else math.nan

    def standardize(self, segment: Floats, value: float, inflation: float) -> float:
        """Convert Student's t of a new value to a z-score with the same tail probability; 0 if undefined."""
        pooled = self.extended(segment)
        difference = value - float(segment.mean())
        if math.isnan(pooled.deviation) or abs(difference) < _ROUNDING:
            return 0.0
        error = inflation * pooled.deviation * math.sqrt(1.0 + 1.0 / len(segment))
        tail = student_cdf(-abs(difference) / error, pooled.df) if error > _ROUNDING else 0.0
        z = min(-NormalDist().inv_cdf(tail), _MAX_Z) if tail > 0.0 else _MAX_Z
        return math.copysign(z, difference)


def change_probabilities(values: Floats) -> Floats:
    """Return the posterior probability of each evaluation but the first to be the first after the only change.

    The model is a single change point with a uniform prior. The scores of topics are normal, and their means change at
    the same time. The mean over topics has its own variance, because evaluations differ in more than the noise of
    single topics.

    >>> scores = np.array([[0.5, 0.2], [0.5, 0.3], [0.4, 0.2], [0.8, 0.3], [0.9, 0.2]])
    >>> change_probabilities(scores).round(2).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    means = values.mean(axis=1, keepdims=True)
    parts = np.concatenate([means, values - means], axis=1)
    n = len(parts)
    sizes = np.arange(1, n)[:, None]
    before = np.cumsum(parts, axis=0)[:-1]
    # Sum of squares that a change before evaluation i explains, for each topic.
    explained = (before - sizes / n * parts.sum(axis=0)) ** 2 * n / (sizes * (n - sizes))
    total = ((parts - parts.mean(axis=0)) ** 2).sum(axis=0)
    weights = (sizes * (n - sizes) / n * _RATIOS)[:, :, None]  # (positions, ratios, 1)
    remaining, df, log_likelihood = total, max(n - 2, 1), np.zeros(n - 1)
    for _ in range(_STEPS):
        variances = (remaining + _PRIOR_DF * remaining[1:].mean() / df) / (df + _PRIOR_DF)
        variances[0] = remaining[0] / df
        ratio = explained / np.maximum(variances, 1e-12 * max(float(total.max()), 1e-300))
        # Marginal likelihood of the topics for each ratio of the variance of their changes to that of their noise.
        topics = ratio[:, None, 1:] * weights / (1.0 + weights) - np.log1p(weights)
        of_ratio = topics.sum(axis=2) / 2.0
        log_likelihood = ratio[:, 0] / 2.0 + np.logaddexp.reduce(of_ratio, axis=1)
        remaining = np.maximum(total - explained[int(np.argmax(log_likelihood))], 0.0)
    likelihood = np.exp(log_likelihood - log_likelihood.max())
    return likelihood / likelihood.sum()
