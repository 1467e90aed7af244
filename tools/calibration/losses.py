"""Rate of results that claim a loss below the margin if the true loss equals the margin. 5% is the maximum.

A share of the topics has a large loss, and the others have noise only. If the sample contains no topic with a large
loss, no test of the mean can detect it. *randomization* is the test of the gate. *one more that lost* adds a topic with
such a loss. *Hall's too* also requires Hall's test. The last rows are the power of these tests if the candidate is as
good as the baseline. *equivalence* is the two one-sided t-test.
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
LOSSES = {"4 % lose 0.8": (0.8, 0.04), "6 % lose 0.5": (0.5, 0.06), "10 % lose 0.2": (0.2, 0.1)}
_RESAMPLES = 999


def measure(trials: int) -> Iterator[CoverageCell]:
    """Give the rate of false passes by method, loss and number of topics; and of right ones without a loss."""
    for n in SIZES:
        for name, (loss, share) in LOSSES.items():
            gaps = _drawn(n, trials, lambda rng, shape, q=share, x=loss: -x * (rng.random(shape) < q), 0.02)
            yield from _rates(gaps, loss * share, f"{name}: false pass")
        skewed = _drawn(n, trials, lambda rng, shape: 0.08 - 0.1 * rng.exponential(size=shape), 0.0)
        yield from _rates(skewed, 0.02, "mean loss 0.02 of exponential losses: false pass")
        none = _drawn(n, trials, lambda _, shape: np.zeros(shape), 0.1)
        yield from _rates(none, 0.05, "nothing lost, sd 0.1, margin 0.05: right pass")
        few = _drawn(n, trials, lambda rng, shape: 0.1 * rng.normal(size=shape) * (rng.random(shape) < 0.1), 0.0)
        yield from _rates(few, 0.02, "nothing lost, one topic in ten moves by 0.1, margin 0.02: right pass")


def false_passes(n: int, loss: float, share: float, trials: int) -> float:
    """Give how often the randomization test rules out a loss of the margin that was lost by few topics."""
    gaps = _drawn(n, trials, lambda rng, shape: -loss * (rng.random(shape) < share), 0.02)
    return _passed(_greater(gaps + loss * share))


def _drawn(
    n: int, trials: int, moved: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], noise: float
) -> np.ndarray:
    rng = np.random.default_rng([16, n])
    return moved(rng, (trials, n)) + noise * rng.normal(size=(trials, n))


def _rates(gaps: np.ndarray, margin: float, situation: str) -> Iterator[CoverageCell]:
    trials, n = gaps.shape
    tests = _greater(gaps + margin)
    found = {"randomization": tests}
    for loss in (0.2, 1.0):
        more = np.column_stack([gaps, np.full(trials, -loss)])
        found[f"one more that lost {loss:g}"] = _greater(more + margin)
    found["Hall's too"] = with_hall_tests(gaps + margin, tests)
    for method, some in found.items():
        yield CoverageCell(method, situation, n, _passed(some), trials)
    if "false" in situation:
        shown = [equivalence(np.zeros(n), row, margin).significant for row in gaps]
        yield CoverageCell("equivalence", situation, n, float(np.mean(shown)), trials)


def _passed(tests: Sequence[Difference]) -> float:
    return float(np.mean([one.p <= 0.05 for one in tests]))


def _greater(gaps: np.ndarray) -> tuple[Difference, ...]:
    """Test whether means are above 0."""
    values = np.vstack([np.zeros(gaps.shape[1]), gaps])
    pairs = [(0, at + 1) for at in range(len(gaps))]
    return paired_tests(values, pairs, alternative="greater", level=0.95, resamples=_RESAMPLES)
