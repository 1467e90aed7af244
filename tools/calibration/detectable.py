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
    """Give differences of RR where some topics gain their first place, and some lose a little."""
    rng = np.random.default_rng(1)
    chance = rng.random(_TOPICS)
    up = 1 - np.minimum(1 / rng.geometric(0.45, _TOPICS), 0.5)
    down = (1 - 1 / rng.geometric(0.5, _TOPICS)) / 2
    gaps = np.where(chance < share_up, up, np.where(chance > 1 - share_down, -down, 0.0))
    return gaps - gaps.mean()


SITUATIONS = {
    "normal": np.random.default_rng(1).normal(0, 0.2, _TOPICS),
    "RR, 25 % gain": _gains(0.15, 0.1),
    "RR, 12 % gain": _gains(0.1, 0.02),
}


def found(situation: str, n: int, trials: int, test: str, *, formula: bool = False) -> tuple[float, float]:
    """Give how often a difference of the stated size is found: in the harder direction, and in the easier one."""
    rng, whole = np.random.default_rng(n), SITUATIONS[situation]
    drawn = rng.choice(whole, (trials, n))
    drawn = drawn[np.ptp(drawn, axis=1) > 0]
    stated = [
        minimum_detectable(float(row.std(ddof=1)), n)
        if formula
        else detectable(row, 0.05, flips=test == "randomization")
        for row in drawn
    ]
    rates = [_rate(rng.choice(whole, drawn.shape) + side * np.array(stated)[:, None], test) for side in (-1, 1)]
    return min(rates), max(rates)


def _rate(gaps: Any, test: str) -> float:
    table = np.stack([np.zeros_like(gaps), gaps], axis=1).reshape(-1, gaps.shape[1])
    pairs = [(2 * at, 2 * at + 1) for at in range(len(gaps))]
    return float(np.mean([one.p <= 0.05 for one in paired_tests(table, pairs, test, resamples=RESAMPLES)]))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Give how often it is found, for each test, situation and number of topics."""
    for situation in SITUATIONS:
        for test in TESTS:
            for n in SIZES:
                harder, easier = found(situation, n, trials, test)
                yield CoverageCell(test, situation, n, harder, trials)
                yield CoverageCell(f"{test}, easier", situation, n, easier, trials)
                yield CoverageCell(
                    f"{test}, formula", situation, n, found(situation, n, trials, test, formula=True)[0], trials
                )
