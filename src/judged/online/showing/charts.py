"""Metrics of a log as pictures: a dot and an interval each, by slice, and CTR by rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, Scale, altair, axis_of, by_cutoff, even, themed
from judged.errors import InputError
from judged.online.showing.layout import by_family, percent
from judged.online.showing.numbers import shown
from judged.online.showing.words import is_biased

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.metrics.metric import OnlineMetric

MOST = 7
"""So many slices are drawn, those with the most pages; tables have all of them."""
WIDTH = 460
"""Of a plot, in pixels."""
_ALL = "all"
_STEP = 22  # pixels from one metric to the next
_SLICE = 13  # pixels from one slice to the next
_APART = 0.09  # of the way from one rank to the next: so far apart stand slices
_LABEL = 190  # pixels that a name may take
_TITLES = {
    "share": "share",
    "count": "count",
    "seconds": "seconds",
    "rank": "rank",
    "reciprocal rank": "reciprocal rank",
    "money": "money",
}


def chart(scores: ScoresTable, *, width: int = WIDTH) -> Any:
    """Draw every metric, one panel a unit, and CTR by rank below wherever clicks are among them.

    Raises
    ------
    InputError
        If there is no number to draw.
    MissingExtraError
        If altair is not installed.
    """
    alt = altair()
    panels = [panel(scores, unit, width=width) for unit in units(scores)]
    if (is_biased(scores) or not panels) and scores.ranks:
        panels.append(ranks_panel(scores, width=width, title="CTR by rank: position bias"))
    if not panels:
        raise InputError("there is no number to draw", fix="see the table for what this log lacks", path=scores.log)
    title = alt.TitleParams(
        f"What users did: {shown(scores.log, 60)}",
        subtitle=f"with {percent(scores.level)} intervals over {scores.unit}s",
        anchor="start",
    )
    return themed(alt.vconcat(*panels, spacing=26).resolve_scale(color="shared").properties(title=title))


def units(scores: ScoresTable) -> tuple[str, ...]:
    """Name the units of which there is something to draw, in the order of the table."""
    known = [metric.unit for _, members in by_family(scores.metrics) for metric in members if _any(scores, metric)]
    return tuple(dict.fromkeys(known))


def unit_chart(scores: ScoresTable, unit: str, *, width: int = WIDTH) -> Any:
    """Draw the metrics of one unit: a chart of its own."""
    return themed(panel(scores, unit, width=width, title=""))


def ranks_chart(scores: ScoresTable, *, width: int = WIDTH, title: str = "") -> Any:
    """Draw CTR by rank with its intervals: a chart of its own."""
    return themed(ranks_panel(scores, width=width, title=title))


def panel(scores: ScoresTable, unit: str, *, width: int, title: str | None = None) -> Any:
    """Draw the metrics of one unit: a row a metric, in it a dot a slice."""
    alt = altair()
    names = [str(metric) for _, members in by_family(scores.metrics) for metric in members if metric.unit == unit]
    slices = [_ALL, *drawn_slices(scores)]
    rows = [
        _record(one) | {"metric": str(one.metric), "slice": _slice(one)}
        for one in scores.estimates
        if one.metric.unit == unit and _slice(one) in slices and not math.isnan(one.value)
    ]
    names = [name for name in names if any(row["metric"] == name for row in rows)]
    scale = even(np.array([row[end] for row in rows for end in ("value", "low", "high") if end in row]), 6)
    x = alt.X("value:Q", title=_TITLES[unit], scale=linear(alt, scale), axis=_axis(alt, scale, unit))
    y: dict[str, Any] = {
        "y": alt.Y("metric:N", sort=names, title=None, axis=_names(alt), scale=alt.Scale(domain=names, padding=0.15))
    }
    colour: Any = alt.value(PALETTE[0])
    if scores.by is not None:
        y["yOffset"] = alt.YOffset("slice:N", sort=slices, scale=alt.Scale(domain=slices))
        colour = alt.Color("slice:N", sort=slices, title=shown(scores.by), scale=_colours(alt, slices))
    base = alt.Chart(alt.InlineData(values=rows))
    shape = {"tooltip": _tooltip(alt, unit, "metric", *(("slice",) if scores.by is not None else ())), "color": colour}
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6)
    dots = base.mark_point(filled=True, size=48, opacity=1)
    layered = alt.layer(dots.encode(x=x, **y, **shape), rules.encode(x=alt.X("low:Q"), x2="high:Q", **y, **shape))
    height = max(_STEP, _SLICE * len(slices) + 8 if scores.by is not None else 0) * len(names)
    more = {} if title is None or not title else {"title": title}
    return layered.properties(width=width, height=height, **more)


def ranks_panel(scores: ScoresTable, *, width: int, title: str = "") -> Any:
    """Draw CTR over rank from 0 upwards, with its intervals; a line a slice."""
    alt = altair()
    slices = [_ALL, *drawn_slices(scores)]
    known = [one for one in scores.ranks if not math.isnan(one.value) and _slice(one) in slices]
    apart = {name: _APART * (at - (len(slices) - 1) / 2) for at, name in enumerate(slices)}  # none hides another
    rows = [
        _record(one) | {"rank": one.rank, "slice": _slice(one), "at": (one.rank or 0) + apart[_slice(one)]}
        for one in known
    ]
    up = even(np.array([0.0, *(row.get("high", row["value"]) for row in rows)]), 5)
    at = sorted({float(one.rank or 0) for one in known}) or [1.0]
    across = by_cutoff(at, logarithmic=False, most=10)
    across = Scale(across.low - 0.5, across.high + 0.5, across.ticks) if len(at) > 1 else across
    y = {"title": "CTR", "scale": linear(alt, up), "axis": share_axis(alt, up)}
    shape: dict[str, Any] = {
        "x": alt.X("at:Q", title="rank", scale=linear(alt, across), axis=axis_of(alt, across, grid=False)),
        "color": alt.value(PALETTE[0]),
    }
    if scores.by is not None:
        shape["color"] = alt.Color("slice:N", sort=slices, title=shown(scores.by), scale=_colours(alt, slices))
    base = alt.Chart(alt.InlineData(values=rows))
    tooltip = _tooltip(alt, "share", *(("slice",) if scores.by is not None else ()), "rank")
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6)
    layers = [
        base.mark_point(filled=True, size=40, opacity=1).encode(y=alt.Y("value:Q", **y), tooltip=tooltip, **shape),
        base.mark_line(strokeWidth=1, opacity=0.5).encode(y=alt.Y("value:Q", **y), **shape),
        rules.encode(y=alt.Y("low:Q", **y), y2="high:Q", tooltip=tooltip, **shape),
    ]
    subtitle = f"with {percent(scores.level)} intervals over {scores.unit}s"
    heading: Any = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="group")
    return alt.layer(*layers).properties(width=width, height=200, **({"title": heading} if title else {}))


def drawn_slices(scores: ScoresTable) -> list[str]:
    """Name the slices that are drawn: those with the most pages, in their own order."""
    largest = sorted(scores.slices, key=lambda one: -one[1])[:MOST]
    return [shown(name) for name, _ in scores.slices if name in {one for one, _ in largest}]


def linear(alt: Any, scale: Scale) -> Any:
    """Make the scale of an axis, from its first number to its last."""
    return alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)


def share_axis(alt: Any, scale: Scale) -> Any:
    """Make an axis of shares in per cent."""
    return axis_of(alt, scale, format=f".{max(0, scale.decimals - 2)}%")


def _axis(alt: Any, scale: Scale, unit: str) -> Any:
    return share_axis(alt, scale) if unit == "share" else axis_of(alt, scale)


def _any(scores: ScoresTable, metric: OnlineMetric) -> bool:
    return any(one.metric == metric and not math.isnan(one.value) for one in scores.estimates)


def _slice(one: OnlineEstimate) -> str:
    return _ALL if one.slice is None else shown(one.slice)


def _record(one: OnlineEstimate) -> dict[str, Any]:
    known = {} if math.isnan(one.low) or math.isnan(one.high) else {"low": one.low, "high": one.high}
    return {"value": one.value, **known}


def _colours(alt: Any, slices: Iterable[str]) -> Any:
    others = [colour for colour in PALETTE if colour != "#000000"]
    names = list(slices)
    return alt.Scale(domain=names, range=["#000000", *others][: len(names)])


def _tooltip(alt: Any, unit: str, *labels: str) -> list[Any]:
    form = ".3%" if unit == "share" else ",.4~r"
    return [*(alt.Tooltip(f"{name}:N") for name in labels),
            *(alt.Tooltip(f"{name}:Q", format=form) for name in ("value", "low", "high"))]  # fmt: skip


def _names(alt: Any) -> Any:
    return alt.Axis(labelLimit=_LABEL, labelPadding=8, grid=False, domain=False, ticks=False, labelOverlap=False)
