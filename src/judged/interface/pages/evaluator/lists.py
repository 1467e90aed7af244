"""Read and write lists in the format of the evaluator's query parameters."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from judged.errors import InputError
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_DOCUMENTS = 200
"""Maximum number of documents of a list."""
MAX_MISSING = 5000
_LARGEST_GRADE = 1e9
_MAX_NAME_LENGTH = 500
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNJUDGED = "-"
_MIN_REPEATS = 4  # runs of at least as many equal grades are written as grade*count
_A_GRADE = f"a number from {-_LARGEST_GRADE:g} to {_LARGEST_GRADE:g}"


@dataclass(frozen=True)
class ListDocument:
    """A document of a list, with its grade."""

    doc: str
    grade: float | None  # None if unjudged
    is_named: bool = field(default=True, repr=False)  # whether the list names it


def read_list(text: str, list_name: str) -> tuple[ListDocument, ...]:
    """Parse a list of documents.

    >>> read_list("3:a%20b,-,0.5", "list")
    (ListDocument(doc='a b', grade=3.0), ListDocument(doc='d2', grade=None), ListDocument(doc='d3', grade=0.5))
    """
    rows = enumerate(_rows(text, list_name), 1)
    return check_distinct([ListDocument(doc or f"d{rank}", grade) for rank, (doc, grade) in rows], list_name)


def read_second_list(text: str, first: Sequence[ListDocument], list_name: str) -> tuple[ListDocument, ...]:
    """Parse a list that is compared with a first one.

    >>> [document.doc for document in read_second_list("0,1,1,1:x", read_list("1,0,1:x", "list"), "other")]
    ['d2', 'd1', 'd4', 'x']
    """
    # A row without a name is matched with a document of the first list that has the same grade, else with a new one, so
    # that both lists together have as few documents as possible.
    rows = _rows(text, list_name)
    used_docs = {doc for doc, _ in rows}
    unused: dict[float | None, deque[str]] = {}
    for document in first:
        if document.doc not in used_docs:
            unused.setdefault(document.grade, deque()).append(document.doc)
    used_docs.update(document.doc for document in first)
    new = (name for number in count(len(first) + 1) if (name := f"d{number}") not in used_docs)
    documents = [
        ListDocument(doc or (unused[grade].popleft() if unused.get(grade) else next(new)), grade, is_named=bool(doc))
        for doc, grade in rows
    ]
    ranked = {document.doc: (rank, document.grade) for rank, document in enumerate(first, 1)}
    for rank, document in enumerate(documents, 1):
        first_rank, grade = ranked.get(document.doc, (rank, document.grade))
        if grade != document.grade:
            raise InputError(
                f"the document {document.doc!r} has two grades: {write_grade(grade)} at rank {first_rank} of the list,"
                f" and {write_grade(document.grade)} at rank {rank} of {list_name}",
                fix="use the same grade, or another document name",
            )
    return check_distinct(documents, list_name)


def _rows(text: str, list_name: str) -> list[tuple[str, float | None]]:
    """Return the name (empty if it has none) and the grade of each row."""
    parts = text.split(",", MAX_DOCUMENTS + 1) if text.strip() else []
    if len(parts) > MAX_DOCUMENTS:
        raise InputError(f"{list_name} must have at most {MAX_DOCUMENTS} documents", fix="remove documents")
    rows: list[tuple[str, float | None]] = []
    for rank, part in enumerate(parts, 1):
        grade, _, name = part.partition(":")
        location = f"rank {rank} of {list_name}"
        rows.append((read_name(unquote(name), location), read_grade(grade, location)))
    return rows


def check_distinct(documents: Sequence[ListDocument], list_name: str) -> tuple[ListDocument, ...]:
    """Return a list as a tuple. Raise an error if it names a document twice."""
    rank_by_doc: dict[str, int] = {}
    for rank, document in enumerate(documents, 1):
        if (first := rank_by_doc.setdefault(document.doc, rank)) != rank:
            problem = f"{list_name} contains the document {document.doc!r} twice, at ranks {first} and {rank}"
            raise InputError(problem, fix="use different names")
    return tuple(documents)


def read_grade(written: str, location: str) -> float | None:
    """Parse a grade, or ``-`` for no judgment."""
    stripped = written.strip()
    if stripped == _UNJUDGED:
        return None
    if not NUMBER.fullmatch(stripped) or abs(value := float(stripped)) > _LARGEST_GRADE:
        fix = f"write {_A_GRADE}, or - for an unjudged document"
        raise InputError(f"{location}: a grade is expected, got {stripped[:40]!r}", fix=fix)
    return value + 0.0  # -0 is 0


def read_missing(text: str) -> tuple[float, ...]:
    """Parse the grades of documents that were not returned.

    >>> read_missing("4,0*3")
    (4.0, 0.0, 0.0, 0.0)
    """
    grades: list[float] = []
    for position, part in enumerate(text.split(",") if text.strip() else [], 1):
        grade_text, has_count, count_text = part.partition("*")
        grade = read_grade(grade_text, f"item {position} of missing")
        if grade is None:
            raise InputError("`missing` must contain grades only, got - (unjudged)", fix="remove - from `missing`")
        if has_count and not re.fullmatch(r"[0-9]{1,4}", count_text.strip()):
            problem = f"the count in item {position} of missing must be 0 to 9999, got {count_text[:40]!r}"
            raise InputError(problem, fix="write 0*30")
        grades += [grade] * (int(count_text) if has_count else 1)
        if len(grades) > MAX_MISSING:
            raise InputError(f"`missing` must have at most {MAX_MISSING} grades", fix="remove grades")
    return tuple(grades)


def write_list(documents: Iterable[ListDocument], *, is_second: bool = False) -> str:
    """Format a list. Names that equal the default of their rank, or of a second list the unnamed ones, are omitted.

    >>> write_list(read_list("3:a%20b,-,0.5:x", "list"))
    '3:a%20b,-,0.5:x'
    """
    texts: list[str] = []
    for rank, document in enumerate(documents, 1):
        has_name = document.is_named if is_second else document.doc != f"d{rank}"
        texts.append(write_grade(document.grade) + (f":{quote(document.doc, safe='')}" if has_name else ""))
    return ",".join(texts)


def write_grade(grade: float | None) -> str:
    """Format a grade."""
    return _UNJUDGED if grade is None else format_value(grade)


def write_missing(grades: Iterable[float]) -> str:
    """Format the grades of missing documents.

    >>> write_missing([4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    '4,0*4,1,1'
    """
    texts: list[str] = []
    for grade, equal_grades in groupby(grades):
        n = len(list(equal_grades))
        texts += [f"{format_value(grade)}*{n}"] if n >= _MIN_REPEATS else [format_value(grade)] * n
    return ",".join(texts)


def read_name(text: str, location: str) -> str:
    """Parse the name of a document; it may be empty."""
    name = text.strip()
    if len(name) > _MAX_NAME_LENGTH:
        problem = f"{location}: a name must have at most {_MAX_NAME_LENGTH} characters, got {len(name)}"
        raise InputError(problem, fix="shorten it")
    if _CONTROL_CHARACTERS.search(name):
        raise InputError(f"{location}: {name[:40]!a} contains control characters", fix="remove them")
    return name
