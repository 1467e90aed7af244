"""Curves in files and notebooks, and where altair is missing."""

from __future__ import annotations

import csv
import json
import re
import struct
import sys
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

from judged import MissingExtraError, curve, precision_recall

if TYPE_CHECKING:
    from pathlib import Path

    from judged.scoring.curves import Curves

QRELS = {f"q{t}": {f"d{d}": (d + t) % 3 for d in range(9)} for t in range(6)}
RUNS = {
    "up & over": {q: {f"d{d}": float(d) for d in range(9)} for q in QRELS},
    "down": {q: {f"d{d}": float(-d) for d in range(9)} for q in QRELS},
}


@pytest.fixture(scope="module")
def curves() -> Curves:
    return curve(QRELS, RUNS, "nDCG", resamples=100)


def test_png(curves: Curves, tmp_path: Path) -> None:
    curves.save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 460 * 3
    assert height > 300 * 3
    assert data.endswith(b"IEND\xaeB`\x82")


def test_pdf(curves: Curves, tmp_path: Path) -> None:
    curves.save(tmp_path / "a.PDF")
    data = (tmp_path / "a.PDF").read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")


def test_svg_has_the_names_of_runs_and_axes(curves: Curves, tmp_path: Path) -> None:
    curves.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg")
    written = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert {"up &amp; over", "down", "k", "nDCG@k", "nDCG@k by cutoff k", "1", "9"} <= set(written)
    assert "mean over 6 topics, [95% CI: t interval adjusted for skewness and score range]" in written
    assert not any("e+" in text for text in written)


def test_html_needs_no_network(curves: Curves, tmp_path: Path) -> None:
    curves.save(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link)[^>]*(?:src|href)\s*=", text)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert not re.search(r"""import\s*\(?\s*["']https?:""", text)
    assert "<title>nDCG@k by cutoff k</title>" in text
    assert "up &amp; over" in text


def test_tables_in_full_precision(curves: Curves, tmp_path: Path) -> None:
    for end in ("csv", "parquet"):
        curves.save(tmp_path / f"a.{end}")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == curves.mean.ravel().tolist()
    assert [float(row["ci_low"]) for row in rows] == curves.low.ravel().tolist()
    assert [(row["run"], row["cutoff"]) for row in rows][8:10] == [("up & over", "9"), ("down", "1")]
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.equals(curves.to_arrow())
    assert json.loads(table.schema.metadata[b"judged"])["measure"] == "nDCG@k"


def test_a_failure_leaves_the_old_file(curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_text("old")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(
        MissingExtraError, match=r"vl-convert-python is not installed. Fix: pip install 'judged\[plots\]'"
    ):
        curves.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_without_altair(curves: Curves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"altair is not installed. Fix: pip install 'judged\[plots\]'"):
        curves.chart()
    page = curves._repr_html_()
    assert "<table" in page
    assert "up &amp; over" in page


def test_notebooks_show_a_picture(curves: Curves) -> None:
    picture = curves._repr_html_()
    assert picture.count('<svg xmlns="http://www.w3.org/2000/svg"') == 1
    assert "up &amp; over" in picture


def test_the_chart(curves: Curves) -> None:
    spec = curves.chart(width=200).to_dict()
    assert spec["width"] == 200
    area, line, _, names = spec["layer"]
    assert area["mark"]["type"] == "area"
    assert line["encoding"]["x"]["scale"] == {"type": "linear", "domain": [1, 9], "nice": False, "zero": False}
    assert [row["color"] for row in spec["datasets"][names["data"]["name"]]] == ["up & over", "down"]
    point = spec["datasets"][line["data"]["name"]][3]
    assert (point["x"], point["y"], point["y_low"]) == (4, curves.mean[0, 3], curves.low[0, 3])


def test_lines_that_end_together_have_a_legend() -> None:
    spec = precision_recall(QRELS, RUNS, resamples=100).chart().to_dict()
    encodings = [layer["encoding"] for layer in spec["layer"]]
    assert all(encoding["color"]["legend"] for encoding in encodings)
    assert not any("text" in encoding for encoding in encodings)


def test_many_runs_have_a_panel_each_beside_the_first() -> None:
    many = {f"run{n}": RUNS["up & over"] for n in range(32)}
    spec = curve(QRELS, many, "nDCG", resamples=100).chart().to_dict()
    assert len(spec["concat"]) in {31, 32}
    assert spec["title"]["subtitle"].startswith("mean over 6 topics")


def test_long_curves_have_a_logarithmic_scale() -> None:
    deep = {q: {f"d{d}": -float(d) for d in range(60)} for q in QRELS}
    spec = curve(QRELS, deep, "P", cutoffs=60, ci="none").chart().to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == [1, 2, 5, 10, 20, 50]


def test_nothing_to_draw(tmp_path: Path) -> None:
    """One topic and nothing found: there is no point, and the axes stand by themselves."""
    curves = precision_recall({"q": {"a": 0}}, {"q": {"a": 1.0}}, "raw")
    assert curves.to_arrow().num_rows == 0
    assert curves.by_run().grid().rows == ()
    assert "1.0" in curves.plot()
    curves.save(tmp_path / "a.svg")
    assert "recall" in (tmp_path / "a.svg").read_text()
