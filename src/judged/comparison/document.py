"""The JSON document of a comparison, and its pairs as rows: the same from Python and from the command line."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judged.comparison.captions import caption
from judged.evaluation.document import number
from judged.tables import Table

if TYPE_CHECKING:
    from judged.comparison.compared import ComparedSystems
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.comparison.tested_pair import TopicDifference
    from judged.evaluation import Estimate

_COLUMNS = (
    "measure", "first", "second", "difference", "low", "high", "statistic", "p", "adjusted", "significant", "better",
    "dz", "standardised", "cliffs_delta", "wins", "ties", "losses", "detectable", "topics", "left_out",
)  # fmt: skip


def document(comparison: ComparedSystems) -> dict[str, Any]:
    """Lay out a comparison as plain Python values: full precision, None for NaN."""
    scores, names = comparison.scores, comparison.scores.run_names
    return {
        "judged": scores.versions.get("judged", ""),
        "versions": dict(scores.versions),
        "qrels": {**vars(scores.qrels), "grades": list(scores.qrels.grades)},
        "policies": dict(vars(scores.policies)),
        "choices": asdict(comparison.choices),
        "caption": caption(comparison),
        "runs": {run.name: {"path": run.path, "sha256": run.sha256} for run in scores.runs},
        "order": [names[at] for at in comparison.order],
        "measures": [_measure(one) for one in comparison.measures],
        "warnings": list(comparison.warnings),
    }


def _measure(one: MeasureComparison) -> dict[str, Any]:
    return {
        "measure": one.name,
        "aggregate": one.measure.entry.aggregate,
        "family": one.family,
        "untested": one.untested or None,
        "overall": one.overall or None,
        "results": [_estimate(estimate) for estimate in one.estimates],
        "pairs": [pair_document(pair) for pair in one.pairs],
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    ci = None if one.ci is None else [number(bound) for bound in one.ci]
    return {"run": one.run, "value": number(one.value), "ci": ci, "topics": one.topics}


def pair_document(pair: Pair) -> dict[str, Any]:
    """Lay out one pair."""
    test = pair.found.to_dict()
    del test["sentence"]
    return {
        "first": pair.first,
        "second": pair.second,
        "difference": number(pair.shown_difference),
        "kind": "ratio" if pair.is_ratio else "difference",
        "significant": pair.significant,
        "better": pair.better,
        "test": test,
        "effects": {name: value for name, value in pair.effects.to_dict().items() if name != "sentence"},
        "wins": {name: value for name, value in pair.wins.to_dict().items() if name != "sentence"},
        "detectable": number(pair.detectable),
        "equivalence": None if pair.equivalence is None else pair.equivalence.to_dict(),
        "topics": {"for": [_topic(one) for one in pair.gains], "against": [_topic(one) for one in pair.losses]},
        "sentence": pair.sentence,
    }


def _topic(one: TopicDifference) -> dict[str, Any]:
    return {"query_id": one.query_id, "difference": one.difference, "first": one.first, "second": one.second}


def pair_rows(comparison: ComparedSystems) -> Table:
    """Lay out one pair a row, in full precision: for CSV. A geometric mean's difference is a ratio."""
    return Table(_COLUMNS, tuple(_row(pair) for pair in comparison.pairs), labels=3)


def _row(pair: Pair) -> tuple[str, ...]:
    low, high = pair.shown_interval or (math.nan, math.nan)
    found, effects, wins = pair.found, pair.effects, pair.wins
    values = (
        pair.measure, pair.first, pair.second, pair.shown_difference, low, high, found.statistic, found.p,
        found.decisive_p, pair.significant, pair.better or "", effects.dz, effects.standardised, effects.cliffs_delta,
        wins.wins, wins.ties, wins.losses, pair.detectable, found.n, found.left_out,
    )  # fmt: skip
    return tuple(map(_full, values))


def _full(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
