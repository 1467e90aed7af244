"""Test and confidence interval for the mean of bounded values, valid for every sample size and distribution.

No test of a mean is valid for all distributions: values too rare to be in the sample can have any effect on the mean
(Bahadur and Savage 1956). Bounds limit this effect, so a valid test of bounded values exists. The bounds must come from
the definition of the measure, not from the sample.
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
"""Largest share of the wealth that one bet can lose, so that the wealth stays positive."""

_ORDERS = 16  # random orders over which the wealth is averaged
_MAX_BETS = 400_000  # bets over all orders; very large samples use fewer orders
_PLANNED_ALPHA = 0.05  # bets are optimal for this error rate; the test is valid for every rate
_STEPS = 60  # of bisection: limits are accurate to about 1e-16 of the range


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
        Means that the test does not reject; excludes `null` exactly if `p` is at most 1 - level.
    null, level
        Arguments of `bounded_mean`.
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

    One gambler bets that values are above a hypothetical mean, another that they are below it. If the hypothesis is
    true, neither gains on average, so a wealth of 1 / alpha is reached with a probability of at most alpha (Ville 1939;
    Waudby-Smith and Ramdas 2024). Each has half of alpha. The wealth is averaged over random orders of the sorted
    values, so that the result does not depend on their order.

    Parameters
    ----------
    values
        (n,) independent values of one distribution, without NaN.
    low, high
        Bounds of a value, by its definition.
    null
        Mean under the null hypothesis, between the bounds.
    alternative
        ``greater``: the mean is above `null`; ``less``: it is below.
    level
        Confidence level of the interval.
    seed
        Of the random orders.

    Returns
    -------
    BoundedMean

    Raises
    ------
    InputError
        If a value is outside of the bounds, or an option is invalid.

    Examples
    --------
    >>> test = bounded_mean([0.2, 0.3, 0.1, 0.4] * 20, -1, 1)
    >>> test.p < 0.001, [round(limit, 2) for limit in test.interval]
    (True, [0.18, 0.3])
    >>> round(bounded_mean([0.1] * 10, -1, 1).p, 1)  # one value in ten may be -1 and missing from a sample of ten
    0.8
    """
    options = Options(alternative, level, seed=seed)
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x) or np.isnan(x).any():
        received = "NaN" if np.isnan(x).any() else f"shape {x.shape}"
        problem = f"`values` must be a list of numbers without NaN, got {received}"
        raise InputError(problem, fix="pass one finite number per topic")
    if not (math.isfinite(low) and math.isfinite(high) and low < high and low <= null <= high):
        raise InputError(
            f"the bounds {low:g} and {high:g} must enclose the null value {null:g}", fix="use low <= null <= high"
        )
    tolerance = ROUNDING * max(abs(low), abs(high))
    if x.min() < low - tolerance or x.max() > high + tolerance:
        worst = x[np.argmax(np.maximum(low - x, x - high))]
        raise InputError(
            f"values must be from {low:g} to {high:g}, got {worst:g}", fix="use the bounds of the measure's definition"
        )
    game = _Game.from_values(np.clip((x - low) / (high - low), 0.0, 1.0), seed)
    p = _p_value(game, (null - low) / (high - low), options)
    limits = (low + (high - low) * limit for limit in _confidence_limits(game, options))
    return BoundedMean(float(x.mean()), p, options.interval(*limits), null, level, len(x))


def bounded_p(differences: Floats, max_difference: float, *, null: float = 0.0, seed: int = 0) -> float:
    """Return the two-sided p-value of `bounded_mean` for differences from -max_difference to max_difference."""
    scale = 2 * max_difference
    game = _Game.from_values(np.clip((differences + max_difference) / scale, 0.0, 1.0), seed)
    return _p_value(game, (null + max_difference) / scale, Options())


def bounded(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row of (P, T) is 0, given the largest possible difference of a topic."""
    limit = options.max_difference
    if limit is None:
        raise InputError(
            "the bounded test requires `max_difference`, the largest possible difference of two scores",
            fix="pass max_difference (1 for a measure from 0 to 1), or use another test",
        )
    results: list[PairedResult] = []
    for row, tolerance in zip(differences, rounding.tolist(), strict=True):
        clipped = np.where(np.abs(row) <= limit + tolerance, np.clip(row, -limit, limit), row)
        test = bounded_mean(
            clipped, -limit, limit, alternative=options.alternative, level=options.level, seed=options.seed
        )
        results.append(PairedResult(test.mean, test.p, test.interval, seed=options.seed))
    return results


@dataclass(frozen=True)
class _Game:
    """Values in [0, 1] in several orders, and the size of each bet: (orders, n) each."""

    values: Floats
    bets: Floats

    @staticmethod
    def from_values(values: Floats, seed: int) -> _Game:
        """Size each bet by the values before it (the predictable plug-in of Waudby-Smith and Ramdas, eq. 26)."""
        n = len(values)
        generator = np.random.default_rng(seed)
        orders = generator.permuted(np.tile(np.arange(n), (max(1, min(_ORDERS, _MAX_BETS // n) // 2), 1)), axis=1)
        orders = np.concatenate(
            [orders, n - 1 - orders]
        )  # reversed orders make the p-value symmetric in the two systems
        shuffled = np.sort(values)[orders]
        count = np.arange(2, n + 2)
        means = (0.5 + np.cumsum(shuffled, axis=1)) / count
        variances = (0.25 + np.cumsum((shuffled - means) ** 2, axis=1)) / count
        prior_variances = np.concatenate([np.full((len(orders), 1), 0.25), variances[:, :-1]], axis=1)
        return _Game(shuffled, np.sqrt(2 * math.log(2 / _PLANNED_ALPHA) / (n * prior_variances)))

    def log_wealth(self, mean: float, side: int) -> float:
        """Return the logarithm of the wealth from betting that values are above (1) or below (-1) `mean`."""
        # The wealth is monotone in `mean`, because a bet on high values pays less if the hypothetical mean is higher.
        # So the accepted means form an interval.
        largest_loss = mean if side > 0 else 1.0 - mean
        bets = np.minimum(self.bets, LARGEST_BET / largest_loss) if largest_loss > 0 else self.bets
        wealth = np.log1p(side * bets * (self.values - mean)).sum(axis=1)
        return float(np.logaddexp.reduce(wealth)) - math.log(len(wealth))


def _p_value(game: _Game, mean: float, options: Options) -> float:
    if options.alternative != "two-sided":
        return min(1.0, math.exp(-game.log_wealth(mean, 1 if options.alternative == "greater" else -1)))
    best = max(game.log_wealth(mean, side) for side in (1, -1))
    return min(1.0, 2 * math.exp(-best))


def _confidence_limits(game: _Game, options: Options) -> tuple[float, float]:
    """Return the smallest and the largest mean in [0, 1] that the test does not reject."""
    alpha = options.alpha / 2 if options.alternative == "two-sided" else options.alpha
    rejection_threshold = -math.log(alpha)
    low = _first_true(lambda mean: game.log_wealth(mean, 1) < rejection_threshold)
    high = 1.0 - _first_true(lambda complement: game.log_wealth(1.0 - complement, -1) < rejection_threshold)
    return min(low, high), max(low, high)


def _first_true(condition: Callable[[float], bool]) -> float:
    """Return the smallest number in [0, 1] from which a monotone condition is true, by bisection."""
    if condition(0.0):
        return 0.0
    below, above = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (below + above) / 2
        below, above = (below, middle) if condition(middle) else (middle, above)
    return above
