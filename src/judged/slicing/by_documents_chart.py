"""Scores by group of documents as a chart of altair: a dot and its interval for each run and group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.charting import PALETTE, altair, themed

if TYPE_CHECKING:
    from judged.slicing.by_documents import GroupEstimate, ScoresByDocument

_LINE = 16  # pixels for each dot


def group_chart(found: ScoresByDocument, measure: str, *, width: int, height: int | None) -> Any:
    """Draw the number of each run with its interval, by group; hollow where there are few topics."""
    alt = altair()
    shown = [one for one in found.estimates if one.estimate.measure == measure and math.isfinite(one.estimate.value)]
    runs = list(dict.fromkeys(one.estimate.run for one in found.estimates))
    order = list(dict.fromkeys(_named(one) for one in found.estimates))
    base = alt.Chart(alt.InlineData(values=[_point(one) for one in shown]))
    y = alt.Y("group:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, grid=False))
    beside = {"yOffset": alt.YOffset("run:N", sort=runs)} if len(runs) > 1 else {}
    scale = alt.Scale(domain=runs, range=[PALETTE[at % len(PALETTE)] for at in range(len(runs))])
    legend = alt.Legend(title=None, labelLimit=300) if len(runs) > 1 else None
    fill = alt.condition("datum.few", alt.value("white"), alt.Fill("run:N", sort=runs, scale=scale, legend=None))
    across = alt.Scale(zero=False)
    line = base.mark_rule(strokeWidth=1.6).transform_filter("isValid(datum.low)").encode(
        y=y,
        x=alt.X("low:Q", title=measure, scale=across),
        x2="high:Q",
        color=alt.Color("run:N", sort=runs, scale=scale, legend=legend),
        **beside,
    )  # fmt: skip
    dot = base.mark_point(filled=True, size=46, opacity=1, strokeWidth=1.6).encode(
        y=y,
        x=alt.X("value:Q", title=measure, scale=across),
        stroke=alt.Stroke("run:N", sort=runs, scale=scale, legend=None),
        fill=fill,
        tooltip=["group:N", "run:N", "value:Q", "low:Q", "high:Q", "topics:Q", "relevant:Q"],
        **beside,
    )
    tall = height or max(60, (_LINE * len(runs) + 8) * len(order))
    few = f"; hollow: fewer than {found.minimum} topics" if any(one.small for one in shown) else ""
    intervals = "" if found.method.method == "none" else f"{found.method.level:.0%} intervals over topics; "
    below = f"{intervals}only documents of one {found.by} relevant{few}"
    head = alt.TitleParams(f"{measure} by {found.by} of documents", subtitle=below, anchor="start", frame="group")
    return themed(alt.layer(line, dot).properties(width=width, height=tall, title=head))


def _named(one: GroupEstimate) -> str:
    return f"{one.group} ({one.topics})"


def _point(one: GroupEstimate) -> dict[str, Any]:
    ends = {} if one.estimate.ci is None else {"low": one.estimate.ci[0], "high": one.estimate.ci[1]}
    return {
        "group": _named(one),
        "run": one.estimate.run,
        "value": one.estimate.value,
        "topics": one.topics,
        "relevant": one.relevant,
        "few": one.small,
        **ends,
    }
