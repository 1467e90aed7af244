"""`judged rag` scores and gates answers from files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import judged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = [f"q{i:02d}" for i in range(12)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of answers. The new system has the same context, but its citations do not support its answers."""
    for run, verdict in (("old", "support"), ("new", "not")):
        run_field = {"run_id": run}
        tables: dict[str, list[dict[str, Any]]] = {
            "answers": [{"query_id": topic, **run_field, "text": "It is 7."} for topic in TOPICS],
            "context": [{"query_id": topic, **run_field, "doc_id": doc} for topic in TOPICS for doc in ("a", "b")],
            "citations": [{"query_id": topic, **run_field, "sentence": 1, "doc_id": "a"} for topic in TOPICS],
            "support": [
                {"query_id": topic, **run_field, "sentence": 1, "doc_id": "a", "verdict": verdict} for topic in TOPICS
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


def test_gate_checks_recall_of_the_context_and_support(folder: Path, run: Callable[..., Ended]) -> None:
    gate = run("rag", "gate", "old", "new", "--qrels", "qrels.txt", "--config", "gate.toml", "--json", "gate.json")
    assert gate.code == 1
    checks = {row["measure"]: row["status"] for row in json.loads((folder / "gate.json").read_text())["checks"]}
    assert checks == {"R@100": "pass", "SupportP": "fail"}
    assert run("rag", "gate", "old", "again=old", "--qrels", "qrels.txt", "--config", "gate.toml").code == 0
    assert run("rag", "gate", "old", "new", "--qrels", "qrels.txt", "-m", "R@100", "--margin", "0.05").code == 0


def test_scores_of_several_folders_are_saved_and_gated(folder: Path, run: Callable[..., Ended]) -> None:
    measure_options = ("-m", "SupportP,R@100")
    evaluation = run(
        "rag", "evaluate", "old", "second=new", *measure_options, "--qrels", "qrels.txt", "-o", "scores.parquet"
    )
    assert evaluation.code == 0
    scores = judged.Scores.load(folder / "scores.parquet")  # type: ignore[attr-defined]
    assert scores.aggregate() == {"old": {"SupportP": 1.0, "R@100": 0.5}, "second": {"SupportP": 0.0, "R@100": 0.5}}
    assert scores.gate("old", "second", measures="SupportP", margin=0.05).exit_code == 1
    assert run("rag", "explain", "old", "-t", "q00", "-m", "SupportP").code == 0


def test_duplicate_system_names_are_rejected_with_a_fix(folder: Path, run: Callable[..., Ended]) -> None:
    assert folder.is_dir()
    evaluation = run("rag", "evaluate", "old", "old")
    assert evaluation.code == 2
    assert "Fix: rename one of them: OTHER=PATH" in evaluation.err


def test_a_measure_of_answers_is_rejected_for_runs(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "a.run").write_text("q00 Q0 a 1 1.0 x\n")
    evaluation = run("evaluate", "qrels.txt", "a.run", "-m", "NuggetRecall")
    assert evaluation.code == 2
    assert "judged rag evaluate RESPONSES" in evaluation.err


def test_commands_accept_several_folders_and_files(folder: Path, run: Callable[..., Ended]) -> None:
    output = run("rag", "waterfall", "old", "second=new", "--qrels", "qrels.txt", "--format", "json")
    assert {row["run"] for row in json.loads(output.out)["steps"]} == {"old", "second"}
    assert run("rag", "check", "old", "second=new", "--qrels", "qrels.txt").code == 0
    sentence = {"sentenceID": 0, "text": "It is 7.", "citations": [{"reference": "a", "support": 2}]}
    for name, record in {
        "answers": {"topic_id": "q00", "run_id": "r", "references": ["a"], "answer": [{"text": "It is 7."}]},
        "support": {"topic_id": "q00", "run_id": "r", "sentences": [sentence]},
    }.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    for paths in (("answers.jsonl", "support.jsonl"), ("answers.jsonl", "support.jsonl", "old")):
        output = run("rag", "evaluate", *paths, "-m", "SupportP", "--format", "json")
        rules = {note["rule"] for note in json.loads(output.out)["notes"]}
        assert (output.code, "irregular-records" in rules) == (0, True)  # includes notes from reading


def test_commands_find_ids_of_questions_and_passages(tmp_path: Path, run: Callable[..., Ended]) -> None:
    files = {
        "a.jsonl": {"q": "When?", "out": "At 7.", "ctx": ["At 7 or 8."], "gold": "7", "toxicity": 0.5},
        "queries.jsonl": {"query_id": "q1", "text": "when?"},
        "texts.jsonl": {"doc_id": "d1", "text": "At 7 or 8."},
    }
    for name, record in files.items():
        (tmp_path / name).write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    records, qrels = str(tmp_path / "a.jsonl"), str(tmp_path / "qrels.txt")
    ids = ("--queries", str(tmp_path / "queries.jsonl"), "--texts", str(tmp_path / "texts.jsonl"))
    options = (*ids, "--columns", "answer=out,context=ctx")
    evaluation = run("rag", "evaluate", records, *options, "--qrels", qrels, "--format", "json")
    result = json.loads(evaluation.out)
    values = {row["measure"]: row["value"] for row in result["results"]}
    assert (values["SetR"], values["TokenF1"], values["LexicalSupport"]) == (1, 2 / 3, 1)
    assert result["tool_scores"] == [{"run": "a", "name": "toxicity", "mean": 0.5, "answers": 1}]
    assert "Correctness" in [row["measures"] for row in result["unavailable"]]
    assert run("rag", "check", records, *options, "--qrels", qrels).code == 0
    assert run("rag", "explain", records, *options, "-t", "q1", "-m", "TokenF1").code == 0
    gate = ("rag", "gate", f"a={records}", f"b={records}", *options, "-m", "TokenF1", "--margin", "0.1")
    assert run(*gate).code == 0
    assert "no verdict" in run("rag", "calibrate", records, *options, "--people", "x").err
