"""The picture of a performance matrix: topics in grey, slices with their intervals, the cuts and what they part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, apart, axis_of, even, specification, themed
from judged.diagnosis.matrix.points import BOTH, COVERAGE, HEALTHY, OPEN, RANKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Bools, Floats
    from judged.charting import Scale
    from judged.diagnosis.matrix.points import Point
    from judged.diagnosis.matrix.two_measures import TwoMeasures

_COLUMNS = 2
_GREY, _CHOSEN = "#7F7F7F", PALETTE[4]
_ALL, _FEW = "all topics", "too few topics"
_COLOURS = {
    HEALTHY: PALETTE[2], RANKING: PALETTE[1], COVERAGE: PALETTE[3], BOTH: "#7B3F00", OPEN: PALETTE[0],
    _ALL: PALETTE[6], _FEW: "#5F5F5F",
}  # fmt: skip
_LINE = 15.0  # pixels from one name to the next
_FAR = 0.6  # along the axis: names of points beyond stand to their left
_STEPS = 400  # places along an axis: topics of one place are one dot
_DOT, _LARGEST = 34.0, 800.0  # square pixels of one topic, and at most of many
TOPICS, BRUSH = "topics", "brush"
"""What the dots and the rectangle of `chart_to_select` are called in Vega."""


def chart(found: TwoMeasures, run: str | None, width: int, height: int) -> Any:
    """Draw one run, or all of them side by side on the same axes."""
    alt = altair()
    runs = list(found.scores.run_names) if run is None else [run]
    across, up = (_scale(found, axis) for axis in (0, 1))
    classes = _classes([point for point in found.points if point.run in runs])
    panels = [
        _panel(alt, found, name, (across, up), classes, height).properties(width=width, height=height) for name in runs
    ]
    whose = "given" if found.given_cuts else f"means of {found.baseline}"
    title = alt.TitleParams(
        f"{found.y} against {found.x}",
        subtitle=f"cuts (dashed): {whose}; bars: intervals; grey: topics",
        anchor="start",
    )
    made = alt.concat(*panels, columns=min(_COLUMNS, len(panels))) if len(panels) > 1 else panels[0]
    return themed(
        made.properties(title=title) if len(panels) > 1 else made.properties(title=_single(alt, title, runs[0]))
    )


def chart_to_select(found: TwoMeasures, run: str, *, brush: bool = True, width: int = 480, height: int = 420) -> Any:
    """Draw one run for a page on which topics are selected, without the topics: `with_topics` puts them in."""
    # Topics of one place will be one dot, as large as they are many. With `brush`, a rectangle can be drawn: it is the
    # parameter `BRUSH`. The dots are the data `TOPICS`: `across`, `up`, `topics`, `chosen`; of a topic alone its
    # `query_id`, of several the corners `from` and `to`. What is returned is the Vega-Lite itself: altair would copy
    # all dots at every step.
    alt = altair()
    scales = _scale(found, 0), _scale(found, 1)
    x, y = _encoded(alt, "x", str(found.x), scales[0]), _encoded(alt, "y", str(found.y), scales[1])
    points = [point for point in found.points if point.run == run and not math.isnan(point.x.value)]
    most = max((dot["topics"] for dot in _dots(found, run, None)), default=1)
    dots = _sized(
        alt,
        found,
        most,
        _encoded(alt, "x", str(found.x), scales[0], "across"),
        _encoded(alt, "y", str(found.y), scales[1], "up"),
    )
    if brush:
        dots[0] = dots[0].add_params(alt.selection_interval(name=BRUSH, encodings=["x", "y"]))
    layers = [_cuts(alt, found), _corners(alt, *scales), *dots]
    layers += _slices(alt, _records(points, *scales, height), _classes(points), x, y)
    return specification(themed(alt.layer(*layers).properties(width=width, height=height)))


def with_topics(
    drawn: Mapping[str, Any],
    found: TwoMeasures,
    run: str,
    chosen: Bools | None = None,  # (T,): the topics that are selected; their part of each dot is in colour
    box: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> dict[str, Any]:
    """Put the topics of a run into a chart that `chart_to_select` made of it; the chart stays as it is."""
    dots = {"name": TOPICS, "values": _dots(found, run, chosen)}
    value = {} if box is None else {"value": dict(zip("xy", map(list, box), strict=True))}
    return {
        **drawn,
        "layer": [
            {**layer, "data": dots} if layer.get("data", {}).get("name") == TOPICS else layer
            for layer in drawn["layer"]
        ],
        **({"params": [{**one, **value} for one in drawn["params"]]} if "params" in drawn else {}),
    }


def _dots(found: TwoMeasures, run: str, chosen: Bools | None) -> list[dict[str, Any]]:
    """Put topics of one place together, with the rectangle around them: scores of many are the same, or nearly."""
    shown = np.array([bool(name) for name in found.topics(run)], dtype=np.bool_)
    values = found.values(run)[:, shown]
    scales = _scale(found, 0), _scale(found, 1)
    steps = [np.round(scale.share(row) * _STEPS) for scale, row in zip(scales, values, strict=True)]
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
    names = [query for query, one in zip(found.scores.query_ids, shown.tolist(), strict=True) if one]
    middle = values[:, first].T.round(6).tolist()
    parts = zip(first.tolist(), middle, count.tolist(), picked.tolist(), low.T.tolist(), high.T.tolist(), strict=True)
    return [
        {"across": x, "up": y, "topics": many, "chosen": some}
        | ({"query_id": names[at]} if many == 1 else {"from": start, "to": end})
        for at, (x, y), many, some, start, end in parts
    ]


def _sized(alt: Any, found: TwoMeasures, most: int, x: Any, y: Any) -> list[Any]:
    """Draw topics in grey, and over them those that are selected; without data as yet."""
    largest = min(_DOT * math.sqrt(most), _LARGEST)
    sizes = alt.Scale(type="pow", exponent=0.5, domain=[1, max(most, 2)], range=[_DOT, largest])
    shown = sorted({*(10**power for power in range(len(str(most)))), most})
    legend = alt.Legend(
        title="topics", orient="bottom", symbolFillColor=_GREY, symbolStrokeWidth=0, values=shown, format=",d"
    )
    legend = legend if most > 1 else None
    tooltip = ["query_id:N", "topics:Q", alt.Tooltip("across:Q", title=str(found.x), format=".4f"),
               alt.Tooltip("up:Q", title=str(found.y), format=".4f")]  # fmt: skip
    base = alt.Chart(alt.InlineData(values=[], name=TOPICS))
    all_of_them = base.mark_circle(color=_GREY, opacity=0.55, cursor="pointer").encode(
        x=x, y=y, size=alt.Size("topics:Q", scale=sizes, legend=legend), tooltip=tooltip
    )
    some = base.transform_filter("datum.chosen > 0").mark_circle(
        color=_CHOSEN, opacity=0.9, stroke="#333", strokeWidth=0.6, cursor="pointer"
    )
    return [all_of_them, some.encode(x=x, y=y, size=alt.Size("chosen:Q", scale=sizes, legend=legend), tooltip=tooltip)]


def _single(alt: Any, title: Any, run: str) -> Any:
    return alt.TitleParams(f"{run}: {title.text}", subtitle=title.subtitle, anchor="start", frame="group")


def _scale(found: TwoMeasures, axis: int) -> Scale:
    """Make an axis that holds every point, the cut, and the measure's whole range where it has one."""
    known = (found.x, found.y)[axis].properties
    values = [found.values(run)[axis] for run in found.scores.run_names]
    ends = [end for end in (known.low, known.high) if end is not None]
    return even(np.concatenate([*values, [found.cuts[axis]], ends]), 5)


