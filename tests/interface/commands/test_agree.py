"""`judged agree`: what it prints, and what it refuses."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

FILES = {
    "ann.qrels": "q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 0\nq2 0 d 1\n",
    "bob.qrels": "q1 0 a 2\nq1 0 b 1\nq1 0 c 1\nq2 0 a 0\n",
    "far.qrels": "q9 0 a 1\n",
    "good.run": "q1 Q0 a 1 3 t\nq1 Q0 c 2 2 t\nq2 Q0 a 1 1 t\n",
    "bad.run": "q1 Q0 b 1 3 t\nq2 Q0 a 1 1 t\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def test_two_judges(run: Callable[..., Ended]) -> None:
    done = run("agree", "ann.qrels", "bob.qrels")
    assert done.code == 0
    assert (
        done.out
        == """\
judge  other judge  topics  shared   same  kappa  linear  quadratic  alpha (ordinal)
ann    bob               2       4  0.750  0.636   0.714      0.800            0.790

ann \\ bob  0  1  2  all
0          1  1  0    2
1          0  1  0    1
2          0  0  1    1
all        1  2  1    4

over documents that both judges graded; [95% CI: jackknife over topics, adjusted for skewness]
"""
    )


def test_runs_and_topics(run: Callable[..., Ended]) -> None:
    done = run("agree", "one=ann.qrels", "two=bob.qrels", "--run", "good.run", "--run", "x=bad.run", "-m", "P@1",
               "--per-topic")  # fmt: skip
    assert "judge  other judge  measure  topics  runs" in done.out
    assert ["one", "two", "P@1", "2", "2", "-", "-", "-", "0", "0.5000"] in [line.split() for line in done.lines]
    assert "query_id  shared   same  distance    bias\nq1             3  0.667     0.333  +0.333\n" in done.out
    assert (
        done.lines[-1]
        == "over documents that both judges graded; [95% CI: jackknife over topics, adjusted for skewness]"
    )


def test_levels(run: Callable[..., Ended]) -> None:
    alike = run("agree", "ann.qrels", "bob.qrels", "--rel", "2", "--format", "json")
    made = json.loads(alike.out)
    assert (made["levels"], made["pairs"][0]["same"]) == ([2, 2], 1)
    named = json.loads(run("agree", "ann.qrels", "bob.qrels", "--rel", "bob=2", "--format", "json").out)
    assert named["levels"] == [None, 2]
    assert [row["count"] for row in named["grades"]] == [2, 0, 0, 1, 0, 0, 0, 1, 0]
    for given, message in (
        (["--rel", "high"], "--rel must be a grade, got 'high'"),
        (["--rel", "nan"], "--rel must be a grade, got 'nan'"),
        (["--rel", "1", "--rel", "ann=2"], "another --rel"),
        (["--rel", "eve=2"], "no judge 'eve'"),
    ):
        done = run("agree", "ann.qrels", "bob.qrels", *given)
        assert done.code == 2
        assert message in done.err


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    given = ("agree", "ann.qrels", "bob.qrels", "far.qrels", "--run", "good.run", "--run", "bad.run", "--per-topic")
    rows = list(csv.DictReader(run(*given, "--format", "csv").out.splitlines()))
    keys = ("judge", "other_judge", "query_id", "measure", "quantity")
    found = {tuple(row[key] for key in keys): row["value"] for row in rows}
    assert len(found) == len(rows)
    assert float(found["ann", "bob", "", "", "kappa"]) == pytest.approx(7 / 11)
    assert float(found["ann", "bob", "q1", "", "bias"]) == pytest.approx(1 / 3)
    assert found["ann", "far", "", "", "kappa"] == ""
    assert float(found["", "", "", "", "alpha"]) > 0.5
    assert ("nDCG@10", "tau") in {(row["measure"], row["quantity"]) for row in rows}
    markdown = run(*given, "--format", "markdown")
    assert markdown.out.startswith("| judge | other judge |")
    assert "2 of 3 pairs of judges share no judged document" in markdown.err
    assert run(*given, "--format", "latex").out.count(r"\begin{tabular}") == 4
    assert run(*given, "-o", "made.txt").out == ""
    assert (tmp_path / "made.txt").read_text().startswith("judge  other judge")
    assert run(*given, "-o", "ann.qrels").code == 2


def test_one_judge_is_not_enough(run: Callable[..., Ended]) -> None:
    done = run("agree", "ann.qrels")
    assert done.code == 2
    assert done.err.startswith("error: at least two judges are required, got 1. Fix: add another judge.")
