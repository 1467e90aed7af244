"""Parse pasted lists: grades, documents with grades, lines of runs, or JSON. The format is detected."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from judged.data.grade_words import WORDS, as_word, join_negations, split_grades
from judged.data.json_rows import json_kind, parse_json
from judged.errors import InputError
from judged.interface.pages.evaluator.lists import (
    MAX_DOCUMENTS,
    NUMBER,
    ListDocument,
    check_distinct,
    read_grade,
    read_name,
    write_list,
    write_missing,
)
from judged.interface.pages.evaluator.state import PasteQuery, grades_of, missing_grades, read_state, returned_docs
from judged.results import counted
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.pages.workspace import Workspace

_DOC_KEYS = ("doc", "doc_id", "docid", "docno", "id", "document", "name")
_GRADE_KEYS = ("grade", "relevance", "rating", "label", "rel", "judgment")
_HEADER_FIELDS = frozenset({*_DOC_KEYS, *_GRADE_KEYS, "grades", "documents", "rank"})
_LIST_KEYS = ("list", "results", "documents", "items")
_MAX_LINES = 20_000
_MAX_INSPECTED = 50  # lines inspected to detect the format
_FORMS = "grades such as 3 0 2 or R N R, lines such as 'doc grade', TREC lines, or a JSON list"
_PASTED = "the pasted text"
_RANK = re.compile(r"[0-9]{1,9}")
_LAYOUTS = {
    "topic Q0 document rank score name": "a TREC run, sorted by descending score",
    "topic 0 document grade": "TREC qrels, in the order of the lines",
    "topic document score": "lines of topic, document, and score, sorted by descending score",
    "rank document grade": "lines of rank, document, and grade",
    "topic document grade": "lines of topic, document, and grade",
    "document grade": "lines of document and grade, in rank order",
}
"""Fields of a line, and the name of the layout; the first match is used."""


@dataclass(frozen=True)
class PastedList:
    """List parsed from a text."""

    documents: tuple[ListDocument, ...]
    read_as: str  # detected format, as a sentence
    n_omitted: int  # number of omitted documents
    topic: str = ""  # topic of the lines, if they are of a run


class _PastedLine(NamedTuple):
    """Fields of a line, and its location for messages."""

    location: str
    fields: list[str]


def read_pasted(text: str) -> PastedList:
    r"""Parse a list from a text, and detect its format.

    >>> read = read_pasted("3 0 ? 1")
    >>> [document.grade for document in read.documents], read.read_as
    ([3.0, 0.0, None, 1.0], 'Read as grades in rank order.')
    >>> read_pasted("a 2\nb -").documents
    (ListDocument(doc='a', grade=2.0), ListDocument(doc='b', grade=None))
    """
    text = text.lstrip("\ufeff")
    if text.strip()[:1] in {"[", "("} and any(map(_is_word, fields := split_grades(text) or ())):
        text = " ".join(fields)  # [R, N, R], which is not JSON
    if text.strip()[:1] in {"[", "{"}:
        return _read_json(text.strip())
    lines = _lines(text)
    if not lines:
        problem = "the text contains only comments and separators" if text.strip() else "the text is empty"
        raise InputError(problem, fix=f"paste {_FORMS}")
    if len(lines) > 1 and all(field.lower() in _HEADER_FIELDS for field in lines[0].fields):
        lines = lines[1:]
    if all(line.fields[:-1] == [str(rank)] and _is_word(line.fields[-1]) for rank, line in enumerate(lines, 1)):
        lines = [_PastedLine(location, fields[1:]) for location, fields in lines]  # 1 R, 2 N
    inspected = lines[:_MAX_INSPECTED]
    fields = [field for line in inspected for field in line.fields]
    if not all(as_word(field) in WORDS for field in fields):
        for form, layout_name in _LAYOUTS.items():
            if _matches_layout(form.split(), inspected):
                return _read_lines(form, layout_name, lines)
    if not any(map(_is_grade, fields)):
        problem = f"{lines[0].location}: the format is unknown, got {' '.join(lines[0].fields)[:60]!a}"
        raise InputError(problem, fix=f"paste {_FORMS}")
    grades = [(field, line.location) for line in lines for field in line.fields]
    documents = [ListDocument(f"d{rank}", _grade(*grade)) for rank, grade in enumerate(grades[:MAX_DOCUMENTS], 1)]
    has_words = any(_is_word(field) for field, _ in grades[:MAX_DOCUMENTS])
    layout_name = "relevant (R, 1) or not relevant (N, 0)" if has_words else "grades"
    return _pasted_list(documents, f"{layout_name} in rank order", len(grades))


def replace_list(workspace: Workspace, query: PasteQuery, text: str) -> dict[str, Any]:
    """Replace one of the lists by a pasted one; return the new address and the detected format."""
    read, state = read_pasted(text), read_state(workspace, query)
    documents, sentence, grades = read.documents, read.read_as, dict[str, float]()
    topic = read.topic if read.topic in workspace.query_ids else query.topic
    if read.topic and topic:
        grades = grades_of(workspace.topic_data(topic, ())[0])
        documents = tuple(replace(document, grade=grades.get(document.doc)) for document in documents)
        n_judged = sum(document.grade is not None for document in documents)
        sentence += (
            f" {n_judged} of the documents are judged for topic {topic[:60]}, and get the grades of these judgments."
        )
    update: dict[str, Any] = {"other_run": None}
    if query.into == "other":
        first, grade_by_doc = state.documents, {document.doc: document.grade for document in state.documents}
        is_named = any(document.doc != f"d{rank}" for rank, document in enumerate(documents, 1))
        second = tuple(
            replace(row, is_named=is_named, grade=grade_by_doc.get(row.doc) if row.grade is None else row.grade)
            for row in documents
        )
    else:  # remove the data of the old list, and names in the second list with other grades
        update |= dict.fromkeys(("missing", "relevant", "max", "run", "topic"))
        first, grade_by_doc = documents, {document.doc: document.grade for document in documents}
        second = tuple(
            replace(row, is_named=row.is_named and grade_by_doc.get(row.doc, row.grade) == row.grade)
            for row in state.other or ()
        )
    has_two_lists = query.into == "other" or state.other is not None
    update |= {"typed": write_list(first), "other": write_list(second, is_second=True) if has_two_lists else None}
    update |= {"missing": write_missing(missing_grades(grades, first, second))} if grades else {}
    new = read_state(workspace, query.model_copy(update=update))
    replaced = new.documents if query.into == "list" else new.other or ()
    rows = [{"doc": document.doc, "grade": document.grade} for document in replaced]
    return {"list": rows, "read_as": sentence, "n_omitted": read.n_omitted, "query": new.query_string()}


def _lines(text: str) -> list[_PastedLine]:
    """Split a text into nonempty lines, and these into fields: at commas or tabs, else at blanks."""
    raw_lines = re.split(r"\r\n|\r|\n", text)
    if len(raw_lines) > _MAX_LINES:
        fix = f"paste the first {MAX_DOCUMENTS} documents"
        raise InputError(f"the text must have at most {_MAX_LINES:,} lines, got {len(raw_lines):,}", fix=fix)
    stripped_lines = ((number, line.strip(" \t,;")) for number, line in enumerate(raw_lines, 1))
    content = ((number, line) for number, line in stripped_lines if line and not line.startswith("#"))
    lines = (_PastedLine(f"line {number}", _fields(line)) for number, line in content)
    return [line for line in lines if line.fields]


def _fields(line: str) -> list[str]:
    if numbered_item := re.fullmatch(r"\(?([0-9]{1,9})[.):]\s+(.+)", line):  # as in coursework: 1. d12 relevant
        fields = _fields(re.sub(r"\s+[:=-]+\s+|:\s+", " ", numbered_item[2]))
        return fields if len(fields) == 1 else [numbered_item[1], *fields]
    if grades := split_grades(line):
        return grades
    line = join_negations(line)
    words = [field for field in re.split(r"[\s,;]+", line) if field]
    if '"' in line and "," in line:
        try:
            return [field.strip() for field in next(csv.reader([line]))]
        except (csv.Error, StopIteration):
            return words
    separator = next((mark for mark in "\t;," if mark in line), None)
    return [field.strip() for field in line.split(separator)] if separator else words


def _is_word(field: str) -> bool:
    return WORDS.get(as_word(field)) is not None


def _is_grade(field: str) -> bool:
    return as_word(field) in WORDS or NUMBER.fullmatch(field) is not None


def _grade(field: str, location: str) -> float | None:
    word = as_word(field)
    return WORDS[word] if word in WORDS else read_grade(field, location)


def _matches_layout(layout: list[str], lines: Sequence[_PastedLine]) -> bool:
    """Return whether lines have the fields of a layout: numbers at the right places, names at the others."""
    first = lines[0].fields
    grade_index = layout.index("score" if "score" in layout else "grade")
    has_bad_rank = layout[0] == "rank" and not _RANK.fullmatch(first[0])
    if len(first) != len(layout) or not _is_grade(first[grade_index]) or has_bad_rank:
        return False
    rows = [line.fields for line in lines if len(line.fields) == len(layout)]
    if layout == ["topic", "document", "score"]:  # a topic with several lines, and a fractional score
        return len({fields[0] for fields in rows}) < len(rows) and any(not fields[2].isdecimal() for fields in rows)
    names = [fields[i] for fields in rows for i, name in enumerate(layout) if name in {"Q0", "document"}]
    if any(_is_word(name) or not _is_grade(name) for name in names):
        return True
    if len(lines) == 1 or "score" in layout:
        return False
    if layout[0] == "topic":  # same topic and iteration on all lines
        return len({tuple(line.fields[:2]) for line in lines}) == 1
    return all(line.fields[0] == str(rank) for rank, line in enumerate(lines, 1))


def _read_lines(layout: str, layout_name: str, lines: Sequence[_PastedLine]) -> PastedList:
    """Parse lines of a layout; if there are several topics, only the first one."""
    names = layout.split()
    doc_index, is_run = names.index("document"), "score" in names
    number_index = names.index("score" if is_run else "grade")
    topic = lines[0].fields[0] if names[0] == "topic" else ""
    for location, fields in lines:
        has_fields = len(fields) == len(names) and (names[0] != "rank" or _RANK.fullmatch(fields[0]))
        if not has_fields or not fields[doc_index] or (is_run and not NUMBER.fullmatch(fields[number_index])):
            raise InputError(f"{location}: the fields must be {layout}", fix="write all lines in the same format")
    rows = [line for line in lines if not topic or line.fields[0] == topic]
    if names[0] == "rank":
        rows.sort(key=lambda line: int(line.fields[0]))
    if topic:
        n_other_topics = len({line.fields[0] for line in lines}) - 1
        omitted = f"; {counted(n_other_topics, 'other topic')} omitted" if n_other_topics else ""
        layout_name += f": topic {topic[:60]}{omitted}"
    read = [(read_name(fields[doc_index], location), fields[number_index], location) for location, fields in rows]
    if not is_run:
        documents = [ListDocument(name, _grade(grade, location)) for name, grade, location in read]
        return _pasted_list(documents, layout_name)
    check_distinct([ListDocument(name, None) for name, _, _ in read], "the pasted run")
    scores = {name: float(score) for name, score, _ in read}
    ranked = returned_docs(judge({"": {"": 0.0}}, {"list": scores}).over("run"))
    return replace(_pasted_list([ListDocument(name, None) for name in ranked], layout_name), topic=topic)


def _pasted_list(documents: Sequence[ListDocument], layout_name: str, count: int | None = None) -> PastedList:
    total = len(documents) if count is None else count
    distinct_documents = check_distinct(documents[:MAX_DOCUMENTS], "the pasted list")
    return PastedList(distinct_documents, f"Read as {layout_name}.", max(total - MAX_DOCUMENTS, 0))


def _read_json(text: str) -> PastedList:
    """Parse a list of grades or of documents with grades: objects, one object, or one object per line."""
    if json_kind(text, _PASTED) == "jsonl":
        lines = enumerate(text.splitlines(), 1)
        texts = ((number, line.encode(errors="surrogatepass")) for number, line in lines if line.strip())
        value = [parse_json(line, _PASTED, number) for number, line in texts]
    else:
        value = parse_json(text.encode(errors="surrogatepass"), _PASTED)
    if isinstance(value, dict):
        nested = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        value = [{"doc": doc, "grade": grade} for doc, grade in value.items()] if nested is None else nested
    documents = [_json_document(document, number) for number, document in enumerate(value[:MAX_DOCUMENTS], 1)]
    return _pasted_list(documents, "JSON, in the order of its items", len(value))


def _json_document(document: Any, number: int) -> ListDocument:
    """Parse an object with a document and its grade, or a grade."""
    location, values = f"item {number}", document if isinstance(document, dict) else {"grade": document}
    doc, grade = (next((values[key] for key in keys if key in values), None) for keys in (_DOC_KEYS, _GRADE_KEYS))
    if isinstance(doc, (bool, float, list, dict)) or isinstance(grade, (bool, list, dict)):
        fix = 'write {"doc": "a", "grade": 1}'
        raise InputError(
            f"{location}: a document with a grade, or a grade, is expected, got {str(document)[:40]!a}", fix=fix
        )
    name = "" if doc is None else read_name(str(doc), location)
    return ListDocument(name or f"d{number}", _grade(str(grade).strip(), location))
