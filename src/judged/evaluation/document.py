"""The JSON document of a result: the same from Python and from the command line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.evaluation.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation.facts import Estimate
    from judged.evaluation.score_table import ScoreTable
    from judged.stats import IntervalMethod


def document(
    scores: ScoreTable, estimates: Sequence[Estimate], interval: IntervalMethod, *, per_topic: bool
) -> dict[str, Any]:
    """Lay out scores as plain Python values: full precision, None for NaN."""
    by_topic = scores.per_topic() if per_topic else {}
    head = provenance(scores).to_dict()
    return {
        **head,
        "policies": {**head["policies"], "ci": vars(interval)},
        "warnings": list(scores.warnings),
        "results": [_result(one, by_topic) for one in estimates],
    }


def _result(one: Estimate, by_topic: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "run": one.run,
        "measure": one.measure,
        "aggregate": one.aggregate,
        "value": number(one.value),
        "ci": None if one.ci is None else [number(bound) for bound in one.ci],
        "topics": one.topics,
    }
    for reach in one.reaches:
        made[reach.reason] = {"low": number(reach.low), "high": number(reach.high), "kind": reach.kind}
        if not math.isnan(reach.judged):
            made[reach.reason]["judged"] = reach.judged
    if by_topic:
        made["per_topic"] = {query: number(value) for query, value in by_topic[one.run][one.measure].items()}
    return made


def number(value: float) -> float | None:
    """Give None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value
