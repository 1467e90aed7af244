"""Curves as tables and documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.charting.scale import round_of
from judged.decimals import decimal
from judged.tables import Table

if TYPE_CHECKING:
    from judged import _types
    from judged.curves.points import CurvePoints

_ROWS = 12  # points of a table for people


def text_table(curves: CurvePoints) -> Table:
    """Lay out one row a point, one column a run; for precision and recall at cutoffs two."""
    raw = curves.kind == "raw"
    first = "recall" if curves.kind == "interpolated" else "k"
    kinds = ("recall", "precision") if raw else ("",)
    header = [f"{run} {kind}".strip() for run in curves.run_names for kind in kinds]
    rows: list[tuple[str, ...]] = []
    shown = np.flatnonzero(~np.isnan(curves.mean).all(axis=0))
    for at in shown[round_of(curves.at[shown], _ROWS)].tolist():
        cells = [
            cell
            for r in range(len(curves.run_names))
            for cell in ([decimal(float(curves.x[r, at]))] if raw else []) + [_cell(curves, r, at)]
        ]
        rows.append((f"{curves.at[at]:.12g}", *cells))
    return Table((first, *header), tuple(rows))


def _cell(curves: CurvePoints, run: int, at: int) -> str:
    mean, low, high = (float(column[run, at]) for column in (curves.mean, curves.low, curves.high))
    return decimal(mean) if np.isnan(low) else f"{decimal(mean)} [{decimal(low, 3)}, {decimal(high, 3)}]"


def long_table(curves: CurvePoints, *, per_topic: bool = False) -> _types.Table:
    """Give one row a point and run, or a point, run and topic; null where there is none."""
    shape = curves.per_topic.shape if per_topic else curves.mean.shape
    keep = ~np.isnan(curves.per_topic if per_topic else curves.mean).ravel()
    run, at, *topic = (index.ravel()[keep] for index in np.indices(shape))
    level = curves.kind == "interpolated"
    columns: dict[str, Any] = {
        "run": pa.array(curves.run_names, pa.string()).take(pa.array(run)),
        "recall" if level else "cutoff": curves.at[at] if level else curves.at[at].astype(np.int64),
    }
    points = len(curves.at)
    if per_topic:
        columns["query_id"] = pa.array(curves.query_ids, pa.string()).take(pa.array(topic[0]))
        if curves.kind == "raw":
            columns["recall"] = curves.scores.values[:, points:].ravel()[keep]
        columns["value"] = curves.per_topic.ravel()[keep]
        return pa.table(columns)
    if curves.kind == "raw":
        columns["recall"] = curves.x.ravel()[keep]
    for name in ("mean", "low", "high"):
        columns[name] = pa.array(getattr(curves, name).ravel()[keep], pa.float64(), from_pandas=True)
    columns["topics"] = curves.topics.ravel()[keep]
    return pa.table(columns)


def csv_table(curves: CurvePoints) -> Table:
    """Lay out every point in full precision, one a row; nothing where there is no number."""
    columns = long_table(curves).to_pydict()
    rows = zip(*([_full(value) for value in column] for column in columns.values()), strict=True)
    return Table(tuple(columns), tuple(rows))


def _full(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def document(curves: CurvePoints, *, per_topic: bool = False) -> dict[str, Any]:
    """Lay out curves as plain Python values, beside all that they rest on."""
    return replace(curves.scores.provenance, interval=curves.interval).to_dict() | {
        "warnings": list(curves.warnings),
        "kind": curves.kind,
        "measure": curves.name,
        "recalls" if curves.kind == "interpolated" else "cutoffs": _numbers(curves.at, curves.kind != "interpolated"),
        "curves": [_line(curves, r, per_topic=per_topic) for r in range(len(curves.run_names))],
    }


def _line(curves: CurvePoints, run: int, *, per_topic: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"run": curves.run_names[run]}
    if curves.kind == "raw":
        made["recall"] = _numbers(curves.x[run])
    made |= {name: _numbers(getattr(curves, name)[run]) for name in ("mean", "low", "high")}
    made["topics"] = curves.topics[run].tolist()
    if per_topic:
        recall = curves.scores.values[run, len(curves.at) :]
        made["per_topic"] = {
            query: {"precision": _numbers(scores), "recall": _numbers(recall[:, t])}
            if curves.kind == "raw"
            else _numbers(scores)
            for t, (query, scores) in enumerate(zip(curves.query_ids, curves.per_topic[run].T, strict=True))
        }
    return made


def _numbers(values: _types.Floats, whole: bool = False) -> list[Any]:
    return [int(value) if whole else None if np.isnan(value) else value for value in values.tolist()]
