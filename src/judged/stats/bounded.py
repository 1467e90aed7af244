"""A test and an interval for the mean of bounded values that hold at every sample size, whatever the distribution.

No test of a mean holds for every distribution: values too rare to be in the sample can move the mean anywhere (Bahadur
and Savage 1956). If the values have known bounds, rare values can move it only so far, and a valid test exists. The
bounds must come from the definition of the measure, never from the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import ROUNDING
from judged.stats.results import Options, PairedResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged.results.types import Floats
    from judged.stats.results import Alternative

LARGEST_BET = 0.95
"""Largest share of the wealth that one bet can lose, so that no value ends the game."""

_ORDERS = 16  # random orders over which the wealth is averaged
_MAX_BETS = 400_000  # bets over all orders; very large samples are bet on in fewer orders
_PLANNED_ALPHA = 0.05  # bets are sized for this error rate; the test is valid at every other rate, too
_STEPS = 60  # of bisection: the limits are exact to about 1e-16 of the range


@dataclass(frozen=True)
class BoundedMean:
    """Test and confidence interval of the mean of bounded values.

    Parameters
    ----------
    mean
        Mean of the values.
    p
        p-value of the hypothesis that the true mean is `null`.
    interval
        All means that the same test does not reject: it excludes `null` exactly if `p` is at most 1 - level.
    null, level
        As given.
    n
        Number of values.
    """

    mean: float
    p: float
    interval: tuple[float, float]
    null: float
    level: float
    n: int


def bounded_mean(
    values: ArrayLike,
    low: float,
    high: float,
    *,
    null: float = 0.0,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    seed: int = 0,
) -> BoundedMean:
    """Test whether the mean of independent values between two known bounds is `null`, and bound the mean.

    A gambler bets on each value being above, and another on it being below, a hypothetical mean. If that is the true
    mean, neither can expect to gain, so that a wealth of 1 / alpha is reached with a probability of at most alpha
    (Ville 1939; Waudby-Smith and Ramdas 2024). Both have half of alpha. The wealth is averaged over random orders of
    the sorted values, so that the result does not depend on their order.

    Parameters
    ----------
    values
        (n,) independent values of one distribution, none NaN.
    low, high
        Bounds of a value, from its definition.
    null
        Mean that is tested, between the bounds.
    alternative
        ``greater``: only a mean above `null` counts; ``less``: only one below.
    level
        Of the interval.
    seed
        Of the random orders.

    Returns
    -------
    BoundedMean

    Raises
    ------
    InputError
        If a value is outside the bounds, or an option cannot be used.

    Examples
    --------
    >>> found = bounded_mean([0.2, 0.3, 0.1, 0.4] * 20, -1, 1)
    >>> found.p < 0.001, [round(limit, 2) for limit in found.interval]
    (True, [0.18, 0.3])
    >>> round(bounded_mean([0.1] * 10, -1, 1).p, 1)  # one value in ten may be -1, and be missed by a sample of ten
    0.8
    """
    options = Options(alternative, level, seed=seed)
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not len(given) or np.isnan(given).any():
        raise InputError(f"expected a list of numbers, got an array of shape {given.shape}", fix="leave NaN out")
    if not (math.isfinite(low) and math.isfinite(high) and low < high and low <= null <= high):
        raise InputError(f"the bounds {low:g} and {high:g} do not enclose {null:g}", fix="give low <= null <= high")
    slack = ROUNDING * max(abs(low), abs(high))
    if given.min() < low - slack or given.max() > high + slack:
        worst = given[np.argmax(np.maximum(low - given, given - high))]
        raise InputError(
            f"expected values from {low:g} to {high:g}, got {worst:g}",
            fix="give the bounds of the measure's definition",
        )
    game = _Game.of(np.clip((given - low) / (high - low), 0.0, 1.0), seed)
    p = _p(game, (null - low) / (high - low), options)
    limits = (low + (high - low) * limit for limit in _limits(game, options))
    return BoundedMean(float(given.mean()), p, options.interval(*limits), null, level, len(given))


def bounded_p(differences: Floats, max_difference: float, *, null: float = 0.0, seed: int = 0) -> float:
    """Return the two-sided p-value of `bounded_mean` alone, for differences from -max_difference to max_difference."""
    scale = 2 * max_difference
    game = _Game.of(np.clip((differences + max_difference) / scale, 0.0, 1.0), seed)
    return _p(game, (null + max_difference) / scale, Options())


def bounded(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row of (P, T) is 0, given the largest possible difference of a topic."""
    most = options.max_difference
    if most is None:
        raise InputError(
            "the bounded test needs the largest possible difference between two scores, got none",
            fix="give max_difference (1 for a measure from 0 to 1), or use another test",
        )
    results: list[PairedResult] = []
    for row, slack in zip(differences, rounding.tolist(), strict=True):
        inside = np.where(np.abs(row) <= most + slack, np.clip(row, -most, most), row)
        found = bounded_mean(
            inside, -most, most, alternative=options.alternative, level=options.level, seed=options.seed
        )
        results.append(PairedResult(found.mean, found.p, found.interval, seed=options.seed))
    return results


