"""Each file in examples/ runs, on the sample, and comes to the numbers that it tells."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import notebooks
import pytest

from judged.pipelines import experiments

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *arguments: str) -> Any:
    return runpy.run_path(str(EXAMPLES / name))["main"](*arguments)


def test_all_are_tried() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    elsewhere = {"pipeline.py", "answerer.py", "answerer.toml"}  # see below, and tests of their pages
    assert names - elsewhere == {"course.py", "paper_table.py", "release_gate.py", "retriever.ipynb"}


def test_the_course_checks_its_own_numbers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lessons = runpy.run_path(str(EXAMPLES / "course.py"))
    score = lessons["Score"]
    with pytest.raises(ValueError, match=r"not 0\.4"):
        score("P@5", [0, 1, 0, 1, 1], "0.4").check()
    monkeypatch.setattr(sys, "argv", ["course.py", "3"])
    lessons["main"]()
    assert "2.2667 / 4 = 0.5667" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["course.py"])
    lessons["main"]()
    assert capsys.readouterr().out.count("In fact:") == len(lessons["LESSONS"])


def test_the_table_of_a_paper_marks_what_was_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("paper_table.py") is None
    table = capsys.readouterr().out
    rows = [line for line in table.splitlines() if " & 0." in line or "textbf" in line]
    assert len(rows) == 5
    assert [row.count("ddagger") for row in rows] == [0, 0, 0, 0, 2]  # tfidf, in nDCG@10 and AP


@pytest.mark.parametrize(("candidate", "code"), [("rrf", 0), ("tfidf", 1)])
def test_a_release_is_decided(candidate: str, code: int, tmp_path: Path) -> None:
    assert run("release_gate.py", candidate, str(tmp_path)) == code
    assert {path.name for path in tmp_path.iterdir()} == {"gate.md", "gate.xml", "report.html"}


def test_the_notebook_shows_what_it_gives() -> None:
    text = (EXAMPLES / "retriever.ipynb").read_text(encoding="utf-8")
    assert notebooks.run_notebook(text) == text, "run tools/notebooks.py"
    assert all(cell["outputs"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code" and cell["source"])


def test_a_learned_reranker_is_run_beside_what_it_reranks(tmp_path: Path) -> None:
    """It puts 50 documents in another order, and none in or out."""
    found = experiments.run(EXAMPLES / "rerank" / "plan.toml", tmp_path)
    assert found.failures == {}
    stages = [(stage.name, stage.parents) for stage in found.traces("reranked").stages]
    assert stages == [("sqlite", ()), ("reranked", ("sqlite",))]
    recall, at_ten = "R(rel=2)@50", "nDCG@10"
    assert found.scores.value(recall, "reranked") == found.scores.value(recall, "control")
    assert found.scores.value(at_ten, "reranked") != found.scores.value(at_ten, "control")


def test_answerers_are_run_behind_searches(tmp_path: Path) -> None:
    """What answers differ by is not the search, and what searches differ by is in both."""
    found = experiments.run(EXAMPLES / "answerer.toml", tmp_path)
    assert found.failures == {}
    assert found.responses is not None
    assert set(found.responses.run_names) == set(found.levels)
    control, other = found.scores.run_names[:2]
    assert found.levels[other]["generator"] == "answerer:overlap"
    assert found.scores.value("nDCG@10", control) == found.scores.value("nDCG@10", other)
    texts = [found.responses.of_run(name)["answers"]["text"].to_pylist() for name in (control, other)]
    assert texts[0] != texts[1]
    page = (EXAMPLES.parent / "docs" / "rag.md").read_text(encoding="utf-8")
    scores = experiments.load(tmp_path, "CitationRecall").scores
    for name, levels in found.levels.items():
        answerer = levels["generator"].partition(":")[2]
        values = [f"{scores.value(measure, name):.4f}" for measure in ("nDCG@10", "CitationRecall")]
        assert f"| {levels['engine']} | {answerer} | {' | '.join(values)} |" in page
