"""One report as page, Markdown, JSON and pictures: the same sentences and numbers, escaped for each, and repeatable."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from judged import InputError, MissingExtraError
from judged.reports.answer import missing_chart_notes
from judged.results.escaping import markdown_text as escaped
from judged.results.html import in_script, minus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judged.reports import Report


class Page(HTMLParser):
    """Elements of a page, with the texts of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.cell = False
        self.words: list[str] = []
        self.hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.cell = True
            self.rows[-1].append("")
        self.hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self.cell = self.cell and tag not in {"td", "th"}
        self.hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)
        if self.cell:
            self.rows[-1][-1] += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="session")
def parsed(page: str) -> Page:
    return Page(page)


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def test_nothing_from_outside(page: str, parsed: Page) -> None:
    for tag, attrs in parsed.elements:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert "src" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert (attrs.get("href") or "#").startswith("#")
    assert "@import" not in page
    assert "url(" not in "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))


def test_texts_from_files_stay_texts(page: str, parsed: Page, evil: str) -> None:
    """Topic, document, attribute, run and title hold markup; the page has no element but its own."""
    scripts = parsed.of("script")
    assert [script.get("id") for script in scripts] == ["charts", None, None]
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert parsed.of("img") == []
    assert "<i>third" not in page
    assert "<b>odd" not in page
    assert "\u2028" not in re.findall(r'id="charts">(.*?)</script>', page, re.DOTALL)[0]
    assert flat(f"Title {evil}") in {flat(word) for word in parsed.words}
    assert flat(evil) in {flat(word) for word in parsed.words}


def test_data_in_scripts() -> None:
    value = {"a</script>": ["<!--", "\u2028\u2029", "&amp;", "é", 0.1, None]}
    escaped = in_script(value)
    assert json.loads(escaped) == value
    assert escaped.isascii()
    assert not set("<>&") & set(escaped)


def test_structure(parsed: Page) -> None:
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(parsed.of(landmark)) == 1
    assert parsed.of("a")[0] == {"class": "skip", "href": "#content"}
    assert {row["href"] for row in parsed.of("a")} <= {f"#{name}" for name in ids}
    assert all(row.get("scope") in {"col", "row"} for row in parsed.of("th"))
    assert parsed.of("html") == [{"lang": "en"}]
    charts = [row for row in parsed.of("div") if row.get("class") == "chart"]
    assert len(charts) == len(parsed.of("figure")) == 7
    assert all(row["role"] == "img" and row["aria-label"] for row in charts)
    regions = [row for row in parsed.of("div") if row.get("class") == "scroll"]
    assert len(regions) == len(parsed.of("table"))
    assert all(row["tabindex"] == "0" and row["role"] == "region" and row["aria-label"] for row in regions)


def test_the_library_is_there_once(page: str) -> None:
    assert page.count("window.vegaEmbed=") == 1
    assert len(page) < 2_000_000


def test_every_form_has_every_sentence_and_number(sample_report: Report, parsed: Page) -> None:
    """Tables of the page, of Markdown and of JSON are those of the report."""
    document = sample_report.to_dict()
    page_text = flat(" ".join(parsed.words))
    markdown = sample_report.markdown()
    rows = {tuple(flat(cell) for cell in row) for row in parsed.rows}
    for section, data in zip(sample_report.sections, document["sections"], strict=True):
        assert list(section.sentences) == data["sentences"][: len(section.sentences)]
        for sentence in section.sentences:
            assert all(flat(minus(part)) in page_text for part in re.split(r"`[^`]+`", sentence))
        for name in data["tables"]:
            for row in sample_report.table(name).grid().rows:
                assert any(_numbers(" ".join(row)) == _numbers(" ".join(row_cells)) for row_cells in rows)
                assert all(number in markdown for number in _numbers(" ".join(row)))
    assert json.loads(json.dumps(document)) == document


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+\.\d{4}", text)


def test_json_holds_full_precision(sample_report: Report) -> None:
    document = sample_report.to_dict()
    results = document["results"]
    assert results["evaluation"] == sample_report.scores.to_dict()
    assert sample_report.comparison is not None
    assert results["comparison"] == sample_report.comparison.to_dict()
    assert {"slices", "slice comparison", "matrix", "stages", "diff"} <= results.keys()
    assert document["command"] == "judged report qrels.txt 'a b.run'"


