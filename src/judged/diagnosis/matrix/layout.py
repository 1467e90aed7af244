"""Tables of a performance matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.decimals import decimal
from judged.diagnosis.changes import SMALL
from judged.diagnosis.matrix.points import BOTH, COVERAGE, HEALTHY, OPEN, QUADRANTS, RANKING
from judged.errors import InputError
from judged.slicing.layout import direction
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.matrix.points import Axis
    from judged.diagnosis.matrix.two_measures import TwoMeasures

_SIGN = {"below": "-", "above": "+"}
_SHORT = {HEALTHY: "healthy", RANKING: "ranking", COVERAGE: "coverage", BOTH: "both", OPEN: "?"}  # in tables


def points_table(found: TwoMeasures) -> Table:
    """Lay out one row a run and slice."""
    several = len(found.scores.runs) > 1
    judged = any(point.judged < 1 for point in found.points)
    header = (*(("run",) if several else ()), "slice", "problem", "n", str(found.x), str(found.y))
    header += ("judged",) if judged else ()
    rows = [
        (
            *((point.run,) if several else ()),
            point.slice,
            SMALL if point.small else _SHORT.get(point.quadrant, ""),
            str(point.topics),
            _axis_cell(point.x),
            _axis_cell(point.y),
            *((share_text(point.judged),) if judged else ()),
        )
        for point in found.points
    ]
    return Table(header, tuple(rows), labels=3 if several else 2)


def share_text(share: float) -> str:
    """Write a share in per cent; 100% only where it is.

    >>> share_text(1.0), share_text(0.996), share_text(0.99999), share_text(0.5), share_text(float("nan"))
    ('100%', '99.6%', 'under 100%', '50%', '-')
    """
    if math.isnan(share):
        return "-"
    if share == 1 or f"{share:.0%}" != "100%":
        return f"{share:.0%}"
    return f"{share:.1%}" if f"{share:.1%}" != "100.0%" else "under 100%"


def summary_table(found: TwoMeasures) -> Table:
    """Lay out one row a run, without intervals."""
    slices = [name for name in QUADRANTS if found.slicing is not None]
    changes = {one.system: (one, two) for one, two in by_run(found) if one.every}
    header = ("run", "problem", "topics", str(found.x), "change", str(found.y), "change")
    header += tuple(_SHORT[name] for name in slices)
    rows: list[tuple[str, ...]] = []
    for whole in (point for point in found.points if point.every):
        mine = [point.quadrant for point in found.points if point.run == whole.run and not point.every]
        cells: list[str] = []
        for at, axis in enumerate((whole.x, whole.y)):
            cells.append(Cell(decimal(axis.value), mark=_SIGN.get(axis.side, "")))
            change = changes[whole.run][at] if whole.run in changes else None
            cells.append("" if change is None else _change_cell(change))
        counts = (str(mine.count(name)) for name in slices)
        rows.append((whole.run, _SHORT.get(whole.quadrant, ""), str(whole.topics), *cells, *counts))
    return Table(header, tuple(rows), labels=2)


def _change_cell(one: Change) -> Cell:
    return Cell(decimal(one.found.difference, 4, "+"), mark="*" if one.significant else "")


def _axis_cell(axis: Axis) -> Cell:
    rest = "" if math.isnan(axis.low) else f"[{decimal(axis.low, 3)}, {decimal(axis.high, 3)}]"
    return Cell(decimal(axis.value), rest=rest, mark=_SIGN.get(axis.side, ""))


def changes_table(found: TwoMeasures) -> Table:
    """Lay out one row a run, slice and axis."""
    if not found.changes:
        raise InputError("there is no second run", fix="give two runs or more")
    header = ("run", "slice", "of", "topics", direction("run", found.baseline), "p")
    rows = [
        (one.system, one.slice, one.part, change_size(one), *change_cells(one))
        for pair in by_run(found)
        for one in pair
    ]
    return Table(header, tuple(rows), labels=3)


def change_size(one: Change) -> str:
    """Write over how many topics something changed, and whether these are few."""
    return f"{one.found.n} {SMALL}" if one.small else str(one.found.n)


def change_cells(one: Change) -> tuple[str, str]:
    """Write a change with its interval, and its corrected p-value, starred where it is significant."""
    number, _, rest = one.size.partition(" ")
    p = "-" if math.isnan(one.found.decisive_p) else one.p.removeprefix("p ").removeprefix("= ")
    return Cell(number, rest=rest), Cell(p, mark="*" if one.significant else "")


def by_run(found: TwoMeasures) -> list[tuple[Change, Change]]:
    """Give the changes of x and y together, run by run."""
    pairs = list(zip(found.changes[::2], found.changes[1::2], strict=True))
    order = {name: at for at, name in enumerate(found.scores.run_names)}
    return sorted(pairs, key=lambda pair: order[pair[0].system])


def topics_table(found: TwoMeasures, run: str | None) -> Table:
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
            cells = (decimal(float(values[0, at])), decimal(float(values[1, at])))
            rows.append((*label, found.scores.query_ids[at], classes[at], *cells, *changes))
    return Table(header, tuple(rows), labels=3 if several else 2)


def _topic_changes(found: TwoMeasures, run: str, changes: Any, at: int) -> tuple[str, str]:
    lost = list(found.lost.get(run, {}).values())
    stars = ["*" if one.mask[at] else "" for one in lost] or ["", ""]
    x, y = (decimal(float(changes[axis, at]), 4, "+") + stars[axis] for axis in (0, 1))
    return x, y
