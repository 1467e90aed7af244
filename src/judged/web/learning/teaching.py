"""A lesson with its numbers: what is computed of its list, before and after the change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from judged.errors import InputError
from judged.measures import parse
from judged.web.learning.examples import Example, Row, typed_example
from judged.web.learning.lesson import KnownError
from judged.web.learning.lessons import LESSONS
from judged.web.learning.numbers import Score

if TYPE_CHECKING:
    from judged.web.learning.lesson import Lesson


@dataclass(frozen=True)
class Moved:
    """A measure before and after the change of a lesson."""

    measure: str
    family: str
    before: float
    after: float
    moves: bool


@dataclass(frozen=True)
class Step:
    """A lesson in the table of contents."""

    key: str
    number: int
    title: str
    idea: str


@dataclass(frozen=True)
class Taught:
    """A lesson, worked out. Texts are a little Markdown: code between backticks."""

    key: str
    title: str
    idea: str
    # number, of: its place, and how many lessons there are
    number: int
    of: int
    text: tuple[str, ...]
    example: Example  # the list, with the first of the measures
    moved: tuple[Moved, ...]  # all measures of the lesson, before and after the change
    # what, ask, answer: what is changed, what to guess, and what happens
    what: str
    ask: str
    answer: str
    changed: tuple[Row, ...]  # the list after the change
    changed_missing: tuple[str, ...]  # what is missing from it
    evaluator: str  # the address of the evaluator with the list changed
    errors: tuple[KnownError, ...]  # what teaching material has wrong in places
    further: tuple[str, ...]
    previous: Step | None
    next: Step | None


STEPS = tuple(Step(one.key, at, one.title, one.idea) for at, one in enumerate(LESSONS, 1))
"""The table of contents."""


@lru_cache(maxsize=len(LESSONS))
def taught(key: str) -> Taught:
    """Work a lesson out.

    >>> [f"{one.measure} {one.before:.3f} {one.after:.3f}" for one in taught("rank-matters").moved[:2]]
    ['AP 0.567 0.442', 'P@5 0.600 0.600']
    """
    found = next((at for at, one in enumerate(LESSONS) if one.key == key), None)
    if found is None:
        raise InputError(f"there is no lesson {key!r}", fix=f"one of {', '.join(one.key for one in LESSONS)}")
    lesson = LESSONS[found]
    values = {name: number.value() for name, number in lesson.numbers.items()}
    first, change = parse(lesson.measures[0]), lesson.change
    changed = typed_example(first, change.typed, change.missing)
    return Taught(
        key=lesson.key,
        title=lesson.title,
        idea=lesson.idea,
        number=found + 1,
        of=len(LESSONS),
        text=tuple(one.format(**values) for one in lesson.text),
        example=typed_example(first, lesson.typed, lesson.missing),
        moved=tuple(_moved(lesson, name) for name in lesson.measures),
        what=change.what,
        ask=change.ask,
        answer=change.answer.format(**values),
        changed=changed.rows,
        changed_missing=changed.gone,
        evaluator=_evaluator(lesson),
        errors=tuple(KnownError(one.wrong.format(**values), one.right.format(**values)) for one in lesson.errors),
        further=lesson.further,
        previous=STEPS[found - 1] if found else None,
        next=STEPS[found + 1] if found + 1 < len(STEPS) else None,
    )


def _moved(lesson: Lesson, name: str) -> Moved:
    before = Score(name, lesson.typed, lesson.missing).value()
    after = Score(name, lesson.change.typed, lesson.change.missing).value()
    return Moved(name, parse(name).entry.name, before, after, abs(after - before) > 1e-12)


def _evaluator(lesson: Lesson) -> str:
    """Give the address at which the changed list stands, with the list before."""
    change = lesson.change
    pairs = {
        "list": change.typed, "missing": change.missing, "before": lesson.typed, "before_missing": lesson.missing,
        "k": 5,
    }  # fmt: skip
    return f"/evaluator?{urlencode({name: value for name, value in pairs.items() if value != ''}, safe=',*')}"
