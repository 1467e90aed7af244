"""Curves as a chart of altair: it can be changed further, and serves every form of picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.curves.scale import Scale, by_cutoff, even
from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.curves.curves import Curves

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Colours that people with any kind of colour vision tell apart (Okabe and Ito 2008), without yellow, with grey."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
"""Beside colours, so that a print in grey tells the lines apart as well."""

_FONT = "DejaVu Sans, Helvetica Neue, Arial, sans-serif"
_DIRECT = 10  # runs: as many names find room at the ends of their lines
_LINE = 14.0  # pixels from one such name to the next
_FEW = 15  # points: each is marked
_AREAS = 6  # runs: the intervals of more would hide each other


def chart(curves: Curves, *, width: int, height: int) -> Any:
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
            align="left", baseline="middle", dx=7, fontSize=11, font=_FONT, clip=False
        )
        layers.append(names_layer.encode(x=x, y=alt.Y("mean:Q", title=y_label), text="run:N", color=colour))
    title = alt.TitleParams(curves.title, subtitle=curves.basis(intervals=areas), anchor="start", frame="group")
    return _dressed(alt.layer(*layers).properties(width=width, height=height, title=title))


def altair() -> Any:
    """Import altair.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import altair as alt
    except ImportError:
        raise MissingExtraError("altair", "plots") from None
    return alt


def _across(curves: Curves) -> Scale:
    if curves.kind == "cutoff":
        return by_cutoff(curves.at, logarithmic=curves.long)
    return even(np.array([0.0, 1.0]) if curves.kind == "interpolated" else np.append(curves.x.ravel(), 0.0), 5)


def _scale(alt: Any, scale: Scale) -> Any:
    kind = "log" if scale.logarithmic else "linear"
    return alt.Scale(type=kind, domain=[scale.low, scale.high], nice=False, zero=False)


def _axis(alt: Any, scale: Scale, form: str | None = None) -> Any:
    return alt.Axis(values=list(scale.ticks), labelFlush=False, **({"format": form} if form else {}))


def _tooltip(alt: Any, curves: Curves) -> list[Any]:
    x_label, y_label = curves.labels
    first = alt.Tooltip("at:Q", title="recall" if curves.kind == "interpolated" else "k")
    shown = [alt.Tooltip("run:N"), first]
    if curves.kind == "raw":
        shown.append(alt.Tooltip("x:Q", title=x_label, format=".4f"))
    shown.append(alt.Tooltip("mean:Q", title=y_label, format=".4f"))
    if not np.isnan(curves.low).all():
        shown += [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("low", "high")]
    return [*shown, alt.Tooltip("topics:Q")]


def _points(curves: Curves) -> list[dict[str, Any]]:
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


def _names(curves: Curves, up: Scale, height: int) -> list[dict[str, Any]]:
    """Put the name of each run at the end of its line, moved up or down where two would overlap."""
    known = [r for r in range(len(curves.run_names)) if np.isfinite(curves.mean[r]).any()]
    last = [np.flatnonzero(np.isfinite(curves.mean[r]))[-1] for r in known]
    ends = np.array([curves.mean[r, k] for r, k in zip(known, last, strict=True)])
    moved = apart(ends, _LINE / height * (up.high - up.low))
    return [
        {"run": curves.run_names[r], "x": float(curves.x[r, k]), "mean": float(y)}
        for r, k, y in zip(known, last, moved.tolist(), strict=True)
    ]


def apart(values: Floats, least: float) -> Floats:
    """Move values until each is at least so far from the next, as little as possible in the sum of squares: (N,).

    >>> apart(np.array([0.5, 0.5, 0.9]), 0.1).round(3).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(values, kind="stable")
    wanted = values[order] - least * np.arange(len(values))
    groups: list[list[float]] = []  # what must be equal, after the gaps are taken away: isotonic regression
    for one in wanted.tolist():
        groups.append([one])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    level = np.concatenate([np.full(len(group), np.mean(group)) for group in groups]) if groups else wanted
    moved = np.empty_like(values)
    moved[order] = level + least * np.arange(len(values))
    return moved


def _dressed(made: Any) -> Any:
    """Give a chart our looks: little ink, text that can be read in a column of a paper."""
    return (
        made.configure(font=_FONT, background="white", padding=8)
        .configure_view(stroke=None)
        .configure_axis(
            grid=True, gridColor="#e6e6e6", domainColor="#666", tickColor="#666", labelColor="#333",
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", titlePadding=8,
        )
        .configure_title(fontSize=13, fontWeight="bold", subtitleFontSize=11, subtitleColor="#555", offset=10)
        .configure_legend(labelFontSize=11, symbolStrokeWidth=2)
    )  # fmt: skip
