"""Change points: where the level of a series changes, by more than days that resemble the day before make it seem."""

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


_HELD = 1 << 18  # values simulated at a time
_MOST = 0.5  # autocorrelation that a series may have without a change; of more, little tells it from one
_AROUND = 5  # days that tell whether the one among them is odd
_ODD = 6.0  # sigmas from their median, from which it is
_MAD = 1.4826  # sigmas of normal values in their median absolute deviation
_ERRORS = 2.0  # of the estimated autocorrelation, by which that of the series without a change is larger


@dataclass(frozen=True)
class Change:
    """A change of level."""

    point: int  # index of the first point of the new level
    # before, after: weighted means of the stretches on both sides, each up to the next change
    before: float
    after: float
    # chance of so large a difference somewhere in the stretch that was cut, had its level stayed
    p: float


def change_points(
    values: Floats,  # (n,) in order of time. NaN: no point.
    weights: Floats,
    *,
    alpha: float = 0.01,
    shortest: int = 5,
    resamples: int = 999,  # resamples, seed: series without a change, at least 100, and of what they are drawn
    seed: int = 0,
) -> tuple[Change, ...]:
    """Find where the level of a series changes.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.31, 0.30, 0.25, 0.24, 0.25, 0.26, 0.24, 0.25])
    >>> [(one.point, round(one.before, 3), round(one.after, 3)) for one in change_points(values, np.ones(12))]
    [(6, 0.302, 0.248)]
    """
    # Each point may resemble the one before it: the best cut of an autoregression of order 1 is held against the best
    # cuts of such series without a change, made of the residuals in random order (the sup F test of Andrews,
    # Econometrica 1993, with the bootstrap of Diebold and Chen, Journal of Econometrics 1996). Stretches on both sides
    # of a change are cut in turn. How often a series without a change has one, and what is found: docs/calibration.md.
    # `weights`: (n,) what each point counts: in proportion to `1 / errors**2`, and so to the size of its sample. Above
    # 0. Returns in order of time. None for a series of fewer than `2 * shortest` points.
    check_resampling(resamples, seed)
    if not 0 < alpha < 1 or shortest < 2:
        raise InputError(
            f"an error rate of {alpha} with stretches of {shortest} points makes no sense",
            fix="a rate between 0 and 1, 0.01 say, and at least 2 points",
        )
    if (resamples + 1) * alpha < 1:
        raise InputError(f"{resamples} resamples cannot reach {alpha}", fix=f"at least {int(np.ceil(1 / alpha))}")
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(weights) & (weights > 0))
    x, w = values[known], weights[known]
    level = _without_outliers(x)
    cuts: dict[int, float] = {}
    parts = [(0, len(x))]
    while parts:
        start, end = parts.pop()
        rng = np.random.default_rng((seed, start, end))
        cut, p = _cut(level[start:end], w[start:end], shortest, resamples, rng)
        if p <= alpha:
            cuts[start + cut] = p
            parts += [(start, start + cut), (start + cut, end)]
    edges = [0, *sorted(cuts), len(x)]
    means = [float(np.average(x[a:b], weights=w[a:b])) for a, b in itertools.pairwise(edges) if b > a]
    return tuple(Change(int(known[edge]), means[at], means[at + 1], cuts[edge]) for at, edge in enumerate(edges[1:-1]))


