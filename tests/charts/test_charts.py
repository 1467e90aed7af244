"""The look of charts, and how they become pictures and files."""

from __future__ import annotations

import re
import struct
import sys
from typing import TYPE_CHECKING, Any

import pytest

from judged.charts import DASHES, PALETTE, altair, library, picture, save_chart, specification, themed
from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bars() -> Any:
    alt = altair()
    data = alt.InlineData(values=[{"run": "a & b", "n": 1}, {"run": "c", "n": 2}])
    return alt.Chart(data).mark_bar().encode(x="n:Q", y="run:N")


def test_colours_and_dashes_are_distinct() -> None:
    assert len(set(PALETTE)) == 8
    assert len(set(DASHES)) == 4
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in PALETTE)


def test_the_theme_leaves_the_given_chart_alone(bars: Any) -> None:
    before = bars.to_dict()
    made = themed(bars).to_dict()
    assert bars.to_dict() == before
    assert made["config"]["font"].startswith("DejaVu Sans")
    assert made["config"]["view"]["stroke"] is None
    assert made["config"]["axis"]["labelColor"] == "#333"
    assert made["encoding"] == before["encoding"]


def test_a_theme_can_be_changed_further(bars: Any) -> None:
    made = themed(bars).configure_axis(grid=False).to_dict()
    assert made["config"]["axis"] == {"grid": False}
    assert made["config"]["background"] == "white"


def test_pictures(bars: Any) -> None:
    png = picture(themed(bars), "png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    plain = re.search(rb'width="(\d+)" height="(\d+)"', picture(themed(bars), "svg"))
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
    with pytest.raises(InputError, match=r"no form 'gif'.*\.png, \.svg, \.pdf, \.html") as caught:
        save_chart(bars, tmp_path / "a.gif")
    assert caught.value.path == str(tmp_path / "a.gif")
    with pytest.raises(InputError, match="no form ''"):
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
        library.__wrapped__()  # it is made once
    assert (tmp_path / "a.svg").read_text() == "old"
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"altair is not installed. Fix: pip install 'judged\[plots\]'"):
        altair()


def test_the_library_stands_alone_in_a_script_element() -> None:
    made = library()
    assert "window.vegaEmbed=" in made
    assert "</script" not in made.lower()
    assert not re.search(r"\bimport\s*[({\"']https?:", made)
