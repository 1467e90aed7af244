"""Charts drawn from their tables: dots with intervals, points, lines and bars, all in one look."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results.charts import DASHES, FONT, PALETTE, Scale, altair, apart, axis_of, by_cutoff, cut, even, themed
from judged.results.decimals import printed
from judged.results.table import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.blocks import Chart

AREAS = 6  # lines: the intervals of more would hide each other
SERIES = 8  # as many colours are told apart: of more, each has a panel of its own
_GREY = "#999"
_ROW = 16  # pixels for each dot, and for each bar
_NAME = 13.0  # pixels from one name to the next
_FAR = 0.7  # of the axis: names of points beyond stand on the left of them
_NAMED = 20  # points: of more, those on the path alone have names, the others tooltips
_ENDS = 10  # lines: as many names find room at their ends
_FEW = 15  # points of a line: each is marked
_APART = 100  # columns: more of them have no room between
_WIDE = 30.0  # times the least value: from here on an axis that may be logarithmic is

_FIELDS = ("x", "y", "x2", "colour", "hollow", "label", "path", "faint", "band", "facet")  # that name a column

Row = dict[str, Any]


def drawn(*charts: Chart) -> Any:
    """Draw a chart with altair; several below one another.

    Raises
    ------
    MissingExtraError
        If altair is not installed.
    """
    if len(charts) == 1 and charts[0].draw is not None:
        return charts[0].draw()
    alt = altair()
    # To check every value against the schema takes longer than all else; a test does it for every kind of chart.
    with alt.utils.schemapi.debug_mode(arg=False):
        parts = [_whole(alt, chart) for chart in charts]
        made = parts[0] if len(parts) == 1 else alt.vconcat(*parts, spacing=26).resolve_scale(color="independent")
        return themed(made)


def _whole(alt: Any, chart: Chart) -> Any:
    rows = _rows(chart)
    head = {"subtitle": chart.subtitle} if chart.subtitle else {}
    title = alt.TitleParams(chart.title, anchor="start", frame="group", **head)
    panels = list(dict.fromkeys(row["facet"] for row in rows)) if chart.facet else []
    beside = chart.kind == "lines" or (chart.kind == "dots" and _several(rows))
    series = _series(chart, rows) if beside and not (panels or _parted(chart, rows)[0]) else []
    if max(len(panels), len(series) - SERIES + 1) < 2:
        return _panel(alt, chart, rows).properties(title=title)
    axes = ("x", "y") if chart.kind in {"points", "lines"} else ("x",)
    scales = {axis: _scale(chart, axis, rows) for axis in axes}
    same = replace(chart, reach={axis: (scale.low, scale.high) for axis, scale in scales.items()})
    if panels:
        parts = [(name, same, [row for row in rows if row["facet"] == name]) for name in panels]
    else:
        small = {"width": 220, "height": 150 if chart.kind == "lines" else None, "legend": False}
        parts = [
            (name, replace(same, loud=(name,), **small), [row for row in rows if row["colour"] in {name, series[0]}])
            for name in series
        ]
        title.subtitle = "; ".join(filter(None, (chart.subtitle, f"grey: {series[0]}")))
    drawings = [
        _panel(alt, panel, some).properties(title=alt.TitleParams(name, anchor="start")) for name, panel, some in parts
    ]
    title.frame = alt.Undefined
    whole = alt.concat(*drawings, columns=2 if panels else 3).properties(title=title)
    return whole if panels else whole.resolve_scale(color="independent", strokeDash="independent")


def _panel(alt: Any, chart: Chart, rows: list[Row]) -> Any:
    kinds: dict[str, Callable[[Any, Chart, list[Row]], list[Any]]] = {
        "dots": _dots,
        "points": _points,
        "lines": _lines,
        "bars": _bars,
        "columns": _columns,
    }
    layers = [*_references(alt, chart, rows), *kinds[chart.kind](alt, chart, rows)]
    return alt.layer(*layers).properties(width=chart.width, height=_height(chart, rows))


def _rows(chart: Chart) -> list[Row]:
    """Give one record a row that can be drawn: ``x``, ``y``, what else is seen, and all columns as tooltips."""
    table = chart.table
    used = {field: table.column(name) for field in _FIELDS if (name := getattr(chart, field))}
    links = next((column.links for column in table.columns if column.links), ())
    cells = [[_read(cell, column.show.type) for cell in column.cells()] for column in table.shown]
    rows: list[Row] = []
    for at in range(len(table)):
        row: Row = {field: column.values[at] for field, column in used.items()}
        if any(_undrawn(row[field]) for field in ("x", "y", "x2") if field in row):
            continue
        for field in ("x", "y", "band"):
            every = used[field].ci if field in used else None
            limits = None if every is None else every[at]
            if limits is not None and all(map(math.isfinite, limits)):
                row |= {f"{field}_low": float(limits[0]), f"{field}_high": float(limits[1])}
        row |= {f"t{place}": column[at] for place, column in enumerate(cells)}
        row |= {"link": links[at]} if links else {}
        rows.append({name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()})
    return rows


def _read(cell: str, kind: str) -> str:
    """Write a cell for a tooltip."""
    return cell if kind == "string" else printed(cell, kind)


def _undrawn(value: Any) -> bool:
    return missing(value) or (isinstance(value, float) and not math.isfinite(value))


def _height(chart: Chart, rows: list[Row]) -> int:
    if chart.height is not None:
        return chart.height
    if chart.kind in {"points", "lines", "columns"}:
        return 320
    names = len({row["y"] for row in rows})
    beside = len(_series(chart, _parted(chart, rows)[1])) if chart.kind == "dots" and _several(rows) else 1
    return max(60, _ROW * names * max(beside, 1) + 8 * names * (beside > 1))


def _base(alt: Any, rows: Sequence[Row]) -> Any:
    return alt.Chart(alt.InlineData(values=tuple(rows)))  # altair copies lists whenever a chart is changed


def _tooltip(alt: Any, chart: Chart) -> list[Any]:
    return [alt.Tooltip(f"t{at}:N", title=column.heading) for at, column in enumerate(chart.table.shown)]


def _scale(chart: Chart, axis: str, rows: list[Row]) -> Scale:
    """Make an axis that holds every value, every end of an interval and every reference line."""
    fields = (axis, f"{axis}_low", f"{axis}_high", *(("x2",) if axis == "x" else ("band_low", "band_high")))
    values = [row[field] for row in rows for field in fields if field in row]
    values += [line.value for line in chart.lines if line.axis == axis] + list(chart.reach.get(axis, ()))
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis == "x" and chart.spread == "time":
        return Scale(low, high, (low, high))
    if axis == "x" and chart.spread == "cutoff":
        return by_cutoff(sorted({row["x"] for row in rows}) or [1.0])
    if axis == "x" and chart.spread == "amount" and low >= 1 and high > _WIDE * low:
        return by_cutoff([low * 0.85, high * 1.15], logarithmic=True)
    values += [0.0] if axis == "x" and chart.from_zero and low >= 0 else []
    return even(np.array(values or [0.0], dtype=np.float64), 6)


def _quantity(alt: Any, chart: Chart, axis: str, rows: list[Row], scale: Scale | None = None) -> Any:
    """Make the encoding of an axis of numbers."""
    scale = scale or _scale(chart, axis, rows)
    if axis == "x" and chart.spread == "time":
        # No domain: where pages allow no eval, Vega reads none of dates, and all points stand at the left.
        utc = alt.Scale(type="utc", nice=False)
        return alt.X("x:T", title=_title(chart, axis), scale=utc, axis=alt.Axis(labelOverlap=True, grid=False))
    bounds = alt.Scale(
        type="log" if scale.logarithmic else "linear",
        domain=[scale.low, scale.high],
        nice=False,
        **({} if scale.logarithmic else {"zero": False}),
    )
    form = {"format": ",.3~r"} if axis == "x" and chart.spread else {}
    form |= {"format": f".{max(scale.decimals - 2, 0)}%"} if axis in chart.percent else {}
    kind = alt.X if axis == "x" else alt.Y
    return kind(
        f"{axis}:Q", title=_title(chart, axis), scale=bounds, axis=axis_of(alt, scale, labelFlush=False, **form)
    )


def _title(chart: Chart, axis: str) -> str:
    said = chart.x_title if axis == "x" else chart.y_title
    return said or chart.table.column(chart.x if axis == "x" else chart.y).heading


def _names(alt: Any, rows: list[Row]) -> Any:
    """Make the encoding of an axis of names, as the rows have them."""
    order = list(dict.fromkeys(row["y"] for row in rows))
    axis = alt.Axis(labelExpr=cut(), labelLimit=260, grid=False, domain=False, ticks=False, labelOverlap=False)
    return alt.Y("y:N", sort=order, title=None, axis=axis)


def _series(chart: Chart, rows: list[Row]) -> list[str]:
    every = chart.table.column(chart.colour).values if chart.facet and chart.colour else None  # panels share a legend
    found = dict.fromkeys(every or (row["colour"] for row in rows if chart.colour))
    first = [name for name in (chart.loud or chart.colours) if name in found]
    return first if chart.colours else list(dict.fromkeys((*first, *found)))


def _parted(chart: Chart, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Give the rows that are grey, and those that stand out; all of them where none does."""
    loud = [row for row in rows if row["colour"] in chart.loud] if chart.loud and chart.colour else rows
    return ([row for row in rows if row["colour"] not in chart.loud], loud) if 0 < len(loud) < len(rows) else ([], rows)


