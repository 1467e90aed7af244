"""Who was in which arm of a test since when, and whether the test can be trusted at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.statistics.allocation import CONSTANT, Allocation, SampleRatio, allocation_periods, sample_ratio
from judged.results import counted, listed

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

BROKEN_P = 0.001
"""A mix of users that is rarer than this by chance breaks a test."""
CROSSED_LIMIT = 0.01
"""More than this share of users seen in two arms breaks a test."""
_TELEMETRY = ("query", "zero_results", "n_returned", "latency_ms", "device", "language")
_Z = NormalDist().inv_cdf(1.0 - BROKEN_P / len(_TELEMETRY) / 2.0)
_BEFORE, _AFTER, _PART = "<", ">", "\x1f"  # a mark on both sides, as arms may be called anything
_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Assignment:
    """The users of a test.

    Parameters
    ----------
    arms
        Their names, the baseline first.
    users
        Users by arm: those whose window is complete.
    crossed, unfinished
        Users seen in two arms, and users whose window ends after the log; none of them counts.
    days, longest
        From the first exposure to the last, and from the first to the end of the log, in days.
    ratio
        Whether the arms have the users that they should have, unfinished ones too.
    logged
        What is logged more often in one arm than in the first, by chance once in a thousand tests.
    allocation
        Whether the shares of arms among new users stayed the same over time; the periods in which they did.
    periods
        First day (UTC) of each of these periods; empty where the log has no times.
    """

    arms: tuple[str, ...]
    users: Mapping[str, int]
    crossed: int
    unfinished: int
    days: float
    longest: float
    ratio: SampleRatio
    logged: tuple[str, ...] = ()
    allocation: Allocation = CONSTANT
    periods: tuple[date, ...] = ()

    @property
    def ramped(self) -> bool:
        """Whether the allocation changed over time, so that differences must be stratified by period."""
        return len(self.allocation.starts) > 1

    @property
    def number(self) -> int:
        """All users that count."""
        return sum(self.users.values())

    @property
    def a_day(self) -> float:
        """How many users come in a day."""
        return self.number / max(self.days, 1.0)

    @property
    def broken(self) -> tuple[str, ...]:
        """Why nothing follows from the test; empty where it is sound."""
        everyone = self.number + self.unfinished + self.crossed
        why: list[str] = []
        if self.ratio.p_always < BROKEN_P:
            numbers = ", ".join(f"{arm} {number:,}" for arm, number in self.users.items())
            why.append(
                f"the arms do not have the users that they should have ({numbers}; p = {self.ratio.p_always:.1g})"
            )
        if self.crossed > CROSSED_LIMIT * everyone:
            why.append(f"{self.crossed:,} of {counted(everyone, 'user')} were seen in more than one arm")
        if self.logged:
            why.append(f"{listed(self.logged)} is logged more often in one arm than in another")
        return tuple(why)


@dataclass(frozen=True)
class Exposure:
    """Units beside their arm and when they were exposed; how long they count, and how long before, in milliseconds."""

    log: InteractionLog
    table: Relation
    unit: str
    window: str  # SQL
    before: int
    cuts: tuple[int, ...] = ()  # when a new period of allocation begins, in milliseconds since 1970

    @property
    def _served(self) -> str:
        """SQL: pages, ``p``, beside the user's arm and exposure, ``u``."""
        return f"{self.log.serp} AS p JOIN {self.table} AS u ON p.{identifier(self.unit)} = u.{identifier(self.unit)}"

    def pages(self, parts: Relation | None = None) -> Relation:
        """Give ``serp`` and ``slice`` of the pages in the window and of those before exposure, as `slice_of` names it.

        `parts`: ``serp`` and ``slice``, by which arms are parted further.
        """
        part, join = "''", ""
        if parts is not None:
            part, join = "coalesce(c.slice, '')", f"JOIN {parts} AS c ON c.serp = p.serp"
        return self.log.engine.query(
            f"""
            SELECT p.serp, CASE WHEN p.time_ms < u.exposed_ms THEN {literal(_BEFORE)} ELSE {literal(_AFTER)} END
                   || u.arm || {literal(_PART)} || {part} AS slice
            FROM {self._served} {join}
            WHERE u.arms = 1 AND u.unfinished IS NOT TRUE AND p.time_ms >= u.exposed_ms - {self.before}
              AND ({self.window} IS NULL OR p.time_ms < u.exposed_ms + {self.window})"""
        )

    def days_since(self) -> Relation:
        """Give ``serp`` and ``slice``: on the how-manieth day after exposure a page was, from 1."""
        return self.log.engine.query(
            f"""
            SELECT p.serp, CAST((p.time_ms - u.exposed_ms) // {_DAY} + 1 AS VARCHAR) AS slice
            FROM {self._served} WHERE p.time_ms >= u.exposed_ms"""
        )

    def periods(self) -> Relation:
        """Return ``serp`` and ``slice``: in which period of allocation, from 1, the user of a page was exposed."""
        number = " + ".join(["1", *(f"CASE WHEN u.exposed_ms >= {cut} THEN 1 ELSE 0 END" for cut in self.cuts)])
        return self.log.engine.query(f"SELECT p.serp, CAST({number} AS VARCHAR) AS slice FROM {self._served}")


