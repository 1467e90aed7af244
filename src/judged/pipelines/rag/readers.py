"""Readers of responses: records of answers, the formats of TREC RAG and nuggetizer, and traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from judged.data.answer_records import answer_rows, read_objects
from judged.data.index import id_text
from judged.data.query_text import normalize_query
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.rag.generation import sentences_of
from judged.pipelines.rag.responses import KEYS, VITAL, Responses, read_folder, table_of_records
from judged.pipelines.traces.attributes import attributes_of
from judged.pipelines.traces.reading import read_traces, records
from judged.results.blocks import Note
from judged.results.spelling import use_one_of
from judged.scoring.judging.answers import FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from judged.data.records import Record
    from judged.pipelines.traces.traces import Traces


_ASSIGNMENT_VERDICTS = {"support": SUPPORT, "partial_support": PARTIAL, "not_support": NOT, "failed": FAILED}
_SUPPORT_VERDICTS = {"2": SUPPORT, "1": PARTIAL, "0": NOT, "-1": FAILED}  # -1: an assessor saw it and gave no grade


class _TableBuilder:
    """Rows of tables from several files and formats, which must not contradict each other, and counts for notes."""

    def __init__(
        self, judge: str = "", queries: Mapping[str, str] | None = None, passages: Mapping[str, str] | None = None
    ) -> None:
        self.judge = judge
        self.queries, self.passages = queries or {}, passages or {}  # ids by text
        self.tables: defaultdict[str, dict[tuple[Any, ...], Record]] = defaultdict(dict)
        self.note_counts: Counter[str] = Counter()
        self.note_texts: list[str] = []
        self.nuggets: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by topic: ids by text
        self.answer_texts: dict[tuple[str, str], Any] = {}  # copies of answers in files of verdicts
        self.where, self.line = "", None  # of the current record

    def locate(self, where: str, line: int | None) -> _TableBuilder:
        """Set the file and line of the current record, for messages."""
        self.where, self.line = where, line
        return self

    def fail(self, problem: str, fix: str) -> NoReturn:
        raise InputError(problem, fix=fix, path=self.where, line=self.line)

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Add a row; an earlier row with the same key must have the same values."""
        defaults = {"judge": self.judge, "repeat": 0}
        key = tuple({**defaults, **row}.get(column) for column in KEYS[table])
        earlier = self.tables[table].get(key)
        if earlier is not None and any(earlier[1].get(name, value) != value for name, value in row.items()):
            text = ", ".join(f"{name} {value!r}" for name, value in zip(KEYS[table], key, strict=True) if value != "")
            self.fail(f"{table}: another row has {text}", "remove one of the two rows, or give them different ids")
        if earlier is None:
            self.tables[table][key] = (self.line, {**(defaults if "judge" in KEYS[table] else {}), **row})

    def add_answer(self, key: dict[str, Any], text: str, *, abstained: bool | None = None) -> None:
        """Add an answer, and split it into sentences."""
        self.add("answers", {**key, "text": text, "abstained": abstained})
        for number, sentence in enumerate(sentences_of(text), 1):
            self.add("sentences", {**key, "sentence": number, "text": sentence})
        self.note_counts["answers split into sentences by full stops"] += 1

    def build(self, name: str, where: str) -> Responses:
        for (query, run), text in self.answer_texts.items():  # files with the answers themselves have priority
            self.tables["answers"].setdefault((query, run), (None, {"query_id": query, "run_id": run, "text": text}))
        tables = {table: table_of_records(table, rows.values(), where) for table, rows in self.tables.items()}
        texts = [*self.note_texts, *(f"{text}: {count:,}" for text, count in self.note_counts.items() if count)]
        return Responses(tables, name, where, tuple(Note("irregular-records", text) for text in texts))

    @property
    def run_name(self) -> str:
        """Name of a system for files without one: the name of the file."""
        return Path(self.where).name.partition(".")[0]

    def require(self, value: Any, field: str) -> Any:
        return self.fail(f"{field} is missing", f"add {field}") if value is None or value == "" else value

    def require_count(self, value: Any, field: str) -> int:
        is_valid = isinstance(value, int) and value >= 0
        self._check(is_valid, value, f"{field} must be a non-negative integer", "use 0 or a positive integer")
        return value

    def require_text(self, value: Any, field: str) -> str:
        self._check(isinstance(value, str), value, f"{field} must be a text", "use a text")
        return value

    def require_list(self, value: Any, field: str) -> list[Any]:
        """Return a list; an empty one if the field is missing."""
        fix = "use a list; if the field is text in a CSV file, export JSON Lines or Parquet instead"
        self._check(value is None or isinstance(value, list), value, f"{field} must be a list", fix)
        return value or []

    def _check(self, is_valid: bool, value: Any, requirement: str, fix: str) -> None:
        if not is_valid:
            self.fail(f"{requirement}, got {value!r:.40}", fix)

    def require_objects(self, value: Any, field: str) -> list[Mapping[str, Any]]:
        """Return a list of objects; an empty one if the field is missing."""
        if invalid := [record for record in self.require_list(value, field) if not isinstance(record, Mapping)]:
            self.fail(f"{field} must contain objects, got {invalid[0]!r:.40}", "use objects")
        return value or []

    def passage_id(self, text: str, doc_id: Any = None) -> str:
        """Return the recorded id of a passage, else that of the document with its text, else a hash of the text."""
        if doc_id is not None:
            return id_text(doc_id, "the id of a passage", path=self.where, line=self.line)
        matching = self.passages.get(text.strip())
        self.note_counts["passages without an id, identified by a hash of their text"] += matching is None
        return matching or f"text-{sha256(text.encode()).hexdigest()[:12]}"

    def verdict_of(self, value: Any, verdicts: Mapping[str, str], field: str) -> str:
        if (verdict := verdicts.get(str(value))) is None:
            self.fail(f"unknown {field} {value!r:.40}", use_one_of(verdicts))
        return verdict


