"""`judged disagree`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, early, many, queries = "", "", "", ""
    for at in range(12):
        topic = f"q{at:02}"
        qrels += "".join(f"{topic} 0 {doc} {grade}\n" for doc, grade in {"a": 1, "b": 1, "c": 1, "n": 0}.items())
        early += f"{topic} Q0 a 1 2 t\n{topic} Q0 n 2 1 t\n"
        ranked = "nabc" if at < 9 else "an"
        many += "".join(f"{topic} Q0 {doc} 1 {-rank} t\n" for rank, doc in enumerate(ranked))
        queries += json.dumps({"query_id": topic, "text": f"cats {at}", "kind": "x" if at < 10 else "y"}) + "\n"
    texts = {"qrels.txt": qrels, "early.run": early, "many.run": many, "queries.jsonl": queries}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


ARGUMENTS = ("disagree", "qrels.txt", "early.run", "many.run", "-m", "RR", "-m", "R@4")


def test_signs_causes_and_reasons(run: Callable[..., Ended]) -> None:
    done = run(*ARGUMENTS, "--queries", "queries.jsonl", "--by", "kind", "--limit", "1")
    assert done.code == 0
    assert "RR prefers early to many by 0.3750" in done.out
    assert "because of at most 9 topics" in " ".join(done.out.split())
    assert [line.split() for line in done.lines if line.startswith("RR down")] == [["RR", "down", "9", "0", "0", "9"]]
    assert "== q00: cats 0 ==" in done.lines
    assert "RR depends only on the" in done.out
    assert [line.split()[-4:-2] for line in done.lines if line.startswith("kind=x")] == [["/", "many"]]
    assert [line for line in done.lines if line.startswith("kind=y") and "too few topics" in line]


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    made = json.loads(run(*ARGUMENTS, "--format", "json").out)
    assert made["opposite"] is True
    assert made["reasons"][0]["documents"] == ["a", "b", "c"]
    assert run(*ARGUMENTS, "-o", "out.csv").out == ""
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows[0].startswith("query_id,query,RR early,RR many,RR difference,R@4 early,R@4 many")
    assert len(rows) == 13


def test_refused(run: Callable[..., Ended]) -> None:
    one = run("disagree", "qrels.txt", "early.run", "many.run", "-m", "RR")
    assert (one.code, "two measures are required, got 1" in one.err) == (2, True)
    alone = run("disagree", "qrels.txt", "early.run")
    assert (alone.code, "at least two runs are required" in alone.err) == (2, True)
    by = run(*ARGUMENTS, "--by", "kind")
    assert (by.code, "no attribute 'kind'" in by.err or "pass the texts of the topics" in by.err) == (2, True)
    bounds = run(*ARGUMENTS, "--ties", "bounds")
    assert (bounds.code, "'bounds' is not one of" in bounds.err) == (2, True)
    pair = run(*ARGUMENTS, "--pair", "early", "late")
    assert (pair.code, "no run 'late'" in pair.err) == (2, True)


def test_slices_are_asked_for_as_elsewhere(run: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("query_id,side\n" + "".join(f"q{at:02},{at % 2}\n" for at in range(12)))
    (tmp_path / "own.toml").write_text("[[slice]]\nname = 'late'\nexpression = 'side == 1'\nmin_topics = 2\n")
    done = run(*ARGUMENTS, "--attributes", "known.csv", "--by", "side,relevant", "--slices", "own.toml")
    assert [line.split()[:2] for line in done.lines if line.startswith(("side=", "relevant=", "late"))] == [
        ["side=0", "6"], ["side=1", "6"], ["relevant=3", "12"], ["late", "6"],
    ]  # fmt: skip
    told = run(*ARGUMENTS, "--by", "first_relevant", "--pair", "many", "early")
    assert "first_relevant is computed from many. On topics where many scores low" in told.err
