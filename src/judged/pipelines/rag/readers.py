"""Answers, and what is known of them, read from files of any tool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from judged.data.index import id_text
from judged.data.query_text import normalize_query
from judged.data.records import read_records
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.rag.generation import sentences_of
from judged.pipelines.rag.responses import KEYS, VITAL, Responses, read_folder, table_of_records
from judged.pipelines.traces.attributes import attributes_of
from judged.pipelines.traces.reading import read_traces, records
from judged.results.blocks import Note
from judged.scoring.judging.answers import FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from judged.data.records import Record
    from judged.pipelines.traces.traces import Traces


_ASSIGNED = {"support": SUPPORT, "partial_support": PARTIAL, "not_support": NOT, "failed": FAILED}
_SUPPORTS = {"2": SUPPORT, "1": PARTIAL, "0": NOT, "-1": FAILED}  # -1: shown to somebody, and not judged
_IDS, _IDEAL_IDS = "retrieved_context_ids", "reference_context_ids"
_RAGAS = ("user_input", "response", "retrieved_contexts", "reference", "reference_contexts")
_DEEPEVAL = ("input", "actual_output", "retrieval_context", "expected_output", "context")
_KNOWN = "answers of TREC RAG, nuggets and assignments of nuggetizer, support judgments, ragas, deepeval or traces"


class Rows:
    """Rows of tables as they are read; what two files say of the same must be the same."""

    def __init__(
        self, judge: str = "", queries: Mapping[str, str] | None = None, passages: Mapping[str, str] | None = None
    ) -> None:
        self.judge = judge
        self.queries, self.passages = queries or {}, passages or {}  # ids by text
        self.tables: defaultdict[str, dict[tuple[Any, ...], Record]] = defaultdict(dict)
        self.odd: Counter[str] = Counter()
        self.nuggets: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by topic, ids by text
        self.told: dict[tuple[str, str], Any] = {}  # texts of answers as files of verdicts have them
        self.where, self.line = "", None  # of the record that is being read

    def at(self, where: str, line: int | None) -> Rows:
        """Say where what comes next stands."""
        self.where, self.line = where, line
        return self

    def refuse(self, problem: str, fix: str) -> NoReturn:
        """Refuse the record."""
        raise InputError(problem, fix=fix, path=self.where, line=self.line)

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Add a row; one of the same key must say the same."""
        usual = {"judge": self.judge, "repeat": 0}
        key = tuple({**usual, **row}.get(column) for column in KEYS[table])
        before = self.tables[table].get(key)
        if before is not None and any(before[1].get(name, value) != value for name, value in row.items()):
            what = ", ".join(f"{name} {value!r}" for name, value in zip(KEYS[table], key, strict=True) if value != "")
            self.refuse(f"{table}: {what} was there before", "leave one of the two")
        if before is None:
            judged = usual if "judge" in KEYS[table] else {}
            self.tables[table][key] = (self.line, {**judged, **row})

    def answer(self, key: dict[str, Any], text: str) -> None:
        """Add an answer that comes as one text, and its sentences."""
        self.add("answers", {**key, "text": text})
        for at, sentence in enumerate(sentences_of(text), 1):
            self.add("sentences", {**key, "sentence": at, "text": sentence})
        self.odd["answers split into sentences by full stops"] += 1

    def made(self, name: str, where: str) -> Responses:
        """Give the tables, with what should be known of them."""
        for (query, run), text in self.told.items():
            self.tables["answers"].setdefault((query, run), (None, {"query_id": query, "run_id": run, "text": text}))
        tables = {table: table_of_records(table, rows.values(), where) for table, rows in self.tables.items()}
        notes = (Note("odd-records", f"{what}: {times:,}") for what, times in self.odd.items() if times)
        return Responses(tables, name, where, tuple(notes))

    @property
    def run(self) -> str:
        """How a system is called that nobody names: as its file."""
        return Path(self.where).name.partition(".")[0]

    def given(self, value: Any, what: str) -> Any:
        """Give a value that must be there."""
        return self.refuse(f"there is no {what}", "give it") if value is None or value == "" else value

    def number(self, value: Any, what: str) -> int:
        """Give what must be a whole number from 0."""
        whole = isinstance(value, int) and value >= 0
        return value if whole else self.refuse(f"{what} is {value!r:.40}", "give a whole number from 0")

    def text(self, value: Any, what: str) -> str:
        """Give what must be a text."""
        return value if isinstance(value, str) else self.refuse(f"{what} is {value!r:.40}", "give a text")

    def listed(self, value: Any, what: str) -> list[Any]:
        """Give what must be a list, or is not there."""
        if isinstance(value, list) or value is None:
            return cast("list[Any]", value or [])
        fix = "give a list; where a CSV has it as text, export JSON Lines or Parquet"
        return self.refuse(f"{what} is {value!r:.40}, no list", fix)

    def each(self, value: Any, what: str) -> list[Mapping[str, Any]]:
        """Give what must be a list of objects, or is not there."""
        if strange := [one for one in self.listed(value, what) if not isinstance(one, Mapping)]:
            self.refuse(f"one of {what} is {strange[0]!r:.40}", "give an object")
        return value or []

    def passage_id(self, text: str, given: Any = None) -> str:
        """Return the id that a passage was given, or that of the document of its text, or else a hash of the text."""
        if given is not None:
            return id_text(given, _IDS, path=self.where, line=self.line)
        known = self.passages.get(text.strip())
        self.odd["passages that have a hash of their text as their id"] += known is None
        return known or f"text-{sha256(text.encode()).hexdigest()[:12]}"

    def word(self, value: Any, words: Mapping[str, str], what: str) -> str:
        """Give the verdict that a word stands for."""
        known = words.get(str(value))
        return known if known is not None else self.refuse(f"no {what} {value!r:.40}", f"use one of {', '.join(words)}")


