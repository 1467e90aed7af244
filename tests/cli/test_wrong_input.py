"""Files, names, and values that cannot be used: each is refused in one line that names it, and never called a bug."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import every_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

_LABEL: dict[str, Any] = {"query_id": "q1", "doc_id": "d1", "judge": "ann", "grade": 1, "kind": "human"}
_DOCUMENT = '{"trace_id": "t", "query_id": "q1", "stage": "s", "kind": "candidates", "documents": [{"id": "d", %s}]}'
_LONG = "a" * 300
_LABELS = [json.dumps({**_LABEL, name: ["x"]}) for name in _LABEL]
_LABELS.append(json.dumps({"query": ["red shoe"], "doc_id": "d1", "judge": "ann", "grade": 1}))
_COMPLETIONS = ("--endpoint", "endpoint.toml", "--yes", "--into", "qrels.txt")


@pytest.fixture
def refused(run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Give a function that runs a command which must refuse its input, and returns the one line that says why."""
    every_command.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)

    def message(*arguments: str) -> str:
        ended = run(*arguments)
        assert ended.code == 2, ended
        assert ended.err.startswith("error: "), ended.err
        assert ended.err.count("\n") == 1, ended.err
        return ended.err

    return message


@pytest.mark.parametrize(
    ("command", "name", "text", "reason"),
    [
        *(("labels import labels.db x.jsonl", "x.jsonl", label, "x.jsonl:1: ") for label in _LABELS),
        ("traces check x.jsonl", "x.jsonl", _DOCUMENT % f'"score": {"9" * 400}', "x.jsonl:1"),
        ("traces check x.jsonl", "x.jsonl", _DOCUMENT % '"rank": 1e999', "x.jsonl:1"),
        ("rag calibrate answers --people ann --labeled x", "x", "\udcff\udcfe", "this is UTF-16"),
        ("labels calibrate qrels.txt old.run --judge m=second.txt --labeled x", "x", "\udcc0", "not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_by_name(
    refused: Callable[..., str], tmp_path: Path, command: str, name: str, text: str, reason: str
) -> None:
    (tmp_path / name).write_text(text, errors="surrogateescape")
    message = refused(*command.split())
    assert f"error: {name}" in message
    assert reason in message


@pytest.mark.parametrize(
    "command",
    [
        (
            "rag",
            "nuggets",
            "bare",
            "--queries",
            "queries.jsonl",
            "--texts",
            "docs.jsonl",
            "--qrels",
            "second.txt",
            *_COMPLETIONS,
        ),
        ("rag", "correctness", "answers", "--queries", "queries.jsonl", *_COMPLETIONS),
        ("rag", "support", "answers", *_COMPLETIONS),
        ("traces", "runs", "--stage", "first=old.run", "--stage", "last=new.run", "--to", "qrels.txt/x"),
    ],
)
def test_a_folder_that_cannot_be_made_is_refused_by_name(refused: Callable[..., str], command: tuple[str, ...]) -> None:
    assert refused(*command).startswith(f"error: {command[-1]}: the file cannot be used")


@pytest.mark.parametrize(
    "command", ["online overview", "logs draft", "labels status", "labels calibrate", "labels calibrate qrels.txt"]
)
def test_a_name_longer_than_the_system_takes_is_refused(refused: Callable[..., str], command: str) -> None:
    more = ("old.run", "--labeled", _LONG) if command.endswith(".txt") else (_LONG,)
    assert refused(*command.split(), *more).startswith(f"error: {_LONG}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-", "-"),
            "error: standard input (-) can be used for one file only. Fix: replace every other - by a file name.\n",
        ),
        (("qrels.txt", "x="), "error: 'x=' has no file after '='. Fix: write NAME=FILE.\n"),
        (("a\nb", "old.run"), "error: a\\nb: there is no such file. Fix: check the path.\n"),
        (("--\rx", "old.run"), "error: No such option '--\\rx'. Fix: see 'judged evaluate --help'.\n"),
    ],
)
def test_names_that_name_nothing(refused: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert refused("evaluate", *arguments) == message


def test_a_language_without_its_library_is_refused_with_the_command_that_installs_it(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'judged[language]'" in refused(
        "slices", "qrels.txt", "old.run", "--queries", "queries.jsonl", "--by", "language"
    )


def test_a_damaged_store_of_labels_is_refused_by_name(refused: Callable[..., str], tmp_path: Path) -> None:
    data = (tmp_path / "labels.db").read_bytes()
    (tmp_path / "labels.db").write_bytes(data[:4096] + b"x" * (len(data) - 4096))
    assert refused("labels", "status", "labels.db").startswith("error: labels.db: the database is damaged")
    (tmp_path / "intact.db").write_bytes(data)
    with closing(sqlite3.connect(tmp_path / "intact.db")) as database, database:
        database.execute("UPDATE labels SET repeat = 'x'")
    assert refused("labels", "export", "intact.db", "-o", "x.csv").startswith("error: intact.db: the database is dam")