def slice_of(arm: str, part: str = "", *, before: bool = False) -> str:
    """Name the slice of what an arm's users did, or did before they were exposed."""
    return f"{_BEFORE if before else _AFTER}{arm}{_PART}{part}"


def assignment(
    log: InteractionLog,
    variant: str,
    baseline: str | None,
    shares: Mapping[str, float] | None,
    window_days: float | None,
    before_days: float,
    unit: str,
) -> tuple[Assignment, Exposure]:
    """Find out who was exposed to which arm, and since when.

    Raises
    ------
    InputError
        If the log does not say which arm a page was in, or there are fewer than two arms.
    """
    if variant not in log.serp.columns:
        fix = f"name the column that holds the arm: one of {', '.join(log.serp.columns)}"
        raise InputError(f"the log has no column {variant!r}", fix=fix, path=log.name)
    arm, key = f"CAST({identifier(variant)} AS VARCHAR)", identifier(unit)
    window = "NULL" if window_days is None else str(round(window_days * _DAY))
    exposed = log.engine.keep(
        f"""
        SELECT {key}, min({arm}) AS arm, count(DISTINCT {arm}) AS arms, min(time_ms) AS exposed_ms,
               min(time_ms) + {window} > (SELECT max(time_ms) FROM {log.serp}) AS unfinished
        FROM {log.serp} WHERE {identifier(variant)} IS NOT NULL GROUP BY {key}""",
        "exposed",
    )
    rows = log.engine.rows(
        f"""
        SELECT arm, count(*) AS everyone, count(*) FILTER (unfinished) AS unfinished,
               min(exposed_ms) AS first_ms, max(exposed_ms) AS last_ms, (SELECT max(time_ms) FROM {log.serp}) AS end_ms
        FROM {exposed} WHERE arms = 1 GROUP BY arm ORDER BY arm"""
    )
    names = [row["arm"] for row in rows]
    if len(names) < 2:
        problem = f"{variant} has {counted(len(names), 'arm')}: a test has two or more"
        raise InputError(problem, fix="give a log of the whole test, or another column by variant=", path=log.name)
    first = names[0] if baseline is None else baseline
    if first not in names:
        raise InputError(f"there is no arm {first!r}", fix=f"take one of {', '.join(names)}", path=log.name)
    if shares is not None and (strange := set(shares) ^ set(names)):
        fix = f"give a share for each of {', '.join(names)}"
        raise InputError(f"shares and arms do not fit: {', '.join(sorted(strange))}", fix=fix, path=log.name)
    crossed = log.engine.rows(f"SELECT count(*) AS crossed FROM {exposed} WHERE arms > 1")[0]["crossed"]
    arms = (first, *(name for name in names if name != first))
    everyone = {row["arm"]: int(row["everyone"]) for row in rows}
    unfinished = {row["arm"]: int(row["unfinished"] or 0) for row in rows}
    begin, last = min(row["first_ms"] for row in rows), max(row["last_ms"] for row in rows)
    first_day, allocation = _allocation(log, exposed, arms)
    days = [first_day + start for start in allocation.starts] if log.has_time and log.dated else []
    cuts = tuple(day * _DAY for day in days[1:])
    exposure = Exposure(log, exposed, unit, window, round(before_days * _DAY), cuts)
    users = Assignment(
        arms,
        {name: everyone[name] - unfinished[name] for name in arms},
        int(crossed),
        sum(unfinished.values()),
        (last - begin) / _DAY,
        (rows[0]["end_ms"] - begin) / _DAY,
        sample_ratio([everyone[name] for name in arms], None if shares is None else [shares[name] for name in arms]),
        tuple(_logged(exposure, arms)),
        allocation,
        tuple(_EPOCH + timedelta(day) for day in days),
    )
    return users, exposure


