"""The look of charts, and how they become pictures and files."""

from __future__ import annotations

import re
import struct
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest

from judged.errors import InputError, MissingExtraError
from judged.results import NUMBER, Chart, Column, Table
from judged.results.chart_drawings import draw_charts
from judged.results.charts import DASHES, PALETTE, altair, apply_theme, library, picture, save_chart, specification

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bars() -> Any:
    alt = altair()
    data = alt.InlineData(values=[{"run": "a & b", "n": 1}, {"run": "c", "n": 2}])
    return alt.Chart(data).mark_bar().encode(x="n:Q", y="run:N")


def test_colors_and_dashes_are_distinct() -> None:
    assert len(set(PALETTE)) == 8
    assert len(set(DASHES)) == 4
    assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in PALETTE)


def test_the_theme_leaves_the_given_chart_alone(bars: Any) -> None:
    before = bars.to_dict()
    made = apply_theme(bars).to_dict()
    assert bars.to_dict() == before
    assert made["config"]["font"].startswith("DejaVu Sans")
    assert made["config"]["view"]["stroke"] is None
    assert made["config"]["axis"]["labelColor"] == "#333"
    assert made["encoding"] == before["encoding"]


def test_a_theme_can_be_changed_further(bars: Any) -> None:
    made = apply_theme(bars).configure_axis(grid=False).to_dict()
    assert made["config"]["axis"] == {"grid": False}
    assert made["config"]["background"] == "white"


def test_pictures(bars: Any) -> None:
    png = picture(apply_theme(bars), "png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    plain = re.search(rb'width="(\d+)" height="(\d+)"', picture(apply_theme(bars), "svg"))
    assert plain is not None
    assert (width, height) == (3 * int(plain[1]), 3 * int(plain[2]))
    assert picture(bars, "pdf").startswith(b"%PDF-")
    assert b"a &amp; b" in picture(bars, "svg")


def test_a_page_is_titled_and_needs_no_network(bars: Any) -> None:
    page = picture(bars, "html", "<b> & more").decode()
    assert "<title>&lt;b&gt; &amp; more</title>" in page
    assert not re.search(r"<(?:script|link)[^>]*(?:src|href)\s*=", page)
    assert "<title>Chart</title>" in picture(bars, "html").decode()


def test_a_specification_is_taken_in_place_of_a_chart(bars: Any) -> None:
    spec = bars.to_dict()
    assert specification(spec) == spec == specification(bars)
    assert picture(spec, "svg") == picture(bars, "svg")


def test_files(bars: Any, tmp_path: Path) -> None:
    save_chart(bars, tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_bytes() == picture(bars, "svg")
    save_chart(bars, tmp_path / "a.data", "svg")
    assert (tmp_path / "a.data").read_bytes() == picture(bars, "svg")
    save_chart(bars, tmp_path / "a.html", title="my title")
    assert "<title>my title</title>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"format 'gif'.*\.png, \.svg, \.pdf, \.html") as caught:
        save_chart(bars, tmp_path / "a.gif")
    assert caught.value.path == str(tmp_path / "a.gif")
    with pytest.raises(InputError, match="format ''"):
        save_chart(bars, tmp_path / "a")
    with pytest.raises(InputError, match="one of png, svg, pdf, html"):
        picture(bars, "jpg")
    assert len(list(tmp_path.iterdir())) == 3


def test_without_the_libraries(bars: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.svg").write_text("old")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(
        MissingExtraError, match=r"vl-convert-python is not installed. Fix: pip install 'judged\[plots\]'"
    ):
        save_chart(bars, tmp_path / "a.svg")
    with pytest.raises(MissingExtraError, match="vl-convert-python"):
        library()
    assert (tmp_path / "a.svg").read_text() == "old"
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"altair is not installed. Fix: pip install 'judged\[plots\]'"):
        altair()


def test_the_library_stands_alone_in_a_script_element() -> None:
    made = library()
    assert "window.vegaEmbed=" in made
    assert "</script" not in made.lower()
    assert not re.search(r"\bimport\s*[({\"']https?:", made)


def _of_series(many: int, kind: Literal["dots", "lines"], **more: Any) -> dict[str, Any]:
    names = [f"run{at}" for at in range(many) for _ in range(2)]
    values = [0.01 * at for at in range(2 * many)]
    ends = Column("value", values, NUMBER, ci=[(value - 0.1, value + 0.1) for value in values])
    across = {"x": "value", "y": "place"} if kind == "dots" else {"x": "place", "y": "value"}
    places = Column("place", (["a", "b"] if kind == "dots" else [1, 2]) * many)
    table = Table("drawn", (Column("run", names), places, ends))
    return specification(draw_charts(Chart("drawn", "Drawn", table, "", kind, color="run", **across, **more)))


def _layers(spec: dict[str, Any]) -> list[tuple[Any, set[str]]]:
    rows = [
        layer["data"].get("values") or spec["datasets"].get(layer["data"].get("name"), []) for layer in spec["layer"]
    ]
    names = [{row["color"] for row in some if "color" in row} for some in rows]
    return [(layer["encoding"].get("color"), some) for layer, some in zip(spec["layer"], names, strict=True)]


@pytest.mark.parametrize("kind", ["dots", "lines"])
def test_beyond_eight_series_each_has_a_panel_unless_some_stand_out(kind: Literal["dots", "lines"]) -> None:
    assert "concat" not in _of_series(8, kind)
    panels = _of_series(9, kind)["concat"]
    assert [panel["title"]["text"] for panel in panels] == [f"run{at}" for at in range(9)]
    domains = [layer["encoding"]["x"]["scale"]["domain"] for panel in panels for layer in panel["layer"][-1:]]
    assert all(domain == domains[0] for domain in domains)  # one scale, or they could not be compared


@pytest.mark.parametrize("kind", ["dots", "lines"])
def test_of_a_hundred_series_the_loud_ones_alone_have_colors(kind: Literal["dots", "lines"]) -> None:
    spec = _of_series(100, kind, highlighted=("run42", "run7"))
    colors = {name: color for color, names in _layers(spec) if len(names) == 2 for name in names if color}
    assert set(colors) == {"run42", "run7"}
    assert colors["run7"]["scale"] == {"domain": ["run42", "run7"], "range": list(PALETTE[:2])}
    quiet = [color for color, names in _layers(spec) if len(names) == 98]
    assert quiet
    assert all(color is None or "scale" not in color for color in quiet)


def test_rows_that_are_loud_take_no_more_room_than_the_others() -> None:
    table = Table("drawn", (Column("run", [f"run{at}" for at in range(40)]), Column("value", [0.5] * 40, NUMBER)))
    spec = specification(
        draw_charts(Chart("drawn", "Drawn", table, "", y="run", color="run", highlighted=("run3", "run4")))
    )
    assert spec["height"] == 40 * 16
