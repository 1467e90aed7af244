"""Lists that people paste: grades, documents with grades, lines of runs, JSON. Its form tells which is meant."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from judged.data.json_rows import json_kind, parse_json
from judged.errors import InputError
from judged.interface.pages.evaluator.lists import (
    MOST,
    NUMBER,
    Item,
    distinct,
    read_grade,
    read_name,
    write_list,
    write_missing,
)
from judged.interface.pages.evaluator.state import grades_of, missing_of, read_state, returned_docs
from judged.results import counted
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.pages.evaluator.state import AskedPaste
    from judged.interface.pages.workspace import Workspace

_UNJUDGED = frozenset({"-", "?", "x", "null", "none", "unjudged"})
_WORDS = dict.fromkeys(("r", "rel", "relevant", "yes", "true"), 1.0) | dict.fromkeys(
    ("n", "nr", "nonrel", "nonrelevant", "non-relevant", "notrelevant", "irrelevant", "no", "false"), 0.0
)
_DOC_KEYS = ("doc", "doc_id", "docid", "docno", "id", "document", "name")
_GRADE_KEYS = ("grade", "relevance", "rating", "label", "rel", "judgment")
_HEADS = frozenset({*_DOC_KEYS, *_GRADE_KEYS, "grades", "documents", "rank"})
_LIST_KEYS = ("list", "results", "documents", "items")
_MOST_LINES = 20_000
_LOOKED_AT = 50  # lines that are looked at to find the form
_FORMS = "grades such as 3 0 2 or R N R, lines such as 'doc grade', TREC lines, or a JSON list"
_PASTED = "the pasted text"
_RANK = re.compile(r"[0-9]{1,9}")
_LAYOUTS = {
    "topic Q0 document rank score name": "a TREC run, by descending score",
    "topic 0 document grade": "TREC qrels, in the order of their lines",
    "topic document score": "lines of topic, document and score, by descending score",
    "rank document grade": "lines of rank, document and grade",
    "topic document grade": "lines of topic, document and grade",
    "document grade": "lines of document and grade, in rank order",
}
"""The fields of a line, and what such lines are called; the first that fits is taken."""


@dataclass(frozen=True)
class Read:
    """What was read from a text."""

    items: tuple[Item, ...]
    read_as: str  # what it was taken for, as a sentence
    cut: int  # how many documents were left out
    topic: str = ""  # that of the lines, if they are those of a run


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
    if text.strip()[:1] in {"[", "{"}:
        return _read_json(text.strip())
    lines = _lines(text)
    if not lines:
        problem = "there are only comments and separators" if text.strip() else "nothing was pasted"
        raise InputError(problem, fix=f"paste {_FORMS}")
    if len(lines) > 1 and all(field.lower() in _HEADS for field in lines[0].fields):
        lines = lines[1:]
    if all(line.fields[:-1] == [str(rank)] and _is_word(line.fields[-1]) for rank, line in enumerate(lines, 1)):
        lines = [_Line(where, fields[1:]) for where, fields in lines]  # 1 R, 2 N
    first = lines[:_LOOKED_AT]
    fields = [field for line in first for field in line.fields]
    if not all(_is_word(field) or field.lower() in _UNJUDGED for field in fields):
        for form, what in _LAYOUTS.items():
            if _fits(form.split(), first):
                return _read_lines(form, what, lines)
    if not any(map(_is_grade, fields)):
        problem = f"{lines[0].where}: cannot read {' '.join(lines[0].fields)[:60]!a}"
        raise InputError(problem, fix=f"paste {_FORMS}")
    grades = [(field, line.where) for line in lines for field in line.fields]
    items = [Item(f"d{rank}", _grade(*grade)) for rank, grade in enumerate(grades[:MOST], 1)]
    what = "relevant (R, 1) or not (N, 0)" if any(_is_word(field) for field, _ in grades[:MOST]) else "grades"
    return _made(items, f"{what} in rank order", len(grades))


def pasted(workspace: Workspace, asked: AskedPaste, text: str) -> dict[str, Any]:
    """Put what was pasted in the place of one of the lists; give the address, and say what the text was taken for."""
    read, state = read_pasted(text), read_state(workspace, asked)
    items, said, grades = read.items, read.read_as, dict[str, float]()
    topic = read.topic if read.topic in workspace.query_ids else asked.topic
    if read.topic and topic:
        grades = grades_of(workspace.one_topic(topic, ())[0])
        items = tuple(replace(item, grade=grades.get(item.doc)) for item in items)
        found = sum(item.grade is not None for item in items)
        said += f" Graded by the judgments of topic {topic[:60]}, which know {found} of them."
    update: dict[str, Any] = {"other_run": None}
    if asked.into == "other":
        first, known = state.items, {item.doc: item.grade for item in state.items}
        named = any(item.doc != f"d{rank}" for rank, item in enumerate(items, 1))
        graded = ((item, known.get(item.doc) if item.grade is None else item.grade) for item in items)
        second = tuple(replace(item, named=named, grade=grade) for item, grade in graded)
    else:  # what was so of the old list is gone, and names that the second list has with other grades
        update |= dict.fromkeys(("missing", "relevant", "max", "run", "topic"))
        first, known = items, {item.doc: item.grade for item in items}
        fits = ((item, known.get(item.doc, item.grade) == item.grade) for item in state.other or ())
        second = tuple(replace(item, named=item.named and same) for item, same in fits)
    both = asked.into == "other" or state.other is not None
    update |= {"typed": write_list(first), "other": write_list(second, beside=True) if both else None}
    update |= {"missing": write_missing(missing_of(grades, first, second))} if grades else {}
    new = read_state(workspace, asked.model_copy(update=update))
    rows = [{"doc": item.doc, "grade": item.grade} for item in (new.items if asked.into == "list" else new.other or ())]
    return {"list": rows, "read_as": said, "cut": read.cut, "query": new.query()}


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
    if re.fullmatch(r"[RN]{2,}", line):
        return list(line)
    line = re.sub(r"\b(not|non)\s+(?=rel)", "non", line, flags=re.IGNORECASE)
    if numbered := re.fullmatch(r"\(?([0-9]{1,9})[.):]\s+(.+)", line):  # a list of coursework: 1. d12 relevant
        fields = _fields(re.sub(r"\s+[:=-]+\s+|:\s+", " ", numbered[2]))
        return fields if len(fields) == 1 else [numbered[1], *fields]
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


def _is_word(field: str) -> bool:
    return field.lower() in _WORDS


def _is_grade(field: str) -> bool:
    return field.lower() in _UNJUDGED or _is_word(field) or NUMBER.fullmatch(field) is not None


def _grade(field: str, where: str) -> float | None:
    word = field.lower()
    return None if word in _UNJUDGED else _WORDS[word] if word in _WORDS else read_grade(field, where)


def _fits(form: list[str], lines: Sequence[_Line]) -> bool:
    """Whether lines have the fields of a layout: a number where one belongs, and names, or what stands for them."""
    first = lines[0].fields
    number = form.index("score" if "score" in form else "grade")
    if len(first) != len(form) or not _is_grade(first[number]) or (form[0] == "rank" and not _RANK.fullmatch(first[0])):
        return False
    same = [line.fields for line in lines if len(line.fields) == len(form)]
    if form == ["topic", "document", "score"]:  # one topic on several lines, and a score that is no whole number
        return len({fields[0] for fields in same}) < len(same) and any(not fields[2].isdecimal() for fields in same)
    names = [fields[at] for fields in same for at, name in enumerate(form) if name in {"Q0", "document"}]
    if any(_is_word(name) or not _is_grade(name) for name in names):
        return True
    if len(lines) == 1 or "score" in form:
        return False
    if form[0] == "topic":  # all of one topic and iteration
        return len({tuple(line.fields[:2]) for line in lines}) == 1
    return all(line.fields[0] == str(rank) for rank, line in enumerate(lines, 1))


def _read_lines(form: str, what: str, lines: Sequence[_Line]) -> Read:
    """Read lines of a layout; of several topics, the first."""
    names = form.split()
    doc, is_run = names.index("document"), "score" in names
    number = names.index("score" if is_run else "grade")
    topic = lines[0].fields[0] if names[0] == "topic" else ""
    for where, fields in lines:
        fits = len(fields) == len(names) and (names[0] != "rank" or _RANK.fullmatch(fields[0]))
        if not fits or not fields[doc] or (is_run and not NUMBER.fullmatch(fields[number])):
            raise InputError(f"{where} is none of {what.partition(',')[0]}", fix=f"write: {form}")
    rows = [line for line in lines if not topic or line.fields[0] == topic]
    if names[0] == "rank":
        rows.sort(key=lambda line: int(line.fields[0]))
    if topic:
        others = len({line.fields[0] for line in lines}) - 1
        what += f": topic {topic[:60]}" + (f"; {counted(others, 'other topic')} left out" if others else "")
    read = [(read_name(fields[doc], where), fields[number], where) for where, fields in rows]
    if not is_run:
        return _made([Item(name, _grade(grade, where)) for name, grade, where in read], what)
    distinct([Item(name, None) for name, _, _ in read], "the pasted run")
    scores = {name: float(score) for name, score, _ in read}
    ranked = returned_docs(judge({"": {"": 0.0}}, {"list": scores}).over("run"))
    return replace(_made([Item(name, None) for name in ranked], what), topic=topic)


def _made(items: Sequence[Item], what: str, given: int | None = None) -> Read:
    total = len(items) if given is None else given
    return Read(distinct(items[:MOST], "the pasted list"), f"Read as {what}.", max(total - MOST, 0))


def _read_json(text: str) -> Read:
    """Read a list of grades, or of documents with grades: an object each, or one object; or one object a line."""
    if json_kind(text, _PASTED) == "jsonl":
        lines = enumerate(text.splitlines(), 1)
        value = [parse_json(line.encode(errors="surrogatepass"), _PASTED, at) for at, line in lines if line.strip()]
    else:
        value = parse_json(text.encode(errors="surrogatepass"), _PASTED)
    if isinstance(value, dict):
        inside = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        value = [{"doc": doc, "grade": grade} for doc, grade in value.items()] if inside is None else inside
    items = [_json_item(item, at) for at, item in enumerate(value[:MOST], 1)]
    return _made(items, "JSON, in the order of its items", len(value))


def _json_item(item: Any, at: int) -> Item:
    """Read an object with a document and its grade, or a grade alone."""
    where, known = f"item {at}", item if isinstance(item, dict) else {"grade": item}
    doc, grade = (next((known[key] for key in keys if key in known), None) for keys in (_DOC_KEYS, _GRADE_KEYS))
    if isinstance(doc, (bool, float, list, dict)) or isinstance(grade, (bool, list, dict)):
        fix = 'write {"doc": "a", "grade": 1}'
        raise InputError(f"{where}: {str(item)[:40]!a} is not a document with its grade, or a grade", fix=fix)
    name = "" if doc is None else read_name(str(doc), where)
    return Item(name or f"d{at}", _grade(str(grade).strip(), where))
