"""Curves as pictures: how long visits last, satisfied clicks by threshold, and a metric over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charts import PALETTE, altair, axis_of, by_cutoff, even, themed
from judged.online.estimating.over_time import written_start
from judged.online.showing.charts import linear, share_axis
from judged.online.showing.layout import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.charts import Scale
    from judged.online.estimates import ScoresTable
    from judged.online.estimating.over_time import OverTime
    from judged.online.estimating.survival import SurvivalEstimate

_HEIGHT = 200
_DATES = {"hour": "%d %b %H:%M", "day": "%d %b", "week": "%d %b", "month": "%b %Y"}


def dwell_chart(curve: Sequence[SurvivalEstimate], scores: ScoresTable, *, width: int) -> Any:
    """Draw the curve of dwell times above that of thresholds."""
    alt = altair()
    panels = [survival_panel(curve, width=width), thresholds_panel(scores, width=width)]
    subtitle = f"with {percent(scores.level)} intervals over {scores.over}s"
    title = alt.TitleParams("How long opened results are looked at", subtitle=subtitle, anchor="start")
    return themed(alt.vconcat(*panels, spacing=26).properties(title=title))


def survival_chart(curve: Sequence[SurvivalEstimate], *, width: int = 460) -> Any:
    """Draw the share of visits that last so long: a chart of its own."""
    return themed(survival_panel(curve, width=width))


def thresholds_chart(scores: ScoresTable, *, width: int = 460) -> Any:
    """Draw satisfied clicks by threshold: a chart of its own."""
    return themed(thresholds_panel(scores, width=width))


def survival_panel(curve: Sequence[SurvivalEstimate], *, width: int) -> Any:
    """Draw the share of visits that last so many seconds or more, over a logarithmic axis."""
    points = [
        {"x": (one.at_ms + 1) / 1000, "value": one.value, **_ends(one.low, one.high)}
        for one in curve
        if not math.isnan(one.value)
    ]
    across = by_cutoff([point["x"] for point in points] or [1.0, 10.0], logarithmic=len(points) > 1)
    return _banded(points, across, "seconds", "visits that last as long", width)


def thresholds_panel(scores: ScoresTable, *, width: int) -> Any:
    """Draw the share of clicks that count as satisfied by each threshold."""
    points = [
        {"x": float(one.metric.parameters["t"] or 0.0), "value": one.value, **_ends(one.low, one.high)}
        for one in scores.estimates
        if not math.isnan(one.value)
    ]
    across = by_cutoff([point["x"] for point in points] or [5.0, 60.0], logarithmic=False, most=12)
    return _banded(points, across, "threshold in seconds", "satisfied clicks", width)


def _banded(points: list[dict[str, Any]], across: Scale, below: str, beside: str, width: int) -> Any:
    """Draw a line with dots in a band that holds its intervals."""
    alt = altair()
    up = even(np.array([0.0, *(point.get("high", point["value"]) for point in points)]), 5)
    scale = linear(alt, across)
    if across.logarithmic:  # to which "zero" means nothing
        scale = alt.Scale(type="log", domain=[across.low, across.high], nice=False)
    x = alt.X("x:Q", title=below, scale=scale, axis=axis_of(alt, across, grid=False))
    y = alt.Y("value:Q", title=beside, scale=linear(alt, up), axis=share_axis(alt, up))
    base = alt.Chart(alt.InlineData(values=points))
    tooltip = [alt.Tooltip("x:Q", title=below, format=",~r"),
               *(alt.Tooltip(f"{name}:Q", format=".2%") for name in ("value", "low", "high"))]  # fmt: skip
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.2, color=PALETTE[0])
    layers = [
        base.mark_line(strokeWidth=1.8, color=PALETTE[0]).encode(x=x, y=y),
        band.encode(x=x, y=alt.Y("low:Q", axis=share_axis(alt, up), scale=linear(alt, up), title=beside), y2="high:Q"),
        base.mark_point(filled=True, size=28, opacity=1, color=PALETTE[0]).encode(x=x, y=y, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=_HEIGHT)


def _ends(low: float, high: float) -> dict[str, float]:
    return {} if math.isnan(low) or math.isnan(high) else {"low": low, "high": high}


def series_chart(found: OverTime, notes: Sequence[str], level: float, *, width: int = 460) -> Any:
    """Draw a metric over time: dots with intervals in the band of what is usual, and rules where its level changed."""
    alt = altair()
    unit = found.metric.unit
    rows = _periods(found, notes)
    known = [row[name] for row in rows for name in ("value", "low", "high", "least", "most") if name in row]
    up = even(np.array(known), 5)
    axis = share_axis(alt, up) if unit == "share" else axis_of(alt, up)
    y = {"title": str(found.metric), "scale": linear(alt, up), "axis": axis}
    x = alt.X(
        "time:T",
        title=None,
        scale=alt.Scale(type="utc"),
        axis=alt.Axis(labelOverlap=True, grid=False, format=_DATES[found.every]),
    )
    base = alt.Chart(alt.InlineData(values=rows))
    kinds = ["usual", "not usual", "incomplete"]
    colour = alt.Color("kind:N", title=None, legend=alt.Legend(orient="top") if _several(rows) else None,
                       scale=alt.Scale(domain=kinds, range=[PALETTE[0], PALETTE[1], PALETTE[7]]))  # fmt: skip
    form = ".2%" if unit == "share" else ",.4~r"
    tooltip = [alt.Tooltip("start:N", title=found.every),
               *(alt.Tooltip(f"{name}:Q", format=form) for name in ("value", "low", "high")),
               alt.Tooltip("note:N")]  # fmt: skip
    ends = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.4)
    limits = base.transform_filter("isValid(datum.least)").mark_area(opacity=0.15, color=PALETTE[7])
    dots = base.mark_point(filled=True, size=44, opacity=1)
    line = base.mark_line(strokeWidth=1, opacity=0.5, color=PALETTE[0])
    layers = [
        limits.encode(x=x, y=alt.Y("least:Q", **y), y2="most:Q"),
        line.encode(x=x, y=alt.Y("value:Q", **y)),
        ends.encode(x=x, y=alt.Y("low:Q", **y), y2="high:Q", color=colour, tooltip=tooltip),
        dots.encode(x=x, y=alt.Y("value:Q", **y), color=colour, tooltip=tooltip),
    ]
    if not math.isnan(found.centre):
        middle = alt.Chart(alt.InlineData(values=[{"centre": found.centre}]))
        layers.append(middle.mark_rule(strokeDash=[4, 3], color="#666").encode(y=alt.Y("centre:Q", **y)))
    if found.changes:
        changed = [{"time": found.points[one.point].start_ms} for one in found.changes]
        rules = alt.Chart(alt.InlineData(values=changed)).mark_rule(
            strokeDash=[2, 2], strokeWidth=1.6, color=PALETTE[1]
        )
        layers.append(rules.encode(x=x))
    subtitle = f"with {percent(level)} intervals; grey: what is usual; dotted: its level changed"
    heading = alt.TitleParams(f"{found.metric} by {found.every}", subtitle=subtitle, anchor="start", frame="group")
    return themed(alt.layer(*layers).properties(width=width, height=_HEIGHT, title=heading))


def _periods(found: OverTime, notes: Sequence[str]) -> list[dict[str, Any]]:
    """Give one record a period that has a value."""
    unusual = {one.point for one in found.signals}
    rows: list[dict[str, Any]] = []
    for at, (one, note) in enumerate(zip(found.points, notes, strict=True)):
        if math.isnan(one.estimate.value):
            continue
        kind = "incomplete" if not one.complete else "not usual" if at in unusual else "usual"
        made = {
            "time": one.start_ms,
            "start": written_start(one.start_ms, found.every),
            "note": note,
            "value": one.estimate.value,
            "kind": kind,
        }
        made |= _ends(one.estimate.low, one.estimate.high)
        if not math.isnan(one.low_limit):
            made |= {"least": one.low_limit, "most": one.high_limit}
        rows.append(made)
    return rows


def _several(rows: list[dict[str, Any]]) -> bool:
    return len({row["kind"] for row in rows}) > 1