Layout: TypeAlias = Callable[[Mapping[str, Any], _TableBuilder], None]


def _layout_of(record: Mapping[str, Any]) -> Layout:
    """Return the parser of a file's format, detected from the fields of its first record."""
    keys = set(record)
    if {"answer", "references"} <= keys and isinstance(record["answer"], list):
        return _trec
    if "nuggets" in keys and "qid" in keys:
        return _nuggetizer
    if {"topic_id", "run_id", "sentences"} <= keys:
        return _support
    return _add_row


def _trec(record: Mapping[str, Any], builder: _TableBuilder) -> None:
    """Parse an answer of TREC RAG: citations are ids, or indices of the references, from 0."""
    (metadata,) = builder.require_objects([record.get("metadata") or {}], "metadata")
    fields = {**metadata, **record}
    query = builder.require(fields.get("narrative_id", fields.get("topic_id")), "topic_id or narrative_id")
    key = {"query_id": str(query), "run_id": str(fields.get("run_id") or builder.run_name)}
    references = builder.require_list(builder.require(record.get("references"), "references"), "references")
    sentences = builder.require_objects(builder.require(record.get("answer"), "answer"), "answer")
    texts = [builder.require_text(sentence.get("text"), "the text of a sentence") for sentence in sentences]
    builder.add("answers", {**key, "text": " ".join(texts)})
    for number, (text, sentence) in enumerate(zip(texts, sentences, strict=True), 1):
        builder.add("sentences", {**key, "sentence": number, "text": text})
        citations = builder.require_list(sentence.get("citations"), "citations")
        if invalid := [citation for citation in citations if type(citation) not in (int, str)]:  # bool is an int
            problem = f"a citation must be an index or an id, got {invalid[0]!r:.40}"
            builder.fail(problem, "use the index of the reference, from 0, or its id")
        for citation in dict.fromkeys(citations):
            if type(citation) is int and not 0 <= citation < len(references):
                problem = (
                    f"sentence {number} cites the reference with index {citation}, but there are {len(references)}"
                )
                builder.fail(problem, "count references from 0")
            doc = str(references[citation]) if type(citation) is int else citation
            builder.add("citations", {**key, "sentence": number, "doc_id": doc})
    text = (
        "answers with a field `references`, which is not used as the context, because the generator's input is unknown"
    )
    builder.note_counts[text] += 1