Layout: TypeAlias = Callable[[Mapping[str, Any], Rows], None]


def layout_of(record: Mapping[str, Any], rows: Rows) -> Layout:
    """Tell the layout of a file by its first record.

    Raises
    ------
    InputError
        If it is none that is known.
    """
    keys = set(record)
    if {"answer", "references"} <= keys:
        return _trec
    if "nuggets" in keys and "qid" in keys:
        return _nuggetizer
    if {"topic_id", "run_id", "sentences"} <= keys:
        return _support
    if "user_input" in keys:
        return partial(_exported, names=_RAGAS)
    if {"input", "actual_output"} <= keys:
        return partial(_exported, names=_DEEPEVAL)
    problem = f"no answers are known by the fields {', '.join(sorted(keys))[:100]}"
    return rows.refuse(problem, f"give {_KNOWN}, or a folder of tables")


def _trec(record: Mapping[str, Any], rows: Rows) -> None:
    """Read an answer of TREC RAG: references are what may be cited, and citations are places in them, from 0."""
    (about,) = rows.each([record.get("metadata") or {}], "metadata")
    told = {**about, **record}
    query = rows.given(told.get("narrative_id", told.get("topic_id")), "topic_id or narrative_id")
    key = {"query_id": str(query), "run_id": str(told.get("run_id") or rows.run)}
    references = [str(one) for one in rows.listed(rows.given(record.get("references"), "references"), "references")]
    sentences = rows.each(rows.given(record.get("answer"), "answer"), "answer")
    texts = [rows.text(one.get("text"), "the text of a sentence") for one in sentences]
    rows.add("answers", {**key, "text": " ".join(texts)})
    for number, (text, one) in enumerate(zip(texts, sentences, strict=True), 1):
        rows.add("sentences", {**key, "sentence": number, "text": text})
        citations = rows.listed(one.get("citations"), "citations")
        if strange := [cited for cited in citations if type(cited) not in (int, str)]:
            rows.refuse(f"a citation is {strange[0]!r:.40}", "give its place among the references, from 0, or its id")
        for cited in dict.fromkeys(citations):
            if type(cited) is int and not 0 <= cited < len(references):
                problem = f"sentence {number} cites {cited}, and there are {len(references)} references"
                rows.refuse(problem, "count references from 0")
            doc = references[cited] if type(cited) is int else cited
            rows.add("citations", {**key, "sentence": number, "doc_id": doc})
    rows.odd["answers whose references were not taken for the context: nothing says what the generator was given"] += 1


