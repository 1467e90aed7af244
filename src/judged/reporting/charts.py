"""The charts of a report that no other part of judged draws: the leaderboard, and differences by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, axis_of, even, themed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate

GAIN, LOSS, PLAIN = PALETTE[0], PALETTE[1], "#7F7F7F"
_STEP = 17  # pixels from one row to the next
_LABEL = 210  # pixels that a name may take


def board(estimates: Sequence[Estimate], emphasised: Sequence[str], *, width: int = 460) -> Any:
    """Draw one dot a run with its interval, in the order that is given."""
    alt = altair()
    rows = [
        {"run": one.run, "value": one.value, "kind": "looked at closely" if one.run in emphasised else "others"}
        | ({"low": one.ci[0], "high": one.ci[1]} if one.ci else {})
        for one in estimates
        if not np.isnan(one.value)
    ]
    ends = np.array([[row["value"], row.get("low", np.nan), row.get("high", np.nan)] for row in rows] or [[0.0]])
    scale = even(ends.ravel(), 6)
    name = estimates[0].measure if estimates else ""
    x = alt.X("value:Q", title=name, scale=alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False),
              axis=axis_of(alt, scale))  # fmt: skip
    y = alt.Y("run:N", sort=[row["run"] for row in rows], title=None, axis=_names(alt))
    kinds = alt.Scale(domain=["looked at closely", "others"], range=[GAIN, PLAIN])
    colour = alt.Color("kind:N", legend=None, scale=kinds)
    tooltip = [alt.Tooltip("run:N"), *(alt.Tooltip(f"{one}:Q", format=".4f") for one in ("value", "low", "high"))]
    base = alt.Chart(alt.InlineData(values=rows))
    rules = base.mark_rule(strokeWidth=1.6).transform_filter("isValid(datum.low)")
    layers = [
        rules.encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=colour, tooltip=tooltip),
        base.mark_point(filled=True, size=48, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip),
    ]
    return themed(alt.layer(*reversed(layers)).properties(width=width, height=_STEP * max(len(rows), 1)))


def differences(
    rows: Sequence[tuple[str, str, float, float, float]], measure: str, names: tuple[str, str], *, width: int = 460
) -> Any:
    """Draw one bar a topic: how much better the second run is than the first."""
    alt = altair()
    first, second = names
    data = [
        {"topic": label, "gain": gain, "first": one, "second": two, "side": "gain" if gain > 0 else "loss"}
        for _, label, gain, one, two in rows
    ]
    scale = even(np.array([0.0, *(row["gain"] for row in data)]), 6)
    x = alt.X("gain:Q", title=f"{measure}: {second} against {first}", axis=axis_of(alt, scale),
              scale=alt.Scale(domain=[scale.low, scale.high], nice=False, zero=True))  # fmt: skip
    y = alt.Y("topic:N", sort=[row["topic"] for row in data], title=None, axis=_names(alt))
    sides = alt.Scale(domain=["gain", "loss"], range=[GAIN, LOSS])
    tooltip = [alt.Tooltip("topic:N"), alt.Tooltip("gain:Q", title="difference", format="+.4f"),
               alt.Tooltip("first:Q", title=first, format=".4f"),
               alt.Tooltip("second:Q", title=second, format=".4f")]  # fmt: skip
    bars = alt.Chart(alt.InlineData(values=data)).mark_bar(height=11)
    made = bars.encode(x=x, y=y, color=alt.Color("side:N", legend=None, scale=sides), tooltip=tooltip)
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="#666").encode(x="zero:Q")
    return themed(alt.layer(made, zero).properties(width=width, height=_STEP * max(len(data), 1)))


def _names(alt: Any) -> Any:
    return alt.Axis(labelLimit=_LABEL, grid=False, domain=False, ticks=False, labelOverlap=False)
