"""Scores by group of documents as a chart of altair: a dot and its interval for each run and group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.slicing.charts import dots_by_slice

if TYPE_CHECKING:
    from judged.slicing.document_scores import DocumentScores, GroupEstimate


def group_chart(found: DocumentScores, measure: str, *, width: int, height: int | None) -> Any:
    """Draw the number of each run with its interval, by group; hollow where there are few topics."""
    shown = [one for one in found.estimates if one.estimate.measure == measure and math.isfinite(one.estimate.value)]
    runs = list(dict.fromkeys(one.estimate.run for one in found.estimates))
    order = list(dict.fromkeys(_named(one) for one in found.estimates))
    few = f"; hollow: fewer than {found.minimum} topics" if any(one.small for one in shown) else ""
    intervals = "" if found.method.method == "none" else f"{found.method.level:.0%} intervals over topics; "
    below = f"{intervals}only documents of one {found.by} relevant{few}"
    title = f"{measure} by {found.by} of documents", below
    return dots_by_slice(list(map(_point, shown)), order, runs, measure, title, "datum.few", (width, height))


def _named(one: GroupEstimate) -> str:
    return f"{one.group} ({one.topics})"


def _point(one: GroupEstimate) -> dict[str, Any]:
    made: dict[str, Any] = {
        "slice": _named(one),
        "series": one.estimate.run,
        "value": one.estimate.value,
        "topics": one.topics,
        "few": one.small,
    }
    return made if one.estimate.ci is None else made | {"low": one.estimate.ci[0], "high": one.estimate.ci[1]}
