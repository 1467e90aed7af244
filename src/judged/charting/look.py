"""Colours, dashes, font and theme of charts: one look, that can be read in a column of a paper and in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.charting.scale import Scale

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Colours that people with any kind of colour vision tell apart (Okabe and Ito 2008), without yellow, with grey."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
"""Beside colours, so that a print in grey tells the lines apart as well."""
FONT = "DejaVu Sans, Helvetica Neue, Arial, sans-serif"
"""What text in a chart is set in: the first of these that the reader has."""

_INK = "#333"


def altair() -> Any:
    """Import altair."""
    try:
        import altair as alt
    except ImportError:
        raise MissingExtraError("altair", "plots") from None
    return alt


def themed(chart: Any) -> Any:
    """Give a chart our looks: little ink, text that can be read in a column of a paper.

    >>> themed(altair().Chart().mark_bar()).to_dict(validate=False)["config"]["background"]
    'white'
    """
    title = {"fontSize": 13, "fontWeight": "bold", "color": _INK, "offset": 10}
    header = {"labelFontSize": 11, "labelColor": _INK, "titleFontSize": 12, "titleColor": _INK}
    axis = {
        "grid": True, "gridColor": "#e6e6e6", "domainColor": "#666", "tickColor": "#666", "labelColor": _INK,
        "titleColor": _INK, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
    }  # fmt: skip
    return chart.configure(
        font=FONT,
        background="white",
        padding=8,
        view={"stroke": None},
        axis=axis,
        title=title | {"subtitleFontSize": 11, "subtitleColor": "#555"},
        legend={"labelFontSize": 11, "labelColor": _INK, "titleColor": _INK, "symbolStrokeWidth": 2},
        header=header,
    )


def axis_of(alt: Any, scale: Scale, **more: Any) -> Any:
    """Make an axis with the numbers of a scale, with as many decimals as they need; `more` as ``alt.Axis`` takes it.

    >>> from judged.charting.scale import Scale
    >>> axis_of(altair(), Scale(0.0, 0.05, (0.0, 0.025, 0.05))).to_dict()["format"]
    ',.3f'
    """
    return alt.Axis(values=list(scale.ticks), **{"format": f",.{scale.decimals}f", **more})


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
