"""Lists as they stand in an address, read and written."""

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

MOST = 200
"""Documents of a list."""
MOST_MISSING = 5000
_LARGEST_GRADE = 1e9
_LONGEST_NAME = 500
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNJUDGED = "-"
_REPEATED = 4  # the same grade so often in a row is written with its number
_A_GRADE = f"a number from {-_LARGEST_GRADE:g} to {_LARGEST_GRADE:g}"


@dataclass(frozen=True)
class Item:
    """A document of a list."""

    doc: str
    grade: float | None  # None for a document without a judgment
    named: bool = field(default=True, repr=False)  # whether its name was given


def read_list(text: str, what: str) -> tuple[Item, ...]:
    """Read a list of an address.

    >>> read_list("3:a%20b,-,0.5", "list")
    (Item(doc='a b', grade=3.0), Item(doc='d2', grade=None), Item(doc='d3', grade=0.5))
    """
    return distinct([Item(doc or f"d{rank}", grade) for rank, (doc, grade) in enumerate(_rows(text, what), 1)], what)


def read_other(text: str, first: Sequence[Item], what: str) -> tuple[Item, ...]:
    """Read a list that stands beside a first one.

    >>> [item.doc for item in read_other("0,1,1,1:x", read_list("1,0,1:x", "list"), "other")]
    ['d2', 'd1', 'd4', 'x']
    """
    # A row without a name is taken for a document of the first list that has its grade, and else for one of its own: so
    # both lists are made of as few documents as they can be.
    rows = _rows(text, what)
    taken = {doc for doc, _ in rows}
    free: dict[float | None, deque[str]] = {}
    for item in first:
        if item.doc not in taken:
            free.setdefault(item.grade, deque()).append(item.doc)
    taken.update(item.doc for item in first)
    own = (name for number in count(len(first) + 1) if (name := f"d{number}") not in taken)
    items = [
        Item(doc or (free[grade].popleft() if free.get(grade) else next(own)), grade, named=bool(doc))
        for doc, grade in rows
    ]
    ranked = {item.doc: (rank, item.grade) for rank, item in enumerate(first, 1)}
    for rank, item in enumerate(items, 1):
        at, grade = ranked.get(item.doc, (rank, item.grade))
        if grade != item.grade:
            raise InputError(
                f"the document {item.doc!r} is graded {write_grade(grade)} at rank {at} of the list, and"
                f" {write_grade(item.grade)} at rank {rank} of {what}",
                fix="give it one grade, or another name",
            )
    return distinct(items, what)


def _rows(text: str, what: str) -> list[tuple[str, float | None]]:
    """Give the name of each row, empty where it has none, and its grade."""
    parts = text.split(",", MOST + 1) if text.strip() else []
    if len(parts) > MOST:
        raise InputError(f"{what} has more than {MOST} documents", fix=f"leave the first {MOST}")
    rows: list[tuple[str, float | None]] = []
    for rank, part in enumerate(parts, 1):
        written, _, name = part.partition(":")
        where = f"rank {rank} of {what}"
        rows.append((read_name(unquote(name), where), read_grade(written, where)))
    return rows


def distinct(items: Sequence[Item], what: str) -> tuple[Item, ...]:
    """Refuse a list that names a document twice."""
    seen: dict[str, int] = {}
    for rank, item in enumerate(items, 1):
        if (first := seen.setdefault(item.doc, rank)) != rank:
            raise InputError(
                f"{what} has the document {item.doc!r} twice, at ranks {first} and {rank}", fix="give each its own name"
            )
    return tuple(items)


def read_grade(written: str, where: str) -> float | None:
    """Read a grade, or ``-``."""
    text = written.strip()
    if text == _UNJUDGED:
        return None
    if not NUMBER.fullmatch(text) or abs(value := float(text)) > _LARGEST_GRADE:
        raise InputError(
            f"{where}: {text[:40]!r} is not a grade", fix=f"write {_A_GRADE}, or - where there is no judgment"
        )
    return value + 0.0  # -0 is 0


def read_missing(text: str) -> tuple[float, ...]:
    """Read the grades of documents that were not returned.

    >>> read_missing("4,0*3")
    (4.0, 0.0, 0.0, 0.0)
    """
    grades: list[float] = []
    for place, part in enumerate(text.split(",") if text.strip() else [], 1):
        written, star, times = part.partition("*")
        grade = read_grade(written, f"item {place} of missing")
        if grade is None:
            raise InputError("a document without a judgment cannot be missing", fix="leave it out of missing")
        if star and not re.fullmatch(r"[0-9]{1,4}", times.strip()):
            raise InputError(f"item {place} of missing: {times[:40]!r} is not a number of documents", fix="write 0*30")
        grades += [grade] * (int(times) if star else 1)
        if len(grades) > MOST_MISSING:
            raise InputError(f"more than {MOST_MISSING} documents are missing", fix="leave some out")
    return tuple(grades)


def write_list(items: Iterable[Item], *, beside: bool = False) -> str:
    """Write a list for an address. A name that is that of the rank is left out; beside a first list, one never given.

    >>> write_list(read_list("3:a%20b,-,0.5:x", "list"))
    '3:a%20b,-,0.5:x'
    """
    return ",".join(
        write_grade(item.grade)
        + (f":{quote(item.doc, safe='')}" if (item.named if beside else item.doc != f"d{rank}") else "")
        for rank, item in enumerate(items, 1)
    )


def write_grade(grade: float | None) -> str:
    """Write a grade as an address has it."""
    return _UNJUDGED if grade is None else format_value(grade)


def write_missing(grades: Iterable[float]) -> str:
    """Write the grades of missing documents.

    >>> write_missing([4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    '4,0*4,1,1'
    """
    parts: list[str] = []
    for grade, same in groupby(grades):
        times = len(list(same))
        parts += [f"{format_value(grade)}*{times}"] if times >= _REPEATED else [format_value(grade)] * times
    return ",".join(parts)


def read_name(text: str, where: str) -> str:
    """Read a document's name; it may be empty."""
    name = text.strip()
    if len(name) > _LONGEST_NAME:
        raise InputError(f"{where}: a document's name has {len(name)} characters", fix=f"at most {_LONGEST_NAME}")
    if _UNSHOWN.search(name):
        raise InputError(f"{where}: {name[:40]!a} has control characters in it", fix="leave them out")
    return name
