"""Generators: tables of their answers, and their costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.data.texts import Text
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.rag.generation import Generated, Passage, respond, tables_of
from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.responses import write_responses

PASSAGES = [Passage("a", "A", "One."), Passage("b", "B", "Two.")]
TEXTS = {"a": Text("A", "One."), "b": Text("B", "Two."), "c": Text("C", "Three.")}


@pytest.mark.parametrize(
    ("output", "sentences", "cited"),
    [
        ("Use a [1]. And b. [2]", ["Use a.", "And b."], [(1, "a"), (2, "b")]),
        ("Use a. [1][2] Then stop.", ["Use a.", "Then stop."], [(1, "a"), (1, "b")]),
        ("Use os.path, e.g. for b [2, 1].", ["Use os.path, e.g. for b."], [(1, "b"), (1, "a")]),
        (["Use a, say. So it is [1]", "  ", "Then"], ["Use a, say. So it is", "Then"], [(1, "a")]),
        ("Twice [1] [1]. None [0] [3].", ["Twice.", "None."], [(1, "a"), (2, "[0]"), (2, "[3]")]),
        ("a[1] = 2 is code.", ["a = 2 is code."], [(1, "a")]),
        (None, [], []), ("", [], []), ([], [], []),
    ],
)  # fmt: skip
def test_answers_are_split_into_tables(output: Any, sentences: list[str], cited: list[tuple[int, str]]) -> None:
    tables = tables_of(output, PASSAGES)
    assert [row["text"] for row in tables["sentences"]] == sentences
    assert [(row["sentence"], row["doc_id"]) for row in tables["citations"]] == cited
    assert tables["answers"] == [{"text": " ".join(sentences), "abstained": not sentences}]
    assert [row["doc_id"] for row in tables["context"]] == ["a", "b"]


def test_outputs_without_text_raise() -> None:
    with pytest.raises(InputError, match="system, topic q"):
        tables_of([1], PASSAGES, "system, topic q")  # type: ignore[list-item]


def test_generators_are_called_with_the_top_documents(tmp_path: Path) -> None:
    calls: list[tuple[str, list[str]]] = []
    ticks = iter(range(100))

    def count_tokens(query: str, passages: list[Passage]) -> Generated:
        calls.append((query, [passage.doc_id for passage in passages]))
        return Generated("Yes [1]." if passages else None, 7, 2)

    def abstain(_query: str, _passages: list[Passage]) -> None: ...

    run = {"q1": {"b": 2.0, "a": 2.0, "c": 9.0}, "q2": {"a": 1.0}}
    queries = Topics.of({"q1": "one?", "q2": "two?", "q3": "three?"})
    generation = respond({"x": count_tokens, "y": abstain}, queries, run, TEXTS, cutoff=2,
                   clock=lambda: next(ticks))  # fmt: skip
    assert calls == [("one?", ["c", "b"]), ("two?", ["a"]), ("three?", [])]  # ties in the order of trec_eval
    answers = generation.responses["answers"].to_pylist()
    assert [(row["query_id"], row["run_id"], row["abstained"]) for row in answers] == [
        ("q1", "x", False), ("q2", "x", False), ("q3", "x", True), ("q1", "y", True), ("q2", "y", True),
        ("q3", "y", True),
    ]  # fmt: skip
    assert generation.costs["x"] == {"answer_ms": 1000.0, "tokens_in": 7.0, "tokens_out": 2.0}
    assert generation.costs["y"]["tokens_in"] is None
    write_responses(generation.responses, tmp_path / "new")
    loaded = read_responses(tmp_path / "new")
    for name in ("answers", "sentences", "context", "citations"):
        order = [(column, "ascending") for column in loaded[name].column_names]
        assert loaded[name].sort_by(order).equals(generation.responses[name].sort_by(order))
