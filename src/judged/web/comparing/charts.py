"""Two runs topic by topic as charts in Vega-Lite: sorted differences, and one score against the other.

The rows are added to what altair made: altair copies and checks every value several times, which takes a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, axis_of, even, specification, themed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats

SECOND, FIRST, EQUAL = PALETTE[0], PALETTE[1], PALETTE[7]
"""The colours of topics on which the second run is ahead, the first is, or neither."""
CELLS = 36
"""Cells of each side of a scatter of more points than can be told apart."""
_AHEAD = ("second", "first", "neither")
_HEIGHT = 340
_PALEST = 0.12  # of a cell with one topic: it must be seen


def profile(
    rows: Sequence[dict[str, Any]], measure: str, names: tuple[str, str], topics: int, *, width: int = 520
) -> dict[str, Any]:
    """Draw differences, sorted, as bars: each stands for one topic, or for those around it where there are many."""
    alt = altair()
    scale = even(np.array([0.0, *(row["difference"] for row in rows)]), 6)
    y = alt.Y("difference:Q", title=f"difference in {measure}", axis=axis_of(alt, scale),
              scale=alt.Scale(domain=[scale.low, scale.high], nice=False, zero=True))  # fmt: skip
    x = alt.X("left:Q", title="topics, sorted by difference", scale=alt.Scale(domain=[0, topics], nice=False),
              axis=alt.Axis(grid=False, format=",.0f", tickCount=6, tickMinStep=1))  # fmt: skip
    bars = alt.Chart(alt.NamedData("rows")).mark_bar(cursor="pointer")
    made = bars.encode(x=x, x2="right:Q", y=y, y2=alt.datum(0), color=_colour(alt), tooltip=_tooltip(alt, names))
    return _with(alt.layer(made, _zero(alt)).properties(width=width, height=_HEIGHT), rows=rows)


def scatter(
    rows: Sequence[dict[str, Any]],
    measure: str,
    names: tuple[str, str],
    cells: Sequence[dict[str, Any]] = (),
    *,
    width: int = 520,
) -> dict[str, Any]:
    """Draw one score against the other, a point a topic; cells count those that are too many for points."""
    alt = altair()
    first, second = names
    ends = [row[side] for row in rows for side in ("first", "second")]
    ends += [cell[side] for cell in cells for side in ("left", "right", "low", "high")]
    scale = even(np.array(ends), 5)
    domain = alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)
    titles = f"{measure} of {first}", f"{measure} of {second}"

    def at(across: str, up: str) -> dict[str, Any]:
        """Place something by two fields, on the axes that all layers share."""
        x = alt.X(across, title=titles[0], scale=domain, axis=axis_of(alt, scale, titleLimit=360))
        return {"x": x, "y": alt.Y(up, title=titles[1], scale=domain, axis=axis_of(alt, scale, titleLimit=280))}

    ends_of_line = [{"first": scale.low, "second": scale.low}, {"first": scale.high, "second": scale.high}]
    line = alt.Chart(alt.NamedData("line")).mark_line(color="#888", strokeDash=[4, 3], strokeWidth=1)
    points = alt.Chart(alt.NamedData("rows")).mark_point(filled=True, size=42, opacity=0.75, cursor="pointer")
    layers = [_cells(alt, cells).encode(x2="right:Q", y2="high:Q", **at("left:Q", "low:Q"))] if cells else []
    layers.append(line.encode(**at("first:Q", "second:Q")))
    layers.append(points.encode(color=_colour(alt), tooltip=_tooltip(alt, names), **at("first:Q", "second:Q")))
    return _with(alt.layer(*layers).properties(width=width, height=_HEIGHT), rows=rows, cells=cells, line=ends_of_line)


def cells_of(first: Floats, second: Floats) -> list[dict[str, Any]]:
    """Count points by the cells of a grid over both scores: those with a point.

    >>> found = cells_of(np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.01, 0.5]))
    >>> [(cell["count"], cell["left"], cell["low"]) for cell in found]
    [(2, 0.0, 0.0), (1, 0.9722, 0.5)]
    """
    # `first`, `second`: (N,), without NaN.
    both = np.concatenate([first, second])
    scale = even(both, 5)
    edges = np.linspace(scale.low, scale.high, CELLS + 1)
    counts = np.histogram2d(first, second, bins=(edges, edges))[0].astype(np.int64)
    ends = edges.round(4).tolist()
    return [
        {"left": ends[x], "right": ends[x + 1], "low": ends[y], "high": ends[y + 1], "count": int(counts[x, y])}
        for x, y in np.argwhere(counts).tolist()
    ]


def _cells(alt: Any, cells: Sequence[dict[str, Any]]) -> Any:
    most = max(2, *(cell["count"] for cell in cells))
    opacity = alt.Opacity("count:Q", legend=None, scale=alt.Scale(type="log", domain=[1, most], range=[_PALEST, 1]))
    tooltip = [
        alt.Tooltip("count:Q", title="topics"),
        alt.Tooltip("left:Q", title="first from", format=".3f"),
        alt.Tooltip("low:Q", title="second from", format=".3f"),
    ]
    return alt.Chart(alt.NamedData("cells")).mark_rect(color=EQUAL).encode(opacity=opacity, tooltip=tooltip)


def _with(chart: Any, **data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give a chart our looks, and its rows."""
    return {**specification(themed(chart)), "datasets": {name: list(rows) for name, rows in data.items()}}


def _colour(alt: Any) -> Any:
    return alt.Color("ahead:N", legend=None, scale=alt.Scale(domain=list(_AHEAD), range=[SECOND, FIRST, EQUAL]))


def _tooltip(alt: Any, names: tuple[str, str]) -> list[Any]:
    first, second = names
    return [
        alt.Tooltip("topic:N"), alt.Tooltip("query:N"), alt.Tooltip("first:Q", title=first, format=".4f"),
        alt.Tooltip("second:Q", title=second, format=".4f"), alt.Tooltip("difference:Q", format="+.4f"),
    ]  # fmt: skip


def _zero(alt: Any) -> Any:
    return alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="#666").encode(y="zero:Q")