def test_markdown_shows_characters_as_they_are(sample_report: Report) -> None:
    text = sample_report.markdown()
    assert "<script" not in text
    assert "<i>" not in text
    assert "&lt;i&gt;third&lt;/i&gt;" in text
    assert r"\*star\*" in text
    for line in text.splitlines():
        if line.startswith("| ") and "tick" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", "| a | b | c | d | e |"))
    assert escaped("# no heading") == r"\# no heading"
    assert escaped("1. no list") == r"1\. no list"
    assert escaped("two\nlines") == "two lines"


def test_the_same_input_gives_the_same_bytes(
    make: Callable[..., Report], sample_report: Report, page: str, evil: str
) -> None:
    again = make(baseline="old", title=f"Title {evil}", command="judged report qrels.txt 'a b.run'")
    assert again.html() == page
    assert again.markdown() == sample_report.markdown()
    assert json.dumps(again.to_dict()) == json.dumps(sample_report.to_dict())


def test_another_seed_gives_other_intervals(make: Callable[..., Report], sample_report: Report) -> None:
    other = make(baseline="old", seed=5)
    assert [row[0] for row in other.table("board").grid().rows] == [
        row[0] for row in sample_report.table("board").grid().rows
    ]
    assert other.results["evaluation"] is other.scores
    assert other.to_dict()["results"]["evaluation"]["policies"]["ci"]["seed"] == 5
    assert other.to_dict()["results"]["comparison"] != sample_report.to_dict()["results"]["comparison"]


def test_files(sample_report: Report, page: str, tmp_path: Path) -> None:
    for name in ("a.html", "a.md", "a.JSON"):
        sample_report.save(tmp_path / name)
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page + "\n"
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == sample_report.markdown() + "\n"
    assert json.loads((tmp_path / "a.JSON").read_text(encoding="utf-8")) == sample_report.to_dict()
    sample_report.save(tmp_path / "b", form="markdown")
    assert (tmp_path / "b").read_text(encoding="utf-8") == sample_report.markdown() + "\n"
    with pytest.raises(InputError, match=r"the format of a result is unknown for \.pdx"):
        sample_report.save(tmp_path / "a.pdx")
    with pytest.raises(InputError, match="unknown format 'pdx'"):
        sample_report.save(tmp_path / "a.html", form="pdx")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page + "\n"


def test_charts_as_pictures(sample_report: Report, tmp_path: Path) -> None:
    files = sample_report.save_charts(tmp_path / "deep" / "charts")
    assert [file.name for file in files] == [f"{chart.name}.svg" for chart in sample_report.charts().values()]
    assert all(file.read_text(encoding="utf-8").startswith("<svg") for file in files)
    with pytest.raises(InputError, match="unknown chart format 'gif'"):
        sample_report.save_charts(tmp_path / "none", form="gif")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        sample_report.save_charts(tmp_path / "file")


def test_without_the_libraries_of_charts(
    sample_report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    parsed = Page(sample_report.html())
    assert len(parsed.of("script")) == 1
    assert not [row for row in parsed.of("div") if row.get("class") == "chart"]
    assert len(parsed.of("figure")) == 7
    assert "altair is not installed. Fix: pip install 'judged[plots]'" in " ".join(parsed.words)
    assert "Data of this chart" not in " ".join(parsed.words)
    (note,) = missing_chart_notes()
    assert note.startswith("the page has no charts: altair is not installed. Fix: pip install")
    assert sample_report.markdown()
    with pytest.raises(MissingExtraError):
        sample_report.save_charts(tmp_path)


def test_text_for_a_terminal(sample_report: Report) -> None:
    text = sample_report.text(60)
    assert max(map(len, text.split("\n\n")[1].splitlines())) <= 60
    assert repr(sample_report).startswith(sample_report.text())
    assert sample_report.table("board").text() in repr(sample_report)
    assert "<table>" in sample_report._repr_html_()


def test_thousands_of_topics_do_not_make_a_large_file() -> None:
    """What is drawn and listed of topics is limited, and the rest is said."""
    from judged.reports import report

    topics = [f"q{i}" for i in range(2500)]
    qrels: dict[str, Any] = {q: {"d": 1} for q in topics}
    runs = {"one": {q: ["d", "x"] if i % 3 else ["x", "d"] for i, q in enumerate(topics)},
            "two": {q: ["d", "x"] if i % 5 else ["x", "d"] for i, q in enumerate(topics)}}  # fmt: skip
    answer = report(qrels, runs, measures=["nDCG@10"], baseline="one")
    assert len(answer.html()) < 3_000_000
    chart = next(chart for chart in answer.charts().values() if chart.name == "topics")
    assert len(chart.table) == 40
    assert "The chart shows only the largest gains and losses among 2,500 topics." in chart.sentence
