"""What a lesson is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.web.learning.numbers import Number


@dataclass(frozen=True)
class Change:
    """Something to try with the list of a lesson.

    Attributes
    ----------
    what : str
        What is done, as a request.
    ask : str
        What to guess before one looks.
    answer : str
        What happens, and why.
    typed, missing : str
        The list afterwards, and what is missing from it.
    """

    what: str
    ask: str
    answer: str
    typed: str
    missing: str = ""


@dataclass(frozen=True)
class KnownError:
    """What teaching material has wrong in places, and what is right."""

    wrong: str
    right: str


@dataclass(frozen=True)
class Lesson:
    """One step of the introduction.

    Attributes
    ----------
    key, title : str
    idea : str
        The lesson in one sentence.
    text : tuple of str
        Paragraphs; code stands between backticks.
    typed, missing : str
        The list, as the evaluator takes it.
    measures : tuple of str
        What is computed of it; the first is the one to edit.
    change : Change
    errors : tuple of KnownError
    numbers : mapping
        What the texts speak of, by name.
    further : tuple of str
        Measures to read about next.
    """

    key: str
    title: str
    idea: str
    text: tuple[str, ...]
    typed: str
    missing: str
    measures: tuple[str, ...]
    change: Change
    errors: tuple[KnownError, ...] = ()
    numbers: Mapping[str, Number] = field(default_factory=dict)
    further: tuple[str, ...] = ()
