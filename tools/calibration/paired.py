"""False positive rate of paired tests at alpha = 0.05. 5% is nominal.

`raw` is the bootstrap without conditions. Otherwise the randomization test replaces it if fewer than 40 topics differ
(for t: fewer than 6, with ties), or if the effective number of topics is below 12 (BCa and studentized bootstrap). In
`skewed`, the true mean difference is 0, but the median is not: tests of signs and ranks have another null hypothesis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from calibration import CoverageCell
from judged.stats import resampling as bootstrap
from judged.stats.paired import paired_tests
from judged.stats.results import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Shape: TypeAlias = Callable[[np.random.Generator, int, int], np.ndarray[Any, np.dtype[np.float64]]]

ALPHA = 0.05
RESAMPLES = 499
SIZES = (2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 50, 100, 200)
RAW = {"bootstrap": bootstrap.percentile, "bca": bootstrap.bca, "studentized": bootstrap.studentized}
TESTS = ("randomization", "t", *RAW)
NOT_OF_MEANS = ("sign", "wilcoxon")


def _reciprocal(rng: np.random.Generator, trials: int, n: int) -> Any:
    first, second = 1.0 / rng.geometric(0.45, (2, trials, n))
    return second - first


def _precision(rng: np.random.Generator, trials: int, n: int) -> Any:
    hard = rng.beta(0.6, 1.5, (trials, n))
    return (rng.binomial(10, hard) - rng.binomial(10, hard)) / 10


def _ties(share: float) -> Shape:
    return lambda rng, trials, n: np.where(rng.random((trials, n)) < share, 0.0, rng.normal(0, 0.2, (trials, n)))


def _few_differing(differing: int) -> Shape:
    def draw(rng: np.random.Generator, trials: int, n: int) -> Any:
        return np.where(np.arange(n) < differing, rng.choice([-0.5, 0.5], (trials, n)), 0.0)

    return draw


def _ceiling(rng: np.random.Generator, trials: int, n: int) -> Any:
    first, second = np.minimum(rng.normal(1.1, 0.15, (2, trials, n)), 1.0)
    return second - first


SITUATIONS: dict[str, Shape] = {
    "normal": lambda rng, trials, n: rng.normal(0, 0.2, (trials, n)),
    "RR": _reciprocal,
    "P@10": _precision,
    "ceiling": _ceiling,
    "50% ties": _ties(0.5),
    "85% ties": _ties(0.85),
    "95% ties": _ties(0.95),
    "95% near-ties": lambda rng, trials, n: (
        np.where(rng.random((trials, n)) < 0.05, 0.5, 0.01) * rng.normal(size=(trials, n))
    ),
    "2 differ": _few_differing(2),
    "4 differ": _few_differing(4),
    "skewed": lambda rng, trials, n: 0.1 * (rng.exponential(1.0, (trials, n)) - 1),
}


class Rates(NamedTuple):
    """False positive rate of each test, by name."""

    raw: dict[str, float]
    tests: dict[str, float]


def rates(situation: str, n: int, trials: int, tests: tuple[str, ...] = TESTS) -> Rates:
    """Return the false positive rates of tests on samples of two equal systems."""
    gaps = SITUATIONS[situation](np.random.default_rng(n), trials, n)
    table = np.stack([np.zeros_like(gaps), gaps], axis=1).reshape(-1, n)
    pairs = [(2 * row, 2 * row + 1) for row in range(trials)]
    results_by_test = {test: paired_tests(table, pairs, test, resamples=RESAMPLES) for test in tests}
    varying = gaps[gaps.min(axis=1) < gaps.max(axis=1)]
    raw = {
        test: RAW[test](varying, np.full(len(varying), 1e-12), Options(resamples=RESAMPLES))
        for test in tests
        if test in RAW and len(varying)
    }
    return Rates(
        {test: sum(result.p <= ALPHA for result in results) / trials for test, results in raw.items()},
        {test: sum(result.p <= ALPHA for result in results) / trials for test, results in results_by_test.items()},
    )


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the rate of each test in each situation and number of topics."""
    for situation in SITUATIONS:
        tests = (*TESTS, *NOT_OF_MEANS) if situation == "skewed" else TESTS
        for n in SIZES:
            test_rates = rates(situation, n, trials, tests)
            for test, rate in test_rates.tests.items():
                yield CoverageCell(test, situation, n, rate, trials)
            for test, rate in test_rates.raw.items():
                yield CoverageCell(f"{test}, raw", situation, n, rate, trials)
