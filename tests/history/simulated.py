"""Simulated series of evaluations with changes of known time and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.results.types import Floats

TOPICS, NOISE = 50, 0.05


def deviation(common: float = 0.0) -> float:
    """Return the standard deviation of the mean score of an evaluation."""
    return float(np.hypot(NOISE / np.sqrt(TOPICS), common))


def series(
    rng: np.random.Generator,
    evaluations: int = 200,
    changes: Iterable[tuple[int, float]] = (),
    *,
    varied: float = 0.0,  # standard deviation of a change over topics
    common: float = 0.0,  # standard deviation of the noise that all topics of an evaluation share
    autocorrelation: float = 0.0,  # of the shared noise
) -> Floats:
    """Simulate (evaluations, topics) scores; `changes` are first evaluations and changes of the mean."""
    values = np.tile(rng.uniform(0.2, 0.8, TOPICS), (evaluations, 1))
    for first, size in changes:
        of_topics = varied * rng.standard_normal(TOPICS)
        values[first:] += of_topics - of_topics.mean() + size
    shared = common * rng.standard_normal(evaluations)
    for i in range(1, evaluations):
        shared[i] = autocorrelation * shared[i - 1] + np.sqrt(1 - autocorrelation**2) * shared[i]
    return values + NOISE * rng.standard_normal((evaluations, TOPICS)) + shared[:, None]