def _several(rows: list[Row]) -> bool:
    """Whether some name has several rows."""
    return len({row["y"] for row in rows}) < len(rows)


def _colour(alt: Any, chart: Chart, rows: list[Row], *, legend: bool = True) -> Any:
    """Make the encoding of the colours; one colour alone has no legend."""
    names = _series(chart, rows)
    if not names:
        return alt.value(PALETTE[0])
    colours = [chart.colours.get(name) or PALETTE[at % len(PALETTE)] for at, name in enumerate(names)]
    shown = legend and chart.legend and (len(names) > 1 or bool(chart.loud))
    where = alt.Legend(title=None, labelExpr=cut(), labelLimit=300, orient="top", columns=4) if shown else None
    return alt.Color("colour:N", sort=names, title=None, legend=where, scale=alt.Scale(domain=names, range=colours))


def _references(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw the band and the reference lines."""
    x, y = alt.X("x:T" if chart.spread == "time" else "x:Q"), alt.Y("y:Q")
    lines = [
        _base(alt, [{line.axis: line.value}])
        .mark_rule(color=_GREY, strokeDash=[4, 3] if line.dashed else [1, 0])
        .encode(**{line.axis: x if line.axis == "x" else y})
        for line in chart.lines
    ]
    if chart.spread == "time" and (ends := chart.reach.get("x")):
        lines.append(_base(alt, [{"x": end} for end in ends]).mark_point(opacity=0).encode(x=x))
    area = _base(alt, rows).mark_area(opacity=0.15, color=_GREY).transform_filter("isValid(datum.band_low)")
    return [area.encode(x=x, y=alt.Y("band_low:Q"), y2="band_high:Q"), *lines] if chart.band else lines


def _marks(base: Any, chart: Chart, size: int) -> list[Any]:
    """Give dots, hollow ones where the table says so."""
    how = {"size": size, "opacity": 1, "strokeWidth": 1.6}
    if not chart.hollow:
        return [base.mark_point(filled=True, **how)]
    return [
        base.transform_filter("!datum.hollow").mark_point(filled=True, **how),
        base.transform_filter("datum.hollow").mark_point(filled=False, fill="white", **how),
    ]


def _dots(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a dot and its interval for each name, series beside one another."""
    faint, loud = _parted(chart, rows)
    series, several = _series(chart, loud), _several(rows)
    x, y = _quantity(alt, chart, "x", rows), _names(alt, rows)
    offset = {"yOffset": alt.YOffset("colour:N", sort=series)} if several and len(series) > 1 else {}
    layers: list[Any] = []
    for part, size, how in (
        (faint, 22, {"color": alt.value(_GREY), "opacity": alt.value(0.45 if several else 0.8)}),
        (loud, 46, {"color": _colour(alt, chart, loud), **offset}),
    ):
        base = _base(alt, part)
        if part and (part is loud or not several):  # the intervals of many at one name would hide each other
            line = base.mark_rule(strokeWidth=1.6 if part is loud else 1).transform_filter("isValid(datum.x_low)")
            layers.append(line.encode(x=alt.X("x_low:Q", title=_title(chart, "x")), x2="x_high:Q", y=y, **how))
        marks = _marks(base, chart, size) if part else []
        layers += [mark.encode(x=x, y=y, tooltip=_tooltip(alt, chart), **how) for mark in marks]
    return layers


def _bars(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a bar for each name, from 0 to ``x``, or from ``x`` to ``x2``."""
    bars = _base(alt, rows).mark_bar(height=0.68 * _ROW)
    second = {"x2": "x2:Q"} if chart.x2 else {}
    x = _quantity(alt, chart, "x", rows if second else [*rows, {"x": 0.0}])
    return [
        bars.encode(y=_names(alt, rows), x=x, color=_colour(alt, chart, rows), tooltip=_tooltip(alt, chart), **second)
    ]


def _columns(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a standing bar for each row, in their order: their names are in tooltips alone."""
    axis = alt.Axis(labels=False, ticks=False, grid=False)
    apart = alt.Scale(paddingInner=0.12 if len(rows) <= _APART else 0)  # narrow ones must not let light through
    x = alt.X("x:N", sort=None, title=_title(chart, "x"), axis=axis, scale=apart)
    y = _quantity(alt, chart, "y", [*rows, {"y": 0.0}])
    bars = _base(alt, rows).mark_bar().encode(x=x, y=y, color=_colour(alt, chart, rows), tooltip=_tooltip(alt, chart))
    zero = _base(alt, [{"y": 0.0}]).mark_rule(color=_GREY).encode(y=alt.Y("y:Q"))
    return [bars, zero]


def _points(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a point for each row, with its intervals and its name, and the path through some of them."""
    across, up = (_scale(chart, axis, rows) for axis in ("x", "y"))
    x, y = _quantity(alt, chart, "x", rows, across), _quantity(alt, chart, "y", rows, up)
    layers: list[Any] = []
    for at, name in enumerate(chart.corners):
        right, above = at < 2, at % 2 == 0
        corner = {"x": across.high if right else across.low, "y": up.high if above else up.low, "label": name}
        where = {
            "align": "right" if right else "left",
            "dx": -4 if right else 4,
            "baseline": "top" if above else "bottom",
            "dy": 4 if above else -4,
        }
        mark = _base(alt, [corner]).mark_text(fontSize=11, fontStyle="italic", color="#666", **where)
        layers.append(mark.encode(x=x, y=y, text="label:N"))
    if chart.diagonal:
        ends = [{"x": end, "y": end} for end in (max(across.low, up.low), min(across.high, up.high))]
        layers.append(_base(alt, ends).mark_line(color=_GREY, strokeDash=[4, 3]).encode(x=x, y=y))
    if faint := [row for row in rows if row.get("faint")]:
        mark = _base(alt, faint).mark_circle(size=22, color=_GREY, opacity=0.4)
        layers.append(mark.encode(x=x, y=y, tooltip=_tooltip(alt, chart)))
        rows = [row for row in rows if not row["faint"]]
    colour = _colour(alt, chart, rows)
    base = _base(alt, rows)
    on_path = [row for row in rows if row.get("path")]
    if chart.path:
        mark = {"interpolate": chart.steps, "strokeWidth": 1.2, "strokeDash": [4, 3], "color": PALETTE[0]}
        layers.append(_base(alt, on_path).mark_line(**mark).encode(x=x, y=y, order=alt.Order("x:Q")))
    tall = base.transform_filter("isValid(datum.y_low)").mark_rule(strokeWidth=1.4, opacity=0.6)
    wide = base.transform_filter("isValid(datum.x_low)").mark_rule(strokeWidth=1.4, opacity=0.6)
    if any("y_low" in row for row in rows):
        layers.append(tall.encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=colour))
    if any("x_low" in row for row in rows):
        layers.append(wide.encode(x=alt.X("x_low:Q"), x2="x_high:Q", y=y, color=colour))
    layers += [mark.encode(x=x, y=y, color=colour, tooltip=_tooltip(alt, chart)) for mark in _marks(base, chart, 52)]
    named = [row for row in rows if row.get("label")]
    named = [row for row in named if row.get("path")] if chart.path and len(named) > _NAMED else named
    if not named or (chart.path and len(named) > _NAMED):
        return layers
    wanted = np.array([row["y"] for row in named], dtype=np.float64)
    moved = apart(wanted, _NAME / _height(chart, rows) * (up.high - up.low)).tolist()
    far = (across.share(np.array([row["x"] for row in named], dtype=np.float64)) > _FAR).tolist()
    for align, sign in (("left", 1), ("right", -1)):
        side = [
            {"x": row["x"], "y": place, "label": row["label"]}
            for row, place, right in zip(named, moved, far, strict=True)
            if right == (sign < 0)
        ]
        named_side = _base(alt, side).transform_calculate(label=cut())
        for halo in ({"stroke": "white", "strokeWidth": 3}, {"color": "#333"}) if side else ():
            mark = {"align": align, "baseline": "middle", "dx": 7 * sign, "dy": -8, "fontSize": 11, "font": FONT}
            layers.append(named_side.mark_text(**mark, **halo).encode(x=x, y=y, text="label:N"))
    return layers


def _lines(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a line for each series with its interval as an area, and its name at its end where there is room."""
    across, up = (_scale(chart, axis, rows) for axis in ("x", "y"))
    x, y = _quantity(alt, chart, "x", rows, across), _quantity(alt, chart, "y", rows, up)
    faint, rows = _parted(chart, rows)
    names = _series(chart, rows)
    direct = chart.spread == "cutoff" and len(names) <= _ENDS and bool(names) and chart.legend
    colour = _colour(alt, chart, rows, legend=not direct)
    dashes = [list(DASHES[(at + at // len(PALETTE)) % len(DASHES)]) for at in range(len(names))]
    shown = chart.legend and not direct
    legend = alt.Legend(title=None, labelExpr=cut(), orient="top", columns=4) if shown else None
    dash = {
        "strokeDash": alt.StrokeDash("colour:N", sort=names, legend=legend, scale=alt.Scale(domain=names, range=dashes))
    }
    rows = [{**row, "order": at} for at, row in enumerate(rows)]
    base = _base(alt, rows)
    layers: list[Any] = []
    if faint:
        quiet = _base(alt, faint).mark_line(strokeWidth=1, opacity=0.5, color=_GREY)
        layers.append(quiet.encode(x=x, y=y, detail="colour:N", tooltip=_tooltip(alt, chart)))
    if len(names) <= AREAS and any("y_low" in row for row in rows):
        area = base.mark_area(opacity=0.13, clip=True).transform_filter("isValid(datum.y_low)")
        layers.append(area.encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=colour))
    how = {"x": x, "y": y, "color": colour, "tooltip": _tooltip(alt, chart)}
    layers.append(base.mark_line(strokeWidth=1.8).encode(order=alt.Order("order:Q"), **(dash if names else {}), **how))
    if len(rows) <= _FEW * max(len(names), 1):
        layers.append(base.mark_point(filled=True, size=28, opacity=1).encode(**how))
    if direct and rows:
        last = list({row["colour"]: row for row in rows}.values())
        ends = apart(np.array([row["y"] for row in last]), (_NAME + 1) / _height(chart, rows) * (up.high - up.low))
        labels = [
            {"x": row["x"], "y": end, "colour": row["colour"]} for row, end in zip(last, ends.tolist(), strict=True)
        ]
        text = {"align": "left", "baseline": "middle", "dx": 7, "fontSize": 11, "font": FONT, "clip": False}
        named = _base(alt, labels).transform_calculate(label=cut("datum.colour")).mark_text(**text)
        layers.append(named.encode(x=x, y=y, text="label:N", color=colour))
    return layers
