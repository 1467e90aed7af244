"""`judged review`: what it prints is what `review` found, and what was filled in comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import judged
from judged.comparison.slicing.topic_slices import slice_topics
from judged.diagnosis.review.review import review

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

QRELS = "q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 e 1\nq2 0 f 1\n"
RUN = "q1 Q0 b 1 9 r\nq1 Q0 x 2 8 r\nq1 Q0 a 3 7 r\nq2 Q0 e 1 9 r\n"
OTHER = "q1 Q0 a 1 9 r\nq2 Q0 y 1 9 r\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "one.run").write_text(RUN)
    (tmp_path / "two.run").write_text(OTHER)
    (tmp_path / "queries.jsonl").write_text(
        '{"query_id": "q1", "text": "income tax", "kind": "law"}\n{"query_id": "q2", "text": "peace", "kind": "news"}\n'
    )
    (tmp_path / "docs.tsv").write_text("doc_id\ttitle\ttext\nb\tthe title\tthe text\nz\t-\tunused\n")
    return tmp_path


def test_the_table_is_that_of_python(run: Callable[..., Ended]) -> None:
    done = run(
        "review", "qrels.txt", "one.run", "two.run", "-m", "P@2", "--queries", "queries.jsonl", "--texts", "docs.tsv"
    )
    found = review("qrels.txt", ["one.run", "two.run"], measure="P@2", queries="queries.jsonl", texts="docs.tsv")
    assert (done.code, done.out) == (0, found.text() + "\n")
    assert done.err == "".join(f"warning: {one}\n" for one in found.warnings)
    assert "two: nothing returned" not in done.err
    assert "    query: income tax" in done.lines
    assert "    text: the title: the text" in done.lines


@pytest.mark.parametrize("form", ["csv", "jsonl", "tsv", "markdown"])
def test_forms_by_name_and_by_file(run: Callable[..., Ended], folder: Path, form: str) -> None:
    expected = getattr(review("qrels.txt", "one.run", measure="AP", cutoff=2, rel=2), form)() + "\n"
    arguments = ("review", "qrels.txt", "one.run", "-m", "AP", "--cutoff", "2", "--rel", "2")
    assert run(*arguments, "--format", form).out == expected
    name = f"list.{'md' if form == 'markdown' else form}"
    assert run(*arguments, "-o", name).code == 0
    assert (folder / name).read_text() == expected


def test_json_kinds_and_limit(run: Callable[..., Ended]) -> None:
    arguments = ("review", "qrels.txt", "one.run", "-m", "P@1", "--format", "json")
    whole = json.loads(run(*arguments).out)
    assert {one["kind"] for one in whole["items"]} == {"false positive", "false negative"}
    kept = json.loads(run(*arguments, "--kind", "false-negative", "--limit", "1").out)
    assert kept["items"] == [one for one in whole["items"] if one["kind"] == "false negative"][:1]
    assert json.loads(run(*arguments, "--limit", "0").out)["items"] == whole["items"]


def test_slices(run: Callable[..., Ended]) -> None:
    done = run("review", "qrels.txt", "one.run", "--queries", "queries.jsonl", "--by", "kind", "--min-topics", "1")
    sliced = slice_topics("queries.jsonl", "kind", min_topics=1)
    assert done.out == review("qrels.txt", "one.run", queries="queries.jsonl", slicing=sliced).text() + "\n"
    assert "kind=law" in done.lines[2]


def test_what_was_filled_in_comes_back(run: Callable[..., Ended], folder: Path) -> None:
    assert run("review", "qrels.txt", "one.run", "-m", "P@2", "-o", "form.tsv").code == 0
    lines = (folder / "form.tsv").read_text().splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("q1\tx\t"))
    lines[at] = lines[at].replace("q1\tx\t\t", "q1\tx\t\t2")
    at = next(place for place, line in enumerate(lines) if line.startswith("q1\tb\t"))
    lines[at] = lines[at].replace("q1\tb\t0\t", "q1\tb\t0\t1")
    (folder / "form.tsv").write_text("\n".join(lines))
    done = run("review", "qrels.txt", "--apply", "form.tsv", "-o", "new.qrels")
    assert (done.code, done.out, done.err) == (0, "", "1 grade changed, 1 added: new.qrels\n")
    assert (folder / "new.qrels").read_text() == QRELS.replace("b 0", "b 1") + "q1 0 x 2\n"
    assert judged.evaluate("new.qrels", "one.run", "P@2").per_topic()["one"]["P@2"]["q1"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("qrels.txt",), "at least one run is required"),
        (("qrels.txt", "one.run", "--limit", "-1"), "--limit must not be negative, got -1"),
        (("qrels.txt", "one.run", "--by", "kinds", "--queries", "queries.jsonl"), "kinds"),
        (("qrels.txt", "one.run", "-o", "one.run", "--format", "csv"), "the output file is also an input"),
        (("qrels.txt", "one.run", "--texts", "docs.tsv", "-o", "docs.tsv"), "the output file is also an input"),
        (("qrels.txt", "one.run", "-o", "list.xlsx"), "the format of a result"),
        (("qrels.txt", "--apply", "form.tsv"), "--apply requires an output file"),
        (("qrels.txt", "one.run", "--apply", "form.tsv", "-o", "new.qrels"), "cannot be combined with runs"),
        (("qrels.txt", "--apply", "docs.tsv", "-o", "new.qrels"), "no column query_id"),
        (("qrels.txt", "--apply", "docs.tsv", "-o", "qrels.txt"), "the output file is also an input"),
    ],
)
def test_refused(run: Callable[..., Ended], arguments: tuple[str, ...], said: str) -> None:
    done = run("review", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
