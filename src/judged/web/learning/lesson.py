"""What a lesson is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.web.learning.numbers import Number


@dataclass(frozen=True)
class Change:
    """Something to try with the list of a lesson."""

    what: str  # what is done, as a request
    ask: str  # what to guess before one looks
    answer: str  # what happens, and why
    # typed, missing: the list afterwards, and what is missing from it
    typed: str
    missing: str = ""


@dataclass(frozen=True)
class KnownError:
    """What teaching material has wrong in places, and what is right."""

    wrong: str
    right: str


@dataclass(frozen=True)
class Lesson:
    """One step of the introduction."""

    key: str
    title: str
    idea: str  # the lesson in one sentence
    text: tuple[str, ...]  # paragraphs; code stands between backticks
    typed: str  # the list, as the evaluator takes it
    missing: str  # the list, as the evaluator takes it
    measures: tuple[str, ...]  # what is computed of it; the first is the one to edit
    change: Change
    errors: tuple[KnownError, ...] = ()
    numbers: Mapping[str, Number] = field(default_factory=dict)  # what the texts speak of, by name
    further: tuple[str, ...] = ()  # measures to read about next
