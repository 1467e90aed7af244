"""Readers of traces and answers of RAG systems in each layout: they check, evaluate, and write them."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

import spans_made
from fuzz.originals import Original, tables
from fuzz.readers import Reader, WrongError
from judged.data import sample
from judged.errors import InputError
from judged.pipelines.rag import check_responses, evaluate
from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.responses import read_folder, write_responses
from judged.pipelines.traces import check_traces, funnel, read_traces, write_traces
from judged.pipelines.traces.attributes import read_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.traces import Traces


def trace_readers(folder: Path) -> list[Reader]:
    """Return a reader for each way of reading traces."""
    spans, stage_rows = spans_made.pipeline(), _stages()
    parquet.write_table(pa.Table.from_pylist(stage_rows[::2]), sink := io.BytesIO())
    span_files = [
        Original(".jsonl", _lines(spans)), Original(".json", json.dumps(spans).encode()),
        Original(".jsonl", _lines(spans_made.pipeline(nested=True))),
        Original(".json", json.dumps(spans_made.otlp(spans), indent=1).encode()),
        Original(".jsonl", _lines([spans_made.otlp(spans)])),
        Original(".json", json.dumps({"data": spans}).encode()),
        Original(".jsonl", _lines(spans_made.javascript(spans))),
        Original(".jsonl", _lines(_genai())), Original(".jsonl", _lines(_ubi())),
    ]  # fmt: skip
    stages = [
        Original(".jsonl", _lines(stage_rows)),
        Original(".json", json.dumps(stage_rows).encode()),
        Original(".parquet", sink.getvalue()),
    ]
    chunks = [
        Original(".txt", b"c1\td1\nc2\td1\nc3\td2\n"),
        Original(".csv", b"c1,d1\nc2,d2\n"),
        Original(".json", b'{"c1": "d1", "c2": "d2"}'),
    ]
    topics: Any = {"topics": {"q1": "cheap flights"}, "topic_from": "metadata.topic", "id_from": "source"}
    return [
        Reader("stages", partial(_traces, folder), stages),
        Reader("spans", partial(_traces, folder), span_files),
        Reader("spans with topics", partial(_traces, folder, **topics), span_files),
        Reader("chunks of documents", read_mapping, chunks),
    ]  # fmt: skip


def rag_readers(folder: Path) -> list[Reader]:
    """Return a reader for each layout of responses."""
    intact_folder = folder / "responses"
    intact_folder.mkdir()
    for file in sorted(sample.RESPONSES.iterdir()):
        rows = [
            line
            for line in file.read_bytes().splitlines(keepends=True)
            if json.loads(line)["query_id"] in {"t03", "t16"}
        ]
        (intact_folder / file.name).write_bytes(b"".join(rows))
    layouts = {
        name: [Original(".jsonl", _lines(rows)), Original(".json", json.dumps(rows).encode())]
        for name, rows in _ANSWERS.items()
    }
    flat = [{"user_input": "do cats sleep", "response": "Yes.", "reference": "They do."}] * 3
    parquet.write_table(pa.Table.from_pylist(_ANSWERS["ragas"] * 3), sink := io.BytesIO())
    layouts["ragas"] += [Original(".parquet", sink.getvalue()), *tables(pa.Table.from_pylist(flat))[7:9]]
    traces_with_answers = [{**stage, "facts": {"answer": "Yes. It is so."}} for stage in _stages()]
    return [
        *(Reader(f"answers: {name}", _answers, originals) for name, originals in layouts.items()),
        Reader("answers of traces", _answers, [Original(".jsonl", _lines(traces_with_answers))]),
        *(
            Reader(f"answers/{file.name}", partial(_table, file, folder / "others"), _as_tables(file))
            for file in sorted(intact_folder.iterdir())
        ),
    ]  # fmt: skip


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _stages() -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = []
    for trace_index in range(4):
        docs = [{"id": f"d{doc}", "rank": rank, "score": 1.0 / rank, "source": "web", "features": {"bm25": 0.5}}
                for rank, doc in enumerate((3, 1, trace_index), 1)]  # fmt: skip
        ids = {"trace_id": f"t{trace_index}", "query_id": f"q{trace_index}", "query": f"red shoe {trace_index}"}
        stages += [
            {**ids, "stage": "bm25", "kind": "candidates", "documents": docs, "latency_ms": 1.5, "model": "m"},
            {**ids, "stage": "shown", "kind": "shown", "parents": ["bm25"], "documents": ["d3", "d1"],
             "facts": {"device": "mobile"}},
        ]  # fmt: skip
    return stages


def _genai() -> list[dict[str, Any]]:
    documents = [{"id": "d1", "score": 0.5}, {"id": "d2", "score": 0.25}]
    attributes = {
        "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "red shoe",
        "gen_ai.retrieval.documents": json.dumps(documents), "gen_ai.data_source.id": "web",
    }  # fmt: skip
    return [
        spans_made.span("retrieval", 0, 1, attributes, inside="", trace=f"t{trace_index}") for trace_index in range(3)
    ]


def _ubi() -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = [
        {"query_id": f"p{page_index}", "client_id": "u", "session_id": "s", "user_query": f"red shoe {page_index}",
         "query_response_hit_ids": ["d1", "d2"]}
        for page_index in range(3)
    ]  # fmt: skip
    click = {"action_name": "click", "query_id": "p1", "event_attributes": {"object": {"object_id": "d1"}}}
    return [*pages, click]


_ANSWERS: dict[str, list[dict[str, Any]]] = {
    "trec rag": [
        {"metadata": {"narrative_id": f"{i}", "run_id": "r"}, "references": ["d7", "d8"],
         "answer": [{"text": "Cats sleep.", "citations": [1, 0, "d9"]}, {"text": "A lot.", "citations": []}]}
        for i in range(3)
    ],
    "nuggets": [
        {"query": "cats?", "qid": f"{i}", "run_id": "r", "answer_text": "Cats sleep.", "nuggets": [
            {"text": "cats purr", "importance": "okay", "assignment": "not_support"},
            {"text": "cats sleep", "importance": "vital", "assignment": "partial_support"}]}
        for i in range(3)
    ],
    "support": [
        {"topic_id": f"{i}", "run_id": "r", "sentences": [
            {"sentenceID": 0, "text": "Cats sleep.", "citations": [{"reference": "d8", "support": "2"}]},
            {"sentenceID": 1, "text": "A lot.", "citations": []}]}
        for i in range(3)
    ],
    "ragas": [
        {"user_input": "Do  cats sleep?", "retrieved_contexts": ["Cats sleep.", "Dogs bark."],
         "response": "Yes. A lot.", "reference": "They do.", "faithfulness": 0.9,
         "reference_contexts": ["The right passage."]},
    ],
    "deepeval": [
        {"input": "Do cats sleep?", "actual_output": "Yes.", "retrieval_context": ["Cats sleep."],
         "expected_output": "They do.", "context": ["The right passage."]},
    ],
}  # fmt: skip


def _traces(folder: Path, path: Path, **options: Any) -> None:
    """Read and check traces, write them, and read the written file."""
    traces = read_traces(path, **options)
    try:
        _check_traces(traces, folder)
    except InputError as error:  # which names the traces, not their file
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _check_traces(traces: Traces, folder: Path) -> None:
    check_traces(traces).text(width=80)
    json.dumps(check_traces(traces).to_dict(), allow_nan=False)
    if traces.stages:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            funnel({query: {"d1": 1, "x": 2} for query in traces.query_ids}, traces).text(width=80)
    copy_path = folder / "again.jsonl"
    write_traces(traces, copy_path)
    if repr((reread := read_traces(copy_path)).spans) != repr(traces.spans):
        differing = [pair for pair in zip(reread.spans, traces.spans, strict=False) if pair[0] != pair[1]]
        raise WrongError(
            f"{len(traces.spans)} became {len(reread.spans)} spans when they were written: {differing[:1]}"
        )


def _answers(path: Path) -> None:
    _check_responses(read_responses(path))


def _check_responses(responses: Responses) -> None:
    """Check that responses can be validated, printed, and evaluated."""
    repr(responses)
    json.dumps(
        [finding.to_dict() if hasattr(finding, "to_dict") else str(finding) for finding in check_responses(responses)]
    )
    for table in responses.tables.values():
        table.validate(full=True)
    measures = [
        name for name, table in (("NuggetRecall", "assignments"), ("SupportR", "support")) if responses[table].num_rows
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if measures:
                evaluate(responses, measures).aggregate()
        except InputError as error:
            raise InputError(error.problem, fix=error.fix, path=responses.where) from None


def _as_tables(file: Path) -> list[Original]:
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    if any(isinstance(value, list) or "\n" in str(value) for row in rows for value in row.values()):
        return [Original(".jsonl", file.read_bytes())]
    return [Original(".jsonl", file.read_bytes()), *tables(pa.Table.from_pylist(rows))[7:9]]


def _table(intact: Path, folder: Path, path: Path) -> None:
    """Read a folder of responses in which one table is damaged, and write it again."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact.parent, folder)
    (folder / intact.name).unlink()
    shutil.copyfile(path, folder / f"{intact.stem}{path.suffix or intact.suffix}")
    try:
        responses = read_folder(folder)
        _check_responses(responses)
        write_responses(responses, copy_folder := folder / "again")
        if read_folder(copy_folder).tables.keys() != responses.tables.keys():
            raise WrongError("tables that were written are not those that are read")
    except InputError as error:
        if str(folder) not in str(error):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None
