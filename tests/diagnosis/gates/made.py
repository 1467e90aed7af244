"""Pairs of scores made to order, as the checks of a gate see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.gates import Check, GateConfig
from judged.diagnosis.gates.decision import Paired, decide
from judged.scoring.measures import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.gates import CheckResult

SAME = 0.5


def pair(
    differences: Sequence[float], measure: str = "AP", *, slice: str = "all", min_topics: int = 2, **margin: float
) -> Paired:
    """Give the scores of a baseline that has 0.5 everywhere, and of a candidate that differs by these."""
    gaps = np.asarray(differences, dtype=np.float64)
    asked = Check(measure, slice=slice, **(margin or {"margin": 0.02}))
    names = tuple(f"q{at:03}" for at in range(len(gaps)))
    return Paired(asked, parse(measure), names, np.full(len(gaps), SAME), SAME + gaps, min_topics)


def decided(*pairs: Paired, **options: object) -> tuple[CheckResult, ...]:
    """Decide them, with 2000 resamples."""
    config = GateConfig(tuple(one.check for one in pairs), **{"resamples": 2000, **options})
    return decide(pairs, config)
