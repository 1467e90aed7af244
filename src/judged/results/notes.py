"""Notes: what a reader of numbers should know, each with the rule it follows; nothing reads their text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity: TypeAlias = Literal["error", "warning"]
"""``error``: the numbers of the subject mean nothing. ``warning``: they are to be read with it in mind."""

SEVERAL = 3
"""From so many subjects on, notes of one rule are one line."""


@dataclass(frozen=True)
class Note:
    """What should be known before numbers are used.

    >>> print(Note("missing-topics", "nothing returned for 1 of 4 topics", "bm25", 1))
    bm25: nothing returned for 1 of 4 topics
    """

    rule: str  # what kind of note it is: a short name that does not change, such as `missing-topics`
    text: str  # what is said, without its subject
    subject: str = ""  # of what, such as the name of a run; empty where it is of all of them
    weight: float = 0.0  # how much the subject is affected, against others by the same rule
    severity: Severity = "warning"  # whether numbers mean nothing, or are to be read with it in mind
    of: str = "runs"  # what its subject is one of

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


def lines(notes: Iterable[Note]) -> tuple[str, ...]:
    """Write notes for people, errors first: what is said of three subjects or more in one line for each rule.

    >>> lines([Note("missing-topics", f"{at} topics missing", f"run{at}", at) for at in range(1, 60)])
    ('59 runs, worst run59, run58, run57; for run59: 59 topics missing',)
    >>> lines([Note("extra-topics", "no judgments for 12 topics", run, 12) for run in "abcdefgh"])
    ('8 runs, such as a, b, c: no judgments for 12 topics',)
    >>> lines([Note("left-out", f"{at} topics left out", run) for run in "ab" for at in (3, 4)])
    ('a: 3 topics left out', 'a: 4 topics left out', 'b: 3 topics left out', 'b: 4 topics left out')
    """
    return tuple(text for _, text in with_severity(notes))


def with_severity(notes: Iterable[Note]) -> tuple[tuple[Severity, str], ...]:
    """Write notes as `lines` does, each line with its severity.

    >>> with_severity([Note("a", "ties"), Note("b", "no ranking", severity="error")])
    (('error', 'no ranking'), ('warning', 'ties'))
    """
    ordered = sorted(notes, key=lambda note: note.severity != "error")
    times = Counter(rule for rule, _ in {(note.rule, note.subject) for note in ordered if note.subject})
    kinds: dict[str | Note, list[Note]] = {}
    for note in ordered:
        grouped = note.subject and times[note.rule] >= SEVERAL
        kinds.setdefault(note.rule if grouped else note, []).append(note)
    return tuple((alike[0].severity, _line(alike)) for alike in kinds.values())


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Name some of many, and count them; never is one alone left out.

    >>> first_few(["q1", "q2", "q3"], most=2), first_few(["q1", "q2", "q3"], most=1)
    ('q1, q2, q3', 'q1, ... (3 in all)')
    """
    return ", ".join(names) if len(names) <= most + 1 else f"{', '.join(names[:most])}, ... ({len(names)} in all)"


def _line(alike: Sequence[Note]) -> str:
    """Count the subjects, name three of those most affected, and say what is said of all, or else of the first."""
    if len(alike) < SEVERAL:
        return str(alike[0])
    worst = sorted(alike, key=lambda note: -note.weight)
    names = list(dict.fromkeys(note.subject for note in worst))
    shown = len(names) if len(names) <= SEVERAL + 1 else SEVERAL
    which = "worst" if worst[0].weight > worst[-1].weight else "such as" if shown < len(names) else "namely"
    subjects = f"{len(names)} {worst[0].of}, {which} {', '.join(names[:shown])}"
    same = all(note.text == worst[0].text for note in alike)
    return f"{subjects}: {worst[0].text}" if same else f"{subjects}; for {worst[0]}"
