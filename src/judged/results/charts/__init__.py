"""The look of charts, that can be read in a column of a paper and in grey: colours, dashes, font, and axes."""

from __future__ import annotations

import gzip
import math
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError, JudgedError, MissingExtraError
from judged.results.files import cache_folder, replaced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.results.types import Floats


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

    >>> from judged.results.charts import Scale
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


PICTURES = ("png", "svg", "pdf", "html")
"""What a chart can become."""

_MENU = ("source", "compiled", "editor")  # what the menu of a page would offer beside pictures
_SHARP = 3  # pixels of a PNG file for one of the chart: it stays sharp in print


def specification(chart: Any) -> dict[str, Any]:
    """Give a chart as Vega-Lite, in plain Python values."""
    # Checking every value against the schema takes longer than all else; a test does it for every kind of chart.
    made: dict[str, Any] = dict(chart) if isinstance(chart, dict) else chart.to_dict(validate=False)
    return made


def picture(chart: Any, form: str, title: str = "") -> bytes:
    """Give a chart as a PNG, SVG or PDF picture, or as an HTML page that holds all that it needs.

    >>> bars = altair().Chart(altair().InlineData(values=[{"n": 1}])).mark_bar().encode(x="n:Q")
    >>> picture(bars, "svg")[:4]
    b'<svg'
    """
    if form not in PICTURES:
        raise InputError(f"no form {form!r} of a chart is known", fix=f"use one of {', '.join(PICTURES)}")
    spec, convert, version = specification(chart), converter(), language()
    if form == "png":
        return convert.vegalite_to_png(spec, vl_version=version, scale=_SHARP)
    if form == "svg":
        return convert.vegalite_to_svg(spec, vl_version=version).encode()
    if form == "pdf":
        return convert.vegalite_to_pdf(spec, vl_version=version)
    page: str = convert.vegalite_to_html(_with_menu(spec), vl_version=version, bundle=True)
    return page.replace("<title>Chart</title>", f"<title>{escape(title or 'Chart')}</title>", 1).encode(
        errors="backslashreplace"
    )


def save_chart(chart: Any, path: str | Path, form: str | None = None, title: str = "") -> None:
    """Write a chart to a file, whole or not at all; the end of its name decides the format."""
    chosen = form or Path(path).suffix.lower().removeprefix(".")
    if chosen not in PICTURES:
        known = ", ".join(f".{name}" for name in PICTURES)
        raise InputError(
            f"no form {chosen!r} of a chart is known", fix=f"give a name that ends in {known}", path=str(path)
        )
    made = picture(chart, chosen, title)
    with replaced(path) as temporary:
        temporary.write_bytes(made)


def resource(name: str) -> str:
    """Read what pages share: ``tokens.css``, all sizes and colours; ``charts.css`` and ``drawing.js``."""
    return files("judged.results.charts").joinpath(name).read_text(encoding="utf-8")


def converter() -> Any:
    """Import vl_convert, which draws charts without a browser."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "plots") from None
    return vl_convert


def language() -> str:
    """Name the version of Vega-Lite that charts are written in, as vl_convert wants it: ``v5.20``."""
    return ".".join(altair().SCHEMA_VERSION.split(".")[:2])


def _with_menu(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**spec, "usermeta": {"embedOptions": {"actions": {"export": True, **dict.fromkeys(_MENU, False)}}}}


_BUILD = """
import gzip, sys, vl_convert
made = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=sys.argv[1])
sys.stdout.buffer.write(gzip.compress(made.encode()))
"""
_MADE: dict[str, bytes] = {}
_MAKING = Lock()


def library() -> str:
    """Give it as text, some 900 kB: it sets ``window.vegaEmbed``, and names its variables at the top level.

    Raises
    ------
    MissingExtraError
        If altair or vl-convert is not installed.
    """
    return gzip.decompress(packed_library()).decode()


def packed_library() -> bytes:
    """Give it packed by gzip, some 300 kB."""
    if find_spec("vl_convert") is None:  # it is not imported here: it takes 11 MB
        raise MissingExtraError("vl-convert-python", "plots")
    with _MAKING:
        name = f"charts-{language()}-{version('vl-convert-python')}.js.gz"
        if name not in _MADE:
            _MADE[name] = _read_or_made(name)
        return _MADE[name]


def _read_or_made(name: str) -> bytes:
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError, EOFError, zlib.error):  # it was not made before, or is damaged
            packed = (folder / name).read_bytes()
            if gzip.decompress(packed):
                return packed
    # Another process makes it: here the seconds that it takes would hold up every page, and its memory would stay.
    command = [sys.executable, "-P", "-c", _BUILD, language()]
    made = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    if folder is not None:
        with suppress(OSError, JudgedError), replaced(folder / name) as part:  # the disk is full: again next time
            part.write_bytes(made)
    return made
