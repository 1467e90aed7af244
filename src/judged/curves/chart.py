"""Curves as a chart of altair: it can be changed further, and serves every form of picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.charting import DASHES, FONT, PALETTE, Scale, altair, apart, axis_of, by_cutoff, even, themed

if TYPE_CHECKING:
    from judged.curves.points import CurvePoints

WIDTH, HEIGHT = 460, 300  # pixels, where nothing is said
_DIRECT = 10  # runs: as many names find room at the ends of their lines
_LINE = 14.0  # pixels from one such name to the next
_FEW = 15  # points: each is marked
_AREAS = 6  # runs: the intervals of more would hide each other


def chart(curves: CurvePoints, *, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """Draw lines, intervals and names."""
    alt = altair()
    up = even(np.concatenate([curves.mean, curves.low, curves.high]).ravel(), 6)
    across = _across(curves)
    x_label, y_label = curves.labels
    x = alt.X(
        "x:Q",
        title=x_label,
        scale=_scale(alt, across),
        axis=_axis(alt, across, "d" if curves.kind == "cutoff" else None),
    )
    y = alt.Y("mean:Q", title=y_label, scale=_scale(alt, up), axis=_axis(alt, up))
    direct = curves.kind == "cutoff" and len(curves.run_names) <= _DIRECT
    names = list(curves.run_names)
    legend = (
        None if direct else alt.Legend(title=None, symbolType="stroke", symbolSize=300, labelLimit=300, symbolOpacity=1)
    )
    colours = [PALETTE[at % len(PALETTE)] for at in range(len(names))]
    dashes = [list(DASHES[(at + at // len(PALETTE)) % len(DASHES)]) for at in range(len(names))]
    colour = alt.Color("run:N", sort=names, legend=legend, scale=alt.Scale(domain=names, range=colours))
    dash = alt.StrokeDash("run:N", sort=names, legend=legend, scale=alt.Scale(domain=names, range=dashes))
    base = alt.Chart(alt.InlineData(values=_points(curves)))
    layers: list[Any] = []
    areas = len(names) <= _AREAS and not np.isnan(curves.low).all()
    if areas:
        area = base.mark_area(opacity=0.13, clip=True).transform_filter("isValid(datum.low)")
        layers.append(area.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour))
    line = base.mark_line(strokeWidth=1.8, clip=False, interpolate="linear")
    order = alt.Order("at:Q")
    layers.append(line.encode(x=x, y=y, color=colour, strokeDash=dash, order=order, tooltip=_tooltip(alt, curves)))
    if np.isfinite(curves.mean).sum(axis=1).max(initial=0) <= _FEW:
        layers.append(
            base.mark_point(filled=True, size=28, opacity=1).encode(
                x=x, y=y, color=colour, tooltip=_tooltip(alt, curves)
            )
        )
    if direct:
        names_layer = alt.Chart(alt.InlineData(values=_names(curves, up, height))).mark_text(
            align="left", baseline="middle", dx=7, fontSize=11, font=FONT, clip=False
        )
        layers.append(names_layer.encode(x=x, y=alt.Y("mean:Q", title=y_label), text="run:N", color=colour))
    title = alt.TitleParams(curves.title, subtitle=curves.basis(intervals=areas), anchor="start", frame="group")
    return themed(alt.layer(*layers).properties(width=width, height=height, title=title))


def _across(curves: CurvePoints) -> Scale:
    if curves.kind == "cutoff":
        return by_cutoff(curves.at, logarithmic=curves.long)
    return even(np.array([0.0, 1.0]) if curves.kind == "interpolated" else np.append(curves.x.ravel(), 0.0), 5)


def _scale(alt: Any, scale: Scale) -> Any:
    if scale.logarithmic:
        return alt.Scale(type="log", domain=[scale.low, scale.high], nice=False)
    return alt.Scale(type="linear", domain=[scale.low, scale.high], nice=False, zero=False)


def _axis(alt: Any, scale: Scale, form: str | None = None) -> Any:
    return axis_of(alt, scale, labelFlush=False, **({"format": form} if form else {}))


def _tooltip(alt: Any, curves: CurvePoints) -> list[Any]:
    x_label, y_label = curves.labels
    first = alt.Tooltip("at:Q", title="recall" if curves.kind == "interpolated" else "k")
    shown = [alt.Tooltip("run:N"), first]
    if curves.kind == "raw":
        shown.append(alt.Tooltip("x:Q", title=x_label, format=".4f"))
    shown.append(alt.Tooltip("mean:Q", title=y_label, format=".4f"))
    if not np.isnan(curves.low).all():
        shown += [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("low", "high")]
    return [*shown, alt.Tooltip("topics:Q")]


def _points(curves: CurvePoints) -> list[dict[str, Any]]:
    """Give one record a point."""
    points: list[dict[str, Any]] = []
    for r, run in enumerate(curves.run_names):
        for k in np.flatnonzero(np.isfinite(curves.mean[r])).tolist():
            point = {
                "run": run,
                "at": float(curves.at[k]),
                "x": float(curves.x[r, k]),
                "mean": float(curves.mean[r, k]),
            }
            if np.isfinite(curves.low[r, k]):
                point |= {"low": float(curves.low[r, k]), "high": float(curves.high[r, k])}
            points.append(point | {"topics": int(curves.topics[r, k])})
    return points


def _names(curves: CurvePoints, up: Scale, height: int) -> list[dict[str, Any]]:
    """Put the name of each run at the end of its line, moved up or down where two would overlap."""
    known = [r for r in range(len(curves.run_names)) if np.isfinite(curves.mean[r]).any()]
    last = [np.flatnonzero(np.isfinite(curves.mean[r]))[-1] for r in known]
    ends = np.array([curves.mean[r, k] for r, k in zip(known, last, strict=True)])
    moved = apart(ends, _LINE / height * (up.high - up.low))
    return [
        {"run": curves.run_names[r], "x": float(curves.x[r, k]), "mean": float(y)}
        for r, k, y in zip(known, last, moved.tolist(), strict=True)
    ]
