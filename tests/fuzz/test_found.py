"""Damaged files that were once read wrong, or refused without their name: what the fuzz found, at its smallest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fuzz.cases import run
from fuzz.workers import OF
from judged.data import files
from judged.errors import InputError
from judged.judging import judge_list

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.readers import Reader

_STAGE = {"trace_id": "t", "query_id": "q1", "stage": "s", "kind": "candidates", "documents": ["d1"]}
_SUPPORT = {"topic_id": "1", "run_id": "r", "sentences": [{"sentenceID": 0, "text": "x", "citations": []}]}
_TREC = {"topic_id": "1", "run_id": "r", "references": ["d1"], "answer": [{"text": "x", "citations": [[]]}]}
_NO_LIST = """
[queries.columns]
query_id = "id"
time = "t"
query = "q"
hit_ids = { path = "hits", optional = true }
[events]
each = { path = "clicked", optional = true }
[events.columns]
query_id = "id"
time = "t"
action = { value = "click" }
object_id = "@"
"""
_FOUND: dict[str, list[tuple[str, str, str]]] = {
    "labels": [
        ("topics of a list", ".json", '[{"query_id": "q1", "doc_id": "d1"}, -1]'),
        ("labels into a store", ".csv", "query,docid,rating\nred\0shoe,d1,1\n"),
        ("labels", ".jsonl", '{"query_id": "q1", "doc_id": "d1", "grade": {"a": 1}}'),
        ("endpoint", ".toml", 'base_url = "x"\nmodel = "m"\n'),
    ],
    "traces": [
        ("stages", ".jsonl", json.dumps({**_STAGE, "parents": 5})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "query": "\ud800"})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "documents": [{"id": "d", "score": 10**399}]})),
    ],
    "rag": [
        ("answers: trec rag", ".jsonl", json.dumps(_TREC)),
        ("answers: trec rag", ".jsonl", json.dumps({**_TREC, "references": None})),
        ("answers: support", ".jsonl", json.dumps({**_SUPPORT, "sentences": None})),
    ],
    "saved": [
        ("propensities", ".json", '{"curves": []}'),
        ("propensities", ".csv", "rank,value\n1,1\n1e999,0.5\n"),
        ("propensities", ".csv", "rank,value\n1,1\n999999999999,0.5\n"),
        ("results/plan.json", ".json", '{"configurations": [{"name": "a", "key": "../x", "levels": {}}]}'),
        ("results/plan.json", ".json", "[" * 100_000),
    ],
    "logs": [("a mapping", ".toml", _NO_LIST)],
}


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Reader]:
    """Return the readers by their kind and name."""
    made = ((of, OF[of].readers(tmp_path_factory.mktemp(of))) for of in _FOUND)
    return {(of, reader.name): reader for of, known in made for reader in known}


@pytest.mark.parametrize(
    ("of", "name", "ending", "text"), [(of, *case) for of, cases in _FOUND.items() for case in cases]
)
def test_what_was_found_stays_fixed(
    readers: dict[tuple[str, str], Reader], tmp_path: Path, of: str, name: str, ending: str, text: str
) -> None:
    path = tmp_path / f"damaged{ending}"
    path.write_text(text)
    outcome = run(readers[of, name], path)
    assert outcome.kind != "wrong", outcome.why


def test_a_long_line_is_refused_in_the_middle_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"short\n" + b"x" * 5000 + b"\nend\n")
    with pytest.raises(InputError, match=r"long.txt:2: a line of more than 1,000 bytes"):
        list(files.blocks(path, 64, longest=1000))
    assert b"".join(files.blocks(path, 64, longest=6000)) == path.read_bytes()


@pytest.mark.parametrize("grades", [10, "210"])
def test_a_list_of_grades_must_be_a_list(grades: Any) -> None:
    with pytest.raises(InputError, match="grades must be a list of grades, got"):
        judge_list(grades)
