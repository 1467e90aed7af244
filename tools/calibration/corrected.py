"""Coverage of 95% intervals of a mean over topics, if people judged n of 5n topics and a model judged all.

*Collapses on 10%*: a judge with errors of 0.02 returns 0 on a tenth of the topics. *Nine of ten score 0*: the judge is
perfect. *People*: intervals from the topics that people judged. Scores are between 0 and 1, and intervals use this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.stats.prediction_powered import prediction_powered

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (6, 10, 25, 50, 100)
COLLAPSES = {"collapses on 3%": 0.03, "collapses on 5%": 0.05, "collapses on 10%": 0.1, "collapses on 20%": 0.2}
SITUATIONS = (*COLLAPSES, "heavy noise", "nine of ten score 0")


def sample_scores(rng: np.random.Generator, situation: str, topics: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Sample scores by people and by a model, and return them with the true mean."""
    if situation == "nine of ten score 0":
        truth = rng.random(topics) * (rng.random(topics) < 0.1)
        return truth, truth, 0.05
    truth = rng.beta(2, 2, size=topics)
    if situation == "heavy noise":
        return truth, np.clip(truth + 0.1 * rng.standard_t(2, size=topics), 0, 1), 0.5
    judge = np.clip(truth + rng.normal(0, 0.02, topics), 0, 1)
    return truth, judge * (rng.random(topics) >= COLLAPSES[situation]), 0.5


def coverage(situation: str, n: int, trials: int) -> tuple[float, float]:
    """Return the coverage of the intervals from people alone, and of the corrected intervals."""
    rng, is_covered = np.random.default_rng([n, SITUATIONS.index(situation)]), list[tuple[bool, bool]]()
    for _ in range(trials):
        truth, judge, mean = sample_scores(rng, situation, 5 * n)
        estimate = prediction_powered(truth[:n], judge[:n], judge[n:], bounds=(0, 1), resamples=100)
        if estimate.interval is not None and estimate.known_interval is not None:
            intervals = (estimate.known_interval, estimate.interval)
            is_covered.append((intervals[0][0] <= mean <= intervals[0][1], intervals[1][0] <= mean <= intervals[1][1]))
    people, corrected = np.mean(is_covered, axis=0).tolist()
    return people, corrected


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the coverage of intervals from people alone, and from people and a model."""
    for situation in SITUATIONS:
        for n in SIZES:
            people, corrected = coverage(situation, n, trials)
            yield CoverageCell("people", situation, n, people, trials)
            yield CoverageCell("corrected", situation, n, corrected, trials)
