"""Check scores with chosen differences, and their decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.gates import Check, GateConfig
from judged.diagnosis.gates.decision import CheckScores, decide_checks
from judged.scoring.measures import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.gates import CheckResult

BASELINE_SCORE = 0.5


def pair(
    differences: Sequence[float], measure: str = "AP", *, slice: str = "all", min_topics: int = 2, **margin: float
) -> CheckScores:
    """Return scores of a baseline with 0.5 on every topic, and of a candidate with these differences from it."""
    values = np.asarray(differences, dtype=np.float64)
    check = Check(measure, slice=slice, **(margin or {"margin": 0.02}))
    query_ids = tuple(f"q{i:03}" for i in range(len(values)))
    baseline = np.full(len(values), BASELINE_SCORE)
    return CheckScores(check, parse(measure), query_ids, baseline, BASELINE_SCORE + values, min_topics)


def decided(*all_scores: CheckScores, **options: object) -> tuple[CheckResult, ...]:
    """Decide checks with 2000 resamples by default."""
    config = GateConfig(tuple(scores.check for scores in all_scores), **{"resamples": 2000, **options})
    return decide_checks(all_scores, config)
