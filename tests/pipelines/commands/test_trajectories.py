"""`judged trajectories`: names of systems, kinds of tools, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

TRIAL = {"query_id": "q1", "steps": [{"kind": "search", "documents": ["d1"]}], "answer": "Ada"}
LOG = {
    "messages": [
        {"role": "user", "content": "Who  was it?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "kb", "arguments": '{"q": "who"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": '[{"key": "k1", "id": "x"}]'},
        {"role": "assistant", "content": "Ada"},
    ]
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text(f"{json.dumps(TRIAL)}\n")
    Path("log.json").write_text(json.dumps(LOG))
    for name in ("first", "second"):
        Path(name).mkdir()
        Path(name, "1.json").write_text(json.dumps(LOG, indent=2))


def tables(ended: Ended) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    return document["systems"], document["steps"]


def test_names_of_systems(run: Callable[..., Ended]) -> None:
    paths = ("runs.jsonl", "log.json", "first", "other=second", "again=runs.jsonl")
    systems, _ = tables(run("trajectories", "check", *paths, "--format", "json"))
    assert [(row["system"], row["n"], row["trials"]) for row in systems] == [
        ("agent", 2, 2), ("first", 1, 1), ("other", 1, 1), ("again", 1, 1),
    ]  # fmt: skip


def test_tools_and_ids(run: Callable[..., Ended]) -> None:
    Path("topics.tsv").write_text("t7\twho was it?\n")
    options = ("--tool", "kb=search", "--id-from", "key", "--topics", "topics.tsv", "--format", "json")
    _, kinds = tables(run("trajectories", "check", "log.json", *options))
    assert [(row["kind"], row["tool"], row["documents"]) for row in kinds[:1]] == [("search", "kb", 1)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("log.json", "--tool", "kb"),
        ("log.json", "--tool", "kb=find"),
        ("missing.json",),
        ("a=log.json", "a=runs.jsonl"),
        ("runs.jsonl", "-o", "runs.jsonl"),
    ],
)
def test_invalid_input(arguments: tuple[str, ...], run: Callable[..., Ended]) -> None:
    assert run("trajectories", "check", *arguments).code == 2
    assert Path("runs.jsonl").read_text() == f"{json.dumps(TRIAL)}\n"


@pytest.mark.parametrize(("rel", "new"), [("1", 1), ("2", 0)])
def test_explain_counts_documents_of_the_lowest_relevant_grade(rel: str, new: int, run: Callable[..., Ended]) -> None:
    Path("qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 3\n")
    options = ("--qrels", "qrels.txt", "-t", "q1", "--rel", rel, "--format", "json")
    ended = run("trajectories", "explain", "runs.jsonl", *options)
    assert ended.code == 0, ended.err
    assert [step["new"] for step in json.loads(ended.out)["steps"]] == [new]


def test_slices_require_attributes(run: Callable[..., Ended]) -> None:
    Path("attributes.csv").write_text("query_id,kind\nq1,law\n")
    assert run("trajectories", "evaluate", "runs.jsonl", "--by", "kind").code == 2
    sliced = run("trajectories", "evaluate", "runs.jsonl", "--by", "kind", "--attributes", "attributes.csv")
    assert "kind=law" in sliced.out


@pytest.mark.parametrize("name", ["runs.jsonl", "qrels.json", "attributes.csv"])
def test_inputs_are_not_overwritten(name: str, run: Callable[..., Ended]) -> None:
    Path("attributes.csv").write_text("query_id,kind\nq1,law\n")
    Path("qrels.json").write_text('{"q1": {"d1": 1}}')
    inputs = ("runs.jsonl", "--qrels", "qrels.json", "--attributes", "attributes.csv", "--by", "kind")
    result = run("trajectories", "evaluate", *inputs, "-o", name, "--format", "csv")
    assert (result.code, "also an input" in result.err) == (2, True)
