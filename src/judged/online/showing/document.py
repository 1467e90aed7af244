"""Results of a log as plain values, ready for JSON: one set of keys for every command."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged import __version__
from judged.online.showing.trouble import doubtful
from judged.online.showing.words import BIAS, is_biased

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.online.estimates import ScoresTable
    from judged.online.metrics.metric import OnlineMetric

SCHEMA = "judged.online/1"
"""Changes when a key changes its meaning or goes."""

KEYS: Mapping[str, str] = {
    "schema": f"the name of this set of keys, {SCHEMA}",
    "judged": "the version that wrote it",
    "log": "name, layout, pages, events, sessions, users of what was counted, and its findings",
    "unit": "what intervals are made over: user or session",
    "level": "of the intervals, such as 0.95",
    "interval": "delta or bootstrap",
    "policies": "what was chosen, name to value",
    "by": "the slice; null for none",
    "slices": "its values, with pages",
    "metrics": "the definition of every metric that is shown or refused",
    "estimates": "one a metric and slice (null: all rows), with value, interval, both sums and units",
    "ranks": "CTR by rank, in the same form with the rank",
    "refused": "metrics that this log cannot tell, with the reason",
    "series": "the metric by period, with limits, signals and changes; empty but for 'online time'",
    "dwell": "the curve of dwell times and that of thresholds; empty but for 'online dwell'",
    "warnings": "what must be known before the numbers are used",
}
"""The keys of every document, in order."""


def document(scores: ScoresTable) -> dict[str, Any]:
    """Lay out a result; NaN becomes None, and every number keeps its full precision."""
    records = [plain(one) for one in scores.to_dicts()]
    size = len(scores.estimates)
    return arranged(
        log=log_of(scores),
        unit=scores.over,
        level=scores.level,
        interval=scores.interval,
        policies=dict(scores.policies),
        by=scores.by,
        slices=[{"slice": name, "pages": pages} for name, pages in scores.slices],
        metrics=definitions([*scores.metrics, *(metric for metric, _ in scores.refused)]),
        estimates=records[:size],
        ranks=records[size:],
        refused=[{"metric": str(metric), "reason": why} for metric, why in scores.refused],
        warnings=[*doubtful(scores), *([BIAS] if is_biased(scores) or (scores.ranks and not scores.estimates) else [])],
    )


def arranged(**known: Any) -> dict[str, Any]:
    """Give a document with every key, in order; lists that a command has nothing for stay empty.

    >>> list(arranged(unit="user"))[:4], arranged()["ranks"], arranged()["by"]
    (['schema', 'judged', 'log', 'unit'], [], None)
    """
    empty: dict[str, Any] = {
        "schema": SCHEMA,
        "judged": __version__,
        "log": {},
        "policies": {},
        "series": {},
        "dwell": {},
    }
    empty |= dict.fromkeys(("unit", "level", "interval", "by"))
    return {name: known.get(name, empty.get(name, [])) for name in KEYS}


def log_of(scores: ScoresTable) -> dict[str, Any]:
    """Say what the log is and what is wrong with it."""
    findings = [
        {
            "rule": one.rule,
            "table": one.table,
            "rows": one.rows,
            "of": one.of,
            "done": one.done,
            "problem": one.problem,
            "fix": one.fix,
            "places": list(one.places),
        }
        for one in scores.findings
    ]
    return {"name": scores.log, "layout": scores.layout, **dict(scores.counts), "findings": findings}


def definitions(metrics: Sequence[OnlineMetric]) -> list[dict[str, Any]]:
    """Write metrics down as what they are: data."""
    return [definition(one) for one in dict.fromkeys(metrics)]


def definition(metric: OnlineMetric) -> dict[str, Any]:
    """Write one metric down."""
    numerator, denominator = metric.columns()
    return {
        "metric": str(metric),
        "title": metric.title,
        "kind": metric.kind,
        "row": metric.row,
        "numerator": numerator,
        "denominator": denominator,
        "unit": metric.unit,
        "better": metric.better,
        "parameters": dict(metric.parameters),
        "formula": metric.formula,
        "window": metric.window,
        "attribution": metric.attribution,
        "source": metric.source,
        "misleads": metric.misleads,
        "needs": list(metric.needs),
        "biased": metric.biased,
    }


def plain(value: Any) -> Any:
    """Make what JSON has no word for None: NaN and infinity, at any depth.

    >>> plain({"a": [1.5, float("nan")], "b": float("inf")})
    {'a': [1.5, None], 'b': None}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
