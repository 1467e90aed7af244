"""False positive rate at alpha = 0.05 of tests of kinds of failure, and coverage of their intervals.

*Over topics* is the one-sided test of freshness, feedback, and subtopics (sign flips and Hall's test) for a true mean
of 0. *Class* compares n queries with 4n others of the same mean loss. *Change* is the two-sided paired test of
`judged change review --target-failure`. *Fewer than 10*: share of tests with only 9 topics, which must be 0. In the
last situation, 6% of the topics lose 0.5 and the others gain 0.03. Most small samples contain none of the 6%, so no
test of the mean can detect the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.pipelines.traces.failure_tests import MIN_TOPICS, FailureTest, mean_test
from judged.stats.classical import with_hall_tests
from judged.stats.paired import paired_tests
from judged.stats.slice_differences import against_rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.stats.results import Difference

SIZES = (10, 12, 25, 50, 100)
_RESAMPLES = 999
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "pairs of documents: mean of 1 to 6 signs": lambda rng, size: np.array(
        [np.sign(rng.random(int(count)) - 0.5).mean() for count in rng.integers(1, 7, int(np.prod(size)))]
    ).reshape(size),
    "heavy tails: t with 3 degrees": lambda rng, size: rng.standard_t(3, size),
    "skewed: exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "two thirds tie": lambda rng, size: rng.normal(size=size) * (rng.random(size) < 1 / 3),
    "6% lose 0.5": lambda rng, size: 0.03 - 0.5 * (rng.random(size) < 0.06) + 0.01 * rng.normal(size=size),
}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield error rates and coverage by test, shape, and number of topics."""
    for name in SHAPES:
        for n in SIZES:
            error, coverage = over_topics(name, n, trials)
            yield CoverageCell("over topics", name, n, error, trials)
            yield CoverageCell("over topics: interval", name, n, coverage, trials)
            yield CoverageCell("change", name, n, change(name, n, trials), trials)
        for n in (10, 25, 50):
            num_trials = min(trials, 400)
            error, coverage = of_class(name, n, num_trials)
            yield CoverageCell("class", name, n, error, num_trials)
            yield CoverageCell("class: interval", name, n, coverage, num_trials)
    rng = np.random.default_rng(5)
    are_tested = [
        isinstance(test, FailureTest)
        for _ in range(20)
        for test in mean_test(
            "freshness", "", "", {str(row): float(value) for row, value in enumerate(rng.normal(size=9))}
        )
    ]
    yield CoverageCell(
        "over topics", f"fewer than {MIN_TOPICS}", MIN_TOPICS, float(np.mean(are_tested)), len(are_tested)
    )


def over_topics(shape: str, n: int, trials: int) -> tuple[float, float]:
    """Return the false positive rate for a mean of 0, and the coverage of its interval."""
    gaps = SHAPES[shape](np.random.default_rng([21, n]), (trials, n))
    tests = with_hall_tests(gaps, _paired_tests(gaps))
    p = np.array([test.p / 2 if test.difference > 0 else 1 - test.p / 2 for test in tests])
    is_covered = [test.interval is not None and test.interval[0] <= 0 <= test.interval[1] for test in tests]
    return float((p <= 0.05).mean()), float(np.mean(is_covered))


def change(shape: str, n: int, trials: int) -> float:
    """Return the false positive rate for a change between two samples of the same distribution."""
    rng = np.random.default_rng([22, n])
    before, after = (SHAPES[shape](rng, (trials, n)) for _ in range(2))
    return float(np.mean([test.p <= 0.05 for test in _paired_tests(after - before)]))


def of_class(shape: str, n: int, trials: int) -> tuple[float, float]:
    """Return the false positive rate for a class of n of 5n topics, and the coverage of its interval."""
    rng = np.random.default_rng([23, n])
    mask, num_significant, num_covered = np.arange(5 * n) < n, 0, 0
    for _ in range(trials):
        (comparison,) = against_rest(SHAPES[shape](rng, (5 * n,)), [mask], resamples=_RESAMPLES)
        num_significant += (comparison.p / 2 if comparison.difference > 0 else 1 - comparison.p / 2) <= 0.05
        num_covered += comparison.interval is not None and comparison.interval[0] <= 0 <= comparison.interval[1]
    return num_significant / trials, num_covered / trials


def _paired_tests(gaps: np.ndarray) -> tuple[Difference, ...]:
    values = np.vstack([np.zeros(gaps.shape[1]), gaps])
    return paired_tests(values, [(0, row + 1) for row in range(len(gaps))], level=0.95, resamples=_RESAMPLES)