def _nuggetizer(record: Mapping[str, Any], builder: _TableBuilder) -> None:
    """Parse nuggets, and the assignments of an answer."""
    query = str(builder.require(record.get("qid"), "qid"))
    if "docid" in record:
        problem = "assignments of nuggets to documents are not supported"
        builder.fail(problem, "use assignments of nuggets to answers (fields run_id and answer_text)")
    key = {"query_id": query, "run_id": str(record.get("run_id") or "run")}
    for nugget in builder.require_objects(builder.require(record.get("nuggets"), "nuggets"), "nuggets"):
        text, ids = builder.require_text(nugget.get("text"), "the text of a nugget"), builder.nuggets[query]
        row = {"query_id": query, "nugget_id": ids.setdefault(text, str(len(ids) + 1)), "text": text}
        builder.add("nuggets", {**row, "importance": nugget.get("importance", VITAL)})
        if "assignment" in nugget:
            builder.answer_texts[query, key["run_id"]] = record.get("answer_text")
            verdict = builder.verdict_of(nugget["assignment"], _ASSIGNMENT_VERDICTS, "assignment")
            builder.add("assignments", {**key, "nugget_id": row["nugget_id"], "verdict": verdict})


def _support(record: Mapping[str, Any], builder: _TableBuilder) -> None:
    """Parse support judgments of TREC RAG 2024: 2, 1, 0, and -1 for none."""
    query, run = (builder.require(record.get(name), name) for name in ("topic_id", "run_id"))
    key = {"query_id": str(query), "run_id": str(run)}
    texts: list[str] = []
    for sentence in builder.require_objects(builder.require(record.get("sentences"), "sentences"), "sentences"):
        number = builder.require_count(sentence.get("sentenceID"), "sentenceID") + 1
        texts.append(builder.require_text(sentence.get("text"), "the text of a sentence"))
        builder.add("sentences", {**key, "sentence": number, "text": texts[-1]})
        for citation in builder.require_objects(sentence.get("citations"), "citations"):
            row = {**key, "sentence": number, "doc_id": str(builder.require(citation.get("reference"), "reference"))}
            builder.add("citations", row)
            if citation.get("support") is not None:
                verdict = builder.verdict_of(citation["support"], _SUPPORT_VERDICTS, "support")
                builder.add("support", {**row, "verdict": verdict})
    builder.answer_texts[key["query_id"], key["run_id"]] = " ".join(texts)


def _add_row(row: Mapping[str, Any], builder: _TableBuilder) -> None:
    """Add the answer, context, and references in a row of `answer_rows`."""
    topic = {"query_id": _topic(row, builder)}
    key = {**topic, "run_id": str(row.get("run_id") or builder.run_name)}
    if "unanswerable" in row:
        builder.add("references", {**topic, "text": None, "answerable": not row["unanswerable"]})
    for text in row.get("reference", ()):
        builder.add("references", {**topic, "text": text, "answerable": None})
    for doc in row.get("reference_ids") or row.get("reference_contexts", ()):
        builder.add("reference_context", {**topic, "doc_id": builder.passage_id("", doc)})
    answer, is_abstention = row.get("answer"), row["abstained"]
    if answer:
        builder.add_answer(key, builder.require_text(answer, "answer"), abstained=is_abstention)
        _add_context(row, key, builder)
    elif is_abstention:
        builder.add("answers", {**key, "text": None, "abstained": True})
    else:
        builder.note_counts["questions without an answer (a missing answer scores 0)"] += "answer" in row
    for name, score in row["scores"].items():
        builder.add("tool_scores", {**key, "name": name, "score": score})


def _add_context(row: Mapping[str, Any], key: dict[str, Any], builder: _TableBuilder) -> None:
    """Add the passages of a row; texts with the same id are one passage."""
    passages = row.get("contexts", ())
    ids = row.get("context_ids") or [doc for doc, _ in passages]
    if passages and len(passages) != len(ids):
        builder.fail(f"{len(passages)} contexts have {len(ids)} ids", "use one id for each passage")
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for doc, (_, text) in zip(ids, passages or [(None, None)] * len(ids), strict=True):
        texts[builder.passage_id(text or "", doc)] += [text] if text else []
    for doc, parts in texts.items():
        builder.add("context", {**key, "doc_id": doc, "text": "\n".join(dict.fromkeys(parts)) or None})


def _topic(row: Mapping[str, Any], builder: _TableBuilder) -> str:
    """Return the id of a row, or else of the topic with its question, or else the question in its normal form."""
    query = next((row[name] for name in ("query_id", "record_id") if row.get(name) is not None), None)
    if query is not None:
        return id_text(query, "query_id", path=builder.where, line=builder.line)
    text = normalize_query(builder.require_text(builder.require(row.get("question"), "question"), "question"))
    is_unknown = bool(builder.queries) and text not in builder.queries
    builder.note_counts["questions without a topic, identified by their text"] += is_unknown
    return builder.queries.get(text, text)


