"""Drawing of charts with altair: dots with intervals, points, lines, bars, and columns in one style."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results.charts import (
    DASHES,
    FONT,
    PALETTE,
    Scale,
    altair,
    apply_theme,
    axis_of,
    cutoff_scale,
    even_scale,
    shorten_label,
    spread_out,
)
from judged.results.decimals import printed
from judged.results.table import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.blocks import Chart

AREAS = 6  # lines with intervals; those of more would overlap
SERIES = 8  # distinguishable colors; with more series, each has a panel
_GRAY = "#999"
_ROW = 16  # pixels per dot or bar
_LABEL = 13.0  # pixels per label
_LEFT_FROM = 0.7  # share of the axis from which labels are on the left of points
_MAX_LABELS = 20  # labeled points; with more, only points on the path have labels
_MAX_LABELED = 10  # lines that are labeled at their ends
_MAX_MARKED = 15  # points per line up to which each is marked
_MAX_SPACED = 100  # columns up to which there are gaps between them
_LOG_RANGE = 30.0  # range (times the smallest value) from which an `amount` axis is logarithmic

# fields of a chart that name a column
_FIELDS = ("x", "y", "x2", "color", "hollow", "label", "path", "faint", "band", "facet")

Row = dict[str, Any]


def draw_charts(*charts: Chart) -> Any:
    """Draw charts with altair, one below the other.

    Raises
    ------
    MissingExtraError
        If altair is not installed.
    """
    if len(charts) == 1 and charts[0].draw is not None:
        return charts[0].draw()
    alt = altair()
    # Validation against the schema takes longer than everything else; a test does it for every kind of chart.
    with alt.utils.schemapi.debug_mode(arg=False):
        drawings = [_draw_chart(alt, chart) for chart in charts]
        picture = (
            drawings[0] if len(drawings) == 1 else alt.vconcat(*drawings, spacing=26).resolve_scale(color="independent")
        )
        return apply_theme(picture)


def _draw_chart(alt: Any, chart: Chart) -> Any:
    rows = _rows(chart)
    options = {"subtitle": chart.subtitle} if chart.subtitle else {}
    title = alt.TitleParams(chart.title, anchor="start", frame="group", **options)
    panels = list(dict.fromkeys(row["facet"] for row in rows)) if chart.facet else []
    has_series = chart.kind == "lines" or (chart.kind == "dots" and _is_grouped(rows))
    series = _series(chart, rows) if has_series and not (panels or _split_rows(chart, rows)[0]) else []
    if max(len(panels), len(series) - SERIES + 1) < 2:
        return _panel(alt, chart, rows).properties(title=title)
    axes = ("x", "y") if chart.kind in {"points", "lines"} else ("x",)
    scales = {axis: _scale(chart, axis, rows) for axis in axes}
    shared = replace(chart, includes={axis: (scale.low, scale.high) for axis, scale in scales.items()})
    if panels:
        parts = [(name, shared, [row for row in rows if row["facet"] == name]) for name in panels]
    else:
        small = {"width": 220, "height": 150 if chart.kind == "lines" else None, "legend": False}
        by_name = {name: [row for row in rows if row["color"] in {name, series[0]}] for name in series}
        parts = [(name, replace(shared, highlighted=(name,), **small), part) for name, part in by_name.items()]
        title.subtitle = "; ".join(filter(None, (chart.subtitle, f"gray: {series[0]}")))
    drawings = [
        _panel(alt, panel, panel_rows).properties(title=alt.TitleParams(name, anchor="start"))
        for name, panel, panel_rows in parts
    ]
    title.frame = alt.Undefined
    picture = alt.concat(*drawings, columns=2 if panels else 3).properties(title=title)
    return picture if panels else picture.resolve_scale(color="independent", strokeDash="independent")


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
    """Return one record per drawable row: ``x``, ``y``, the other fields, and all visible columns as tooltips."""
    table = chart.table
    used = {field: table.column(name) for field in _FIELDS if (name := getattr(chart, field))}
    links = next((column.links for column in table.columns if column.links), ())
    cells = [[_tooltip_cell(cell, column.show.type) for cell in column.cells()] for column in table.shown]
    rows: list[Row] = []
    for i in range(len(table)):
        row: Row = {field: column.values[i] for field, column in used.items()}
        if any(_is_missing(row[field]) for field in ("x", "y", "x2") if field in row):
            continue
        for field in ("x", "y", "band"):
            intervals = used[field].ci if field in used else None
            limits = None if intervals is None else intervals[i]
            if limits is not None and all(map(math.isfinite, limits)):
                row |= {f"{field}_low": float(limits[0]), f"{field}_high": float(limits[1])}
        row |= {f"t{column_index}": column[i] for column_index, column in enumerate(cells)}
        row |= {"link": links[i]} if links else {}
        rows.append({name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()})
    return rows


def _tooltip_cell(cell: str, kind: str) -> str:
    """Format a cell for a tooltip."""
    return cell if kind == "string" else printed(cell, kind)


def _is_missing(value: Any) -> bool:
    return missing(value) or (isinstance(value, float) and not math.isfinite(value))


def _height(chart: Chart, rows: list[Row]) -> int:
    if chart.height is not None:
        return chart.height
    if chart.kind in {"points", "lines", "columns"}:
        return 320
    names = len({row["y"] for row in rows})
    n_series = len(_series(chart, _split_rows(chart, rows)[1])) if chart.kind == "dots" and _is_grouped(rows) else 1
    return max(60, _ROW * names * max(n_series, 1) + 8 * names * (n_series > 1))


def _base(alt: Any, rows: Sequence[Row]) -> Any:
    return alt.Chart(alt.InlineData(values=tuple(rows)))  # a tuple, because altair copies lists at every change


def _tooltip(alt: Any, chart: Chart) -> list[Any]:
    return [alt.Tooltip(f"t{i}:N", title=column.heading) for i, column in enumerate(chart.table.shown)]


def _scale(chart: Chart, axis: str, rows: list[Row]) -> Scale:
    """Compute an axis that includes all values, interval limits, and reference lines."""
    fields = (axis, f"{axis}_low", f"{axis}_high", *(("x2",) if axis == "x" else ("band_low", "band_high")))
    values = [row[field] for row in rows for field in fields if field in row]
    values += [line.value for line in chart.lines if line.axis == axis] + list(chart.includes.get(axis, ()))
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis == "x" and chart.spread == "time":
        return Scale(low, high, (low, high))
    if axis == "x" and chart.spread == "cutoff":
        return cutoff_scale(sorted({row["x"] for row in rows}) or [1.0])
    is_logarithmic = high > _LOG_RANGE * low if axis == "x" and chart.spread == "amount" else False
    is_logarithmic |= axis == "y" and chart.logarithmic and high > 3 * low  # a shorter axis would have one tick
    if is_logarithmic and low >= 1:
        return cutoff_scale([low * 0.85, high * 1.15], logarithmic=True)
    values += [0.0] if axis == "x" and chart.from_zero and low >= 0 else []
    return even_scale(np.array(values or [0.0], dtype=np.float64), 6)


def _quantity(alt: Any, chart: Chart, axis: str, rows: list[Row], scale: Scale | None = None) -> Any:
    """Build the encoding of a numeric axis."""
    scale = scale or _scale(chart, axis, rows)
    if axis == "x" and chart.spread == "time":
        # No domain, because Vega cannot parse dates in a domain on pages that forbid eval.
        utc = alt.Scale(type="utc", nice=False)
        return alt.X("x:T", title=_title(chart, axis), scale=utc, axis=alt.Axis(labelOverlap=True, grid=False))
    bounds = alt.Scale(
        type="log" if scale.logarithmic else "linear",
        domain=[scale.low, scale.high],
        nice=False,
        **({} if scale.logarithmic else {"zero": False}),
    )
    options = {"format": ",.3~r"} if axis == "x" and chart.spread else {}
    options |= {"format": f".{max(scale.decimals - 2, 0)}%"} if axis in chart.percent else {}
    kind = alt.X if axis == "x" else alt.Y
    return kind(
        f"{axis}:Q", title=_title(chart, axis), scale=bounds, axis=axis_of(alt, scale, labelFlush=False, **options)
    )


def _title(chart: Chart, axis: str) -> str:
    title = chart.x_title if axis == "x" else chart.y_title
    return title or chart.table.column(chart.x if axis == "x" else chart.y).heading


def _names(alt: Any, rows: list[Row]) -> Any:
    """Build the encoding of an axis of names, in the order of the rows."""
    order = list(dict.fromkeys(row["y"] for row in rows))
    axis = alt.Axis(
        labelExpr=shorten_label(), labelLimit=260, grid=False, domain=False, ticks=False, labelOverlap=False
    )
    return alt.Y("y:N", sort=order, title=None, axis=axis)


def _series(chart: Chart, rows: list[Row]) -> list[str]:
    names = chart.table.column(chart.color).values if chart.facet and chart.color else None  # panels share a legend
    present = dict.fromkeys(names or (row["color"] for row in rows if chart.color))
    first = [name for name in (chart.highlighted or chart.colors) if name in present]
    return first if chart.colors else list(dict.fromkeys((*first, *present)))


def _split_rows(chart: Chart, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the gray rows and the highlighted ones; all rows are highlighted if no series is."""
    colored = [row for row in rows if row["color"] in chart.highlighted] if chart.highlighted and chart.color else rows
    return (
        ([row for row in rows if row["color"] not in chart.highlighted], colored)
        if 0 < len(colored) < len(rows)
        else ([], rows)
    )


