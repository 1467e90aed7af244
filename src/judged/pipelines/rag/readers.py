"""Answers, and what is known of them, read from files of any tool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.queries import normalised
from judged.data.records import read_records
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.rag.layouts import Rows, layout_of
from judged.pipelines.rag.responses import Responses, read_folder
from judged.pipelines.traces.attributes import attributes_of
from judged.pipelines.traces.reading import read_traces
from judged.pipelines.traces.records import records

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Traces


def read_responses(
    paths: str | Path | Iterable[str | Path], *, topics: Any = None, texts: Any = None, judge: str = "judge"
) -> Responses:
    """Read answers and what is known of them.

    Parameters
    ----------
    paths
        A folder with a file for each table, as CSV, TSV, JSON, JSON Lines or Parquet: ``answers.jsonl``,
        ``nuggets.csv``... Or a file, or several that go together: answers, nuggets, assignments and support judgments
        of TREC RAG, exports of ragas or deepeval, or traces. The layout is found by content (docs/rag-judges.md).
    topics
        Texts of topics, as `Topics.of` takes them: exports name queries by their texts. Without them a text, in lower
        case and with single spaces, is its topic's id.
    texts
        Texts of documents, as `Texts.of` takes them: a passage without an id that is one of them has its id. Without
        them the id is a hash of the text.
    judge
        Who gave the verdicts, where the file does not say.

    Raises
    ------
    InputError
        If it cannot be read; the message names the line.
    """
    given = [Path(one) for one in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not given:
        raise InputError("there is no file", fix="name one with answers")
    if len(given) == 1 and given[0].is_dir():
        return read_folder(given[0])
    if any(_is_trace(path) for path in given):
        traces = read_traces(given, topics=topics)
        try:
            return responses_of_traces(traces, texts=texts)
        except InputError as error:  # which names the traces, not their file
            raise InputError(error.problem, fix=error.fix, path=str(given[0])) from None
    queries = (
        {}
        if topics is None
        else {normalised(row["text"]): row["query_id"] for row in Topics.of(topics).table.to_pylist()}
    )
    passages = {} if texts is None else Texts.of(texts).documents
    rows = Rows(judge, queries, {passages[name].text.strip(): name for name in reversed(list(passages))})
    for path in given:
        layout = None
        for line, record in read_records(path):
            layout = layout or layout_of(record, rows.at(str(path), line))
            layout(record, rows.at(str(path), line))
    return rows.made(given[0].name.partition(".")[0], str(given[0]))


def _is_trace(path: Path) -> bool:
    """Whether a file begins with a stage or a span."""
    if path.is_dir():
        raise InputError("this is a folder", fix="give it alone, or name files", path=str(path))
    first = next((row for _, row in islice(records(path), 1)), None) or {}
    return "resourceSpans" in first or {"stage", "query_id"} <= set(first) or attributes_of(first) is not None


def responses_of_traces(traces: Traces, *, run: str = "", texts: Any = None) -> Responses:
    """Take answers from traces: the fact ``answer`` of a trace, and the documents of its last stage as the context.

    Of spans by OpenInference the answer is the output of the outermost span, or else of the last span of a model. A
    stage of the kind ``cited`` is no context. Texts of passages come from `texts`, as `Texts.of` takes them.

    Raises
    ------
    InputError
        If no trace has an answer.
    """
    known = None if texts is None else Texts.of(texts)
    answered = {span.query_id: str(span.facts["answer"]) for span in traces.spans if span.facts.get("answer")}
    if not answered:
        raise InputError("no trace has an answer", fix="record it as the fact `answer` of a stage", path=traces.name)
    last = {span.query_id: span.documents for span in traces.spans if span.kind not in ("cited", "rewrite")}
    unknown = sum(last.get(query, ()) is None for query in answered)
    rows = Rows().at(traces.name, None)
    for query, text in answered.items():
        key = {"query_id": query, "run_id": run or traces.name}
        rows.answer(key, text)
        for one in last.get(query) or ():
            passage = None if known is None or one.doc_id not in known else known.text(one.doc_id)
            rows.add("context", {**key, "doc_id": one.doc_id, "text": passage})
    rows.odd["answers whose context is not recorded"] = unknown
    rows.odd["traces without an answer left out"] = len(set(traces.query_ids) - set(answered))
    made = rows.made(traces.name, traces.name)
    return replace(made, notes=(*traces.notes, *made.notes))
