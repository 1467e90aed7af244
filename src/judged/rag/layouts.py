"""The layouts of other tools, record by record: TREC RAG, AutoNuggetizer, support judgments, ragas and deepeval.

A field is taken for what its tool says that it is. What only looks right is refused, or left out and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from judged.errors import InputError
from judged.notes import Note
from judged.rag.generation import sentences_of
from judged.rag.responses import FAILED, KEYS, NOT, PARTIAL, SUPPORT, VITAL, Responses, table_of_records
from judged.slicing.queries import normalised

if TYPE_CHECKING:
    from judged.data.records import Record

_ASSIGNED = {"support": SUPPORT, "partial_support": PARTIAL, "not_support": NOT, "failed": FAILED}
_SUPPORTS = {"2": SUPPORT, "1": PARTIAL, "0": NOT, "-1": FAILED}  # -1: shown to somebody, and not judged
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

    def add(self, table: str, row: dict[str, Any], where: str, line: int | None) -> None:
        """Add a row; one of the same key must say the same."""
        usual = {"judge": self.judge, "repeat": 0}
        key = tuple({**usual, **row}.get(column) for column in KEYS[table])
        before = self.tables[table].get(key)
        if before is not None and any(before[1].get(name, value) != value for name, value in row.items()):
            what = ", ".join(f"{name} {value!r}" for name, value in zip(KEYS[table], key, strict=True) if value != "")
            raise InputError(f"{table}: {what} was there before", fix="leave one of the two", path=where, line=line)
        if before is None:
            judged = usual if "judge" in KEYS[table] else {}
            self.tables[table][key] = (line, {**judged, **row})

    def answer(self, key: dict[str, Any], text: str, where: str, line: int | None) -> None:
        """Add an answer that comes as one text, and its sentences."""
        self.add("answers", {**key, "text": text}, where, line)
        for at, sentence in enumerate(sentences_of(text), 1):
            self.add("sentences", {**key, "sentence": at, "text": sentence}, where, line)
        self.odd["answers split into sentences by full stops"] += 1

    def made(self, name: str, where: str) -> Responses:
        """Give the tables, with what should be known of them."""
        for (query, run), text in self.told.items():
            self.tables["answers"].setdefault((query, run), (None, {"query_id": query, "run_id": run, "text": text}))
        tables = {table: table_of_records(table, rows.values(), where) for table, rows in self.tables.items()}
        notes = (Note("odd-records", f"{what}: {times:,}") for what, times in self.odd.items() if times)
        return Responses(tables, name, where, tuple(notes))


Layout: TypeAlias = Callable[[Mapping[str, Any], Rows, str, "int | None"], None]


def layout_of(record: Mapping[str, Any], where: str, line: int | None) -> Layout:
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
    raise InputError(problem, fix=f"give {_KNOWN}, or a folder of tables", path=where, line=line)


def _trec(record: Mapping[str, Any], rows: Rows, where: str, line: int | None) -> None:
    """Read an answer of TREC RAG: references are what may be cited, and citations are places in them, from 0."""
    told = {**_mapping(record.get("metadata") or {}, "metadata", where, line), **record}
    query = told.get("narrative_id", told.get("topic_id"))
    key = {"query_id": str(_given(query, "topic_id or narrative_id", where, line)),
           "run_id": str(told.get("run_id") or Path(where).name.partition(".")[0])}  # fmt: skip
    references = [str(one) for one in _listed(record["references"], "references", where, line)]
    sentences = [
        _mapping(one, "a sentence of answer", where, line) for one in _listed(record["answer"], "answer", where, line)
    ]
    texts = [_text(one.get("text"), "the text of a sentence", where, line) for one in sentences]
    rows.add("answers", {**key, "text": " ".join(texts)}, where, line)
    for number, (text, one) in enumerate(zip(texts, sentences, strict=True), 1):
        rows.add("sentences", {**key, "sentence": number, "text": text}, where, line)
        for cited in dict.fromkeys(_listed(one.get("citations") or [], "citations", where, line)):
            if type(cited) is int and not 0 <= cited < len(references):
                problem = f"sentence {number} cites {cited}, and there are {len(references)} references"
                raise InputError(problem, fix="count references from 0", path=where, line=line)
            if type(cited) not in (int, str):
                raise InputError(
                    f"a citation is {cited!r:.40}",
                    fix="give its place among the references, from 0, or its id",
                    path=where,
                    line=line,
                )
            doc = references[cited] if type(cited) is int else cited
            rows.add("citations", {**key, "sentence": number, "doc_id": doc}, where, line)
    rows.odd["answers whose references were not taken for the context: nothing says what the generator was given"] += 1


def _nuggetizer(record: Mapping[str, Any], rows: Rows, where: str, line: int | None) -> None:
    """Read nuggets, and how far an answer says them where it was asked."""
    query = str(_given(record.get("qid"), "qid", where, line))
    if "docid" in record:
        problem = "these are assignments to documents, not to answers"
        raise InputError(problem, fix="give those to answers (run_id, answer_text)", path=where, line=line)
    key = {"query_id": query, "run_id": str(record.get("run_id") or "run")}
    for one in _listed(record["nuggets"], "nuggets", where, line):
        nugget = _mapping(one, "a nugget", where, line)
        text = _text(nugget.get("text"), "the text of a nugget", where, line)
        ids = rows.nuggets[query]
        row = {"query_id": query, "nugget_id": ids.setdefault(text, str(len(ids) + 1)), "text": text}
        rows.add("nuggets", {**row, "importance": nugget.get("importance", VITAL)}, where, line)
        if "assignment" in nugget:
            rows.told[query, key["run_id"]] = record.get("answer_text")
            verdict = _word(nugget["assignment"], _ASSIGNED, "assignment", where, line)
            rows.add("assignments", {**key, "nugget_id": row["nugget_id"], "verdict": verdict}, where, line)


def _support(record: Mapping[str, Any], rows: Rows, where: str, line: int | None) -> None:
    """Read support judgments as TREC RAG 2024 published them: 2, 1, 0, and -1 for none."""
    key = {"query_id": str(record["topic_id"]), "run_id": str(record["run_id"])}
    texts: list[str] = []
    for one in _listed(record["sentences"], "sentences", where, line):
        sentence = _mapping(one, "a sentence", where, line)
        number = _given(sentence.get("sentenceID"), "sentenceID", where, line) + 1
        texts.append(_text(sentence.get("text"), "the text of a sentence", where, line))
        rows.add("sentences", {**key, "sentence": number, "text": texts[-1]}, where, line)
        for cited in _listed(sentence.get("citations") or [], "citations", where, line):
            citation = _mapping(cited, "a citation", where, line)
            doc = str(_given(citation.get("reference"), "reference", where, line))
            row = {**key, "sentence": number, "doc_id": doc}
            rows.add("citations", row, where, line)
            if citation.get("support") is not None:
                verdict = _word(str(citation["support"]), _SUPPORTS, "support", where, line)
                rows.add("support", {**row, "verdict": verdict}, where, line)
    rows.told[key["query_id"], key["run_id"]] = " ".join(texts)


def _exported(record: Mapping[str, Any], rows: Rows, where: str, line: int | None, names: tuple[str, ...]) -> None:
    """Read question, answer, context and reference; contexts that somebody says are right are none that was given."""
    question, answer, context, reference, ideal = (record.get(name) for name in names)
    text = _text(question, names[0], where, line)
    folded = normalised(text)
    key = {"query_id": rows.queries.get(folded, folded), "run_id": Path(where).name.partition(".")[0]}
    if rows.queries:
        rows.odd["questions that are no topic's, named by their text"] += folded not in rows.queries
    if reference not in (None, ""):
        row = {"query_id": key["query_id"], "text": _text(reference, names[3], where, line)}
        rows.add("references", row, where, line)
    rows.odd[f"rows with {names[4]}: left out, for they are not what the generator was given"] += bool(ideal)
    if answer in (None, ""):
        rows.odd["rows without an answer left out"] += 1
        return
    rows.answer(key, _text(answer, names[1], where, line), where, line)
    for passage in _listed(context or [], names[2], where, line):
        shown = _text(passage, f"a passage of {names[2]}", where, line)
        doc = rows.passages.get(shown.strip())
        rows.odd["passages that have a hash of their text as their id"] += doc is None
        doc = doc or f"text-{sha256(shown.encode()).hexdigest()[:12]}"
        rows.add("context", {**key, "doc_id": doc, "text": shown}, where, line)


def _given(value: Any, what: str, where: str, line: int | None) -> Any:
    if value is None or value == "":
        raise InputError(f"there is no {what}", fix="give it", path=where, line=line)
    return value


def _text(value: Any, what: str, where: str, line: int | None) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what} is {value!r:.40}", fix="give a text", path=where, line=line)
    return value


def _mapping(value: Any, what: str, where: str, line: int | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{what} is {value!r:.40}", fix="give an object", path=where, line=line)
    return cast("Mapping[str, Any]", value)


def _listed(value: Any, what: str, where: str, line: int | None) -> list[Any]:
    if not isinstance(value, list):
        fix = "give a list; where a CSV has it as text, export JSON Lines or Parquet"
        raise InputError(f"{what} is {value!r:.40}, no list", fix=fix, path=where, line=line)
    return cast("list[Any]", value)


def _word(value: Any, words: Mapping[str, str], what: str, where: str, line: int | None) -> str:
    if value not in words:
        raise InputError(f"no {what} {value!r:.40}", fix=f"use one of {', '.join(words)}", path=where, line=line)
    return words[value]