def _allocation(log: InteractionLog, exposed: Relation, arms: Sequence[str]) -> tuple[int, Allocation]:
    """Return the first day of exposure, in days since 1970, and the periods of constant allocation since then."""
    if not (log.has_time and log.dated):
        return 0, CONSTANT
    rows = log.engine.rows(
        f"""
        SELECT exposed_ms // {_DAY} AS day, arm, count(*) AS users FROM {exposed} WHERE arms = 1
        GROUP BY exposed_ms // {_DAY}, arm"""
    )
    first, last = (limit(int(row["day"]) for row in rows) for limit in (min, max))
    counts = np.zeros((last - first + 1, len(arms)))
    for row in rows:
        counts[int(row["day"]) - first, arms.index(row["arm"])] = row["users"]
    return first, allocation_periods(counts)


def _logged(exposure: Exposure, arms: tuple[str, ...]) -> Iterator[str]:
    """Name the fields that are logged more or less often in an arm than in the first: telemetry that broke there.

    Where the allocation changed, differences are means over its periods: what is logged may change with time.
    """
    log, unit = exposure.log, identifier(exposure.unit)
    sums = ", ".join(f"count({name}) AS {name}" for name in _TELEMETRY)
    products = ", ".join(f"sum({name}) AS n_{name}, sum({name} * {name}) AS nn_{name}, sum({name} * pages) AS nd_{name}"
                         for name in _TELEMETRY)  # fmt: skip
    parts = [str(at + 1) for at in range(len(exposure.cuts) + 1)] if exposure.cuts else [""]
    pages = exposure.pages(exposure.periods() if exposure.cuts else None)
    found = log.engine.rows(
        f"""
        SELECT slice, count(*) AS users, sum(pages) AS d, sum(pages * pages) AS dd, {products} FROM (
            SELECT s.slice, count(*) AS pages, {sums} FROM {pages} AS s
            JOIN {log.serp} AS p ON p.serp = s.serp GROUP BY s.slice, p.{unit}) GROUP BY slice"""
    )
    rows = {row["slice"]: row for row in found}
    for name in _TELEMETRY:
        if any(abs(_logged_z(rows, name, arms[0], arm, parts)) > _Z for arm in arms[1:]):
            yield name


def _logged_z(rows: Mapping[str, Any], name: str, first: str, arm: str, parts: Sequence[str]) -> float:
    """Return by how many standard errors an arm differs from the first in how often a field is logged.

    Errors are those where both arms have the share of both together: a field that is always logged in one arm and never
    in the other has no error of its own.
    """
    value = variance = 0.0
    for part in parts:
        sides = [rows[key] for key in (slice_of(first, part), slice_of(arm, part)) if key in rows]
        if len(sides) < 2:
            continue
        n, d, nn, nd, dd = (
            np.array([float(row[column]) for row in sides])
            for column in (f"n_{name}", "d", f"nn_{name}", f"nd_{name}", "dd")
        )
        pooled = n.sum() / d.sum()
        squares = (nn - 2.0 * pooled * nd + pooled**2 * dd) / d**2
        weight = 1.0 / (1.0 / d).sum()
        value += weight * float(n[1] / d[1] - n[0] / d[0])
        variance += weight**2 * float(squares.sum())
    return value / math.sqrt(variance) if variance > 0 else 0.0
