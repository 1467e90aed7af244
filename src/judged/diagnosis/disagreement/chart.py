"""A disagreement as a picture: each topic a point, its differences by both measures as the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, axis_of, even, themed

if TYPE_CHECKING:
    from judged.diagnosis.disagreement.sides import TwoSides

_KINDS = ("opposite sides", "the same side", "one sees no difference")
_ROOM = (0.2, 0.1)  # of the largest difference: what a name covers, across and up


def chart(found: TwoSides, width: int, height: int) -> Any:
    """Draw every topic: in two of the four quarters the measures prefer different systems."""
    alt = altair()
    named = _apart(found)
    points: list[dict[str, Any]] = [
        {
            "topic": one.query_id,
            "query": one.query,
            "x": one.differences[0],
            "y": one.differences[1],
            "kind": _KINDS[0] if one.opposite else _KINDS[1] if one.sides[0] * one.sides[1] > 0 else _KINDS[2],
            "named": one.query_id in named,
        }
        for one in found.topics
    ]
    axes = [even(np.array([0.0, *(abs(one[key]) for one in points), *(-abs(one[key]) for one in points)]), 5)
            for key in ("x", "y")]  # fmt: skip
    x, y = (
        kind(
            f"{key}:Q",
            title=f"{name}: {found.systems[1]} minus {found.systems[0]}",
            scale=alt.Scale(domain=[axis.low, axis.high], nice=False),
            axis=axis_of(alt, axis),
        )
        for kind, key, name, axis in zip((alt.X, alt.Y), ("x", "y"), found.measures, axes, strict=True)
    )
    base = alt.Chart(alt.InlineData(values=points))
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(_KINDS), range=[PALETTE[1], PALETTE[0], PALETTE[-1]]),
        legend=alt.Legend(orient="top"),
    )
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}]))
    layers = [
        zero.mark_rule(color="#999", strokeWidth=0.8).encode(x=alt.X("zero:Q")),
        zero.mark_rule(color="#999", strokeWidth=0.8).encode(y=alt.Y("zero:Q")),
        base.mark_point(filled=True, size=45, opacity=0.75).encode(
            x=x, y=y, color=colour, tooltip=["topic:N", "query:N", "x:Q", "y:Q"]
        ),
        base.transform_filter("datum.named").mark_text(align="left", dx=6, dy=-5).encode(x=x, y=y, text="topic:N"),
    ]
    title = alt.TitleParams(
        f"{found.measures[0]} and {found.measures[1]}, topic by topic",
        subtitle=f"named: the topics that pull the means of {found.systems[0]} and {found.systems[1]} apart most",
        anchor="start",
        frame="group",
    )
    return themed(alt.layer(*layers).properties(width=width, height=height, title=title))


def _apart(found: TwoSides) -> set[str]:
    """Choose the topics whose names do not cover one another: of two that would, the one that pulls more."""
    room = [share * max(abs(one.differences[at]) for one in found.topics) for at, share in enumerate(_ROOM)]
    kept: dict[str, tuple[float, float]] = {}
    for one in found.causes:
        near = [all(abs(one.differences[at] - place[at]) < room[at] for at in (0, 1)) for place in kept.values()]
        if not any(near):
            kept[one.query_id] = one.differences
    return set(kept)
