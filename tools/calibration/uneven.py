"""Family-wise error rate at alpha = 0.05 if one system has a larger variance. 5% is nominal.

The residuals of one system have 1, 2, or 3 times the standard deviation of the others. For Dunnett's test, this system
is the baseline or another one. `noted`: share of results of Tukey's and Dunnett's tests with a note about unequal
variances.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration import CoverageCell
from judged.stats.analysis_of_variance import nemenyi
from judged.stats.blocked_results import UNEVEN, complete_scores
from judged.stats.correction import adjust
from judged.stats.multiple import dunnett, randomized_dunnett, randomized_tukey, tukey_hsd
from judged.stats.paired import paired_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (10, 25, 50)
SYSTEMS = (3, 5, 8)
SPREADS = (1, 2, 3)
RESAMPLES = 199


def _holm(scores: Any, baseline: int | None) -> float:
    systems = range(1, len(scores))
    pairs = list(combinations(range(len(scores)), 2)) if baseline is None else [(0, system) for system in systems]
    results = paired_tests(scores, pairs, resamples=999)
    return float(adjust([result.p for result in results]).min())


TESTS: dict[str, Callable[[Any], float]] = {
    "tukey": lambda scores: tukey_hsd(scores).p.min(),
    "randomized-tukey": lambda scores: randomized_tukey(scores, resamples=RESAMPLES).p.min(),
    "nemenyi": lambda scores: nemenyi(scores).p.min(),
    "randomization, Holm": lambda scores: _holm(scores, None),
    "dunnett": lambda scores: dunnett(scores, 1).p.min(),
    "dunnett, uneven baseline": lambda scores: dunnett(scores, 0).p.min(),
    "randomized-dunnett, uneven baseline": lambda scores: randomized_dunnett(scores, 0, resamples=RESAMPLES).p.min(),
    "noted": lambda scores: 0.0 if complete_scores(scores).unevenness > UNEVEN else 1.0,
}


def rate(test: str, systems: int, spread: float, n: int, trials: int) -> float:
    """Return the share of families with a significant difference."""
    rng = np.random.default_rng(n)
    widths = np.array([spread, *[1.0] * (systems - 1)])[:, None]
    num_significant = 0
    for _ in range(trials):
        scores = rng.normal(0, 1, n) + rng.normal(0, 0.3, (systems, n)) * widths
        num_significant += TESTS[test](scores) <= 0.05 + 1e-12
    return num_significant / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the rate of each test for each number of systems and spread."""
    for systems in SYSTEMS:
        for spread in SPREADS:
            for test in TESTS:
                for n in SIZES:
                    situation = f"{systems} systems, one x {spread}"
                    yield CoverageCell(test, situation, n, rate(test, systems, spread, n, trials), trials)
