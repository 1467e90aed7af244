"""Style of charts: colors, dashes, font, and axes that are readable in a paper column and in gray; picture files."""

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
from judged.results.files import atomic_write, cache_folder
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.results.types import Floats


PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Colors for all kinds of color vision (Okabe and Ito 2008), without yellow, with gray."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
"""ReferenceLine styles, in addition to colors, for prints in gray."""
FONT = "DejaVu Sans, Helvetica Neue, Arial, sans-serif"
"""Font stack of charts."""

_INK = "#333"
_START, _END = 21, 12  # characters at the start and the end of a shortened name


def altair() -> Any:
    """Import altair."""
    try:
        import altair as alt
    except ImportError:
        raise MissingExtraError("altair", "plots") from None
    return alt


def apply_theme(chart: Any) -> Any:
    """Apply the common style to a chart.

    >>> apply_theme(altair().Chart().mark_bar()).to_dict(validate=False)["config"]["background"]
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


def shorten_label(text: str = "datum.label") -> str:
    """Return the Vega expression that shortens a long name in the middle; texts of several words stay.

    >>> shorten_label("x")
    "length(x) > 34 && indexof(x, ' ') < 0 ? slice(x, 0, 21) + '…' + slice(x, -12) : x"
    """
    is_long = f"length({text}) > {_START + _END + 1} && indexof({text}, ' ') < 0"
    return f"{is_long} ? slice({text}, 0, {_START}) + '…' + slice({text}, -{_END}) : {text}"


def axis_of(alt: Any, scale: Scale, **more: Any) -> Any:
    """Build an axis with the ticks of a scale and the required decimals; `more` are options of ``alt.Axis``.

    >>> from judged.results.charts import Scale
    >>> axis_of(altair(), Scale(0.0, 0.05, (0.0, 0.025, 0.05))).to_dict()["format"]
    ',.3f'
    """
    return alt.Axis(values=list(scale.ticks), **{"format": f",.{scale.decimals}f", **more})


def spread_out(values: Floats, min_gap: float) -> Floats:
    """Move values so that neighbors differ by at least `min_gap`, with the smallest sum of squared moves: (N,).

    >>> spread_out(np.array([0.5, 0.5, 0.9]), 0.1).round(3).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(values, kind="stable")
    targets = values[order] - min_gap * np.arange(len(values))
    groups: list[list[float]] = []  # isotonic regression after subtraction of the gaps
    for target in targets.tolist():
        groups.append([target])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    means = np.concatenate([np.full(len(group), np.mean(group)) for group in groups]) if groups else targets
    moved = np.empty_like(values)
    moved[order] = means + min_gap * np.arange(len(values))
    return moved


_LONG = 50  # cutoffs from which a linear scale would squeeze the first ones
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)


