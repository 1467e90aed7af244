"""Rate of results that claim a loss below the margin if the true loss equals the margin. 5% is the maximum.

A share of the topics has a large loss, and the others have noise only. If the sample contains no topic with a large
loss, no test of the mean can detect it. *randomization* is the test of the gate. *one more loss* adds a topic with such
a loss. *Hall's too* also requires Hall's test. The last rows are the power of these tests if the candidate is as good
as the baseline. *equivalence* is the two one-sided t-test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.stats.classical import with_hall_tests
from judged.stats.effect import equivalence
from judged.stats.paired import paired_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.stats.results import Difference

SIZES = (10, 12, 18, 24, 25, 48, 50, 100)
LOSSES = {"4% lose 0.8": (0.8, 0.04), "6% lose 0.5": (0.5, 0.06), "10% lose 0.2": (0.2, 0.1)}
_RESAMPLES = 999


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the rate of false passes by method, loss, and number of topics, and of correct passes without a loss."""
    for n in SIZES:
        for name, (loss, share) in LOSSES.items():
            gaps = _sample(n, trials, lambda rng, shape, q=share, x=loss: -x * (rng.random(shape) < q), 0.02)
            yield from _rates(gaps, loss * share, f"{name}: false pass")
        skewed = _sample(n, trials, lambda rng, shape: 0.08 - 0.1 * rng.exponential(size=shape), 0.0)
        yield from _rates(skewed, 0.02, "mean loss 0.02 of exponential losses: false pass")
        no_loss = _sample(n, trials, lambda _, shape: np.zeros(shape), 0.1)
        yield from _rates(no_loss, 0.05, "no loss, sd 0.1, margin 0.05: right pass")
        few_changes = _sample(
            n, trials, lambda rng, shape: 0.1 * rng.normal(size=shape) * (rng.random(shape) < 0.1), 0.0
        )
        yield from _rates(few_changes, 0.02, "no loss, one topic in ten moves by 0.1, margin 0.02: right pass")


def false_passes(n: int, loss: float, share: float, trials: int) -> float:
    """Return how often the randomization test excludes a true loss of the margin that few topics cause."""
    gaps = _sample(n, trials, lambda rng, shape: -loss * (rng.random(shape) < share), 0.02)
    return _pass_rate(_superiority_tests(gaps + loss * share))


def _sample(
    n: int, trials: int, draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], noise: float
) -> np.ndarray:
    rng = np.random.default_rng([16, n])
    return draw(rng, (trials, n)) + noise * rng.normal(size=(trials, n))


def _rates(gaps: np.ndarray, margin: float, situation: str) -> Iterator[CoverageCell]:
    trials, n = gaps.shape
    tests = _superiority_tests(gaps + margin)
    tests_by_method = {"randomization": tests}
    for loss in (0.2, 1.0):
        extended = np.column_stack([gaps, np.full(trials, -loss)])
        tests_by_method[f"one more loss of {loss:g}"] = _superiority_tests(extended + margin)
    tests_by_method["Hall's too"] = with_hall_tests(gaps + margin, tests)
    for method, results in tests_by_method.items():
        yield CoverageCell(method, situation, n, _pass_rate(results), trials)
    if "false" in situation:
        is_significant = [equivalence(np.zeros(n), row, margin).significant for row in gaps]
        yield CoverageCell("equivalence", situation, n, float(np.mean(is_significant)), trials)


def _pass_rate(tests: Sequence[Difference]) -> float:
    return float(np.mean([test.p <= 0.05 for test in tests]))


def _superiority_tests(gaps: np.ndarray) -> tuple[Difference, ...]:
    """Test whether means are above 0."""
    values = np.vstack([np.zeros(gaps.shape[1]), gaps])
    pairs = [(0, row + 1) for row in range(len(gaps))]
    return paired_tests(values, pairs, alternative="greater", level=0.95, resamples=_RESAMPLES)
