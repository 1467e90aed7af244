"""200 nights with changes of the system and of the judgments, 400 times: which are detected, when, and where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from judged import evaluate
from judged.history.detection import alarm_threshold, detect

NIGHTS, CHANGED, JUDGED_AGAIN = 200, 120, (50, 90, 160)  # first nights of changes
TOPICS, DOCS, REPETITIONS, EVALUATIONS = 20, 12, 400, 365


class Nights(NamedTuple):
    """Scores (nights, topics) by the judgments of the last night, and by those of each night."""

    last: np.ndarray
    own: np.ndarray


def simulate(rng: np.random.Generator, loss: float) -> Nights:
    """Simulate a ranker with noisy scores, which loses weight of relevance, and judgments that are corrected."""
    topics, docs = [f"q{i:02d}" for i in range(TOPICS)], [f"d{j}" for j in range(DOCS)]
    grades = rng.random((TOPICS, DOCS)) < 0.3
    grades[:, 0] = True
    versions = [grades]
    for _ in JUDGED_AGAIN:
        flipped = rng.random(grades.shape) < 0.08
        flipped[:, 0] = False
        versions.append(versions[-1] ^ flipped)
    truth, fixed = versions[-1], rng.normal(size=grades.shape)
    runs = {}
    for night in range(NIGHTS):
        weight = 1.5 - loss * (night >= CHANGED)
        scores = weight * truth + fixed + 0.2 * rng.normal(size=grades.shape)
        runs[f"{night:03d}"] = {
            t: dict(zip(docs, row, strict=True)) for t, row in zip(topics, scores.tolist(), strict=True)
        }
    by_version = []
    for version in versions:
        qrels = {t: dict(zip(docs, map(int, row), strict=True)) for t, row in zip(topics, version, strict=True)}
        by_version.append(evaluate(qrels, runs, "nDCG@10").values[:, 0])
    version_of = np.searchsorted(JUDGED_AGAIN, np.arange(NIGHTS), side="right")
    return Nights(by_version[-1], np.stack([by_version[version_of[night]][night] for night in range(NIGHTS)]))


def test_changes_of_the_system_are_detected_and_changes_of_judgments_are_not() -> None:
    rng, threshold = np.random.default_rng(9404), alarm_threshold(EVALUATIONS)
    false_alarms, at_judgments, own_at_judgments = 0, 0, 0
    in_time, right, sizes = list[bool](), list[bool](), list[float]()
    for _ in range(REPETITIONS):
        nights = simulate(rng, loss=0.33)
        before, found = (detect(part, threshold, 0.0) for part in (nights.last[:CHANGED], nights.last))
        means = nights.last.mean(axis=1)
        sizes.append((means[:CHANGED].mean() - means[CHANGED:].mean()) / before.deviation)
        false_alarms += sum(shift.detected < CHANGED for shift in found.shifts)
        after = [shift for shift in found.shifts if shift.detected >= CHANGED]
        in_time.append(bool(after) and after[0].detected - CHANGED + 1 <= before.delay)
        right.append(any(shift.start == CHANGED for shift in after))
        at_judgments += sum(shift.start in JUDGED_AGAIN for shift in found.shifts)
        own_at_judgments += sum(shift.start in JUDGED_AGAIN for shift in detect(nights.own, threshold, 0.0).shifts)
    expected = REPETITIONS * CHANGED / EVALUATIONS
    assert np.mean(sizes) == pytest.approx(5.0, abs=0.5)  # standard deviations of a night
    assert false_alarms < expected + 2.6 * np.sqrt(expected)
    assert np.mean(in_time) >= 0.8
    assert np.mean(right) >= 0.9
    assert at_judgments < 0.02 * len(JUDGED_AGAIN) * REPETITIONS
    assert own_at_judgments > 0.9 * len(JUDGED_AGAIN) * REPETITIONS  # by the judgments of each night