def _is_grouped(rows: list[Row]) -> bool:
    """Return whether a name has several rows."""
    return len({row["y"] for row in rows}) < len(rows)


def _color(alt: Any, chart: Chart, rows: list[Row], *, legend: bool = True) -> Any:
    """Build the encoding of colors; a single color has no legend."""
    names = _series(chart, rows)
    if not names:
        return alt.value(PALETTE[0])
    colors = [chart.colors.get(name) or PALETTE[i % len(PALETTE)] for i, name in enumerate(names)]
    has_legend = legend and chart.legend and (len(names) > 1 or bool(chart.highlighted))
    spec = alt.Legend(title=None, labelExpr=shorten_label(), labelLimit=300, orient="top", columns=4)
    scale = alt.Scale(domain=names, range=colors)
    return alt.Color("color:N", sort=names, title=None, legend=spec if has_legend else None, scale=scale)


def _references(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw the band and the reference lines."""
    x, y = alt.X("x:T" if chart.spread == "time" else "x:Q"), alt.Y("y:Q")
    lines = [
        _base(alt, [{line.axis: line.value}])
        .mark_rule(color=_GRAY, strokeDash=[4, 3] if line.dashed else [1, 0])
        .encode(**{line.axis: x if line.axis == "x" else y})
        for line in chart.lines
    ]
    if chart.spread == "time" and (limits := chart.includes.get("x")):
        lines.append(_base(alt, [{"x": limit} for limit in limits]).mark_point(opacity=0).encode(x=x))
    area = _base(alt, rows).mark_area(opacity=0.15, color=_GRAY).transform_filter("isValid(datum.band_low)")
    return [area.encode(x=x, y=alt.Y("band_low:Q"), y2="band_high:Q"), *lines] if chart.band else lines


def _marks(base: Any, chart: Chart, size: int) -> list[Any]:
    """Draw dots, which can be hollow."""
    style = {"size": size, "opacity": 1, "strokeWidth": 1.6}
    if not chart.hollow:
        return [base.mark_point(filled=True, **style)]
    return [
        base.transform_filter("!datum.hollow").mark_point(filled=True, **style),
        base.transform_filter("datum.hollow").mark_point(filled=False, fill="white", **style),
    ]


def _dots(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a dot with its interval for each name; series are side by side."""
    faint, colored = _split_rows(chart, rows)
    series, is_grouped = _series(chart, colored), _is_grouped(rows)
    x, y = _quantity(alt, chart, "x", rows), _names(alt, rows)
    offset = {"yOffset": alt.YOffset("color:N", sort=series)} if is_grouped and len(series) > 1 else {}
    layers: list[Any] = []
    for part, size, style in (
        (faint, 22, {"color": alt.value(_GRAY), "opacity": alt.value(0.45 if is_grouped else 0.8)}),
        (colored, 46, {"color": _color(alt, chart, colored), **offset}),
    ):
        base = _base(alt, part)
        # intervals of many gray dots with the same name would overlap
        if part and (part is colored or not is_grouped):
            line = base.mark_rule(strokeWidth=1.6 if part is colored else 1).transform_filter("isValid(datum.x_low)")
            layers.append(line.encode(x=alt.X("x_low:Q", title=_title(chart, "x")), x2="x_high:Q", y=y, **style))
        marks = _marks(base, chart, size) if part else []
        layers += [mark.encode(x=x, y=y, tooltip=_tooltip(alt, chart), **style) for mark in marks]
    return layers


def _bars(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a bar for each name, from 0 to ``x``, or from ``x`` to ``x2``."""
    bars = _base(alt, rows).mark_bar(height=0.68 * _ROW)
    range_end = {"x2": "x2:Q"} if chart.x2 else {}
    x = _quantity(alt, chart, "x", rows if range_end else [*rows, {"x": 0.0}])
    color, tooltip = _color(alt, chart, rows), _tooltip(alt, chart)
    return [bars.encode(y=_names(alt, rows), x=x, color=color, tooltip=tooltip, **range_end)]


def _columns(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a vertical bar for each row, in order; names are only in tooltips."""
    axis = alt.Axis(labels=False, ticks=False, grid=False)
    # gaps between narrow columns would look like stripes
    bands = alt.Scale(paddingInner=0.12 if len(rows) <= _MAX_SPACED else 0)
    x = alt.X("x:N", sort=None, title=_title(chart, "x"), axis=axis, scale=bands)
    y = _quantity(alt, chart, "y", [*rows, {"y": 0.0}])
    bars = _base(alt, rows).mark_bar().encode(x=x, y=y, color=_color(alt, chart, rows), tooltip=_tooltip(alt, chart))
    zero = _base(alt, [{"y": 0.0}]).mark_rule(color=_GRAY).encode(y=alt.Y("y:Q"))
    return [bars, zero]


def _spread_labels(values: list[float], scale: Scale, gap: float) -> list[float]:
    """Move labels apart on an axis; `gap` is the smallest distance, as a share of the axis."""
    numbers, ends = np.array(values, dtype=np.float64), np.array([scale.low, scale.high])
    if scale.logarithmic:
        numbers, ends = np.log(numbers), np.log(ends)
    positions = spread_out(numbers, gap * float(ends[1] - ends[0]))
    return (np.exp(positions) if scale.logarithmic else positions).tolist()


def _points(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a point for each row, with intervals and label, and the path through some of them."""
    x_scale, y_scale = (_scale(chart, axis, rows) for axis in ("x", "y"))
    x, y = _quantity(alt, chart, "x", rows, x_scale), _quantity(alt, chart, "y", rows, y_scale)
    layers: list[Any] = []
    for corner_index, name in enumerate(chart.corners):
        right, is_upper = corner_index < 2, corner_index % 2 == 0
        corner_x, corner_y = x_scale.high if right else x_scale.low, y_scale.high if is_upper else y_scale.low
        corner = {"x": corner_x, "y": corner_y, "label": name}
        position = {
            "align": "right" if right else "left",
            "dx": -4 if right else 4,
            "baseline": "top" if is_upper else "bottom",
            "dy": 4 if is_upper else -4,
        }
        mark = _base(alt, [corner]).mark_text(fontSize=11, fontStyle="italic", color="#666", **position)
        layers.append(mark.encode(x=x, y=y, text="label:N"))
    if chart.diagonal:
        limits = max(x_scale.low, y_scale.low), min(x_scale.high, y_scale.high)
        diagonal = [{"x": limit, "y": limit} for limit in limits]
        layers.append(_base(alt, diagonal).mark_line(color=_GRAY, strokeDash=[4, 3]).encode(x=x, y=y))
    if faint := [row for row in rows if row.get("faint")]:
        mark = _base(alt, faint).mark_circle(size=22, color=_GRAY, opacity=0.4)
        layers.append(mark.encode(x=x, y=y, tooltip=_tooltip(alt, chart)))
        rows = [row for row in rows if not row["faint"]]
    color = _color(alt, chart, rows)
    base = _base(alt, rows)
    on_path = [row for row in rows if row.get("path")]
    if chart.path:
        mark = {"interpolate": chart.steps, "strokeWidth": 1.2, "strokeDash": [4, 3], "color": PALETTE[0]}
        layers.append(_base(alt, on_path).mark_line(**mark).encode(x=x, y=y, order=alt.Order("x:Q")))
    tall = base.transform_filter("isValid(datum.y_low)").mark_rule(strokeWidth=1.4, opacity=0.6)
    wide = base.transform_filter("isValid(datum.x_low)").mark_rule(strokeWidth=1.4, opacity=0.6)
    if any("y_low" in row for row in rows):
        layers.append(tall.encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=color))
    if any("x_low" in row for row in rows):
        layers.append(wide.encode(x=alt.X("x_low:Q"), x2="x_high:Q", y=y, color=color))
    layers += [mark.encode(x=x, y=y, color=color, tooltip=_tooltip(alt, chart)) for mark in _marks(base, chart, 52)]
    labeled = [row for row in rows if row.get("label")]
    labeled = [row for row in labeled if row.get("path")] if chart.path and len(labeled) > _MAX_LABELS else labeled
    if not labeled or (chart.path and len(labeled) > _MAX_LABELS):
        return layers
    label_y = _spread_labels([row["y"] for row in labeled], y_scale, _LABEL / _height(chart, rows))
    is_left = (x_scale.share(np.array([row["x"] for row in labeled], dtype=np.float64)) > _LEFT_FROM).tolist()
    for align, sign in (("left", 1), ("right", -1)):
        label_rows = [
            {"x": row["x"], "y": label_position, "label": row["label"]}
            for row, label_position, right in zip(labeled, label_y, is_left, strict=True)
            if right == (sign < 0)
        ]
        labels = _base(alt, label_rows).transform_calculate(label=shorten_label())
        for halo in ({"stroke": "white", "strokeWidth": 3}, {"color": "#333"}) if label_rows else ():
            mark = {"align": align, "baseline": "middle", "dx": 7 * sign, "dy": -8, "fontSize": 11, "font": FONT}
            layers.append(labels.mark_text(**mark, **halo).encode(x=x, y=y, text="label:N"))
    return layers


def _lines(alt: Any, chart: Chart, rows: list[Row]) -> list[Any]:
    """Draw a line for each series with its interval as an area, and its name at its end if there is room."""
    x_scale, y_scale = (_scale(chart, axis, rows) for axis in ("x", "y"))
    x, y = _quantity(alt, chart, "x", rows, x_scale), _quantity(alt, chart, "y", rows, y_scale)
    faint, rows = _split_rows(chart, rows)
    names = _series(chart, rows)
    has_end_labels = chart.spread == "cutoff" and len(names) <= _MAX_LABELED and bool(names) and chart.legend
    color = _color(alt, chart, rows, legend=not has_end_labels)
    dashes = [list(DASHES[(i + i // len(PALETTE)) % len(DASHES)]) for i in range(len(names))]
    has_legend = chart.legend and not has_end_labels
    legend = alt.Legend(title=None, labelExpr=shorten_label(), orient="top", columns=4) if has_legend else None
    dash = {
        "strokeDash": alt.StrokeDash("color:N", sort=names, legend=legend, scale=alt.Scale(domain=names, range=dashes))
    }
    rows = [{**row, "order": i} for i, row in enumerate(rows)]
    base = _base(alt, rows)
    layers: list[Any] = []
    if faint:
        gray_lines = _base(alt, faint).mark_line(strokeWidth=1, opacity=0.5, color=_GRAY)
        layers.append(gray_lines.encode(x=x, y=y, detail="color:N", tooltip=_tooltip(alt, chart)))
    if len(names) <= AREAS and any("y_low" in row for row in rows):
        area = base.mark_area(opacity=0.13, clip=True).transform_filter("isValid(datum.y_low)")
        layers.append(area.encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=color))
    encoding = {"x": x, "y": y, "color": color, "tooltip": _tooltip(alt, chart)}
    layers.append(
        base.mark_line(strokeWidth=1.8).encode(order=alt.Order("order:Q"), **(dash if names else {}), **encoding)
    )
    if len(rows) <= _MAX_MARKED * max(len(names), 1):
        layers.append(base.mark_point(filled=True, size=28, opacity=1).encode(**encoding))
    if has_end_labels and rows:
        last_rows = list({row["color"]: row for row in rows}.values())
        label_y = spread_out(
            np.array([row["y"] for row in last_rows]),
            (_LABEL + 1) / _height(chart, rows) * (y_scale.high - y_scale.low),
        )
        labels = [
            {"x": row["x"], "y": label_position, "color": row["color"]}
            for row, label_position in zip(last_rows, label_y.tolist(), strict=True)
        ]
        text = {"align": "left", "baseline": "middle", "dx": 7, "fontSize": 11, "font": FONT, "clip": False}
        end_labels = _base(alt, labels).transform_calculate(label=shorten_label("datum.color")).mark_text(**text)
        layers.append(end_labels.encode(x=x, y=y, text="label:N", color=color))
    return layers
