"""What is wrong with a log, and how much of it: named rules, their counts, what was done, and what is said of it."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.online.layout import UNITS, percent, place, sentence, shown
from judged.results import TEXT, Show, Table, columns_of, counted, listed
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.layout import OnlineEstimate
    from judged.online.metrics import OnlineMetric
    from judged.online.scores import OnlineScores


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


_WORDS = {"pages": "page", "events": "event", "sessions": "session", "users": "user"}
_DONE = {"excluded": "left out", "lost": "not readable", "repaired": "put right", "kept": "odd and kept"}
_MONEY = {"attribution": {"carts", "purchases", "values"}, "money": {"values"}}
"""Choices that only metrics with one of these needs depend on."""
_INTERVAL = {"delta": "by the delta method", "bootstrap": "by bootstrap"}
_NAMED = 8  # metrics that are refused for one reason
_REASONS = 6  # lines of why numbers are missing
_BIAS = (
    "Position bias: users look at the top whatever stands there, so clicks say where a result stood as much as how good"
    " it was. Read metrics of clicks beside CTR by rank."
)


def bias(metrics: Iterable[OnlineMetric]) -> tuple[Note, ...]:
    """Note how clicks must not be read, wherever a metric depends on rank."""
    return (Note("position-bias", _BIAS),) if any(metric.biased for metric in metrics) else ()


_EQUAL, _MANY = 0.75, 1000.0  # share of the users, and number, from which on effective users are enough


def unequal_users(estimates: Iterable[OnlineEstimate], unit: str) -> tuple[Note, ...]:
    """Warn of intervals of counts whose users are unequally active: they hold only if values do not depend on activity.

    The rates are those of the simulation in docs/calibration.md, "Intervals over users".
    """
    rows = [
        row
        for row in estimates
        if row.metric.unit == "count" and row.low < row.high and row.slice is None
        if row.effective_units < min(_EQUAL * row.units, _MANY)
    ]
    if not rows:
        return ()
    worst = min(rows, key=lambda row: row.effective_units)
    names = listed(list(dict.fromkeys(str(row.metric) for row in rows)))
    text = (
        f"Intervals of {names} are too narrow if more active {unit}s have higher values: {worst.units:,} {unit}s have"
        f" the weight of {worst.effective_units:,.0f} equally active ones. With clicks per page proportional to"
        " activity^0.3 and ^0.6, intervals of 95% over 20 to 200 simulated users covered 80-87% and 55-65%."
    )
    return (Note("unequal-users", text, weight=worst.units / worst.effective_units, of="metrics"),)


def counts(known: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Say how much there is of each, in their order.

    >>> counts([("pages", 1), ("events on pages", 1), ("users", 2000)])
    ('1 page', '1 event on pages', '2,000 users')
    """
    parts = [(*name.partition(" "), count) for name, count in known]
    return tuple(f"{counted(count, _WORDS.get(word, word.removesuffix('s')))}{gap}{rest}"
                 for word, gap, rest, count in parts)  # fmt: skip


def about(scores: OnlineScores) -> tuple[str, ...]:
    """Say what this log is: how much of it counted, what it was read as, and which rows met a rule."""
    known = [(name, count) for name, count in scores.counts if name != "users" or not are_of_nobody(scores.findings)]
    return (f"{shown(scores.log, _LONG)} ({scores.layout}): {', '.join(counts(known))}", *rules(scores.findings))


def rules(findings: Sequence[LogFinding]) -> tuple[str, ...]:
    """Say which rows met a rule, by what was done with them: one sentence each."""
    met = {word: [one for one in findings if one.done == done and one.rows] for done, word in _DONE.items()}
    return tuple(f"{word}: {', '.join(map(_share, found))}" for word, found in met.items() if found)


def _share(found: LogFinding) -> str:
    what = "file" if found.table == "folder" else f"{found.table} row"
    return f"{found.rule} {found.rows:,} of {counted(found.of, what)}"


def made(scores: OnlineScores) -> str:
    """Say over what intervals are made and how, and what was chosen, where that makes a difference here."""
    how = _INTERVAL.get(scores.interval, scores.interval)
    needs = {need for metric in scores.metrics for need in metric.needs}
    chosen = (
        f"{name.replace('_', ' ')}: {shown(value, 2 * _LONG)}"
        for name, value in told(scores.policies, scores.findings)
        if not (name in _MONEY and needs.isdisjoint(_MONEY[name]))
    )
    return "; ".join([f"{percent(scores.level)} intervals over {scores.over}s, {how}", *chosen])


def missing(scores: OnlineScores) -> tuple[str, ...]:
    """Say why numbers are missing, of the first few, and which metrics this log cannot tell."""
    none = [f"{_named(scores, one)}: {_why_no_value(one)}" for one in scores.estimates if math.isnan(one.value)]
    none += [
        f"{_named(scores, one)}: no interval, "
        + (f"it takes two {scores.over}s and there is {one.units}" if one.units < 2 else "none is known for this value")
        for one in scores.estimates
        if not math.isnan(one.value) and math.isnan(one.low)
    ]
    left = len(none) - _REASONS
    return (*none[:_REASONS], *([f"and {left:,} more"] if left > 0 else []), *refusals(scores))


def _named(scores: OnlineScores, one: OnlineEstimate) -> str:
    return str(one.metric) if one.slice is None else f"{one.metric} on {scores.labels[one.slice]}"


def _why_no_value(one: OnlineEstimate) -> str:
    if one.denominator > 0:
        what = {"survival": "the curve does not come down so far", "quantile": "no value at this quantile"}
        return what.get(one.metric.kind, "no value")
    return "nothing to divide by, its denominator is 0"


def refusals(scores: OnlineScores) -> tuple[str, ...]:
    """Say which metrics this log cannot tell: one sentence a reason."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in scores.refused:
        by_reason.setdefault(why, []).append(str(metric))
    return tuple(f"not shown, since {sentence(why)}: {_first(names)}" for why, names in by_reason.items())


def _first(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:_NAMED])} and {left:,} more"  # one more is no shorter