@dataclass(frozen=True)
class _Game:
    """Values in [0, 1] in several orders, and the size of each bet: (orders, n) each."""

    values: Floats
    bets: Floats

    @staticmethod
    def of(values: Floats, seed: int) -> _Game:
        """Size each bet by the values before it (the predictable plug-in of Waudby-Smith and Ramdas, eq. 26)."""
        n = len(values)
        generator = np.random.default_rng(seed)
        orders = generator.permuted(np.tile(np.arange(n), (max(1, min(_ORDERS, _MAX_BETS // n) // 2), 1)), axis=1)
        orders = np.concatenate([orders, n - 1 - orders])  # so that exchanging the two systems changes no p-value
        shuffled = np.sort(values)[orders]
        count = np.arange(2, n + 2)
        means = (0.5 + np.cumsum(shuffled, axis=1)) / count
        variances = (0.25 + np.cumsum((shuffled - means) ** 2, axis=1)) / count
        before = np.concatenate([np.full((len(orders), 1), 0.25), variances[:, :-1]], axis=1)
        return _Game(shuffled, np.sqrt(2 * math.log(2 / _PLANNED_ALPHA) / (n * before)))

    def log_wealth(self, mean: float, side: int) -> float:
        """Return the logarithm of the wealth from betting that values are above (1) or below (-1) `mean`."""
        # Monotone in `mean`: a bet on high values pays less if the hypothetical mean is higher. So the means that are
        # not rejected form an interval.
        room = mean if side > 0 else 1.0 - mean
        bets = np.minimum(self.bets, LARGEST_BET / room) if room > 0 else self.bets
        wealth = np.log1p(side * bets * (self.values - mean)).sum(axis=1)
        return float(np.logaddexp.reduce(wealth)) - math.log(len(wealth))


def _p(game: _Game, mean: float, options: Options) -> float:
    if options.alternative != "two-sided":
        return min(1.0, math.exp(-game.log_wealth(mean, 1 if options.alternative == "greater" else -1)))
    best = max(game.log_wealth(mean, side) for side in (1, -1))
    return min(1.0, 2 * math.exp(-best))


def _limits(game: _Game, options: Options) -> tuple[float, float]:
    """Return the smallest and the largest mean in [0, 1] that the test does not reject."""
    alpha = options.alpha / 2 if options.alternative == "two-sided" else options.alpha
    enough = -math.log(alpha)
    low = _first_true(lambda mean: game.log_wealth(mean, 1) < enough)
    high = 1.0 - _first_true(lambda rest: game.log_wealth(1.0 - rest, -1) < enough)
    return min(low, high), max(low, high)


def _first_true(holds: Callable[[float], bool]) -> float:
    """Return the smallest number in [0, 1] from which a monotone condition holds, by bisection."""
    if holds(0.0):
        return 0.0
    below, above = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
