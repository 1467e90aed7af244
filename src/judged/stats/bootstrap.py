"""Bootstrap tests of a mean difference: the topics are resampled, with replacement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.interval import acceleration, bca_limits
from judged.stats.options import PairedResult, share
from judged.stats.resampling import ResampledTopics, least, resampled_sums, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Floats
    from judged.stats.options import Options

_LEVEL = 1e-12  # of the largest square: a resample that draws one value only has no variance but rounding


def percentile(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test by the shift method (Efron and Tibshirani 1993, 16.4); the interval inverts it."""
    # p is the share, (b + 1) / (B + 1), of resamples of the differences shifted to a mean of 0 whose mean is at least
    # as far from 0 as the one seen. The interval holds the means that this would not reject. `differences`: (P, T) with
    # T > 1, no row of one value only. `rounding`: (P,): sums that differ by this much are the same.

    def found(means: Floats, row: Floats, slack: float) -> PairedResult:
        mean, two_sided = float(row.mean()), options.alternative == "two-sided"
        side = -1 if options.alternative == "less" else 1
        moved = np.abs(means - mean) if two_sided else side * (means - mean)
        far = abs(mean) if two_sided else side * mean
        p = (int(np.count_nonzero(moved >= far - slack)) + 1) / (len(means) + 1)
        most = -least(-moved, share(options.alpha, len(means) + 1))  # a mean further off than this is rejected
        low, high = (0.0 if abs(limit) <= slack else limit for limit in (mean - most, mean + most))
        return _resampled(mean, p, options.interval(low, high), options)

    return _by_means(found, differences, rounding, options)


def bca(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Give the bias-corrected and accelerated interval (Efron 1987), and p by inverting it."""
    # p is one less the level at which the interval's nearer limit reaches 0, and at least 1 / (B + 1). Parameters as
    # for `percentile`.
    from scipy.special import ndtr, ndtri

    def found(means: Floats, row: Floats, slack: float) -> PairedResult:
        mean, skew = float(row.mean()), acceleration(row - row.mean())
        bias, zero = (float(ndtri(_share_below(means, value, slack))) for value in (mean, 0.0))
        stretched = zero - bias  # undo the stretching of the interval's limits
        room = 1 + skew * stretched
        z = stretched / room - bias if room > 0 else math.copysign(math.inf, stretched)
        p = max(options.p_of(float(ndtr(-z)), float(ndtr(z))), 1 / (len(means) + 1))
        low, high = bca_limits(means, mean, skew, options.two_sided_level).tolist()
        return _resampled(mean, p, options.interval(low, high), options)

    return _by_means(found, differences, rounding, options)


def studentised(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Compare t with its bootstrap distribution (Efron and Tibshirani 1993, 12.5), equal tails."""
    # Each resample gives t* = (its mean - the mean) / its standard error. The p-value is twice the smaller of the
    # shares, (b + 1) / (B + 1), of t* at least and at most t; the interval holds the means that this would not reject.
    # A resample without variance counts as infinitely far: with few topics, limits become infinite. Parameters as for
    # `percentile`.
    topics = differences.shape[1]
    means = differences.mean(axis=1)
    apart = differences - means[:, None]
    largest = np.abs(apart).max(axis=1)
    scaled = apart / largest[:, None]
    numbers, units = whole_numbers(scaled, topics)
    squares, square_units = whole_numbers(scaled**2, topics)
    errors = np.sqrt((scaled**2).sum(axis=1) / (topics * (topics - 1))) * largest
    found: list[PairedResult] = []
    weights = ResampledTopics(topics, options.resamples, options.seed)
    for first, (sums, sums_of_squares) in resampled_sums(weights, numbers, squares):
        for row in range(first, first + len(sums)):
            moved = sums[row - first] * (float(units[row]) / topics)
            mean_squares = sums_of_squares[row - first] * (float(square_units[row]) / topics)
            slack = float(rounding[row] / largest[row]) / topics
            t_values = _t_values(moved, mean_squares, topics, slack)
            found.append(_by_t(t_values, float(means[row]), float(errors[row]), float(rounding[row]) / topics, options))
    return found


def _t_values(moved: Floats, mean_squares: Floats, topics: int, slack: float) -> Floats:
    """Give t of each resample from the mean of its values and of their squares; values are 1 at most."""
    variances = mean_squares - moved**2
    level = variances <= _LEVEL
    far = np.where(np.abs(moved) <= slack, 0.0, np.copysign(np.inf, moved))
    return np.where(level, far, moved / np.sqrt(np.where(level, 1.0, variances) / (topics - 1)))


def _by_t(t_values: Floats, mean: float, error: float, slack: float, options: Options) -> PairedResult:
    """Read p and interval off the resampled t."""
    t, loose = mean / error, slack / error
    upper, lower = (
        (int(np.count_nonzero(reached)) + 1) / (len(t_values) + 1)
        for reached in (t_values >= t - loose, t_values <= t + loose)
    )
    rank = share(options.alpha / 2 if options.alternative == "two-sided" else options.alpha, len(t_values) + 1)
    low, high = mean + error * least(-t_values, rank), mean - error * least(t_values, rank)
    return _resampled(t, options.p_of(lower, upper), options.interval(low, high), options)


def _by_means(
    found: Callable[[Floats, Floats, float], PairedResult], differences: Floats, rounding: Floats, options: Options
) -> list[PairedResult]:
    """Ask ``found`` about each row: its resampled means, its differences, and what counts as rounding of a mean."""
    topics = differences.shape[1]
    numbers, units = whole_numbers(differences, topics)
    weights = ResampledTopics(topics, options.resamples, options.seed)
    results: list[PairedResult] = []
    for first, (block,) in resampled_sums(weights, numbers):
        block *= units[first : first + len(block), None] / topics  # noqa: PLW2901 - in place: the engine lends its array
        results += [
            found(means, differences[row], float(rounding[row]) / topics) for row, means in enumerate(block, first)
        ]
    return results


def _share_below(means: Floats, value: float, slack: float) -> float:
    """Give the share of means below a value, half of those that equal it, never 0 or 1."""
    below = np.count_nonzero(means < value - slack)
    equal = np.count_nonzero(np.abs(means - value) <= slack)
    edge = 0.5 / len(means)
    return min(max((int(below) + 0.5 * int(equal)) / len(means), edge), 1 - edge)


def _resampled(statistic: float, p: float, interval: tuple[float, float], options: Options) -> PairedResult:
    return PairedResult(statistic, p, interval, options.resamples, exact=False, seed=options.seed)
