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
COLLAPSES = {"collapses on 3 %": 0.03, "collapses on 5 %": 0.05, "collapses on 10 %": 0.1, "collapses on 20 %": 0.2}
SITUATIONS = (*COLLAPSES, "heavy noise", "nine of ten score 0")


def drawn(rng: np.random.Generator, situation: str, topics: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw scores by people and by a model, and give the true mean."""
    if situation == "nine of ten score 0":
        truth = rng.random(topics) * (rng.random(topics) < 0.1)
        return truth, truth, 0.05
    truth = rng.beta(2, 2, size=topics)
    if situation == "heavy noise":
        return truth, np.clip(truth + 0.1 * rng.standard_t(2, size=topics), 0, 1), 0.5
    judge = np.clip(truth + rng.normal(0, 0.02, topics), 0, 1)
    return truth, judge * (rng.random(topics) >= COLLAPSES[situation]), 0.5


def held(situation: str, n: int, trials: int) -> tuple[float, float]:
    """Return the share of intervals that hold the mean: of people alone, and corrected."""
    rng, held = np.random.default_rng([n, SITUATIONS.index(situation)]), list[tuple[bool, bool]]()
    for _ in range(trials):
        truth, judge, mean = drawn(rng, situation, 5 * n)
        found = prediction_powered(truth[:n], judge[:n], judge[n:], bounds=(0, 1), resamples=100)
        if found.interval is not None and found.known_interval is not None:
            ends = (found.known_interval, found.interval)
            held.append((ends[0][0] <= mean <= ends[0][1], ends[1][0] <= mean <= ends[1][1]))
    people, corrected = np.mean(held, axis=0).tolist()
    return people, corrected


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure how often intervals of people alone, and of people and a model, hold the mean."""
    for situation in SITUATIONS:
        for n in SIZES:
            people, corrected = held(situation, n, trials)
            yield CoverageCell("people", situation, n, people, trials)
            yield CoverageCell("corrected", situation, n, corrected, trials)
