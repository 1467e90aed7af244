"""What is wrong with a log, and how much of it: named rules, their counts, what was done, and what is said of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.online.numbers import UNITS, place, sentence, shown
from judged.results import TEXT, Show, Table, columns_of, counted
from judged.results.notes import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Done: TypeAlias = Literal["excluded", "repaired", "kept", "lost"]
"""What was done with the rows: left out of every metric, put right, kept as they are, or never readable."""

RULES: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files("judged.online") / "rules.toml").read_text(encoding="utf-8")
)
"""What is said of each rule, and what to do about it, by where it is seen: queries, events, a reader."""


def worded(where: str, rule: str, **words: str) -> tuple[str, str]:
    """Give the problem and the fix of a rule, with words filled in.

    >>> worded("clickmodels", "broken-line")[0]
    'the line is no page of this layout'
    """
    given = RULES[where][rule]
    problem, fix = (Template(given[name]).substitute({"more": "", **words}) for name in ("problem", "fix"))
    return problem, fix


@dataclass(frozen=True)
class LogFinding:
    """One rule that rows of the log met.

    Parameters
    ----------
    rule
        Short name that does not change, such as ``facet-request``.
    table
        ``query``, ``event``, ``file`` (records that could not be told to be either), or ``folder`` (whole files).
    rows, of
        How many rows, and of how many it could have been.
    done
        What was done with them.
    problem, fix
        What is wrong, and what whoever writes the log can do about it.
    places
        The first few, as ``file:line``, or ids.

    Examples
    --------
    >>> found = LogFinding("facet-request", "query", 6, 84, "excluded", "requests for facets alone", "do not log them")
    >>> round(found.share, 4)
    0.0714
    """

    rule: str
    table: str
    rows: int
    of: int
    done: Done
    problem: str
    fix: str
    places: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Rows as a share of those that it could have been; 0 of none."""
        return self.rows / self.of if self.of else 0.0


@dataclass(frozen=True)
class Account:
    """Where the rows of a raw table went: nothing is dropped without a name.

    ``read == kept + sum(excluded)`` holds always. A row is counted under the first rule that excludes it.
    """

    table: str
    read: int
    kept: int
    excluded: tuple[tuple[str, int], ...]


_HARM: dict[Done, int] = {"lost": 0, "excluded": 1, "kept": 2, "repaired": 3}


def by_harm(findings: Iterable[LogFinding]) -> tuple[LogFinding, ...]:
    """Sort findings: lost rows, then excluded, kept and repaired ones, each by their share.

    Examples
    --------
    >>> late = LogFinding("clock-skew", "event", 5, 10, "kept", "events before their page", "use one clock")
    >>> bots = LogFinding("bot", "query", 1, 10, "excluded", "pages of programs", "")
    >>> [one.rule for one in by_harm([late, bots])]
    ['bot', 'clock-skew']
    """
    return tuple(sorted(findings, key=lambda one: (_HARM[one.done], -one.share, one.table, one.rule)))


def are_of_nobody(findings: Iterable[LogFinding]) -> bool:
    """Whether no page of a log names its user, so that something else stands for users.

    Examples
    --------
    >>> are_of_nobody([LogFinding("no-user", "query", 2, 2, "kept", "pages of nobody", "log a client_id")])
    True
    """
    return any((one.rule, one.table) == ("no-user", "query") and one.rows == one.of for one in findings)


EXCLUDED_LIMIT = 0.05
"""More than this share of a table excluded or lost makes numbers doubtful."""

JOINED_LIMIT = 0.95
"""Less than this share of the events that name a page on one makes numbers doubtful."""


REPAIRED_LIMIT = 0.05
"""More than this share of the rows that a rule looks at repaired by it makes numbers doubtful."""

READINGS = ("zero-based-ranks", "mixed-rank-base", "dwell-on-every-event")
"""What is called repaired, and is a way of writing that holds for all rows of an application: no row of it is wrong."""

NO_PAGES = ("current-query", "withheld-clicks")
"""What a layout holds beside pages by its nature: that it is left out says nothing against the log."""


def doubts(accounts: Iterable[Account], findings: Iterable[LogFinding]) -> tuple[str, ...]:
    """Say why numbers of a log should not be trusted as they are: nothing where it is fit.

    Examples
    --------
    >>> doubts([Account("query", 100, 94, (("bot", 6),))], [])
    ('6 of 100 query rows (6.0 %) are left out, more than 5 %: bot 6',)
    >>> found = LogFinding("unknown-query-id", "event", 30, 100, "kept", "events on pages that were not logged", "")
    >>> doubts([], [found])
    ('only 70.0 % of the events that name a page are on one, less than 95 %: unknown-query-id 30',)
    """
    said: list[str] = []
    found = tuple(findings)
    for one in accounts:
        lost = [(each.rule, each.rows) for each in found if each.done == "lost" and each.table == one.table]
        lost = [(rule, rows) for rule, rows in lost if rule not in NO_PAGES]
        gone = [*one.excluded, *lost]
        rows, of = sum(count for _, count in gone), one.read + sum(count for _, count in lost)
        if one.table == "query" and not of:
            said.append("no query was read, so there is no page")
        if rows > EXCLUDED_LIMIT * of:
            named = ", ".join(f"{rule} {count:,}" for rule, count in gone)
            said.append(
                f"{rows:,} of {of:,} {one.table} rows ({100 * rows / of:.1f} %) are left out, more than 5 %: {named}"
            )
    said += [
        f"{one.rows:,} of {one.of:,} records of a {one.table} could not be read, more than 5 %: {one.rule}"
        for one in found
        if one.done == "lost" and one.table not in {"query", "event"} and one.share > EXCLUDED_LIMIT
    ]
    said += [
        f"{one.rows:,} of {one.of:,} {one.table} rows ({100 * one.share:.1f} %) are repaired, more than 5 %: {one.rule}"
        for one in found
        if one.done == "repaired" and one.rule not in READINGS and one.share > REPAIRED_LIMIT
    ]
    astray = [one for one in found if one.rule in {"unknown-query-id", "excluded-page"} and one.table == "event"]
    joined = 1 - sum(one.share for one in astray)
    if joined < JOINED_LIMIT:
        named = ", ".join(f"{one.rule} {one.rows:,}" for one in astray)
        said.append(f"only {100 * joined:.1f} % of the events that name a page are on one, less than 95 %: {named}")
    return tuple(said)


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
