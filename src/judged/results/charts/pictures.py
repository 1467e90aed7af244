"""Charts as pictures and pages. Nothing is fetched: the renderer comes with vl-convert."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, MissingExtraError
from judged.results.atomic import replaced
from judged.results.charts.look import altair

if TYPE_CHECKING:
    from collections.abc import Mapping

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
