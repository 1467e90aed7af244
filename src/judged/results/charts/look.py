"""The look of charts, that can be read in a column of a paper and in grey: colours, dashes, font, and axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Colours that people with any kind of colour vision tell apart (Okabe and Ito 2008), without yellow, with grey."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
"""Beside colours, so that a print in grey tells the lines apart as well."""
FONT = "DejaVu Sans, Helvetica Neue, Arial, sans-serif"
"""What text in a chart is set in: the first of these that the reader has."""

_INK = "#333"
_START, _END = 21, 12  # characters of a long name, which is cut between them


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
        "grid": True,
        "gridColor": "#e6e6e6",
        "domainColor": "#666",
        "tickColor": "#666",
        "labelColor": _INK,
        "titleColor": _INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    }
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


def cut(text: str = "datum.label") -> str:
    """Give the expression of Vega that cuts a long name in its middle, and leaves a text of several words as it is.

    >>> cut("x")
    "length(x) > 34 && indexof(x, ' ') < 0 ? slice(x, 0, 21) + '…' + slice(x, -12) : x"
    """
    is_long = f"length({text}) > {_START + _END + 1} && indexof({text}, ' ') < 0"
    return f"{is_long} ? slice({text}, 0, {_START}) + '…' + slice({text}, -{_END}) : {text}"


def axis_of(alt: Any, scale: Scale, **more: Any) -> Any:
    """Make an axis with the numbers of a scale, with as many decimals as they need; `more` as ``alt.Axis`` takes it.

    >>> from judged.results.charts.look import Scale
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


_LONG = 50  # cutoffs: beyond, the first ones would be squeezed on an even scale
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, even or logarithmic, with the numbers that are written on it."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    @property
    def decimals(self) -> int:
        """How many decimals the numbers on the axis need.

        >>> Scale(0.0, 0.05, (0.0, 0.025, 0.05)).decimals, Scale(0.0, 20.0, (0.0, 10.0, 20.0)).decimals
        (3, 0)
        """
        return max(len(f"{tick:.12f}".rstrip("0").partition(".")[2]) for tick in self.ticks)

    def share(self, values: Floats) -> Floats:
        """Give how far along the axis values stand, from 0 to 1."""
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return (values - low) / (high - low)


def even(values: Floats, most: int) -> Scale:
    """Make an even axis around values, from one round number to another, with at most so many steps.

    >>> even(np.array([0.31, 0.58]), 5).ticks
    (0.3, 0.4, 0.5, 0.6)
    >>> even(np.array([0.5, 0.5]), 5).ticks
    (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    """
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-9):
        low, high = min(0.0, low), max(0.0, high)  # all the same: how far from nothing
        high = high if high > low else 1.0
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step, first, last = next(
        (step, first, last)
        for step in (times * power for times in _STEPS)
        for first, last in [(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9))]
        if last - first <= most or step == _STEPS[-1] * power
    )
    ticks = tuple(float(f"{at * step:.12g}") for at in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def by_cutoff(at: Sequence[float] | Floats, *, logarithmic: bool | None = None, most: int = 8) -> Scale:
    """Make the axis of cutoffs: it begins and ends at the first and last, and is logarithmic beyond 50.

    >>> by_cutoff([1, 2, 3, 4]).ticks
    (1.0, 2.0, 3.0, 4.0)
    >>> by_cutoff(range(1, 21)).ticks
    (1.0, 5.0, 10.0, 15.0, 20.0)
    >>> by_cutoff(range(1, 1001)).ticks
    (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
    """
    low, high = float(at[0]), float(at[-1])
    if low == high:
        return Scale(low - 1, high + 1, (low,))
    if high > _LONG if logarithmic is None else logarithmic:
        return Scale(low, high, tuple(k for k in _round_numbers(high) if low <= k), logarithmic=True)
    step = next(step for step in _round_numbers(10 * high) if (high - low) / step <= most)
    first = math.ceil(low / step) * step
    ticks = [first + step * n for n in range(int((high - first) / step + 1e-9) + 1)]
    if ticks[0] - low >= step / 2:
        ticks.insert(0, low)
    return Scale(low, high, tuple(ticks))


def round_of(at: Sequence[float] | Floats, most: int) -> list[int]:
    """Choose the positions of round numbers, 1, 2, 5, 10, 20 ..., and of the last; all where there are few.

    >>> round_of([1, 2, 3, 4], 12), round_of(range(1, 31), 12)
    ([0, 1, 2, 3], [0, 1, 4, 9, 19, 29])
    """
    if len(at) <= most:
        return list(range(len(at)))
    chosen = set(_round_numbers(float(at[-1])))
    return [place for place, k in enumerate(at) if k in chosen or place == len(at) - 1]


def _round_numbers(high: float) -> list[float]:
    """Give 1, 2, 5, 10, 20, 50 ... up to a number."""
    powers = range(int(math.log10(high)) + 1)
    return [times * 10.0**power for power in powers for times in (1, 2, 5) if times * 10.0**power <= high]
