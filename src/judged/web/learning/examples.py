"""A small worked example for each measure: which list, and how its score comes about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.explanation import explain
from judged.explanation.formula import number, readable
from judged.judging import judge_list
from judged.web.evaluator.listed import unavailable
from judged.web.evaluator.typed import read_list, read_missing, write_grade

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.explanation import Explanation, Line, Sheet
    from judged.judging import Judged
    from judged.judging.lists import Grades
    from judged.measures import Measure
    from judged.measures.base import Entry

_GIVEN: dict[str, Any] = {
    "cutoff": 5, "p": 0.8, "max": 3, "n": 1000, "factor": 0.5, "recall": 0.5, "T": 2, "A": 0.2, "L": 1000,
}  # fmt: skip
"""What the example takes for parameters that must be given."""
_USUAL: dict[str, dict[str, Any]] = {
    name: {"cutoff": 5} for name in ("nDCG", "DCG", "IdealDCG", "CG", "Judged", "Unjudged")
}
"""Other parameters, where the well-known example has them."""

_TYPED: dict[str, tuple[str, str]] = {
    "binary": ("1,0,1,0,1", "1"),
    "graded": ("3,0,2,1,0", "2"),
    "graded user": ("0,2,3,0,1", ""),
    "incomplete": ("1,-,0,1,-", "1,0"),
    "RR": ("0,1,0,1,1", ""),
}
"""Lists that readers may edit: in rank order, and what was not returned."""
_LISTS: dict[str, Grades] = {
    "diversity": ((1, 0), (0, 0), (1, 1)),
    "preferences and assessors": ((1, 0), (0, 0), (1, 1)),
    "facts about documents": (1.0, 0.0, 1.0),
}
"""Lists that need more than a grade for each document."""
_FACTS: dict[str, dict[str, list[Any]]] = {
    "TBG": {"length": [600, 300, 900]},
    "UMeasure": {"length": [200, 100, 300]},
    "AWRF": {"group": ["a", "a", "b"]},
}


@dataclass(frozen=True)
class Row:
    """One returned document of the example."""

    rank: int
    # doc, grade: the grade as it is shown; a dash where there is no judgment, one for each subtopic or assessor where
    # these differ
    doc: str
    grade: str
    facts: tuple[str, ...]  # what else is known of the document
    relevant: bool | None  # whether something of it is above grade 0; None without a judgment


@dataclass(frozen=True)
class ShownLine:
    """A line below a table: a name, and what it equals, step by step."""

    name: str
    equals: tuple[str, ...]


@dataclass(frozen=True)
class ShownSheet:
    """A table of the explanation, as text."""

    title: str
    header: tuple[str, ...]
    labels: tuple[bool, ...]  # which columns hold words, not numbers
    rows: tuple[tuple[str, ...], ...]
    how: tuple[tuple[str, str], ...]  # the columns that come from others, and how
    lines: tuple[ShownLine, ...]


@dataclass(frozen=True)
class Example:
    """A measure on a small list."""

    measure: str  # the canonical name, with the parameters of the example
    # typed, missing: the list and what was not returned, as the evaluator takes them; empty where the example cannot be
    # typed
    typed: str
    missing: str
    fixed: str  # why the example cannot be edited; empty where it can
    rows: tuple[Row, ...]
    gone: tuple[str, ...]  # the grades of judged documents that were not returned
    value: float  # the score
    sheets: tuple[ShownSheet, ...]  # how it comes about


def example_of(entry: Entry) -> Example | None:
    """Make the worked example of a measure; None for one of others that needs what is not known here."""
    measure = _with_values(entry)
    if measure is None:
        return None
    grades = _LISTS.get(entry.family)
    fixed = {one["name"]: one["why"] for one in unavailable()}.get(entry.name, "")
    if grades is None:
        typed, missing = _TYPED[_kind(entry)]
        return typed_example(measure, typed, missing, fixed=fixed)
    facts = _FACTS.get(entry.name, {})
    judged = judge_list(grades, facts=facts or None)
    rows = tuple(
        Row(
            rank=at,
            doc=f"d{at}",
            grade=(text := _grade(grade)),
            facts=tuple(f"{name} {known[at - 1]}" for name, known in facts.items()),
            relevant=any(text.strip("0, ")),
        )
        for at, grade in enumerate(grades, 1)
    )
    return _example(judged, measure, "", "", fixed or "it needs more than grades", rows, ())


def typed_example(measure: Measure, typed: str, missing: str = "", *, fixed: str = "") -> Example:
    """Work a measure out on a list as the evaluator takes it.

    >>> from judged.measures import parse
    >>> made = typed_example(parse("AP"), "1,0,1,0,1", "1")
    >>> round(made.value, 3), made.sheets[-1].lines[-1].equals[-1]
    (0.567, '0.5667')
    """
    items, gone = read_list(typed, "list"), read_missing(missing)
    judged = judge_list([item.grade for item in items], missing=gone)
    rows = tuple(
        Row(at, item.doc, "–" if item.grade is None else write_grade(item.grade), (),
            None if item.grade is None or item.grade < 0 else item.grade > 0)
        for at, item in enumerate(items, 1)
    )  # fmt: skip
    return _example(judged, measure, typed, missing, fixed, rows, tuple(map(write_grade, gone)))


def _example(
    judged: Judged, measure: Measure, typed: str, missing: str, fixed: str, rows: tuple[Row, ...], gone: tuple[str, ...]
) -> Example:
    found = explain(judged, None, measure)
    return Example(str(measure), typed, missing, fixed, rows, gone, found.score, shown(found))


def shown(explanation: Explanation) -> tuple[ShownSheet, ...]:
    """Write the tables and lines of an explanation as they are read."""
    return tuple(map(_sheet, explanation.sheets))


def _sheet(sheet: Sheet) -> ShownSheet:
    labels = tuple(
        name in {"rank", "document"} or all(isinstance(row[at], str) for row in sheet.rows)
        for at, name in enumerate(sheet.header)
    )
    return ShownSheet(
        sheet.title,
        tuple(map(readable, sheet.header)),
        labels,
        tuple(tuple(_cell(cell, name) for cell, name in zip(row, sheet.header, strict=True)) for row in sheet.rows),
        tuple((readable(name), readable(how)) for name, how in sheet.how.items()),
        tuple(map(_line, sheet.lines)),
    )


def _cell(cell: float | str | None, name: str) -> str:
    if cell is None:
        return "–" if name == "grade" else ""
    return cell if isinstance(cell, str) else number(cell)


def _line(line: Line) -> ShownLine:
    """Write each step once: a formula that is a number already is not said twice."""
    steps: Mapping[str, None] = dict.fromkeys(filter(None, (readable(line.how), line.numbers, number(line.value))))
    return ShownLine(line.name, tuple(step for step in steps if step != line.name))


def _grade(grade: Any) -> str:
    return ", ".join(f"{one:g}" for one in (grade if isinstance(grade, tuple) else (grade,)))


def _kind(entry: Entry) -> str:
    """Say which list suits a measure."""
    if entry.name in _TYPED:
        return entry.name
    if entry.family == "incomplete judgments":
        return "incomplete"
    if not entry.properties.graded:
        return "binary"
    return "graded user" if entry.family == "user model" else "graded"


def _with_values(entry: Entry) -> Measure | None:
    """Give the measure with the values of the example."""
    required = {one.name: _GIVEN.get(one.name) for one in entry.all_parameters if one.required}
    if None in required.values():
        return None
    return entry.cls(**required, **_USUAL.get(entry.name, {}))
