"""Needs as a picture: for each need a line from its worst to its best wording, with a mark at the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import PALETTE, altair, axis_of, even, themed

if TYPE_CHECKING:
    from judged.diagnosis.needs.rows import NeedsTable

_ROW = 15  # pixels of a need
_MOST = 40  # needs: more than these are no longer read one by one


def chart(found: NeedsTable, run: str | None, measure: str | None, width: int) -> Any:
    """Draw the needs of one run, by their mean; of many needs, those with the widest range."""
    alt = altair()
    r, m = found.place(run, measure)
    ranges = np.nan_to_num(np.abs(found.best[r, m] - found.worst[r, m]), nan=-1.0)
    widest = sorted(range(len(found.needs)), key=lambda at: (-ranges[at], found.needs[at]))[:_MOST]
    order = sorted(widest, key=lambda at: (-np.nan_to_num(found.mean[r, m, at], nan=-1.0), found.needs[at]))
    order = [at for at in order if not np.isnan(found.mean[r, m, at])]
    rows: list[dict[str, Any]] = [
        {
            "need": found.needs[at],
            "mean": float(found.mean[r, m, at]),
            "low": float(min(found.worst[r, m, at], found.best[r, m, at])),
            "high": float(max(found.worst[r, m, at], found.best[r, m, at])),
            "variants": int(found.variants[r, m, at]),
        }
        for at in order
    ]
    axis = even(np.array([0.0, *(row[key] for row in rows for key in ("low", "high"))]), 6)
    name, system = found.scores.measure_names[m], found.scores.run_names[r]
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False)
    y = alt.Y("need:N", sort=[row["need"] for row in rows], title="need")
    base = alt.Chart(alt.InlineData(values=rows))
    ticks = axis_of(alt, axis)
    layers = [
        base.mark_rule(color=PALETTE[0], strokeWidth=2, opacity=0.5).encode(
            y=y, x=alt.X("low:Q", title=name, scale=scale, axis=ticks), x2="high:Q"
        ),
        base.mark_point(filled=True, size=40, opacity=1, color=PALETTE[0]).encode(
            y=y, x=alt.X("mean:Q", scale=scale), tooltip=["need:N", "variants:Q", "low:Q", "mean:Q", "high:Q"]
        ),
    ]
    some = "" if len(rows) == len(found.needs) else f" (the {len(rows)} of {len(found.needs)} that vary most)"
    title = alt.TitleParams(
        f"{system}: {name} by need",
        subtitle=f"from the worst to the best wording, with the mean{some}",
        anchor="start",
        frame="group",
    )
    return themed(alt.layer(*layers).properties(width=width, height=max(_ROW * len(rows), 2 * _ROW), title=title))
