"""Lists that people paste: grades, documents with grades, TREC lines, JSON. Its form tells which is meant."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.answer import counted
from judged.data.json_rows import parse_json
from judged.errors import InputError
from judged.judging import judge
from judged.web.evaluator.lists import MOST, NUMBER, Item, distinct, read_grade, read_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNJUDGED = frozenset({"-", "?", "x", "X", "null", "None", "unjudged"})
_DOC_KEYS = ("doc", "doc_id", "docid", "docno", "id", "document", "name")
_GRADE_KEYS = ("grade", "relevance", "rating", "label", "rel", "judgment")
_HEADS = frozenset({*_DOC_KEYS, *_GRADE_KEYS, "grades", "documents", "rank"})
_LIST_KEYS = ("list", "results", "documents", "items")
_MOST_LINES = 20_000
_LOOKED_AT = 50  # lines that are looked at to find the form
_FORMS = "grades such as 3 0 2, lines such as 'doc grade', TREC lines, or a JSON list"
_PASTED = "the pasted text"
_LAYOUTS = {
    "topic Q0 document rank score name": "a TREC run, by descending score",
    "topic 0 document grade": "TREC qrels, in the order of their lines",
    "rank document grade": "lines of rank, document and grade",
    "document grade": "lines of document and grade, in rank order",
}
"""The fields of a line, and what such lines are called; the first that fits is taken."""


@dataclass(frozen=True)
class Read:
    """What was read from a text."""

    items: tuple[Item, ...]
    read_as: str  # what it was taken for, as a sentence
    cut: int  # how many documents were left out


class _Line(NamedTuple):
    """A line that says something: where it stands, and its fields."""

    where: str
    fields: list[str]


def read_pasted(text: str) -> Read:
    r"""Read a list from a text, and say what it was taken for.

    >>> read = read_pasted("3 0 ? 1")
    >>> [item.grade for item in read.items], read.read_as
    ([3.0, 0.0, None, 1.0], 'Read as grades in rank order.')
    >>> read_pasted("a 2\nb -").items
    (Item(doc='a', grade=2.0), Item(doc='b', grade=None))
    """
    text = text.lstrip("\ufeff")
    bare = text.strip()
    if not bare:
        raise InputError("nothing was pasted", fix=f"paste {_FORMS}")
    if bare[0] in "[{":
        return _read_json(bare)
    lines = _lines(text)
    if not lines:
        raise InputError("there are only comments and separators", fix=f"paste {_FORMS}")
    if len(lines) > 1 and all(field.lower() in _HEADS for field in lines[0].fields):
        lines = lines[1:]
    for form, what in _LAYOUTS.items():
        if _fits(form.split(), lines[:_LOOKED_AT]):
            return _read_lines(form, what, lines)
    if any(_is_grade(field) for line in lines[:_LOOKED_AT] for field in line.fields):
        fields = [(field, line.where) for line in lines for field in line.fields]
        items = [Item(f"d{rank}", _grade(*field)) for rank, field in enumerate(fields[:MOST], 1)]
        return _made(items, "grades in rank order", len(fields))
    problem = f"{lines[0].where}: cannot read {' '.join(lines[0].fields)[:60]!a}"
    raise InputError(problem, fix=f"paste {_FORMS}")


def _lines(text: str) -> list[_Line]:
    """Cut into lines with something in them, and these into fields: at commas or tabs, else at blanks."""
    written = re.split(r"\r\n|\r|\n", text)
    if len(written) > _MOST_LINES:
        fix = f"paste the first {MOST} documents"
        raise InputError(f"there are {len(written):,} lines, more than {_MOST_LINES:,}", fix=fix)
    bare = ((at, line.strip(" \t,;")) for at, line in enumerate(written, 1))
    lines = (_Line(f"line {at}", _fields(line)) for at, line in bare if line and not line.startswith("#"))
    return [line for line in lines if line.fields]


def _fields(line: str) -> list[str]:
    loose = [field for field in re.split(r"[\s,;]+", line) if field]
    if all(map(_is_grade, loose)):
        return loose
    if '"' in line and "," in line:
        try:
            return [field.strip() for field in next(csv.reader([line]))]
        except (csv.Error, StopIteration):
            return loose
    separator = next((mark for mark in "\t;," if mark in line), None)
    return [field.strip() for field in line.split(separator)] if separator else loose


def _is_grade(field: str) -> bool:
    return field in _UNJUDGED or NUMBER.fullmatch(field) is not None


def _grade(field: str, where: str) -> float | None:
    return None if field in _UNJUDGED else read_grade(field, where)


def _fits(form: list[str], lines: Sequence[_Line]) -> bool:
    """Whether lines have the fields of a layout: a number where one belongs, and names, or what stands for them."""
    first = lines[0].fields
    number = form.index("score" if "score" in form else "grade")
    if len(first) != len(form) or not _is_grade(first[number]) or (form[0] == "rank" and not first[0].isdecimal()):
        return False
    names = [at for at, name in enumerate(form) if name in {"Q0", "document"}]
    same = [line.fields for line in lines if len(line.fields) == len(form)]
    if any(not _is_grade(fields[at]) for fields in same for at in names):
        return True
    if len(lines) == 1 or "score" in form:
        return False
    if form[0] == "topic":  # all of one topic and iteration
        return len({tuple(line.fields[:2]) for line in lines}) == 1
    return all(line.fields[0] == str(rank) for rank, line in enumerate(lines, 1))


def _read_lines(form: str, what: str, lines: Sequence[_Line]) -> Read:
    """Read lines of a layout; of several topics, the first."""
    names = form.split()
    doc, is_run, topic = names.index("document"), "score" in names, lines[0].fields[0]
    rows: list[tuple[str, str, str, str]] = []
    for where, fields in lines:
        fits = len(fields) == len(names) and (names[0] != "rank" or re.fullmatch(r"[0-9]{1,9}", fields[0]))
        if not fits or (is_run and not NUMBER.fullmatch(fields[4])):
            raise InputError(f"{where} is none of {what.partition(',')[0]}", fix=f"write: {form}")
        if names[0] != "topic" or fields[0] == topic:
            name = read_name(fields[doc], where)
            if not name:
                raise InputError(f"{where} has no document", fix="name it")
            rows.append((fields[0], name, fields[4 if is_run else -1], where))
    if names[0] == "topic":
        others = len({line.fields[0] for line in lines}) - 1
        what += f": topic {topic[:60]}" + (f"; {counted(others, 'other topic')} left out" if others else "")
    if names[0] == "rank":
        rows.sort(key=lambda row: int(row[0]))
    if is_run:
        return _made([Item(name, None) for name in _by_score(rows)], what)
    return _made([Item(name, _grade(grade, where)) for _, name, grade, where in rows], what)


def _by_score(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """Rank the documents of one topic as a run is ranked."""
    scores: dict[str, float] = {}
    for _, doc, score, where in rows:
        if doc in scores:
            raise InputError(f"{where}: the document {doc!r} stands twice", fix="leave one out")
        scores[doc] = float(score)
    every = judge({"": {"": 0.0}}, {"list": scores}).over("run").everything
    return every.doc.take(np.argsort(every.rank, kind="stable")).to_pylist()


def _made(items: Sequence[Item], what: str, given: int | None = None) -> Read:
    total = len(items) if given is None else given
    return Read(distinct(items[:MOST], "the pasted list"), f"Read as {what}.", max(total - MOST, 0))


def _read_json(text: str) -> Read:
    value = _loaded(text)
    if isinstance(value, dict):
        inside = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        value = [{"doc": doc, "grade": grade} for doc, grade in value.items()] if inside is None else inside
    items = [_json_item(item, at) for at, item in enumerate(value[:MOST], 1)]
    return _made(items, "JSON, in the order of its items", len(value))


def _loaded(text: str) -> Any:
    """Read JSON, or one object a line."""
    try:
        return parse_json(text.encode(errors="surrogatepass"), _PASTED)
    except InputError:
        lines = text.splitlines()
        if text[0] != "{" or len(lines) == 1 or not lines[0].rstrip().endswith("}"):
            raise
        return [parse_json(line.encode(), _PASTED, at) for at, line in enumerate(lines, 1) if line.strip()]


def _json_item(item: Any, at: int) -> Item:
    """Read an object with a document and its grade, or a grade alone."""
    where = f"item {at}"
    known = item if isinstance(item, dict) else {"grade": item}
    doc = next((known[key] for key in _DOC_KEYS if key in known), None)
    if doc is not None and (isinstance(doc, bool) or not isinstance(doc, (str, int))):
        fix = 'write {"doc": "a", "grade": 1}'
        raise InputError(f"{where}: a document's name is a text or a whole number", fix=fix)
    grade = next((known[key] for key in _GRADE_KEYS if key in known), None)
    if isinstance(grade, (bool, list, dict)):
        raise InputError(f"{where}: {str(grade)[:40]!a} is not a grade", fix="write a number, or null")
    name = "" if doc is None else read_name(str(doc), where)
    return Item(name or f"d{at}", _grade(str(grade).strip(), where))
