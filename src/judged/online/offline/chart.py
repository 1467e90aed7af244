"""Calibration as a picture: the outcome over the score, a point with its interval for each range of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charts import PALETTE, altair, axis_of, even, themed

if TYPE_CHECKING:
    from judged.online.offline.rows import OfflineTable


def chart(found: OfflineTable, measure: str, outcome: str, width: int, height: int) -> Any:
    """Draw one measure and one outcome."""
    alt = altair()
    bins = found.bins(measure, outcome)
    points: list[dict[str, Any]] = []
    for one in bins:
        point: dict[str, Any] = {"score": one.score, "rate": one.rate.value, "pages": one.pages, "units": one.units}
        if one.rate.known:
            point |= {"low": one.rate.low, "high": one.rate.high}
        points.append(point)
    across = even(np.array([0.0, *(one.score for one in bins)]), 6)
    limits = [limit for one in bins for limit in (one.rate.value, one.rate.low, one.rate.high)]
    up = even(np.array([0.0, *(limit for limit in limits if not np.isnan(limit))]), 6)
    x = alt.X("score:Q", title=f"{measure}, mean of the range", axis=axis_of(alt, across),
              scale=alt.Scale(domain=[across.low, across.high], nice=False))  # fmt: skip
    y = alt.Y("rate:Q", title=outcome, axis=axis_of(alt, up), scale=alt.Scale(domain=[up.low, up.high], nice=False))
    base = alt.Chart(alt.InlineData(values=points))
    shown = [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("score", "rate", "low", "high")]
    counts = [alt.Tooltip("pages:Q"), alt.Tooltip("units:Q", title=f"{found.unit}s")]
    layers = [
        base.mark_line(strokeWidth=1.2, strokeDash=[4, 3], color=PALETTE[0]).encode(x=x, y=y),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.6, color=PALETTE[0])
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1, color=PALETTE[0]).encode(x=x, y=y, tooltip=[*shown, *counts]),
    ]
    subtitle = f"{sum(one.pages for one in bins)} pages, {found.level:.0%} intervals over {found.unit}s"
    title = alt.TitleParams(f"{outcome} by {measure}", subtitle=subtitle, anchor="start", frame="group")
    return themed(alt.layer(*layers).properties(width=width, height=height, title=title))