def _nuggetizer(record: Mapping[str, Any], rows: Rows) -> None:
    """Read nuggets, and how far an answer says them where it was asked."""
    query = str(rows.given(record.get("qid"), "qid"))
    if "docid" in record:
        rows.refuse("these are assignments to documents, not to answers", "give those to answers (run_id, answer_text)")
    key = {"query_id": query, "run_id": str(record.get("run_id") or "run")}
    for nugget in rows.each(rows.given(record.get("nuggets"), "nuggets"), "nuggets"):
        text, ids = rows.text(nugget.get("text"), "the text of a nugget"), rows.nuggets[query]
        row = {"query_id": query, "nugget_id": ids.setdefault(text, str(len(ids) + 1)), "text": text}
        rows.add("nuggets", {**row, "importance": nugget.get("importance", VITAL)})
        if "assignment" in nugget:
            rows.told[query, key["run_id"]] = record.get("answer_text")
            verdict = rows.word(nugget["assignment"], _ASSIGNED, "assignment")
            rows.add("assignments", {**key, "nugget_id": row["nugget_id"], "verdict": verdict})


def _support(record: Mapping[str, Any], rows: Rows) -> None:
    """Read support judgments as TREC RAG 2024 published them: 2, 1, 0, and -1 for none."""
    query, run = (rows.given(record.get(name), name) for name in ("topic_id", "run_id"))
    key = {"query_id": str(query), "run_id": str(run)}
    texts: list[str] = []
    for sentence in rows.each(rows.given(record.get("sentences"), "sentences"), "sentences"):
        number = rows.number(sentence.get("sentenceID"), "sentenceID") + 1
        texts.append(rows.text(sentence.get("text"), "the text of a sentence"))
        rows.add("sentences", {**key, "sentence": number, "text": texts[-1]})
        for citation in rows.each(sentence.get("citations"), "citations"):
            row = {**key, "sentence": number, "doc_id": str(rows.given(citation.get("reference"), "reference"))}
            rows.add("citations", row)
            if citation.get("support") is not None:
                rows.add("support", {**row, "verdict": rows.word(citation["support"], _SUPPORTS, "support")})
    rows.told[key["query_id"], key["run_id"]] = " ".join(texts)


def _exported(record: Mapping[str, Any], rows: Rows, names: tuple[str, ...]) -> None:
    """Read question, answer, context and reference; contexts that somebody says are right are none that was given."""
    question, answer, context, reference, ideal = (record.get(name) for name in names)
    text = normalize_query(rows.text(question, names[0]))
    key = {"query_id": rows.queries.get(text, text), "run_id": rows.run}
    if rows.queries:
        rows.odd["questions that are no topic's, named by their text"] += text not in rows.queries
    if reference not in (None, ""):
        rows.add("references", {"query_id": key["query_id"], "text": rows.text(reference, names[3])})
    ideal = ideal or record.get(_IDEAL_IDS)
    rows.odd[f"rows with {names[4]}: left out, for they are not what the generator was given"] += bool(ideal)
    for name in set(record) - {*names, _IDS, _IDEAL_IDS}:
        rows.odd[f"rows with {name!r:.60}, a column that is not read"] += record[name] not in (None, "", [], {})
    if answer in (None, ""):
        rows.odd["rows without an answer left out"] += 1
        return
    rows.answer(key, rows.text(answer, names[1]))
    passages, ids = rows.listed(context or [], names[2]), rows.listed(record.get(_IDS) or [], _IDS)
    if passages and ids and len(passages) != len(ids):
        rows.refuse(f"there are {len(passages)} {names[2]} and {len(ids)} {_IDS}", "give one id for each passage")
    for passage, doc in zip(passages or [None] * len(ids), ids or [None] * len(passages), strict=True):
        shown = None if passage is None else rows.text(passage, f"a passage of {names[2]}")
        rows.add("context", {**key, "doc_id": rows.passage_id(shown or "", doc), "text": shown})


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
        else {normalize_query(row["text"]): row["query_id"] for row in Topics.of(topics).table.to_pylist()}
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
