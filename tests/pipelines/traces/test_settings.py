"""Settings of pipelines: as text by path, from traces and files, and their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.pipelines.traces import Span
from judged.pipelines.traces.settings import changed_settings, flatten_settings, read_settings, recorded_settings

if TYPE_CHECKING:
    from pathlib import Path

NESTED: dict[str, Any] = {"bm25": {"k1": 1.2, "fields": ["title"], "analyzer": "english"}, "deep": {"a": {"b": None}}}
FLAT = {"bm25.k1": "1.2", "bm25.fields": '["title"]', "bm25.analyzer": "english", "deep.a.b": "null"}


def test_nested_settings_have_paths() -> None:
    assert flatten_settings(NESTED) == FLAT
    assert flatten_settings({"empty": {}}) == {"empty": "{}"}


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "access_token", "token", "client_secret"])
def test_secrets_are_hidden(name: str) -> None:
    assert flatten_settings({"engine": {name: "hunter2"}}) == {f"engine.{name}": "(hidden)"}


@pytest.mark.parametrize("name", ["max_tokens", "tokenizer", "passages", "keys"])
def test_other_names_are_shown(name: str) -> None:
    assert flatten_settings({name: 5}) == {name: "5"}


def test_files_and_mappings_have_the_same_settings(tmp_path: Path) -> None:
    shown = {name: value for name, value in FLAT.items() if name != "deep.a.b"}  # TOML has no null
    (tmp_path / "a.toml").write_text('[bm25]\nk1 = 1.2\nfields = ["title"]\nanalyzer = "english"\n')
    (tmp_path / "a.json").write_text('{"bm25": {"k1": 1.2, "fields": ["title"], "analyzer": "english"}}')
    (tmp_path / "a.conf").write_text('\n {"bm25": {"k1": 1.2, "fields": ["title"], "analyzer": "english"}}')
    for name in ("a.toml", "a.json", "a.conf"):
        assert read_settings(tmp_path / name) == shown
    assert read_settings({"bm25": NESTED["bm25"]}) == shown


@pytest.mark.parametrize(("name", "text"), [("a.json", "[1]"), ("a.json", "{"), ("a.toml", "x"), ("none", None)])
def test_files_without_settings_are_refused(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_settings(tmp_path / name)


def test_recorded_settings_include_the_structure_and_count_values() -> None:
    spans = [
        Span("t", "q1", "rerank", "rerank", ("bm25",), (), model="v1", facts={"top_k": 5, "x": 1}, settings={"a": 1}),
        Span("t", "q2", "rerank", "rerank", ("bm25",), (), model="v2", facts={"top_k": 5}, settings={"a": 1}),
        Span("t", "q3", "rerank", "rerank", ("bm25",), (), model="v2", facts={"top_k": 5}, settings={"a": 1}),
    ]
    assert recorded_settings(spans) == {
        "rerank.kind": "rerank", "rerank.input": '["bm25"]', "rerank.model": "v2 (2 queries); v1 (1 query)",
        "rerank.top_k": "5", "rerank.a": "1",
    }  # fmt: skip


def test_only_different_settings_are_changes() -> None:
    rows = changed_settings({"a": "1", "b": "2", "gone": "x"}, {"a": "1", "b": "3", "new": "y"})
    assert [tuple(row) for row in rows] == [("b", "2", "3"), ("gone", "x", None), ("new", None, "y")]
    assert changed_settings(FLAT, dict(reversed(FLAT.items()))) == ()
