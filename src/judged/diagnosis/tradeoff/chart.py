"""Gain against cost as a picture: runs as points with intervals, and the front as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import FONT, PALETTE, Scale, altair, apart, axis_of, by_cutoff, even, themed
from judged.diagnosis.tradeoff.pareto import dominators
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.tradeoff.answer import Tradeoff

_WIDE = 30.0  # times the least cost: from here on the axis is logarithmic
_LINE = 13.0  # pixels from one name to the next
_FAR = 0.75  # of the axis: names of points beyond stand on the left of them
_NAMED = 20  # runs: of more, those on the front alone are named, the others by tooltips


def chart(found: Tradeoff, cost: str | None, width: int, height: int) -> Any:
    """Draw the runs whose cost is known."""
    name = found.costs[0] if cost is None else cost
    if name not in found.costs:
        raise InputError(f"no cost {name!r} in this table", fix=f"one of {', '.join(found.costs)}")
    alt = altair()
    points = _points(found, name)
    across = _across(np.array([one["cost"] for one in points]))
    limits = [number for one in points for number in (one["value"], one.get("low"), one.get("high"))]
    up = even(np.array([number for number in limits if number is not None]), 6)
    x = alt.X("cost:Q", title=name, scale=_scale(alt, across), axis=alt.Axis(values=list(across.ticks), format=",.3~r"))
    y = alt.Y("value:Q", title=found.measure, scale=_scale(alt, up), axis=axis_of(alt, up))
    base = alt.Chart(alt.InlineData(values=points))
    colour = alt.Color(
        "place:N",
        title=None,
        scale=alt.Scale(domain=["on the front", "dominated"], range=[PALETTE[0], PALETTE[-1]]),
        legend=alt.Legend(orient="top"),
    )
    steps = alt.Chart(alt.InlineData(values=[one for one in points if one["place"] == "on the front"]))
    step = "step-before" if name in found.more_is_better else "step-after"  # the best for at most this cost
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.4, opacity=0.6)
    layers = [
        steps.mark_line(interpolate=step, strokeWidth=1.2, strokeDash=[4, 3], color=PALETTE[0]).encode(
            x=x, y=y, order=alt.Order("cost:Q")
        ),
        rules.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour, tooltip=_tooltip(alt, name)),
    ]
    named = points if len(points) <= _NAMED else [one for one in points if one["place"] == "on the front"]
    if len(named) <= _NAMED:
        layers += _names(alt, named, across, up, height, x, found.measure)
    subtitle = f"means with {found.level:.0%} intervals; dashed: the front of these two"
    title = alt.TitleParams(f"{found.measure} against {name}", subtitle=subtitle, anchor="start", frame="group")
    return themed(alt.layer(*layers).properties(width=width, height=height, title=title))


def _points(found: Tradeoff, name: str) -> list[dict[str, Any]]:
    """Give one record a run, and whether it is on the front of the measure and this one cost."""
    known = [one for one in found.rows if one.costs[name] is not None]
    values = np.array([one.value for one in known]) * (1.0 if found.higher_is_better else -1.0)
    costs = np.array([one.costs[name] for one in known], dtype=np.float64)
    dearer = (-costs if name in found.more_is_better else costs)[:, np.newaxis]
    points: list[dict[str, Any]] = []
    for at, one in enumerate(known):
        on_front = not dominators(at, values, dearer).any()
        point: dict[str, Any] = {"run": one.run, "cost": float(costs[at]), "value": one.value}
        point["place"] = "on the front" if on_front else "dominated"
        if one.interval is not None:
            point |= {"low": one.interval[0], "high": one.interval[1]}
        points.append(point)
    return points


def _across(costs: np.ndarray[Any, np.dtype[np.float64]]) -> Scale:
    """Make the axis of a cost: logarithmic where it spans much."""
    low, high = float(costs.min()), float(costs.max())
    if low >= 1 and high > _WIDE * low:
        return by_cutoff([low * 0.85, high * 1.15], logarithmic=True)
    return even(np.append(costs, 0.0) if low >= 0 else costs, 6)


def _scale(alt: Any, scale: Scale) -> Any:
    kind = "log" if scale.logarithmic else "linear"
    return alt.Scale(type=kind, domain=[scale.low, scale.high], nice=False, zero=False)


def _tooltip(alt: Any, name: str) -> list[Any]:
    shown = [
        alt.Tooltip("run:N"),
        alt.Tooltip("cost:Q", title=name, format=",.3~r"),
        alt.Tooltip("value:Q", format=".4f"),
    ]
    return [*shown, *(alt.Tooltip(f"{limit}:Q", format=".4f") for limit in ("low", "high")), alt.Tooltip("place:N")]


def _names(
    alt: Any, points: list[dict[str, Any]], across: Scale, up: Scale, height: int, x: Any, measure: str
) -> list[Any]:
    """Put names beside points, on the side where there is room, moved up or down where two would overlap."""
    wanted = np.array([one["value"] for one in points])
    moved = apart(wanted, _LINE / height * (up.high - up.low)).tolist()
    right = across.share(np.array([one["cost"] for one in points])) > _FAR
    layers: list[Any] = []
    for align, kept, sign in (("left", ~right, 1), ("right", right, -1)):
        if not kept.any():
            continue
        moved_points = [{**points[at], "value": moved[at]} for at in np.flatnonzero(kept).tolist()]
        base = alt.Chart(alt.InlineData(values=moved_points))
        for halo in ({"stroke": "white", "strokeWidth": 3}, {"color": "#333"}):  # a name may lie on a line
            mark = base.mark_text(align=align, baseline="middle", dx=7 * sign, dy=-8, fontSize=11, font=FONT, **halo)
            layers.append(mark.encode(x=x, y=alt.Y("value:Q", title=measure), text="run:N"))
    return layers