@dataclass(frozen=True)
class Scale:
    """Axis from ``low`` to ``high`` with its ticks, linear or logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    @property
    def decimals(self) -> int:
        """Number of decimals that the ticks need.

        >>> Scale(0.0, 0.05, (0.0, 0.025, 0.05)).decimals, Scale(0.0, 20.0, (0.0, 10.0, 20.0)).decimals
        (3, 0)
        """
        return max(len(f"{tick:.12f}".rstrip("0").partition(".")[2]) for tick in self.ticks)

    def share(self, values: Floats) -> Floats:
        """Return the relative position of values on the axis, from 0 to 1."""
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return (values - low) / (high - low)


def even_scale(values: Floats, most: int) -> Scale:
    """Build a linear axis around values, between round numbers, with at most `most` steps.

    >>> even_scale(np.array([0.31, 0.58]), 5).ticks
    (0.3, 0.4, 0.5, 0.6)
    >>> even_scale(np.array([0.5, 0.5]), 5).ticks
    (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    """
    finite = values[~np.isnan(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-9):
        low, high = min(0.0, low), max(0.0, high)  # equal values: include 0
        high = high if high > low else 1.0
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step, first, last = next(
        (step, first, last)
        for step in (times * power for times in _STEPS)
        for first, last in [(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9))]
        if last - first <= most or step == _STEPS[-1] * power
    )
    ticks = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def cutoff_scale(cutoffs: Sequence[float] | Floats, *, logarithmic: bool | None = None, most: int = 8) -> Scale:
    """Build an axis of cutoffs from the first to the last one, logarithmic beyond 50.

    >>> cutoff_scale([1, 2, 3, 4]).ticks
    (1.0, 2.0, 3.0, 4.0)
    >>> cutoff_scale(range(1, 21)).ticks
    (1.0, 5.0, 10.0, 15.0, 20.0)
    >>> cutoff_scale(range(1, 1001)).ticks
    (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
    """
    low, high = float(cutoffs[0]), float(cutoffs[-1])
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


def round_positions(cutoffs: Sequence[float] | Floats, most: int) -> list[int]:
    """Select the positions of round numbers (1, 2, 5, 10, 20 ...) and of the last one; all if there are few.

    >>> round_positions([1, 2, 3, 4], 12), round_positions(range(1, 31), 12)
    ([0, 1, 2, 3], [0, 1, 4, 9, 19, 29])
    """
    if len(cutoffs) <= most:
        return list(range(len(cutoffs)))
    selected = set(_round_numbers(float(cutoffs[-1])))
    return [position for position, k in enumerate(cutoffs) if k in selected or position == len(cutoffs) - 1]


def _round_numbers(high: float) -> list[float]:
    """Return 1, 2, 5, 10, 20, 50 ... up to a number."""
    powers = range(int(math.log10(high)) + 1)
    return [times * 10.0**power for power in powers for times in (1, 2, 5) if times * 10.0**power <= high]


PICTURES = ("png", "svg", "pdf", "html")
"""Picture formats."""

_MENU = ("source", "compiled", "editor")  # menu entries of vega-embed to hide
_SHARP = 3  # PNG pixels per chart pixel, sharp in print


def specification(chart: Any) -> dict[str, Any]:
    """Convert a chart to Vega-Lite in plain Python values."""
    # Validation against the schema takes longer than everything else; a test does it for every kind of chart.
    spec: dict[str, Any] = dict(chart) if isinstance(chart, dict) else chart.to_dict(validate=False)
    return spec


def picture(chart: Any, form: str, title: str = "") -> bytes:
    """Render a chart as a PNG, SVG, or PDF picture, or as a self-contained HTML page.

    >>> bars = altair().Chart(altair().InlineData(values=[{"n": 1}])).mark_bar().encode(x="n:Q")
    >>> picture(bars, "svg")[:4]
    b'<svg'
    """
    if form not in PICTURES:
        raise InputError(f"unknown picture format {form!r}", fix=use_one_of(PICTURES))
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
    """Write a chart to a file atomically; the suffix selects the format."""
    suffix = form or Path(path).suffix.lower().removeprefix(".")
    if suffix not in PICTURES:
        suffixes = ", ".join(f".{name}" for name in PICTURES)
        raise InputError(
            f"unknown picture format {suffix!r}", fix=f"use a name that ends in {suffixes}", path=str(path)
        )
    content = picture(chart, suffix, title)
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def resource(name: str) -> str:
    """Read a file that all pages share: ``tokens.css`` (sizes, colors), ``charts.css``, or ``drawing.js``."""
    return files("judged.results.charts").joinpath(name).read_text(encoding="utf-8")


def converter() -> Any:
    """Import vl_convert, which renders charts without a browser."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "plots") from None
    return vl_convert


def language() -> str:
    """Return the Vega-Lite version of the charts in the notation of vl_convert: ``v5.20``."""
    return ".".join(altair().SCHEMA_VERSION.split(".")[:2])


def _with_menu(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**spec, "usermeta": {"embedOptions": {"actions": {"export": True, **dict.fromkeys(_MENU, False)}}}}


_BUILD = """
import gzip, sys, vl_convert
bundle = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=sys.argv[1])
sys.stdout.buffer.write(gzip.compress(bundle.encode()))
"""
_LIBRARIES: dict[str, bytes] = {}
_LIBRARY_LOCK = Lock()


def library() -> str:
    """Return the Vega library, about 900 kB: it sets ``window.vegaEmbed`` and defines variables at the top level.

    Raises
    ------
    MissingExtraError
        If altair or vl-convert is not installed.
    """
    return gzip.decompress(packed_library()).decode()


def packed_library() -> bytes:
    """Return the Vega library compressed by gzip, about 300 kB."""
    if find_spec("vl_convert") is None:  # not imported, because that takes 11 MB
        raise MissingExtraError("vl-convert-python", "plots")
    with _LIBRARY_LOCK:
        name = f"charts-{language()}-{version('vl-convert-python')}.js.gz"
        if name not in _LIBRARIES:
            _LIBRARIES[name] = _read_or_build(name)
        return _LIBRARIES[name]


def _read_or_build(name: str) -> bytes:
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError, EOFError, zlib.error):  # missing or damaged
            packed = (folder / name).read_bytes()
            if gzip.decompress(packed):
                return packed
    # A subprocess builds it, because it takes seconds that would block all pages, and memory that is never released.
    command = [sys.executable, "-P", "-c", _BUILD, language()]
    packed = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    if folder is not None:
        with suppress(OSError, JudgedError), atomic_write(folder / name) as part:  # a full disk: try again next time
            part.write_bytes(packed)
    return packed
