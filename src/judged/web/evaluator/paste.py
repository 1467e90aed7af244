"""Lists that people paste: grades, documents with grades, TREC lines, JSON. What is meant is told by its form."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.answer import counted
from judged.data.json_rows import unique_keys
from judged.errors import InputError
from judged.judging import judge
from judged.web.evaluator.lists import MOST, Item, distinct, read_grade, read_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNJUDGED = frozenset({"-", "?", "x", "X", "null", "None", "unjudged"})
_GRADE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_RANK, _ANYTHING = re.compile(r"[0-9]{1,9}"), re.compile(r".*", re.DOTALL)
_SEPARATOR = re.compile(r"[\s,;]+")
_DOC_KEYS = ("doc", "doc_id", "docid", "docno", "id", "document", "name")
_GRADE_KEYS = ("grade", "relevance", "rating", "label", "rel", "judgment")
_HEADS = frozenset({*_DOC_KEYS, *_GRADE_KEYS, "grades", "documents", "rank"})
_LIST_KEYS = ("list", "results", "documents", "items")
_MOST_LINES = 20_000
_LOOKED_AT = 50  # lines from which the form is told
_FORMS = "grades such as 3 0 2, lines such as 'doc grade', TREC lines, or a JSON list"


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
    bare = text.lstrip("\ufeff").strip()
    if not bare:
        raise InputError("nothing was pasted", fix=f"paste {_FORMS}")
    if bare[0] in "[{":
        return _read_json(bare)
    lines = _lines(text.lstrip("\ufeff"))
    if not lines:
        raise InputError("there are only comments and separators", fix=f"paste {_FORMS}")
    for is_form, read in _LAYOUTS:
        if is_form(lines[:_LOOKED_AT]):
            return read(lines)
    first = lines[1] if len(lines) > 1 and _is_head(lines[0]) else lines[0]
    raise InputError(f"{first.where}: cannot read {' '.join(first.fields)[:60]!a}", fix=f"paste {_FORMS}")


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
    loose = [field for field in _SEPARATOR.split(line) if field]
    if all(map(_is_grade, loose)):
        return loose
    if '"' in line and "," in line:
        try:
            return [field.strip() for field in next(csv.reader([line]))]
        except (csv.Error, StopIteration):
            return loose
    separator = next((one for one in "\t;," if one in line), None)
    return loose if separator is None else [field.strip() for field in line.split(separator)]


def _is_grade(field: str) -> bool:
    return field in _UNJUDGED or _GRADE.fullmatch(field) is not None


def _is_head(line: _Line) -> bool:
    return len(line.fields) > 1 and all(field.lower() in _HEADS for field in line.fields)


def _below_head(lines: Sequence[_Line]) -> Sequence[_Line]:
    return lines[1:] if _is_head(lines[0]) and len(lines) > 1 else lines


def _counts_up(lines: Sequence[_Line]) -> bool:
    """Whether the first fields are ranks: 1, 2, 3 and so on, on more than one line."""
    return len(lines) > 1 and all(line.fields[0] == str(rank) for rank, line in enumerate(lines, 1))


# ---- the forms: which one it is, and how it is read


def _fits(line: _Line, width: int, grade: int) -> bool:
    return len(line.fields) == width and _is_grade(line.fields[grade])


def _names(lines: Sequence[_Line], width: int, doc: int) -> bool:
    """Whether a field has names of documents in it, and not grades only."""
    return any(len(line.fields) == width and not _is_grade(line.fields[doc]) for line in lines)


def _is_run(lines: Sequence[_Line]) -> bool:
    return _fits(lines[0], 6, 4) and (_names(lines, 6, 1) or _names(lines, 6, 2))


def _read_run(lines: Sequence[_Line]) -> Read:
    topic = lines[0].fields[0]
    scores: dict[str, float] = {}
    for line in lines:
        if len(line.fields) != 6 or not _GRADE.fullmatch(line.fields[4]):
            raise InputError(f"{line.where} is no line of a run", fix="write: topic Q0 document rank score name")
        if line.fields[0] == topic:
            doc = read_name(line.fields[2], line.where)
            if doc in scores:
                raise InputError(f"{line.where}: the document {doc!r} stands twice", fix="leave one out")
            scores[doc] = float(line.fields[4])
    every = judge({"": {"": 0.0}}, {topic: scores}).over("run").everything
    docs: list[str] = every.doc.take(np.argsort(every.rank, kind="stable")).to_pylist()
    return _made([Item(doc, None) for doc in docs], f"a TREC run, by falling score{_of_topic(lines, topic)}")


def _is_qrels(lines: Sequence[_Line]) -> bool:
    alike = len(lines) > 1 and len({tuple(line.fields[:2]) for line in lines}) == 1
    return _fits(lines[0], 4, 3) and (alike or _names(lines, 4, 2))


def _read_qrels(lines: Sequence[_Line]) -> Read:
    topic = lines[0].fields[0]
    kept = [line for line in lines if line.fields[0] == topic or len(line.fields) != 4]
    items = _graded(kept, 4, "no line of qrels", "topic 0 document grade")
    return _made(items, f"TREC qrels, in the order of their lines{_of_topic(lines, topic)}")


def _is_ranked(lines: Sequence[_Line]) -> bool:
    lines = _below_head(lines)
    begins = _fits(lines[0], 3, 2) and lines[0].fields[0].isdecimal()
    return begins and (_counts_up(lines) or _names(lines, 3, 1))


def _read_ranked(lines: Sequence[_Line]) -> Read:
    below = _below_head(lines)
    items = _graded(below, 3, "not rank, document and grade", "1 document 3", _RANK)
    ranked = sorted(zip(below, items, strict=True), key=lambda pair: int(pair[0].fields[0]))
    return _made([item for _, item in ranked], "lines of rank, document and grade")


def _is_pairs(lines: Sequence[_Line]) -> bool:
    lines = _below_head(lines)
    return _fits(lines[0], 2, 1) and (_counts_up(lines) or _names(lines, 2, 0))


def _read_pairs(lines: Sequence[_Line]) -> Read:
    items = _graded(_below_head(lines), 2, "not a document and its grade", "document 3")
    return _made(items, "lines of document and grade, in rank order")


def _is_grades(lines: Sequence[_Line]) -> bool:
    return any(_is_grade(field) for line in lines for field in line.fields)


def _read_grades(lines: Sequence[_Line]) -> Read:
    lines = lines[1:] if len(lines) > 1 and all(field.lower() in _HEADS for field in lines[0].fields) else lines
    items: list[Item] = []
    total = 0
    for line in lines:
        for field in line.fields:
            if total < MOST:
                items.append(Item(f"d{total + 1}", _grade(field, line.where)))
            total += 1
    return _made(items, "grades in rank order", total)


_LAYOUTS: tuple[tuple[Callable[[Sequence[_Line]], bool], Callable[[Sequence[_Line]], Read]], ...] = (
    (_is_run, _read_run),
    (_is_qrels, _read_qrels),
    (_is_ranked, _read_ranked),
    (_is_pairs, _read_pairs),
    (_is_grades, _read_grades),
)
"""The first that fits is taken."""


def _graded(lines: Sequence[_Line], width: int, wrong: str, fix: str, first: re.Pattern[str] = _ANYTHING) -> list[Item]:
    """Read lines that end with a document and its grade."""
    items: list[Item] = []
    for line in lines:
        if len(line.fields) != width or not first.fullmatch(line.fields[0]):
            raise InputError(f"{line.where} is {wrong}", fix=f"write: {fix}")
        name = read_name(line.fields[-2], line.where)
        if not name:
            raise InputError(f"{line.where} has no document", fix="name it")
        items.append(Item(name, _grade(line.fields[-1], line.where)))
    return items


def _grade(field: str, where: str) -> float | None:
    return None if field in _UNJUDGED else read_grade(field, where)


def _of_topic(lines: Sequence[_Line], topic: str) -> str:
    others = len({line.fields[0] for line in lines}) - 1
    rest = f"; {counted(others, 'other topic')} left out" if others else ""
    return f": topic {topic[:60]}{rest}"


def _made(items: Sequence[Item], what: str, given: int | None = None) -> Read:
    total = len(items) if given is None else given
    return Read(distinct(items[:MOST], "the pasted list"), f"Read as {what}.", total - min(total, MOST))


# ---- JSON


def _read_json(text: str) -> Read:
    try:
        value = _loaded(text)
    except (ValueError, RecursionError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "it is too deep"
        if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
            what = str(error)[:80]
        raise InputError(f"this is no JSON: {what}", fix="check brackets, commas and quotes") from None
    if isinstance(value, dict):
        inside = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        value = [{"doc": doc, "grade": grade} for doc, grade in value.items()] if inside is None else inside
    items = [_json_item(one, at) for at, one in enumerate(value[:MOST], 1)]
    return _made(items, "JSON, in the order of its items", len(value))


def _loaded(text: str) -> Any:
    """Read JSON, or one object a line."""
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refused)
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if text[0] != "{" or len(lines) < 2 or not lines[0].rstrip().endswith("}"):
            raise
        return [json.loads(line, object_pairs_hook=unique_keys, parse_constant=_refused) for line in lines]


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no grade")


def _json_item(one: Any, at: int) -> Item:
    where = f"item {at}"
    if not isinstance(one, dict):
        return Item(f"d{at}", _json_grade(one, where))
    doc = next((one[key] for key in _DOC_KEYS if key in one), None)
    if doc is not None and (isinstance(doc, bool) or not isinstance(doc, (str, int))):
        raise InputError(
            f"{where}: a document's name is a text or a whole number", fix='write {"doc": "a", "grade": 1}'
        )
    grade = next((one[key] for key in _GRADE_KEYS if key in one), None)
    named = "" if doc is None else read_name(str(doc), where)
    return Item(named or f"d{at}", _json_grade(grade, where))


def _json_grade(value: Any, where: str) -> float | None:
    if isinstance(value, str):
        return _grade(value.strip(), where)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise InputError(f"{where}: {str(value)[:40]!a} is no grade", fix="write a number, or null")
    return None if value is None else read_grade(repr(value), where)
