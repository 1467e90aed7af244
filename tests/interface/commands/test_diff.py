"""`judged diff`: what it prints, and what it refuses."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

QRELS = "q1 0 a 3\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\n"
OLD = "q1 Q0 b 1 3 t\nq1 Q0 x 2 2 t\nq1 Q0 a 3 1 t\nq2 Q0 a 1 2 t\nq2 Q0 x 2 1 t\n"
NEW = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 c 3 1 t\nq2 Q0 x 1 2 t\nq2 Q0 a 2 1 t\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"qrels.txt": QRELS, "old.run": OLD, "new.run": NEW, "queries.tsv": "q1\tlist of cats\nq2\tmore\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with gzip.open(tmp_path / "docs.jsonl.gz", "wt") as file:
        file.write('{"doc_id": "a", "title": "All cats"}\n{"doc_id": "b", "title": "Some cats"}\n')
    monkeypatch.chdir(tmp_path)


def test_two_columns_with_queries_and_titles(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("diff", "qrels.txt", "old.run", "new.run", "-t", "q1", "-m", "nDCG@3")
    done = run(*arguments, "--queries", "queries.tsv", "--texts", "docs.jsonl.gz")
    assert done.code == 0
    assert "== topic q1: list of cats ==" in done.lines
    column = (80 - 3) // 2
    head = next(at for at, line in enumerate(done.lines) if line.startswith("old nDCG@3 "))
    assert done.lines[head + 1 : head + 4] == [
        f"{'1    1  b  Some cats':<{column}} │ 1 ↑2 3  a  All cats",
        f"{'2 x  -  x':<{column}} │ 2 ↓1 1  b  Some cats",
        f"{'3    3  a  All cats':<{column}} │ 3 +  0  c",
    ]
    assert "\x1b" not in done.out  # no terminal, no color
    plain = run(*arguments, "--ascii")
    assert plain.out.isascii()
    assert "1 ^2 3  a" in plain.out


def test_without_a_topic_both_extremes(run: Callable[..., Ended]) -> None:
    done = run("diff", "qrels.txt", "old.run", "new.run", "--limit", "1")
    assert [line for line in done.lines if line.startswith("== topic ")] == ["== topic q1 ==", "== topic q2 =="]
    assert "new is better than old on 1 of 2 topics, worse on 1" in done.out


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    arguments = ("diff", "qrels.txt", "old.run", "new.run", "-m", "nDCG@3", "-m", "RR")
    made = json.loads(run(*arguments, "--format", "json").out)
    assert list(made["runs"]) == [made["first"], made["second"]] == ["old", "new"]
    assert [made["scores"][1][name] for name in ("first", "second", "difference")] == [1.0, 1.0, 0.0]
    assert run(*arguments, "-o", "out.csv").out == ""
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows[0] == (
        "query_id,doc_id,first_rank,second_rank,moved,places,grade,contribution to nDCG@3,contribution to RR,text"
    )
    assert rows[1].startswith("q1,a,3,1,up,2,3.0,0.4")
    assert "### topic q1" in run(*arguments, "--format", "markdown").out


def test_refused(run: Callable[..., Ended]) -> None:
    unknown = run("diff", "qrels.txt", "old.run", "new.run", "-t", "q7")
    assert unknown.code == 2
    assert "the qrels have no topic 'q7'" in unknown.err
    over = run("diff", "qrels.txt", "old.run", "new.run", "-o", "old.run", "--format", "csv")
    assert over.code == 2
    assert "the output file is also an input" in over.err


def test_a_run_that_lacks_topics_is_remarked_on(run: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "short.run").write_text("q1 Q0 a 1 3 t\n")
    done = run("diff", "qrels.txt", "old.run", "short.run")
    assert "warning: short: no documents returned for 1 of 2 topics (score 0): q2\n" in done.err
