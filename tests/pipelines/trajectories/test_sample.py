"""Trajectories of the sample: their rules, their chat log, and the numbers in the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judged.data import sample
from judged.pipelines.trajectories import Trajectories, read_trajectories, where
from judged.pipelines.trajectories.sample import sample_trajectories, write_sample_chat, write_sample_trajectories

README = (sample.FOLDER / "README.md").read_text(encoding="utf-8").partition("## Agents")[2].partition("\n## ")[0]
AGENTS = ("single", "rewriter", "persistent")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    path = tmp_path_factory.mktemp("sample") / "trajectories.jsonl"
    write_sample_trajectories(path)
    return read_trajectories(path)


def steps_by_trial(trajectories: Trajectories) -> dict[tuple[str, str, int], list[dict]]:
    steps: dict[tuple[str, str, int], list[dict]] = {}
    for step in trajectories["steps"].to_pylist():
        steps.setdefault((step["query_id"], step["run_id"], step["trial"]), []).append(step)
    return steps


def test_the_file_has_the_same_trials(read: Trajectories) -> None:
    trajectories = sample_trajectories()
    assert all(read[name].equals(trajectories[name]) for name in trajectories.tables)
    assert not read.notes
    assert read["trials"].num_rows == len(AGENTS) * 48 * 3


def test_the_chat_log_has_the_same_trials(read: Trajectories, tmp_path: Path) -> None:
    write_sample_chat(tmp_path / "chat.jsonl")
    chat, own = read_trajectories(tmp_path / "chat.jsonl", topics=sample.topics()), read.of_run("rewriter")
    for name in ("steps", "citations", "correctness"):
        assert chat[name].equals(own[name])
    columns = ["query_id", "run_id", "trial", "question", "status", "confidence", "tokens"]
    assert chat["trials"].select(columns).equals(own["trials"].select(columns))
    assert {note.rule for note in chat.notes} == {"repeated-questions"}


def test_agents_follow_their_rules(read: Trajectories) -> None:
    citations = {(row["query_id"], row["run_id"], row["trial"], row["doc_id"]) for row in read["citations"].to_pylist()}
    for trial, steps in steps_by_trial(read).items():
        searches = [step for step in steps if step["kind"] == "search"]
        opened = [step["documents"][0] for step in steps if step["kind"] == "open"]
        returned = {document for step in searches for document in step["documents"]}
        cited = {row[3] for row in citations if row[:3] == trial}
        assert 1 <= len(searches) <= {"single": 1, "rewriter": 5, "persistent": 8}[trial[1]]
        assert len(set(opened)) == len(opened)
        assert cited
        assert cited <= set(opened) <= returned
        if trial[1] == "rewriter":
            assert searches[0]["query"] not in [search["query"] for search in searches[1:]]


def test_trials_of_a_question_differ(read: Trajectories) -> None:
    """Otherwise variances between trials are zero, and pages show nothing."""
    steps = steps_by_trial(read)
    paths = {key: [(step["query"], step["documents"]) for step in value] for key, value in steps.items()}
    for run in AGENTS:
        differing = {q for q, name, trial in paths if name == run and paths[q, run, trial] != paths[q, run, 1]}
        assert len(differing) > 24


def test_the_readme_counts_right(read: Trajectories) -> None:
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in sample.qrels().table.to_pylist()}
    first = {(row["query_id"], row["run_id"], row["trial"]): row["doc_id"]
             for row in reversed(read["citations"].to_pylist())}  # fmt: skip
    verdicts = {(row["query_id"], row["run_id"], row["trial"]): row["verdict"] == "support"
                for row in read["correctness"].to_pylist()}  # fmt: skip
    assert verdicts == {key: grades.get((key[0], doc_id), 0) >= 2 for key, doc_id in first.items()}
    for run in AGENTS:
        right = sum(value for key, value in verdicts.items() if key[1] == run)
        assert re.search(rf"`{run}` \|.*\| {right} of 144 \|", README)
    unjudged = sum((key[0], doc_id) not in grades for key, doc_id in first.items())
    assert f"{unjudged} answers name a document" in " ".join(README.split())


def test_evidence_is_lost_at_most_stages(read: Trajectories) -> None:
    """The sample shows what an agent does wrong: every kind of loss that a program without failures can have."""
    parts = {part.name for part in where(read, sample.qrels(), rel=2).parts if part.trials}
    assert {"looped", "stopped", "queries", "opened", "cited", "answer"} <= parts
