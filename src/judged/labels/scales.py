"""The grades that a judge may give: what each is called and what it means."""

from __future__ import annotations

from typing import NamedTuple

from judged.errors import InputError


class Grade(NamedTuple):
    """One grade of a scale."""

    grade: float
    word: str
    definition: str


SCALES: dict[str, tuple[Grade, ...]] = {
    "binary": (
        Grade(0, "Not relevant", "Nothing in it helps with what was asked."),
        Grade(1, "Relevant", "It holds something that whoever asked would want to read."),
    ),
    "0-3": (
        Grade(0, "Not relevant", "It has nothing to do with what was asked."),
        Grade(1, "Related", "It is about the subject, but does not answer."),
        Grade(2, "Relevant", "It answers in part, or the answer has to be looked for in it."),
        Grade(3, "Highly relevant", "It is about what was asked, and answers it."),
    ),
    "0-4": (
        Grade(0, "Bad", "It has nothing to do with what was asked, or misleads."),
        Grade(1, "Fair", "It touches the subject; few would be content with it."),
        Grade(2, "Good", "It helps, though much is lacking or hard to find."),
        Grade(3, "Excellent", "It gives what most would hope to find."),
        Grade(4, "Perfect", "It is the one result that must not be missing."),
    ),
}
"""The scales that come with judged, by name."""


def scale_of(given: str | tuple[Grade, ...] | list[tuple[float, str, str]]) -> tuple[Grade, ...]:
    """Give a scale by its name, or check one of somebody's own.

    >>> [one.word for one in scale_of("binary")]
    ['Not relevant', 'Relevant']
    """
    if isinstance(given, str):
        if given not in SCALES:
            raise InputError(f"no scale {given!r}", fix=f"use one of {', '.join(SCALES)}, or give grades of your own")
        return SCALES[given]
    grades = tuple(sorted(Grade(float(grade), word, definition) for grade, word, definition in given))
    if len(grades) < 2 or len({one.grade for one in grades}) < len(grades) or grades[0].grade < 0:
        raise InputError("a scale has at least two different grades from 0 on", fix="give (grade, word, definition)")
    return grades
