"""What is said of what was found in a log: whether it is fit, and what each rule found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.online.showing.numbers import counted, sentence, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.estimates import ScoresTable
    from judged.online.findings import LogFinding

_LONG = 60  # characters of the name of a log
_COUNTED = ("row: ", "rows: ", "file: ", "files: ")
"""What a problem begins with that says itself what there are so many of."""
_BOTS = ("bots", "bot_rate")


def unfit(log: str, reasons: Iterable[str]) -> tuple[str, ...]:
    """Say that numbers of a log should not be trusted as they are, one sentence a reason; nothing where it is fit.

    >>> unfit("a.csv", ["6 of 100 query rows (6.0 %) are left out, more than 5 %: bot 6"])
    ('a.csv is not fit: 6 of 100 query rows (6.0 %) are left out, more than 5 %: bot 6.',)
    """
    return tuple(f"{shown(log, _LONG)} is not fit: {sentence(one)}." for one in reasons)


def doubtful(scores: ScoresTable) -> tuple[str, ...]:
    """Say why numbers of this log should not be trusted as they are: `unfit`, of a result."""
    return unfit(scores.log, scores.doubts)


def need_metrics(scores: ScoresTable) -> None:
    """Refuse a result without a single metric: a table or a page of it would say nothing.

    Raises
    ------
    InputError
        If there is none, with the first reason.
    """
    if not scores.estimates:
        why = f": {scores.refused[0][1]}" if scores.refused else ""
        raise InputError(f"no metric can be told{why}", fix="see 'judged logs check'", path=scores.log)


def told(chosen: Iterable[tuple[str, str]], findings: Iterable[LogFinding]) -> tuple[tuple[str, str], ...]:
    """Give the choices of a log that make a difference: what was done with bots does where there are some."""
    bots = any(one.rule == "bot" and one.rows for one in findings)
    return tuple((name, value) for name, value in chosen if bots or name not in _BOTS)


def finding(one: LogFinding) -> str:
    """Say what a rule found and how to mend it, in sentences.

    >>> from judged.online.findings import LogFinding
    >>> finding(LogFinding("bot", "query", 1, 9, "excluded", "pages of programs", "nothing, if that is right"))
    'bot (query): 1 row: pages of programs. Fix: nothing, if that is right.'
    """
    fix = f" Fix: {sentence(one.fix)}." if one.fix else ""
    return f"{problem(one)}{fix}"


def problem(one: LogFinding) -> str:
    """Say what a rule found, in one sentence."""
    many = f"{one.rows:,} " if one.problem.startswith(_COUNTED) else f"{counted(one.rows, 'row')}: "
    return f"{one.rule} ({one.table}): {many}{sentence(one.problem)}."
