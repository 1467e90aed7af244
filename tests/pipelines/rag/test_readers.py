"""Formats of other tools: values that are read, invalid records, and notes about rows left out."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judged.errors import InputError
from judged.pipelines.rag.readers import read_responses, responses_of_traces
from judged.pipelines.rag.responses import Responses, write_responses
from judged.pipelines.traces.reading import read_traces

if TYPE_CHECKING:
    from pathlib import Path

TREC = {
    "metadata": {"team_id": "T", "narrative_id": "1", "run_id": "r"}, "references": ["d7", "d8"],
    "answer": [{"text": "Cats sleep.", "citations": [1, 0, 1]}, {"text": "A lot.", "citations": []}],
}  # fmt: skip
NUGGETS = {"query": "cats?", "qid": "1", "nuggets": [
    {"text": "cats sleep", "importance": "vital"}, {"text": "cats purr", "importance": "okay"}]}  # fmt: skip
ASSIGNMENTS = {"query": "cats?", "qid": "1", "run_id": "r", "answer_text": "Cats sleep. A lot.", "nuggets": [
    {"text": "cats purr", "importance": "okay", "assignment": "failed"},
    {"text": "cats sleep", "importance": "vital", "assignment": "partial_support"}]}  # fmt: skip
SUPPORT = {"topic_id": "1", "run_id": "r", "sentences": [
    {"sentenceID": 0, "text": "Cats sleep.", "citations": [
        {"citationID": 0, "reference": "d8", "support": "2"}, {"citationID": 1, "reference": "d7", "support": "-1"}]},
    {"sentenceID": 1, "text": "A lot.", "citations": []}]}  # fmt: skip
RAGAS = {"user_input": "Do  cats sleep?", "retrieved_contexts": ["Cats sleep.", "Dogs bark."],
         "response": "Yes. A lot.", "reference": "They do.", "faithfulness": 0.9,
         "reference_contexts": ["The right passage."]}  # fmt: skip
DEEPEVAL = {"input": "Do cats sleep?", "actual_output": "Yes.", "retrieval_context": ["Cats sleep."],
            "expected_output": "They do.", "context": ["The right passage."]}  # fmt: skip


def write_file(folder: Path, name: str, *records: Any) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def rows(responses: Responses, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in responses[table].to_pylist()]


def test_files_of_trec_rag_are_combined(tmp_path: Path) -> None:
    files = (("answers", TREC), ("nuggets", NUGGETS), ("assignments", ASSIGNMENTS), ("support", SUPPORT))
    responses = read_responses([write_file(tmp_path, f"{name}.jsonl", record) for name, record in files], judge="nist")
    assert rows(responses, "answers", "query_id", "run_id", "text") == [("1", "r", "Cats sleep. A lot.")]
    assert rows(responses, "citations", "sentence", "doc_id", "place") == [(1, "d8", 1), (1, "d7", 2)]
    assert responses["context"].num_rows == 0  # references are not the context
    assert rows(responses, "nuggets", "nugget_id", "text", "importance") == [
        ("1", "cats sleep", "vital"),
        ("2", "cats purr", "okay"),
    ]
    assert rows(responses, "assignments", "nugget_id", "verdict", "judge") == [
        ("2", "failed", "nist"),
        ("1", "partial", "nist"),
    ]
    assert rows(responses, "support", "sentence", "doc_id", "verdict") == [(1, "d8", "support"), (1, "d7", "failed")]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_of_files_does_not_matter(tmp_path: Path, order: tuple[int, int]) -> None:
    paths = [write_file(tmp_path, "answers.jsonl", TREC), write_file(tmp_path, "support.jsonl", SUPPORT)]
    responses = read_responses([paths[i] for i in order])
    assert sorted(rows(responses, "citations", "sentence", "doc_id")) == [(1, "d7"), (1, "d8")]
    assert len(responses) == 1


def test_the_context_of_exports_has_only_retrieved_passages(tmp_path: Path) -> None:
    for name, record in (("ragas", RAGAS), ("deepeval", DEEPEVAL)):
        responses = read_responses(
            write_file(tmp_path, f"{name}.jsonl", record), texts={"d1": "Cats sleep.", "d9": "Cats sleep."}
        )
        context = rows(responses, "context", "query_id", "run_id", "doc_id", "rank")
        assert context[0] == ("do cats sleep?", name, "d1", 1)
        assert "The right passage." not in responses["context"]["text"].to_pylist()
        assert rows(responses, "references", "text") == [("They do.",)]
        assert any("context" in str(note) and "not" in str(note) for note in responses.notes)
    with_topics = read_responses(tmp_path / "ragas.jsonl", topics={"q7": "do cats sleep?"})
    assert rows(with_topics, "sentences", "query_id", "sentence", "text") == [("q7", 1, "Yes."), ("q7", 2, "A lot.")]
    assert [doc for (doc,) in rows(with_topics, "context", "doc_id")] == [
        f"text-{sha256(text.encode()).hexdigest()[:12]}" for text in RAGAS["retrieved_contexts"]
    ]


@pytest.mark.parametrize("texts", [None, {"d1": "Cats sleep."}])
def test_ids_of_exports_have_priority_over_texts(tmp_path: Path, texts: dict[str, str] | None) -> None:
    record = {**RAGAS, "retrieved_context_ids": ["p7", 8], "reference_context_ids": ["p7"], "comment": "m"}
    responses = read_responses(write_file(tmp_path, "a.jsonl", record), texts=texts)
    assert rows(responses, "context", "doc_id", "text") == [("p7", "Cats sleep."), ("8", "Dogs bark.")]
    ids_only = {
        name: value for name, value in record.items() if name not in {"retrieved_contexts", "reference_contexts"}
    }
    without_texts = read_responses(write_file(tmp_path, "b.jsonl", ids_only))
    assert rows(without_texts, "context", "doc_id", "text") == [("p7", None), ("8", None)]
    for loaded in (responses, without_texts):
        notes = " ".join(map(str, loaded.notes))
        assert ("comment" in notes, "hash" in notes) == (True, False)
        assert rows(loaded, "reference_context", "query_id", "doc_id") == [("do cats sleep?", "p7")]
        assert rows(loaded, "tool_scores", "name", "score") == [("faithfulness", 0.9)]
    with pytest.raises(InputError) as caught:
        read_responses(
            write_file(tmp_path, "c.jsonl", RAGAS, {**record, "retrieved_context_ids": ["p7"], "user_input": "x"})
        )
    assert caught.value.line == 2


def test_parquet_and_json_of_exports(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([RAGAS]), tmp_path / "a.parquet")
    (tmp_path / "b.json").write_text(json.dumps([DEEPEVAL], indent=1), encoding="utf-8")
    assert read_responses(tmp_path / "a.parquet")["context"].num_rows == 2
    assert read_responses(tmp_path / "b.json")["context"].num_rows == 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**TREC, "answer": [{"text": "a", "citations": [2]}]}, "cites the reference with index 2, but there are 2"),
        ({**TREC, "answer": [{"text": "a", "citations": [True]}]}, "index or an id, got True"),
        ({**TREC, "answer": "Cats sleep."}, "must be a list"),
        ({**NUGGETS, "docid": "d1"}, "assignments of nuggets to documents"),
        ({**ASSIGNMENTS, "nuggets": [{"text": "a", "assignment": "supported"}]}, "unknown assignment 'supported'"),
        ({**SUPPORT, "sentences": [{"sentenceID": 0, "text": "a", "citations": [{"reference": "d", "support": "3"}]}]},
         "unknown support '3'"),
        ({**SUPPORT, "sentences": [{"sentenceID": "x", "text": "a"}]},
         "sentenceID must be a non-negative integer, got 'x'"),
        ({**SUPPORT, "sentences": [{"sentenceID": -1, "text": "a"}]},
         "sentenceID must be a non-negative integer, got -1"),
        ({**RAGAS, "user_input": [{"content": "hi"}, {"content": "Hi!"}]}, "question must be a text"),
    ],
)  # fmt: skip
def test_invalid_records_raise_with_their_line(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    first = TREC if "references" in record else record
    path = write_file(tmp_path, "a.jsonl", first, {**record, "metadata": {"narrative_id": "2"}})
    with pytest.raises(InputError, match=message) as caught:
        read_responses(path)
    assert caught.value.line == (2 if "references" in record else 1)


def test_two_answers_of_a_system_to_a_question_raise(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another row has") as caught:
        read_responses(write_file(tmp_path, "a.jsonl", RAGAS, {**RAGAS, "response": "No."}))
    assert caught.value.line == 2


def test_rows_without_an_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    responses = read_responses(write_file(tmp_path, "a.jsonl", RAGAS, {"user_input": "Do dogs?", "reference": "No."}))
    assert (len(responses), responses["references"].num_rows) == (1, 2)
    assert any("without an answer" in str(note) for note in responses.notes)


def test_traces_with_context_and_answer(tmp_path: Path) -> None:
    def span(name: str, number: int, parent: str, **attributes: Any) -> dict[str, Any]:
        times = {"start_time": f"2026-01-01T00:00:{number:02}Z", "end_time": f"2026-01-01T00:00:{number + 1:02}Z"}
        context = {"trace_id": "t", "span_id": str(number)}
        return {"name": name, "context": context, "parent_id": parent, "attributes": attributes, **times}

    kind = "openinference.span.kind"
    docs = {f"retrieval.documents.{i}.document.id": f"d{i}" for i in range(2)}
    spans = [
        span("rewrite", 1, "9", **{kind: "LLM", "output.value": "cats sleeping"}),
        span("search", 2, "9", **{kind: "RETRIEVER", "input.value": "cats sleeping", **docs}),
        span("write", 3, "9", **{kind: "LLM", "llm.output_messages.0.message.content": "They do."}),
        span("query", 9, "", **{kind: "CHAIN", "input.value": "Do cats sleep?"}),
    ]
    responses = read_responses(write_file(tmp_path, "spans.jsonl", *spans), texts={"d0": "Cats sleep."})
    assert rows(responses, "answers", "query_id", "text") == [("do cats sleep?", "They do.")]  # of the last model
    assert rows(responses, "context", "doc_id", "rank", "text") == [("d0", 1, "Cats sleep."), ("d1", 2, None)]
    spans[-1]["attributes"]["output.value"] = '{"answer": "Yes."}'
    assert rows(read_responses(write_file(tmp_path, "spans.jsonl", *spans)), "answers", "text") == [("Yes.",)]
    stage = {"trace_id": "t", "query_id": "q", "stage": "bm25", "documents": ["d1"], "facts": {"answer": "Yes."}}
    cited = {"trace_id": "t", "query_id": "q", "stage": "cited", "kind": "cited", "parents": ["bm25"], "documents": []}
    traces = read_traces(write_file(tmp_path, "own.jsonl", stage, cited))
    responses = responses_of_traces(traces, run="new")
    assert rows(responses, "context", "query_id", "run_id", "doc_id") == [("q", "new", "d1")]


def test_written_tables_are_read_unchanged(tmp_path: Path) -> None:
    responses = read_responses([write_file(tmp_path, "a.jsonl", TREC), write_file(tmp_path, "s.jsonl", SUPPORT)])
    write_responses(responses, tmp_path / "out")
    loaded = read_responses(tmp_path / "out")
    assert {name: sorted(map(str, loaded[name].to_pylist())) for name in responses.tables} == {
        name: sorted(map(str, table.to_pylist())) for name, table in responses.tables.items()
    }
    (tmp_path / "out" / "support.csv").write_text("query_id\n", encoding="utf-8")
    with pytest.raises(InputError, match="in two files"):
        read_responses(tmp_path / "out")
    with pytest.raises(InputError, match="already"):
        write_responses(responses, tmp_path / "out", ["support"])
