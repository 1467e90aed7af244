"""Tables and the JSON document of a performance matrix."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.marks import fixed
from judged.diagnosis.matrix.points import QUADRANTS
from judged.diagnosis.stages.layout import SMALL, change_cells
from judged.errors import InputError
from judged.stats.pairing import plain
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.matrix.making import Matrix
    from judged.diagnosis.matrix.points import Axis, Point

_SIGN = {"below": "-", "above": "+"}


def points_table(found: Matrix) -> Table:
    """Lay out one row a run and slice."""
    several = len(found.scores.runs) > 1
    header = (*(("run",) if several else ()), "slice", "quadrant", "topics", str(found.x), str(found.y), "judged@10")
    rows = [
        (
            *((point.run,) if several else ()),
            point.slice,
            point.quadrant,
            f"{point.topics} {SMALL}" if point.small else str(point.topics),
            _axis_cell(point.x),
            _axis_cell(point.y),
            "-" if math.isnan(point.judged) else f"{point.judged:.0%}",
        )
        for point in found.points
    ]
    return Table(header, tuple(rows), labels=3 if several else 2)


def _axis_cell(axis: Axis) -> Cell:
    rest = "" if math.isnan(axis.low) else f"[{axis.low:.3f}, {axis.high:.3f}]"
    return Cell(fixed(axis.value, 4), rest=rest, mark=_SIGN.get(axis.side, ""))


def changes_table(found: Matrix) -> Table:
    """Lay out one row a run and slice.

    Raises
    ------
    InputError
        If there is only one run.
    """
    if not found.changes:
        raise InputError("there is no second run", fix="give two runs or more")
    header = ("run", "slice", "topics", str(found.x), "p", str(found.y), "p")
    rows = [
        (
            x.system,
            x.slice,
            f"{x.found.n} {SMALL}" if x.small else str(x.found.n),
            *change_cells(x),
            *change_cells(y),
        )
        for x, y in by_run(found)
    ]
    return Table(header, tuple(rows), labels=2)


def by_run(found: Matrix) -> list[tuple[Change, Change]]:
    """Give the changes of x and y together, run by run."""
    pairs = list(zip(found.changes[::2], found.changes[1::2], strict=True))
    order = {name: at for at, name in enumerate(found.scores.run_names)}
    return sorted(pairs, key=lambda pair: order[pair[0].system])


def topics_table(found: Matrix, run: str | None) -> Table:
    """Lay out one row a topic and run, worst y first."""
    runs = found.scores.run_names if run is None else (run,)
    several = len(runs) > 1
    header = (*(("run",) if several else ()), "query_id", "quadrant", str(found.x), str(found.y))
    compared = any(name != found.baseline for name in runs)
    header += (f"{found.x} change", f"{found.y} change") if compared else ()
    before = found.values(found.baseline)
    rows: list[tuple[str, ...]] = []
    for name in runs:
        values, classes = found.values(name), found.topics(name)
        for at in np.lexsort((values[0], values[1])).tolist():
            if not classes[at]:
                continue
            label = (name,) if several else ()
            changes = _topic_changes(found, name, values - before, at) if compared else ()
            cells = (fixed(float(values[0, at]), 4), fixed(float(values[1, at]), 4))
            rows.append((*label, found.scores.query_ids[at], classes[at], *cells, *changes))
    return Table(header, tuple(rows), labels=3 if several else 2)


def _topic_changes(found: Matrix, run: str, changes: Any, at: int) -> tuple[str, str]:
    lost = list(found.lost.get(run, {}).values())
    stars = ["*" if one.mask[at] else "" for one in lost] or ["", ""]
    x, y = (fixed(float(changes[axis, at]), 4, "+") + stars[axis] for axis in (0, 1))
    return x, y


def topic_rows(found: Matrix) -> Table:
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


def document(found: Matrix) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    runs = found.scores.run_names
    return {
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
        "sentences": list(found.sentences),
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


def _topics(found: Matrix, run: str) -> dict[str, Any]:
    x, y = found.values(run).tolist()
    return {
        query: {"x": plain(x[at]), "y": plain(y[at]), "quadrant": name}
        for at, (query, name) in enumerate(zip(found.scores.query_ids, found.topics(run), strict=True))
        if name
    }


def _lost_by_axis(found: Matrix, run: str) -> dict[str, Any]:
    return {axis: _lost(found, one.to_dict()) for axis, one in found.lost[run].items()}


def _lost(found: Matrix, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "found": [found.scores.query_ids[at] for at in made["found"]]}
