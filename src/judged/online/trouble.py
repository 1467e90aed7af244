"""What is said of what was found in a log: whether it is fit, and what each rule found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.answer import TEXT, Show, Table, columns_of, counted
from judged.notes import Note
from judged.online.numbers import UNITS, place, sentence, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.findings import LogFinding

_LONG = 60  # characters of the name of a log
_COUNTED = ("row: ", "rows: ", "file: ", "files: ")
"""What a problem begins with that says itself what there are so many of."""
_BOTS = ("bots", "bot_rate")


def unfit(log: str, reasons: Iterable[str]) -> tuple[Note, ...]:
    """Note that numbers of a log should not be trusted as they are, once a reason; nothing where it is fit.

    >>> str(unfit("a.csv", ["6 of 100 query rows (6.0 %) are left out, more than 5 %: bot 6"])[0])
    'a.csv is not fit: 6 of 100 query rows (6.0 %) are left out, more than 5 %: bot 6.'
    """
    return tuple(Note("unfit-log", f"{shown(log, _LONG)} is not fit: {sentence(reason)}.") for reason in reasons)


def told(chosen: Iterable[tuple[str, str]], findings: Iterable[LogFinding]) -> tuple[tuple[str, str], ...]:
    """Give the choices of a log that make a difference: what was done with bots does where there are some."""
    bots = any(one.rule == "bot" and one.rows for one in findings)
    return tuple((name, value) for name, value in chosen if bots or name not in _BOTS)


def problem(found: LogFinding) -> str:
    """Say what a rule found, in one sentence.

    >>> from judged.online.findings import LogFinding
    >>> problem(LogFinding("bot", "query", 1, 9, "excluded", "pages of programs", "nothing, if that is right"))
    'bot (query): 1 row: pages of programs.'
    """
    many = f"{found.rows:,} " if found.problem.startswith(_COUNTED) else f"{counted(found.rows, 'row')}: "
    return f"{found.rule} ({found.table}): {many}{sentence(found.problem)}."


def findings_table(findings: Sequence[LogFinding], *, folded: bool = False) -> Table:
    """Lay out how much of the log met a rule, and what was done with it: one row a rule."""
    shown = ("rule", TEXT), ("table", TEXT, "of"), ("done", TEXT), ("rows", UNITS), ("of", UNITS, "of rows")
    columns = columns_of(findings, *shown, ("share", Show(_few, "float64")), "problem", "fix", "places")
    return Table(
        "findings", columns, "Findings, the worst first", labels=3, folded=folded, only="" if findings else "data"
    )


def meanings(findings: Sequence[LogFinding]) -> tuple[tuple[str, ...], ...]:
    """Say of each rule what it found, where, and how to mend it."""
    return tuple(
        tuple(filter(None, (problem(found), _places(found.places), found.fix and f"Fix: {sentence(found.fix)}.")))
        for found in findings
    )


def _places(places: tuple[str, ...]) -> str:
    """Name where something stands, a file once.

    >>> _places(("a.ndjson:1", "a.ndjson:7", "b.ndjson:2"))
    'At a.ndjson:1, 7, b.ndjson:2.'
    """
    files = ["", *(at.rpartition(":")[0] for at in places)]
    named = [
        shown(at.rpartition(":")[2]) if file and file == before else place(at)
        for before, file, at in zip(files, files[1:], places, strict=False)
    ]
    return f"At {', '.join(named)}." if named else ""


def _few(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "<0.1 %"
