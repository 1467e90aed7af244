"""`judged rag`: answers scored and gated from files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import judged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = [f"q{at:02d}" for at in range(12)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of answers: the new system finds the same, and its citations no longer support what it says."""
    for run, verdict in (("old", "support"), ("new", "not")):
        own = {"run_id": run}
        tables: dict[str, list[dict[str, Any]]] = {
            "answers": [{"query_id": topic, **own, "text": "It is 7."} for topic in TOPICS],
            "context": [{"query_id": topic, **own, "doc_id": doc} for topic in TOPICS for doc in ("a", "b")],
            "citations": [{"query_id": topic, **own, "sentence": 1, "doc_id": "a"} for topic in TOPICS],
            "support": [
                {"query_id": topic, **own, "sentence": 1, "doc_id": "a", "verdict": verdict} for topic in TOPICS
            ],
        }
        (tmp_path / run).mkdir()
        for name, rows in tables.items():
            (tmp_path / run / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "qrels.txt").write_text("".join(f"{topic} 0 a 1\n{topic} 0 z 1\n" for topic in TOPICS))
    checks = (("R@100", 0.05), ("SupportP", 0.05))
    (tmp_path / "gate.toml").write_text(
        "".join(f'[[check]]\nmeasure = "{name}"\nmargin = {margin}\n' for name, margin in checks)
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recall_of_the_context_may_not_fall_and_support_may_not_fall(folder: Path, run: Callable[..., Ended]) -> None:
    done = run("rag", "gate", "old", "new", "--qrels", "qrels.txt", "--config", "gate.toml", "--json", "gate.json")
    assert done.code == 1
    checks = {row["measure"]: row["status"] for row in json.loads((folder / "gate.json").read_text())["checks"]}
    assert checks == {"R@100": "pass", "SupportP": "fail"}
    assert run("rag", "gate", "old", "again=old", "--qrels", "qrels.txt", "--config", "gate.toml").code == 0
    assert run("rag", "gate", "old", "new", "--qrels", "qrels.txt", "-m", "R@100", "--margin", "0.05").code == 0


def test_scores_of_several_folders_are_kept_and_gated(folder: Path, run: Callable[..., Ended]) -> None:
    names = ("-m", "SupportP,R@100")
    done = run("rag", "evaluate", "old", "second=new", *names, "--qrels", "qrels.txt", "-o", "scores.parquet")
    assert done.code == 0
    scores = judged.Scores.load(folder / "scores.parquet")  # type: ignore[attr-defined]
    assert scores.aggregate() == {"old": {"SupportP": 1.0, "R@100": 0.5}, "second": {"SupportP": 0.0, "R@100": 0.5}}
    assert scores.gate("old", "second", measures="SupportP", margin=0.05).exit_code == 1
    assert run("rag", "explain", "old", "-t", "q00", "-m", "SupportP").code == 0


def test_two_systems_of_one_name_are_told_how_to_be_named(folder: Path, run: Callable[..., Ended]) -> None:
    assert folder.is_dir()
    done = run("rag", "evaluate", "old", "old")
    assert done.code == 2
    assert "Fix: name one of them: OTHER=PATH" in done.err


def test_a_measure_of_answers_is_no_measure_of_runs(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "a.run").write_text("q00 Q0 a 1 1.0 x\n")
    done = run("evaluate", "qrels.txt", "a.run", "-m", "NuggetRecall")
    assert done.code == 2
    assert "judged rag evaluate RESPONSES" in done.err


def test_every_command_takes_several_folders_and_files_that_go_together(
    folder: Path, run: Callable[..., Ended]
) -> None:
    done = run("rag", "waterfall", "old", "second=new", "--qrels", "qrels.txt", "--format", "json")
    assert {row["run"] for row in json.loads(done.out)["steps"]} == {"old", "second"}
    assert run("rag", "check", "old", "second=new", "--qrels", "qrels.txt").code == 0
    sentence = {"sentenceID": 0, "text": "It is 7.", "citations": [{"reference": "a", "support": 2}]}
    for name, record in {
        "answers": {"topic_id": "q00", "run_id": "r", "references": ["a"], "answer": [{"text": "It is 7."}]},
        "support": {"topic_id": "q00", "run_id": "r", "sentences": [sentence]},
    }.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    for given in (("answers.jsonl", "support.jsonl"), ("answers.jsonl", "support.jsonl", "old")):
        done = run("rag", "evaluate", *given, "-m", "SupportP", "--format", "json")
        rules = {note["rule"] for note in json.loads(done.out)["notes"]}
        assert (done.code, "odd-records" in rules) == (0, True)  # notes of reading are passed on
