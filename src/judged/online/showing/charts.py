"""Metrics of a log as pictures: a dot and an interval each, by slice, and CTR by rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charts import PALETTE, Scale, altair, axis_of, by_cutoff, cut, even, themed
from judged.errors import InputError
from judged.online.showing.layout import by_family, percent
from judged.online.showing.numbers import ALL, shown, slice_of
from judged.online.showing.words import is_biased

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.metrics.metric import OnlineMetric

MOST = 7
"""So many slices are drawn, those with the most pages; tables have all of them."""
WIDTH = 460
"""Of a plot, in pixels."""
_STEP = 22  # pixels from one metric to the next
_SLICE = 13  # pixels from one slice to the next
_APART = 0.09  # of the way from one rank to the next: so far apart stand slices
_LABEL = 190  # pixels that a name may take
_UNBOUNDED = {"count", "seconds", "money"}
_FAR = 50  # times: who is so much smaller than another has an axis of its own
_TITLES = {
    "share": "share",
    "count": "count",
    "seconds": "seconds",
    "rank": "rank",
    "reciprocal rank": "reciprocal rank",
    "money": "money",
    "rating": "rating",
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
    panels = [panel(scores, group, width=width) for group in groups(scores)]
    if (is_biased(scores) or not panels) and scores.ranks:
        panels.append(ranks_panel(scores, width=width, title="CTR by rank: position bias"))
    if not panels:
        raise InputError("there is no number to draw", fix="see the table for what this log lacks", path=scores.log)
    title = alt.TitleParams(
        f"What users did: {shown(scores.log, 60)}",
        subtitle=f"with {percent(scores.level)} intervals over {scores.over}s",
        anchor="start",
    )
    return themed(alt.vconcat(*panels, spacing=26).resolve_scale(color="shared").properties(title=title))


def groups(scores: ScoresTable) -> tuple[tuple[OnlineMetric, ...], ...]:
    """Give the metrics that share an axis, in the order of the table: those of one unit, the small ones apart.

    Latencies of milliseconds beside minutes of searching would all stand at 0.
    """
    known = [metric for _, members in by_family(scores.metrics) for metric in members if _any(scores, metric)]
    by_unit: dict[str, list[OnlineMetric]] = {}
    for metric in known:
        by_unit.setdefault(metric.unit, []).append(metric)
    return tuple(group for members in by_unit.values() for group in _by_size(scores, members))


def _by_size(scores: ScoresTable, metrics: list[OnlineMetric]) -> list[tuple[OnlineMetric, ...]]:
    """Part metrics of one unit where one is so much smaller than the largest that its interval could not be seen."""
    if metrics[0].unit not in _UNBOUNDED:
        return [tuple(metrics)]
    sizes = {one: _size(scores, one) for one in metrics}
    tops: list[float] = []
    for size in sorted(sizes.values(), reverse=True):
        if not tops or 0 < size < tops[-1] / _FAR:
            tops.append(size)
    at = {one: max(place for place, top in enumerate(tops) if size <= top) for one, size in sizes.items()}
    return [tuple(one for one in metrics if at[one] == place) for place in range(len(tops))]


def _size(scores: ScoresTable, metric: OnlineMetric) -> float:
    known = [one.value for one in scores.estimates if one.metric == metric and not math.isnan(one.value)]
    return max(map(abs, known))


def group_chart(scores: ScoresTable, metrics: Sequence[OnlineMetric], *, width: int = WIDTH) -> Any:
    """Draw metrics that share an axis: a chart of its own."""
    return themed(panel(scores, metrics, width=width))


def ranks_chart(scores: ScoresTable, *, width: int = WIDTH, title: str = "") -> Any:
    """Draw CTR by rank with its intervals: a chart of its own."""
    return themed(ranks_panel(scores, width=width, title=title))


def panel(scores: ScoresTable, metrics: Sequence[OnlineMetric], *, width: int) -> Any:
    """Draw metrics that share an axis: a row a metric, in it a dot a slice."""
    alt, unit = altair(), metrics[0].unit
    names = list(map(str, metrics))
    slices = [ALL, *drawn_slices(scores)]
    rows = [
        _record(scores, one) | {"metric": str(one.metric)}
        for one in scores.estimates
        if one.metric in metrics and slice_of(scores, one.slice) in slices and not math.isnan(one.value)
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
    return layered.properties(width=width, height=height)


def ranks_panel(scores: ScoresTable, *, width: int, title: str = "") -> Any:
    """Draw CTR over rank from 0 upwards, with its intervals; a line a slice."""
    alt = altair()
    slices = [ALL, *drawn_slices(scores)]
    known = [one for one in scores.ranks if not math.isnan(one.value) and slice_of(scores, one.slice) in slices]
    apart = {name: _APART * (at - (len(slices) - 1) / 2) for at, name in enumerate(slices)}  # none hides another
    rows: list[dict[str, Any]] = [
        _record(scores, one) | {"rank": one.rank, "at": (one.rank or 0) + apart[slice_of(scores, one.slice)]}
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
    subtitle = f"with {percent(scores.level)} intervals over {scores.over}s"
    heading: Any = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="group")
    return alt.layer(*layers).properties(width=width, height=200, **({"title": heading} if title else {}))


def drawn_slices(scores: ScoresTable) -> list[str]:
    """Name the slices that are drawn: those with the most pages, in their own order."""
    largest = sorted(scores.slices, key=lambda one: -one[1])[:MOST]
    return [slice_of(scores, name) for name, _ in scores.slices if name in {one for one, _ in largest}]


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


def _record(scores: ScoresTable, one: OnlineEstimate) -> dict[str, Any]:
    known = {} if math.isnan(one.low) or math.isnan(one.high) else {"low": one.low, "high": one.high}
    return {"value": one.value, **known, "slice": slice_of(scores, one.slice)}


def _colours(alt: Any, slices: Iterable[str]) -> Any:
    others = [colour for colour in PALETTE if colour != "#000000"]
    names = list(slices)
    return alt.Scale(domain=names, range=["#000000", *others][: len(names)])


def _tooltip(alt: Any, unit: str, *labels: str) -> list[Any]:
    form = ".3%" if unit == "share" else ",.4~r"
    return [*(alt.Tooltip(f"{name}:N") for name in labels),
            *(alt.Tooltip(f"{name}:Q", format=form) for name in ("value", "low", "high"))]  # fmt: skip


def _names(alt: Any) -> Any:
    return alt.Axis(
        labelExpr=cut(), labelLimit=_LABEL, labelPadding=8, grid=False, domain=False, ticks=False, labelOverlap=False
    )
