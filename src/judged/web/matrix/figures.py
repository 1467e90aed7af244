"""The charts of the matrix, in which topics are selected: topics of one place are one dot, beside those of slices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer.drawing import drawn
from judged.charting import PALETTE, specification
from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Bools
    from judged.diagnosis.matrix import Matrix
    from judged.web.matrix.asked import AskedMatrix
    from judged.web.workspace import Workspace

_GREY = "#7F7F7F"
_STEPS = 400  # places along an axis: topics of one place are one dot
_DOT, _LARGEST = 34.0, 800.0  # square pixels of one topic, and at most of many
TOPICS, BRUSH = "topics", "brush"
"""What the dots and the rectangle are called in Vega."""


def figures(
    workspace: Workspace, asked: AskedMatrix, matrix: Matrix, run: str, against: str, chosen: Bools
) -> dict[str, dict[str, Any] | None]:
    """Draw the run, and the one it is compared with, by place; None, where what draws them is not installed."""
    made: dict[str, dict[str, Any] | None] = {}
    for place, name in {"run": run, **({"against": against} if against else {})}.items():
        key = ("matrix chart", name, place, matrix)
        frame = workspace.remember(key, lambda name=name, place=place: _frame(matrix, name, brush=place == "run"))
        made[place] = frame and _with_topics(frame, asked, matrix, name, chosen)
    return made


def _frame(matrix: Matrix, run: str, *, brush: bool) -> dict[str, Any] | None:
    """Draw one run as Vega-Lite, without the topics: `_with_topics` puts them in."""
    # Topics of one place will be one dot, as large as they are many. With `brush`, a rectangle can be drawn: it is the
    # parameter `BRUSH`. The dots are the data `TOPICS`: `across`, `up`, `topics`, `chosen`; of a topic alone its
    # `query_id`, of several the corners `from` and `to`.
    chart = matrix.chart_of(run)
    slices = [at for at, faint in enumerate(chart.table.column("faint").values) if not faint]
    try:
        made = specification(drawn(replace(chart, table=chart.table.take(slices), width=480, height=420)))
    except MissingExtraError:
        return None
    del made["title"]
    seen = next(layer["encoding"] for layer in made["layer"] if "tooltip" in layer["encoding"])
    x, y = {**seen["x"], "field": "across"}, {**seen["y"], "field": "up"}
    most = max((dot["topics"] for dot in _dots(matrix, run, (x, y), None)), default=1)
    scale = {"type": "pow", "exponent": 0.5, "domain": [1, max(most, 2)],
             "range": [_DOT, min(_DOT * math.sqrt(most), _LARGEST)]}  # fmt: skip
    shown = sorted({*(10**power for power in range(len(str(most)))), most})
    legend = {"title": "topics", "orient": "bottom", "symbolFillColor": _GREY, "symbolStrokeWidth": 0, "values": shown,
              "format": ",d"}  # fmt: skip
    sized = {"type": "quantitative", "scale": scale, "legend": legend if most > 1 else None}
    tooltip = [{"field": "query_id", "type": "nominal"}, {"field": "topics", "type": "quantitative"},
               *({"field": axis["field"], "title": axis["title"], "format": ".4f"} for axis in (x, y))]  # fmt: skip
    grey = {"color": _GREY, "opacity": 0.55}
    coloured = {"color": PALETTE[4], "opacity": 0.9, "stroke": "#333", "strokeWidth": 0.6}
    dots: list[dict[str, Any]] = [
        {
            "data": {"name": TOPICS, "values": []},
            "transform": [{"filter": f"datum.{field} > 0"}],
            "mark": {"type": "circle", "cursor": "pointer", **mark},
            "encoding": {"x": x, "y": y, "size": {"field": field, **sized}, "tooltip": tooltip},
        }
        for field, mark in (("topics", grey), ("chosen", coloured))
    ]
    dots[0]["name"] = TOPICS
    rectangle = {"name": BRUSH, "select": {"type": "interval", "encodings": ["x", "y"]}, "views": [TOPICS]}
    return {**made, "layer": [*dots, *made["layer"]], **({"params": [rectangle]} if brush else {})}


def _with_topics(
    frame: Mapping[str, Any], asked: AskedMatrix, matrix: Matrix, run: str, chosen: Bools
) -> dict[str, Any]:
    """Put the topics of a run into a chart, those selected in colour, and the rectangle; the chart stays as it is."""
    layers: list[dict[str, Any]] = frame["layer"]
    axes = layers[0]["encoding"]["x"], layers[0]["encoding"]["y"]
    data = {"name": TOPICS, "values": _dots(matrix, run, axes, chosen if asked.selects else None)}
    made = {**frame, "layer": [*({**layer, "data": data} for layer in layers[:2]), *layers[2:]]}
    if "params" in frame and any(side is not None for side in (asked.x0, asked.x1, asked.y0, asked.y1)):
        # a side that is left open lies on the edge of the chart
        ends = zip("xy", axes, asked.bounds, strict=True)
        value = {name: np.clip(bounds, *axis["scale"]["domain"]).tolist() for name, axis, bounds in ends}
        made["params"] = [{**frame["params"][0], "value": value}]
    return made


def _dots(
    matrix: Matrix, run: str, axes: tuple[dict[str, Any], dict[str, Any]], chosen: Bools | None
) -> list[dict[str, Any]]:
    """Put topics of one place together, with the rectangle around them: scores of many are the same, or nearly."""
    shown = np.array([bool(name) for name in matrix.topics(run)], dtype=np.bool_)
    values = matrix.values(run)[:, shown]
    domains = [axis["scale"]["domain"] for axis in axes]
    steps = [np.round((row - low) / (high - low) * _STEPS) for row, (low, high) in zip(values, domains, strict=True)]
    _, place, count = np.unique(np.stack(steps, axis=1), axis=0, return_inverse=True, return_counts=True)
    order, starts = np.argsort(place.ravel(), kind="stable"), np.cumsum(count) - count
    low, high = (end.reduceat(values[:, order], starts, axis=1).T.tolist() for end in (np.minimum, np.maximum))
    picked = np.zeros(len(count), dtype=np.int64)
    if chosen is not None:
        picked = np.add.reduceat(chosen[shown][order], starts, dtype=np.int64)
    first = order[starts]
    names = np.array(matrix.scores.query_ids, dtype=object)[shown].tolist()
    middle = values[:, first].T.round(6).tolist()
    parts = zip(first.tolist(), middle, count.tolist(), picked.tolist(), low, high, strict=True)
    return [
        {"across": x, "up": y, "topics": many, "chosen": some}
        | ({"query_id": names[at]} if many == 1 else {"from": start, "to": end})
        for at, (x, y), many, some, start, end in parts
    ]