def _without_outliers(x: Floats) -> Floats:
    """Put single points far from those around to their median (Hampel): one odd day is no level, and would hide one."""
    if len(x) < _AROUND:
        return x
    around = np.lib.stride_tricks.sliding_window_view(np.pad(x, _AROUND // 2, mode="edge"), _AROUND)
    median = np.median(around, axis=1)
    usual = _MAD * np.median(np.abs(x - median))
    steps = np.abs(np.diff(x, prepend=np.inf, append=np.inf))
    nearest = np.minimum(np.abs(x - median), np.minimum(steps[:-1], steps[1:]))  # a new level resembles a neighbor
    return np.where((usual > 0) & (nearest > _ODD * usual), median, x)


def _cut(x: Floats, w: Floats, shortest: int, resamples: int, rng: np.random.Generator) -> tuple[int, float]:
    """Find the best place to cut, and the chance of one as good in series whose level stays."""
    if len(x) < max(2 * shortest, 5):
        return 0, 1.0
    centered = x - np.average(x, weights=w)
    largest = np.abs(centered).max()
    if largest <= 1e-12 * np.abs(x).max():
        return 0, 1.0
    centered, w = centered / largest, w / w.max()
    scores, slopes = (row[0] for row in _scores(centered[None, :], w, shortest))
    best = int(scores.argmax())
    cut, slope = best + shortest, float(slopes[best])
    residuals = centered[1:] - slope * centered[:-1]
    for side in (slice(0, cut - 1), slice(cut - 1, None)):
        residuals[side] -= np.average(residuals[side], weights=w[1:][side])
    residuals *= np.sqrt(w[1:])  # of one variance: what may come in any order
    slope = min(slope + _ERRORS / math.sqrt(len(x)), _MOST)
    reached = 1
    size = max(1, _HELD // len(x))
    for first in range(0, resamples, size):
        count = min(size, resamples - first)
        series = _series(residuals, slope, w, count, rng)
        reached += int((_scores(series, w, shortest)[0].max(axis=1) >= scores[best] * (1.0 - 1e-12)).sum())
    return cut, reached / (resamples + 1)


def _series(residuals: Floats, slope: float, w: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Make autoregressive series without a change of the residuals in random orders: (count, n)."""
    orders = rng.permuted(np.broadcast_to(residuals, (count, len(residuals))), axis=1)
    beginnings = rng.choice(residuals, size=(count, 1)) / math.sqrt(1.0 - slope**2)
    series = np.concatenate([beginnings, orders], axis=1) / np.sqrt(w)
    for at in range(1, series.shape[1]):
        series[:, at] += slope * series[:, at - 1]
    return series


def _scores(x: Floats, w: Floats, shortest: int) -> tuple[Floats, Floats]:
    """Give, for each series and place to cut, the share of squares that cutting takes off, and the slope behind it.

    Squares are those of the residuals of each point's regression on the one before, of a slope from 0 to `_MOST`: with
    one level, and with one on each side of the cut.
    """
    w = w[1:]
    total = w.sum()
    y, lag = (part - (part @ w / total)[:, None] for part in (x[:, 1:], x[:, :-1]))
    squares, products, of_lag = (y * y) @ w, (y * lag) @ w, (lag * lag) @ w
    slope = np.clip(products / np.maximum(of_lag, 1e-300), 0.0, _MOST)
    left = squares - 2.0 * slope * products + slope**2 * of_lag

    def behind(terms: Floats) -> Floats:
        """Sum from each cut on."""
        sums = np.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]
        return sums[..., shortest - 1 : x.shape[1] - shortest]

    weight = behind(w)
    step = weight * (1.0 - weight / total)
    of_y, along = behind(y * w), behind(lag * w)
    squares, products = squares[:, None] - of_y**2 / step, products[:, None] - of_y * along / step
    of_lag = np.maximum(of_lag[:, None] - along**2 / step, 0.0)
    slopes = np.clip(products / np.maximum(of_lag, 1e-300), 0.0, _MOST)
    kept = squares - 2.0 * slopes * products + slopes**2 * of_lag
    return 1.0 - kept / np.maximum(left, 1e-300)[:, None], slopes


@dataclass(frozen=True, eq=False)
class Decomposition(ReadOnly):
    """The change of a ratio over S strata in two parts, which add up to it.

    Parameters
    ----------
    mix
        By the strata's shares of the denominator.
    within
        By their ratios.
    by_stratum
        (S,): how much each stratum's ratio contributes to `within`.
    mix_weights, within_weights
        (2, 2, S): before and after; of the numerator and the denominator: how much one more of each in a stratum moves
        the part. Summed over what a unit has, they give its influence; squares of these make the error.
    """

    mix: float
    within: float
    by_stratum: Floats
    mix_weights: Floats
    within_weights: Floats


def decomposition(numerators: Floats, denominators: Floats) -> Decomposition:
    """Part the change of a ratio (Kitagawa, Journal of the American Statistical Association 1955).

    Shares and ratios of both periods have the same weight, so that the order of the periods does not matter. A stratum
    without a denominator in one period is taken to have had the same ratio there.

    Parameters
    ----------
    numerators, denominators
        (2, S): sums of the strata, before and after.

    Examples
    --------
    Of two queries one is always clicked, the other never; the first is asked half as often as before:

    >>> made = decomposition(np.array([[60.0, 0.0], [30.0, 0.0]]), np.array([[60.0, 40.0], [30.0, 70.0]]))
    >>> round(made.mix, 3), round(made.within, 3)
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
    moved, changed = shares[1] - shares[0], ratios[1] - ratios[0]

    def weights(by_share: Floats, by_ratio: Floats) -> Floats:
        """Give the weights of a part that moves by these with each share, and each ratio."""
        of_shares = (by_share - (by_share * shares).sum(axis=1, keepdims=True)) / totals
        return np.stack([by_ratio * inverse, of_shares - by_ratio * ratios * inverse], axis=1)

    return Decomposition(
        mix=float(moved @ ratio),
        within=float(share @ changed),
        by_stratum=share * changed,
        mix_weights=weights(signs * ratio, np.broadcast_to(moved / 2.0, shares.shape)),
        within_weights=weights(np.broadcast_to(changed / 2.0, shares.shape), signs * share),
    )


def part_interval(value: float, squares: float, units: float, effective: float, level: float) -> tuple[float, float]:
    """Give the interval of a part by the squares of the influences of its units, with Student's t.

    >>> [round(end, 3) for end in part_interval(0.1, 0.0016, 100, 50, 0.95)]
    [0.019, 0.181]
    """
    # `effective`: how many equal units tell as much as these. NaN for fewer than two.
    if not min(units, effective) >= 2 or math.isnan(value):
        return math.nan, math.nan
    half = student_quantile(0.5 + level / 2.0, max(int(effective) - 1, 1)) * math.sqrt(squares * units / (units - 1.0))
    return value - half, value + half