def _panel(alt: Any, found: TwoMeasures, run: str, scales: tuple[Scale, Scale], classes: list[str], height: int) -> Any:
    across, up = scales
    points = [point for point in found.points if point.run == run and not math.isnan(point.x.value)]
    x, y = _encoded(alt, "x", str(found.x), across), _encoded(alt, "y", str(found.y), up)
    layers = [_cuts(alt, found), _corners(alt, across, up), _topics(alt, found, run, x, y)]
    layers += _slices(alt, _records(points, across, up, height), classes, x, y)
    made = alt.layer(*layers)
    return made.properties(title=alt.TitleParams(run, anchor="start")) if len(found.scores.runs) > 1 else made


def _encoded(alt: Any, channel: str, title: str, scale: Scale, field: str = "") -> Any:
    kind = alt.X if channel == "x" else alt.Y
    bounds = alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)
    return kind(f"{field or channel}:Q", title=title, scale=bounds, axis=axis_of(alt, scale, labelFlush=False))


def _cuts(alt: Any, found: TwoMeasures) -> Any:
    lines = []
    for name, value in zip("xy", found.cuts, strict=True):
        base = alt.Chart(alt.InlineData(values=[{name: value}])).mark_rule(strokeDash=[5, 4], color=_GREY)
        lines.append(base.encode(**{name: f"{name}:Q"}))
    return alt.layer(*lines)


