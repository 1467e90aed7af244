"""A performance matrix as plain values for JSON, and as rows for CSV."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judged.diagnosis.matrix.points import QUADRANTS
from judged.diagnosis.matrix.sentences import sentences
from judged.evaluation.provenance import provenance
from judged.stats.pairing import plain
from judged.tables import Table

if TYPE_CHECKING:
    from judged.diagnosis.matrix.points import Axis, Point
    from judged.diagnosis.matrix.two_measures import TwoMeasures


def topic_rows(found: TwoMeasures) -> Table:
    """Lay out one row a topic and run, in full precision: for CSV."""
    rows = [
        (run, query, name, *("" if math.isnan(value) else repr(value) for value in values))
        for run in found.scores.run_names
        for query, name, values in zip(
            found.scores.query_ids, found.topics(run), found.values(run).T.tolist(), strict=True
        )
        if name
    ]
    return Table(("run", "query_id", "quadrant", str(found.x), str(found.y)), tuple(rows), labels=3)


def slice_rows(found: TwoMeasures) -> Table:
    """Lay out one row a run and slice, in full precision: for CSV."""
    header = ["run", "slice", "topics", "small", "quadrant", "judged"]
    for one in (found.x, found.y):
        header += [str(one), f"{one} low", f"{one} high", f"{one} side"]
    rows = [
        (
            *(point.run, point.slice, str(point.topics), str(point.small).lower(), point.quadrant, _full(point.judged)),
            *(cell for axis in (point.x, point.y) for cell in (*map(_full, axis[:3]), axis.side)),
        )
        for point in found.points
    ]
    return Table(tuple(header), tuple(rows), labels=2)


def _full(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def document(found: TwoMeasures) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    runs = found.scores.run_names
    return {
        **provenance(found.scores).to_dict(),
        "x": str(found.x),
        "y": str(found.y),
        "baseline": found.baseline,
        "cuts": list(found.cuts),
        "given_cuts": found.given_cuts,
        "choices": asdict(found.choices),
        "quadrants": list(QUADRANTS),
        "points": [_point(point) for point in found.points],
        "changes": [
            {"run": one.system, "slice": one.slice, "axis": one.part, "small": one.small,
             "significant": one.significant, **one.found.to_dict()}
            for one in found.changes
        ],
        "topics": {run: _topics(found, run) for run in runs},
        "counts": {run: found.counts(run) for run in runs},
        "lost": {run: _lost_by_axis(found, run) for run in found.lost},
        "sentences": list(sentences(found, full=True)),
        "warnings": list(found.warnings),
    }  # fmt: skip


def _point(point: Point) -> dict[str, Any]:
    return {
        "run": point.run, "slice": point.slice, "topics": point.topics, "small": point.small,
        "quadrant": point.quadrant or None, "judged": plain(point.judged), "x": _axis(point.x), "y": _axis(point.y),
    }  # fmt: skip


def _axis(axis: Axis) -> dict[str, Any]:
    ci = None if math.isnan(axis.low) else [axis.low, axis.high]
    return {"value": plain(axis.value), "ci": ci, "side": axis.side or None}


def _topics(found: TwoMeasures, run: str) -> dict[str, Any]:
    x, y = found.values(run).tolist()
    return {
        query: {"x": plain(x[at]), "y": plain(y[at]), "quadrant": name}
        for at, (query, name) in enumerate(zip(found.scores.query_ids, found.topics(run), strict=True))
        if name
    }


def _lost_by_axis(found: TwoMeasures, run: str) -> dict[str, Any]:
    return {axis: _lost(found, one.to_dict()) for axis, one in found.lost[run].items()}


def _lost(found: TwoMeasures, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "found": [found.scores.query_ids[at] for at in made["found"]]}
