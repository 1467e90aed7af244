"""Power of a test at the reported detectable difference. 80% is nominal.

Each trial computes the detectable difference from a sample. It then tests another sample with this true difference, in
the direction with less power and in the other one (`easier`). `formula` uses the formula for normal differences. RR:
one topic in four or in ten gains, and fewer topics lose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration import CoverageCell
from judged.stats.paired import paired_tests
from judged.stats.sample_size import detectable, minimum_detectable

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (10, 25, 48, 100)
TESTS = ("randomization", "t")
RESAMPLES = 499
_TOPICS = 100_000


def _gains(share_up: float, share_down: float) -> Any:
    """Return differences of RR with mean 0: some topics rise to rank 1, and some lose a little."""
    rng = np.random.default_rng(1)
    quantiles = rng.random(_TOPICS)
    up = 1 - np.minimum(1 / rng.geometric(0.45, _TOPICS), 0.5)
    down = (1 - 1 / rng.geometric(0.5, _TOPICS)) / 2
    gaps = np.where(quantiles < share_up, up, np.where(quantiles > 1 - share_down, -down, 0.0))
    return gaps - gaps.mean()


SITUATIONS = {
    "normal": np.random.default_rng(1).normal(0, 0.2, _TOPICS),
    "RR, 25% gain": _gains(0.15, 0.1),
    "RR, 12% gain": _gains(0.1, 0.02),
}


def power(situation: str, n: int, trials: int, test: str, *, formula: bool = False) -> tuple[float, float]:
    """Return the power at the detectable difference, in the direction with less power and in the other one."""
    rng, population = np.random.default_rng(n), SITUATIONS[situation]
    samples = rng.choice(population, (trials, n))
    samples = samples[np.ptp(samples, axis=1) > 0]
    differences = [
        minimum_detectable(float(row.std(ddof=1)), n)
        if formula
        else detectable(row, 0.05, flips=test == "randomization")
        for row in samples
    ]
    rates = [
        _rate(rng.choice(population, samples.shape) + side * np.array(differences)[:, None], test) for side in (-1, 1)
    ]
    return min(rates), max(rates)


def _rate(gaps: Any, test: str) -> float:
    table = np.stack([np.zeros_like(gaps), gaps], axis=1).reshape(-1, gaps.shape[1])
    pairs = [(2 * row, 2 * row + 1) for row in range(len(gaps))]
    return float(np.mean([result.p <= 0.05 for result in paired_tests(table, pairs, test, resamples=RESAMPLES)]))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the power of each test in each situation and number of topics."""
    for situation in SITUATIONS:
        for test in TESTS:
            for n in SIZES:
                harder, easier = power(situation, n, trials, test)
                yield CoverageCell(test, situation, n, harder, trials)
                yield CoverageCell(f"{test}, easier", situation, n, easier, trials)
                yield CoverageCell(
                    f"{test}, formula", situation, n, power(situation, n, trials, test, formula=True)[0], trials
                )
