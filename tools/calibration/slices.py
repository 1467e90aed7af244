"""False positive rate of tests on slices and between slices at alpha = 0.05. 5% is nominal.

*heterogeneity* tests whether groups of n, 4n, and 8n topics have the same mean. The other methods test five slices of n
topics with mean 0, with Holm's correction: *the randomization test alone*, and *compare_slices*, which also requires
Hall's test. Exponential differences are strongly skewed. Rare losses affect few topics. The last rows are power: one
slice has a mean of 0.8 standard deviations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.stats.classical import with_hall_tests
from judged.stats.correction import adjust
from judged.stats.paired import paired_tests
from judged.stats.slice_differences import heterogeneity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLICES = 5
_RESAMPLES = 1999
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "two thirds tie": lambda rng, size: rng.normal(size=size) * (rng.random(size) < 1 / 3),
    "rare losses": lambda rng, size: 0.03 - 0.5 * (rng.random(size) < 0.06) + 0.02 * rng.normal(size=size),
}
SPREADS = {
    "equal spread": (1, 1, 1),
    "10 times the spread in the smallest group": (10, 1, 1),
    "10 times the spread in the largest group": (1, 1, 10),
}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the rate of significant results by test, shape, and number of topics."""
    for n in (5, 10, 20):
        for shape in ("normal", "exponential"):
            for spread_name, spreads in SPREADS.items():
                rate = heterogeneity_rate(n, shape, spreads, trials)
                yield CoverageCell("heterogeneity", f"{shape}, {spread_name}", n, rate, trials)
    for n in (10, 12, 24, 48):
        for shape in SHAPES:
            for method, rate in claim_rates(n, shape, trials).items():
                yield CoverageCell(method, f"5 slices, {shape}", n, rate, trials)
        for method, rate in claim_rates(n, "normal", trials, shift=0.8).items():
            yield CoverageCell(method, "power: one slice of 5 moved by 0.8 deviations", n, rate, trials)


def heterogeneity_rate(n: int, shape: str, spreads: tuple[int, ...], trials: int) -> float:
    """Return the false positive rate for groups of n, 4n, and 8n topics with the same mean."""
    groups = np.repeat([0, 1, 2], [n, 4 * n, 8 * n])
    rng, scale = np.random.default_rng([8, n]), np.repeat(spreads, [n, 4 * n, 8 * n])
    samples = (SHAPES[shape](rng, groups.shape) * scale for _ in range(trials))
    return float(np.mean([heterogeneity(values, groups, resamples=399).p <= 0.05 for values in samples]))


def claim_rates(n: int, shape: str, trials: int, shift: float = 0.0) -> dict[str, float]:
    """Return the rate of any significant slice of five, or of the slice with a mean of `shift`."""
    gaps = SHAPES[shape](np.random.default_rng([9, n]), (trials * SLICES, n))
    gaps[::SLICES] += shift
    values = np.vstack([np.zeros(n), gaps])
    pairs = [(0, row + 1) for row in range(len(gaps))]
    randomization = paired_tests(values, pairs, "randomization", resamples=_RESAMPLES)
    with_hall = with_hall_tests(gaps, randomization)
    rates: dict[str, float] = {}
    for method, tests in (("the randomization test alone", randomization), ("compare_slices", with_hall)):
        families = np.array([test.p for test in tests]).reshape(trials, SLICES)
        is_significant = np.array([adjust(family) for family in families]) <= 0.05
        rates[method] = float((is_significant[:, 0] if shift else is_significant.any(axis=1)).mean())
    return rates
