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
    from judged.web.matrix.asked import AskedMatrix, Box
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
    for place, name in (("run", run), ("against", against)):
        if name:
            frame = _frame(workspace, matrix, name, brush=place == "run")
            box = _box(frame, asked) if frame and place == "run" else None
            made[place] = frame and _with_topics(frame, matrix, name, chosen if asked.selects else None, box)
    return made


def _frame(workspace: Workspace, matrix: Matrix, run: str, *, brush: bool) -> dict[str, Any] | None:
    """Draw everything but the topics, once."""

    def _make() -> dict[str, Any] | None:
        try:
            return _without_topics(matrix, run, brush=brush)
        except MissingExtraError:
            return None

    return workspace.remember(("matrix chart", run, brush, matrix), _make)


def _box(frame: Mapping[str, Any], asked: AskedMatrix) -> Box | None:
    """Give the rectangle as it is drawn: a side that is left open lies on the edge of the chart."""
    if all(side is None for side in (asked.x0, asked.x1, asked.y0, asked.y1)):
        return None
    ends: list[tuple[float, float]] = []
    for axis, (low, high) in zip("xy", asked.bounds, strict=True):
        first, last = frame["layer"][0]["encoding"][axis]["scale"]["domain"]
        ends.append((min(max(low, first), last), min(max(high, first), last)))
    return ends[0], ends[1]


def _without_topics(matrix: Matrix, run: str, *, brush: bool) -> dict[str, Any]:
    """Draw one run as Vega-Lite, without the topics: `_with_topics` puts them in."""
    # Topics of one place will be one dot, as large as they are many. With `brush`, a rectangle can be drawn: it is the
    # parameter `BRUSH`. The dots are the data `TOPICS`: `across`, `up`, `topics`, `chosen`; of a topic alone its
    # `query_id`, of several the corners `from` and `to`.
    chart = matrix.chart_of(run)
    slices = [at for at, faint in enumerate(chart.table.column("faint").values) if not faint]
    made = specification(drawn(replace(chart, table=chart.table.take(slices), width=480, height=420)))
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
    drawing: Mapping[str, Any],
    matrix: Matrix,
    run: str,
    chosen: Bools | None = None,  # (T,): the topics that are selected; their part of each dot is in colour
    box: Box | None = None,
) -> dict[str, Any]:
    """Put the topics of a run into a chart that `_without_topics` made of it; the chart stays as it is."""
    layers: list[dict[str, Any]] = drawing["layer"]
    axes = layers[0]["encoding"]["x"], layers[0]["encoding"]["y"]
    data = {"name": TOPICS, "values": _dots(matrix, run, axes, chosen)}
    value = {} if box is None else {"value": dict(zip("xy", map(list, box), strict=True))}
    params = {"params": [{**drawing["params"][0], **value}]} if "params" in drawing else {}
    return {**drawing, "layer": [*({**layer, "data": data} for layer in layers[:2]), *layers[2:]], **params}


def _dots(
    matrix: Matrix, run: str, axes: tuple[dict[str, Any], dict[str, Any]], chosen: Bools | None
) -> list[dict[str, Any]]:
    """Put topics of one place together, with the rectangle around them: scores of many are the same, or nearly."""
    shown = np.array([bool(name) for name in matrix.topics(run)], dtype=np.bool_)
    values = matrix.values(run)[:, shown]
    domains = [axis["scale"]["domain"] for axis in axes]
    steps = [np.round((row - low) / (high - low) * _STEPS) for row, (low, high) in zip(values, domains, strict=True)]
    _, first, place, count = np.unique(
        np.stack(steps, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    place = place.ravel()
    picked = np.zeros(len(count), dtype=np.int64)
    if chosen is not None:
        np.add.at(picked, place, chosen[shown])
    low, high = np.full((2, len(count)), np.inf), np.full((2, len(count)), -np.inf)
    for axis in (0, 1):
        np.minimum.at(low[axis], place, values[axis])
        np.maximum.at(high[axis], place, values[axis])
    names = np.array(matrix.scores.query_ids, dtype=object)[shown].tolist()
    middle = values[:, first].T.round(6).tolist()
    parts = zip(first.tolist(), middle, count.tolist(), picked.tolist(), low.T.tolist(), high.T.tolist(), strict=True)
    return [
        {"across": x, "up": y, "topics": many, "chosen": some}
        | ({"query_id": names[at]} if many == 1 else {"from": start, "to": end})
        for at, (x, y), many, some, start, end in parts
    ]
