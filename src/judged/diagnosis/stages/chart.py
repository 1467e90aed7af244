"""Stacked bars of a diagnosis by stages: what was scored, and which part of the rest was lost where."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, themed
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.stages.split import SplitLoss

_BAR = 22  # pixels a bar of a slice
_THIN = 13  # of a topic
_MOST_TOPICS = 200  # drawn: those that lose most


def chart(found: SplitLoss, by: str, width: int, height: int | None) -> Any:
    """Draw a bar a slice and system, or a bar a topic."""
    if by not in {"slice", "topic"}:
        raise InputError(f"no bars by {by!r}", fix="one of slice, topic")
    alt = altair()
    rows, order, across = _slices(found) if by == "slice" else _topics(found)
    kinds = [str(found.measure), *(f"lost: {name}" for name in reversed(found.names))]
    colours = [PALETTE[0], *(PALETTE[(4, 1, 3)[at % 3]] for at in range(len(found.names)))]
    step = _BAR if by == "slice" else _THIN
    axis = alt.Axis(labels=True, ticks=False, labelLimit=260, labelFontSize=11 if by == "slice" else 9)
    whose = " and ".join(name for name, _, _ in found.systems) if by == "slice" else found.trace.name
    title = f"{whose}: where {found.measure} is lost" + ("" if by == "slice" else ", by topic")
    base = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    bars = base.encode(
        y=alt.Y("bar:N", sort=order, title=None, axis=axis),
        x=alt.X("from:Q", title=across, scale=alt.Scale(zero=True, nice=False)),
        x2="to:Q",
        color=alt.Color(
            "part:N", sort=kinds, title=None, scale=alt.Scale(domain=kinds, range=colours),
            legend=alt.Legend(orient="top", labelLimit=300),
        ),
        tooltip=[
            alt.Tooltip("bar:N", title=by), alt.Tooltip("part:N"), alt.Tooltip("size:Q", format=".4f"),
            alt.Tooltip("note:N", title=" "),
        ],
    )  # fmt: skip
    subtitle = f"candidates: first {found.choices.depth}; {len(found.query_ids)} topics"
    if by == "topic" and len(order) < len(found.query_ids):
        subtitle += f", of which the {len(order)} that lose most"
    made = bars.properties(
        width=width,
        height=height or alt.Step(step),
        title=alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="group"),
    )
    return themed(made)


def _slices(found: SplitLoss) -> tuple[list[dict[str, Any]], list[str], str]:
    """Give the segments of a bar a slice and system."""
    known = found.systems
    rows: list[dict[str, Any]] = []
    order: list[str] = []
    for at in range(len(found.parts)):
        for name, _, parts in known:
            one = parts[at]
            if math.isnan(one.score.value):
                continue
            label = f"{one.slice} (n {one.topics}{', few' if one.small else ''})" + (
                f": {name}" if len(known) > 1 else ""
            )
            order.append(label)
            sizes = [one.score.value, *(mean.value for mean in reversed(one.losses))]
            counts = ", ".join(f"{count} {verdict}" for verdict, count in one.verdicts.items() if count)
            rows += _segments(found, label, sizes, counts)
    return rows, order, f"mean {found.measure}, and what is lost of the best"


def _topics(found: SplitLoss) -> tuple[list[dict[str, Any]], list[str], str]:
    """Give the segments of a bar a topic, the largest loss first."""
    trace, verdicts = found.trace, found.verdicts
    at_all = np.flatnonzero(~np.isnan(trace.score))
    order = at_all[np.argsort(trace.score[at_all] - trace.best[at_all], kind="stable")].tolist()[:_MOST_TOPICS]
    rows: list[dict[str, Any]] = []
    for at in order:
        sizes = [float(trace.score[at]), *(float(part[at]) for part in trace.parts[::-1])]
        rows += _segments(found, found.query_ids[at], sizes, verdicts[at])
    return rows, [found.query_ids[at] for at in order], f"{found.measure} of {trace.name}, and what is lost of the best"


def _segments(found: SplitLoss, bar: str, sizes: list[float], note: str) -> list[dict[str, Any]]:
    """Put score and losses one behind the other: score, then ranking, then candidates, which ends at the best."""
    kinds = [str(found.measure), *(f"lost: {name}" for name in reversed(found.names))]
    ends = np.concatenate(([0.0], np.cumsum(sizes))).tolist()
    return [
        {"bar": bar, "part": kind, "from": start, "to": end, "size": size, "note": note}
        for kind, size, start, end in zip(kinds, sizes, ends[:-1], ends[1:], strict=True)
        if size
    ]