def read_responses(
    paths: str | Path | Iterable[str | Path], *, topics: Any = None, texts: Any = None, judge: str = "judge"
) -> Responses:
    """Read responses of RAG systems and verdicts on them.

    Parameters
    ----------
    paths
        A folder with a file for each table, as CSV, TSV, JSON, JSON Lines, or Parquet: ``answers.jsonl``,
        ``nuggets.csv``... Or one or several files: answers, nuggets, assignments, and support judgments of TREC RAG,
        exports of ragas or deepeval, or traces. The format is detected by content (docs/rag-judges.md).
    topics
        Texts of topics, as for `Topics.of`, to find the ids of queries in exports. Default: the query id is the text in
        lower case with single spaces.
    texts
        Texts of documents, as for `Texts.of`, to find the ids of passages without one. Default: a hash of the text.
    judge
        Judge of verdicts in files that do not name one.

    Raises
    ------
    InputError
        If a file is invalid; the message names the line.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not files:
        raise InputError("`paths` must not be empty", fix="pass a file with answers")
    if len(files) == 1 and files[0].is_dir():
        return read_folder(files[0])
    if any(is_trace(path) for path in files):
        traces = read_traces(files, topics=topics)
        try:
            return responses_of_traces(traces, texts=texts)
        except InputError as error:  # its path is the name of the traces, not their file
            raise InputError(error.problem, fix=error.fix, path=str(files[0])) from None
    rows = [] if topics is None else Topics.of(topics).table.to_pylist()
    queries = {normalize_query(row["text"]): row["query_id"] for row in rows}
    passages = {} if texts is None else Texts.of(texts).documents
    # Of documents with equal texts, the first one gets the passage.
    builder = _TableBuilder(judge, queries, {passages[name].text.strip(): name for name in reversed(list(passages))})
    for path in files:
        records = read_objects(path)
        layout = _layout_of(records[0][1]) if records else _add_row
        if records and layout is _add_row:
            records, notes = answer_rows(records)
            builder.note_texts += [f"{path.name}: {note}" for note in notes]
        for line, record in records:
            layout(record, builder.locate(str(path), line))
    if not builder.tables["answers"] and not builder.answer_texts:
        fix = (
            "use --columns answer=COLUMN; to score only retrieved ids, use judged evaluate FILE FILE, with this file"
            " as both arguments"
        )
        raise InputError("no record has an answer", fix=fix, path=str(files[0]))
    return builder.build(files[0].name.partition(".")[0], str(files[0]))


def is_trace(path: Path) -> bool:
    """Check if a file begins with a stage or a span."""
    if path.is_dir():
        raise InputError(
            "a folder cannot be combined with files", fix="pass only the folder, or only files", path=str(path)
        )
    first = next((row for _, row in islice(records(path), 1)), None) or {}
    return "resourceSpans" in first or {"stage", "query_id"} <= set(first) or attributes_of(first) is not None


def responses_of_traces(traces: Traces, *, run: str = "", texts: Any = None) -> Responses:
    """Extract answers from traces: the fact ``answer`` of a trace, and the documents of its last stage as the context.

    For spans of OpenInference the answer is the output of the outermost span, or else of the last span of a model.
    Stages of the kind ``cited`` are not the context. Texts of passages come from `texts`, as for `Texts.of`.

    Raises
    ------
    InputError
        If no trace has an answer.
    """
    known_texts = Texts.of({} if texts is None else texts)
    answers = {span.query_id: str(span.facts["answer"]) for span in traces.spans if span.facts.get("answer")}
    if not answers:
        raise InputError(
            "no trace has an answer", fix="record answers as the fact `answer` of a stage", path=traces.name
        )
    last_documents = {span.query_id: span.documents for span in traces.spans if span.kind not in ("cited", "rewrite")}
    n_unknown = sum(last_documents.get(query, ()) is None for query in answers)
    builder = _TableBuilder().locate(traces.name, None)
    for query, text in answers.items():
        key = {"query_id": query, "run_id": run or traces.name}
        builder.add_answer(key, text)
        for document in last_documents.get(query) or ():
            passage = known_texts.text(document.doc_id) if document.doc_id in known_texts else None
            builder.add("context", {**key, "doc_id": document.doc_id, "text": passage})
    builder.note_counts["answers whose context is not recorded"] = n_unknown
    builder.note_counts["skipped traces without an answer"] = len(set(traces.query_ids) - set(answers))
    responses = builder.build(traces.name, traces.name)
    return replace(responses, notes=(*traces.notes, *responses.notes))