def _corners(alt: Any, across: Scale, up: Scale) -> Any:
    """Name the quadrants in their outer corners."""
    left, right = (across.low, across.high)
    low, high = (up.low, up.high)
    corners = [
        (right, high, HEALTHY, "right", "top"), (right, low, RANKING, "right", "bottom"),
        (left, high, COVERAGE, "left", "top"), (left, low, BOTH, "left", "bottom"),
    ]  # fmt: skip
    made: list[Any] = []
    for x, y, name, side, edge in corners:
        mark = alt.Chart(alt.InlineData(values=[{"x": x, "y": y, "name": name}])).mark_text(
            align=side, baseline=edge, dx=4 if side == "left" else -4, dy=4 if edge == "top" else -4,
            fontSize=11, fontStyle="italic", color=_GREY,
        )  # fmt: skip
        made.append(mark.encode(x="x:Q", y="y:Q", text="name:N"))
    return alt.layer(*made)


def _topics(alt: Any, found: TwoMeasures, run: str, x: Any, y: Any) -> Any:
    values: Floats = found.values(run)
    rows = [
        {"x": float(values[0, at]), "y": float(values[1, at]), "query_id": query, "quadrant": name}
        for at, (query, name) in enumerate(zip(found.scores.query_ids, found.topics(run), strict=True))
        if name
    ]
    tooltip = ["query_id:N", alt.Tooltip("x:Q", title=str(found.x), format=".4f"),
               alt.Tooltip("y:Q", title=str(found.y), format=".4f"), "quadrant:N"]  # fmt: skip
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(size=22, color=_GREY, opacity=0.4)
        .encode(x=x, y=y, tooltip=tooltip)
    )


def _classes(points: list[Point]) -> list[str]:
    """Name the classes that occur, in the order of the legend: one for all panels."""
    seen = {_class(point) for point in points}
    return [name for name in _COLOURS if name in seen]


def _class(point: Point) -> str:
    return _ALL if point.every else _FEW if point.small else point.quadrant or OPEN


def _slices(alt: Any, rows: list[dict[str, Any]], classes: list[str], x: Any, y: Any) -> list[Any]:
    colour = alt.Color(
        "class:N", title=None, scale=alt.Scale(domain=classes, range=[_COLOURS[name] for name in classes]),
        legend=alt.Legend(orient="bottom", columns=4, labelLimit=300, symbolType="circle"),
    )  # fmt: skip
    base = alt.Chart(alt.InlineData(values=rows))
    wide = base.transform_filter("isValid(datum.x_low)").mark_rule(strokeWidth=1.6, clip=True)
    tall = base.transform_filter("isValid(datum.y_low)").mark_rule(strokeWidth=1.6, clip=True)
    tooltip = ["slice:N", "class:N", "topics:Q", alt.Tooltip("x:Q", format=".4f"), alt.Tooltip("y:Q", format=".4f"),
               "judged:N"]  # fmt: skip
    filled = base.transform_filter("!datum.small").mark_point(size=75, filled=True, opacity=1)
    hollow = base.transform_filter("datum.small").mark_point(size=55, filled=False, strokeWidth=1.5)
    names: list[Any] = []
    for side, chosen in (("left", base.transform_filter("!datum.far")), ("right", base.transform_filter("datum.far"))):
        how = {"align": side, "baseline": "middle", "dx": 8 if side == "left" else -8, "fontSize": 11}
        at = alt.Y("name_y:Q")
        halo = chosen.mark_text(**how, stroke="white", strokeWidth=4, opacity=0.85)
        names += [
            halo.encode(x=x, y=at, text="slice:N"),
            chosen.mark_text(**how).encode(x=x, y=at, text="slice:N", color=colour),
        ]
    return [
        wide.encode(x=alt.X("x_low:Q"), x2="x_high:Q", y=y, color=colour),
        tall.encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=colour),
        *names,
        filled.encode(x=x, y=y, color=colour, tooltip=tooltip),
        hollow.encode(x=x, y=y, color=colour, tooltip=tooltip),
    ]


def _records(points: list[Point], across: Scale, up: Scale, height: int) -> list[dict[str, Any]]:
    """Give one record a point; names are moved up or down until none hides another, and off the bars."""
    lift = 9 / height * (up.high - up.low)
    names = apart(np.array([point.y.value + lift for point in points]), _LINE / height * (up.high - up.low))
    far = across.share(np.array([point.x.value for point in points])) > _FAR
    return [
        {**_record(point), "name_y": y, "far": side}
        for point, y, side in zip(points, names.tolist(), far.tolist(), strict=True)
    ]


def _record(point: Point) -> dict[str, Any]:
    made: dict[str, Any] = {
        "slice": point.slice,
        "class": _class(point),
        "topics": point.topics,
        "small": point.small,
        "x": point.x.value,
        "y": point.y.value,
        "judged": "-" if math.isnan(point.judged) else f"{point.judged:.0%}",
    }
    for name, axis in (("x", point.x), ("y", point.y)):
        if not math.isnan(axis.low):
            made |= {f"{name}_low": axis.low, f"{name}_high": axis.high}
    return made
