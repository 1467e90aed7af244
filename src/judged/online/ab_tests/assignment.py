"""Assignment of users to the arms of an A/B test, time of their exposure, and validity checks of the test."""

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
from judged.online.findings import has_no_user_ids
from judged.online.statistics.allocation import CONSTANT, Allocation, SampleRatio, allocation_periods, sample_ratio
from judged.results import counted, listed
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

BROKEN_P = 0.001
"""Significance level of the validity checks: a smaller p-value makes a test invalid."""
CROSSED_LIMIT = 0.01
"""Largest share of users with several arms in a valid test."""
_TELEMETRY = ("query", "zero_results", "n_returned", "latency_ms", "device", "language")
# Bonferroni over the fields.
_Z = NormalDist().inv_cdf(1.0 - BROKEN_P / len(_TELEMETRY) / 2.0)
_BEFORE, _AFTER, _SEPARATOR = "<", ">", "\x1f"  # around the arm in a key, because arms have arbitrary names
_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Assignment:
    """Users of an A/B test.

    Parameters
    ----------
    arms
        Names of the arms, the baseline first.
    users
        Number of users by arm whose window is complete.
    crossed, unfinished
        Users with several arms, and users whose window ends after the log. Both are excluded.
    days, log_days
        From the first exposure to the last one, and from the first one to the end of the log, in days.
    sample_ratio
        Test of the numbers of users, including unfinished ones, against the declared shares.
    uneven_fields
        Logged fields that are filled more or less often in some arm than in the baseline, at `BROKEN_P`.
    allocation
        Test of whether the shares of arms among new users stayed constant, and the periods in which they did.
    periods
        First day (UTC) of each of these periods; empty for a log without dates.
    unit
        Unit of the assignment: ``user`` or ``session``. Users here and below are units.
    """

    arms: tuple[str, ...]
    users: Mapping[str, int]
    crossed: int
    unfinished: int
    days: float
    log_days: float
    sample_ratio: SampleRatio
    uneven_fields: tuple[str, ...] = ()
    allocation: Allocation = CONSTANT
    periods: tuple[date, ...] = ()
    unit: str = "user"

    @property
    def is_ramped(self) -> bool:
        """Whether the allocation changed over time, so that differences must be stratified by period."""
        return len(self.allocation.starts) > 1

    @property
    def total_users(self) -> int:
        """Number of users in all arms."""
        return sum(self.users.values())

    @property
    def users_per_day(self) -> float:
        """Number of new users per day."""
        return self.total_users / max(self.days, 1.0)

    @property
    def invalid_reasons(self) -> tuple[str, ...]:
        """Reasons why the test is invalid; empty if it is valid."""
        observed = self.total_users + self.unfinished + self.crossed
        reasons: list[str] = []
        if self.sample_ratio.p_always < BROKEN_P:
            counts = ", ".join(f"{arm} {count:,}" for arm, count in self.users.items())
            reasons.append(
                f"the numbers of {self.unit}s do not match the planned shares of the arms ({counts}; sample ratio"
                " mismatch,"
                f" p = {self.sample_ratio.p_always:.1g})"
            )
        if self.crossed > CROSSED_LIMIT * observed:
            reasons.append(f"{self.crossed:,} of {counted(observed, self.unit)} have pages in more than one arm")
        if self.uneven_fields:
            reasons.append(f"the share of pages with a logged {listed(self.uneven_fields)} differs between the arms")
        return tuple(reasons)


@dataclass(frozen=True)
class Exposure:
    """First exposure of each user (or session), with the window around it in which pages count."""

    log: InteractionLog
    table: Relation
    unit: str
    window: str  # SQL of the milliseconds after exposure that count; NULL: all
    before: int  # milliseconds before exposure that are used
    period_starts: tuple[int, ...] = ()  # of all but the first period of allocation, in milliseconds since 1970

    @property
    def _served(self) -> str:
        """SQL of the pages, ``p``, joined with the exposure of their user, ``u``."""
        return f"{self.log.serp} AS p JOIN {self.table} AS u ON p.{identifier(self.unit)} = u.{identifier(self.unit)}"

    def pages(self, slices: Relation | None = None) -> Relation:
        """Select ``serp`` and ``slice`` (see `slice_of`) of the pages in the window and of those before exposure.

        `slices`: ``serp`` and ``slice``; divides the pages of each arm further.
        """
        slice_sql, join = "''", ""
        if slices is not None:
            slice_sql, join = "coalesce(c.slice, '')", f"JOIN {slices} AS c ON c.serp = p.serp"
        return self.log.engine.query(
            f"""
            SELECT p.serp, CASE WHEN p.time_ms < u.exposed_ms THEN {literal(_BEFORE)} ELSE {literal(_AFTER)} END
                   || u.arm || {literal(_SEPARATOR)} || {slice_sql} AS slice
            FROM {self._served} {join}
            WHERE u.arms = 1 AND u.unfinished IS NOT TRUE AND p.time_ms >= u.exposed_ms - {self.before}
              AND ({self.window} IS NULL OR p.time_ms < u.exposed_ms + {self.window})"""
        )

    def days_since(self) -> Relation:
        """Select ``serp`` and ``slice``, the day since the exposure of its user, counted from 1."""
        return self.log.engine.query(
            f"""
            SELECT p.serp, CAST((p.time_ms - u.exposed_ms) // {_DAY} + 1 AS VARCHAR) AS slice
            FROM {self._served} WHERE p.time_ms >= u.exposed_ms"""
        )

    def periods(self) -> Relation:
        """Select ``serp`` and ``slice``, the period of allocation (from 1) in which its user was exposed."""
        is_later = [f"CASE WHEN u.exposed_ms >= {start} THEN 1 ELSE 0 END" for start in self.period_starts]
        number = " + ".join(["1", *is_later])
        return self.log.engine.query(f"SELECT p.serp, CAST({number} AS VARCHAR) AS slice FROM {self._served}")


def slice_of(arm: str, slice_name: str = "", *, before: bool = False) -> str:
    """Return the key of the pages of an arm's users in a slice, after or before their exposure."""
    return f"{_BEFORE if before else _AFTER}{arm}{_SEPARATOR}{slice_name}"


def read_assignment(
    log: InteractionLog,
    variant: str,
    baseline: str | None,
    shares: Mapping[str, float] | None,
    window_days: float | None,
    before_days: float,
    unit: str,
) -> tuple[Assignment, Exposure]:
    """Read the arm and the time of first exposure of each unit from a log.

    Raises
    ------
    InputError
        If the log has no column `variant`, fewer than two arms, no such baseline, or other arms than `shares`.
    """
    if variant not in log.serp.columns:
        fix = f"use variant= (--variant) with the column that holds the arm: one of {', '.join(log.serp.columns)}"
        raise InputError(f"the log has no column {variant!r}", fix=fix, path=log.name)
    arm_sql, unit_column = f"CAST({identifier(variant)} AS VARCHAR)", identifier(unit)
    window_sql = "NULL" if window_days is None else str(round(window_days * _DAY))
    # `arm` is meaningful only for users with one arm; users with several are counted and excluded.
    exposed = log.engine.keep(
        f"""
        SELECT {unit_column}, min({arm_sql}) AS arm, count(DISTINCT {arm_sql}) AS arms, min(time_ms) AS exposed_ms,
               min(time_ms) + {window_sql} > (SELECT max(time_ms) FROM {log.serp}) AS unfinished
        FROM {log.serp} WHERE {identifier(variant)} IS NOT NULL GROUP BY {unit_column}""",
        "exposed",
    )
    rows = log.engine.rows(
        f"""
        SELECT arm, count(*) AS users, count(*) FILTER (unfinished) AS unfinished,
               min(exposed_ms) AS first_ms, max(exposed_ms) AS last_ms, (SELECT max(time_ms) FROM {log.serp}) AS end_ms
        FROM {exposed} WHERE arms = 1 GROUP BY arm ORDER BY arm"""
    )
    names = [row["arm"] for row in rows]
    if len(names) < 2:
        problem = f"an A/B test must have at least two arms, but the column {variant} has {counted(len(names), 'arm')}"
        raise InputError(
            problem, fix="use a log of all arms, or another column with variant= (--variant)", path=log.name
        )
    baseline_arm = names[0] if baseline is None else baseline
    if baseline_arm not in names:
        raise InputError(f"there is no arm {baseline_arm!r}", fix=use_one_of(names), path=log.name)
    if shares is not None and (unmatched := set(shares) ^ set(names)):
        problem = (
            f"`shares` must name exactly the arms of the log, but these names do not match:"
            f" {', '.join(sorted(unmatched))}"
        )
        raise InputError(problem, fix=f"pass a share for each of {', '.join(names)}", path=log.name)
    crossed = log.engine.rows(f"SELECT count(*) AS crossed FROM {exposed} WHERE arms > 1")[0]["crossed"]
    arms = (baseline_arm, *(name for name in names if name != baseline_arm))
    exposed_users = {row["arm"]: int(row["users"]) for row in rows}
    unfinished = {row["arm"]: int(row["unfinished"] or 0) for row in rows}
    first_ms, last_ms = min(row["first_ms"] for row in rows), max(row["last_ms"] for row in rows)
    first_day, allocation = _allocation(log, exposed, arms)
    period_days = [first_day + start for start in allocation.starts] if log.has_time and log.dated else []
    starts = tuple(day * _DAY for day in period_days[1:])
    exposure = Exposure(log, exposed, unit, window_sql, round(before_days * _DAY), starts)
    assigned = Assignment(
        arms,
        {arm: exposed_users[arm] - unfinished[arm] for arm in arms},
        int(crossed),
        sum(unfinished.values()),
        (last_ms - first_ms) / _DAY,
        (rows[0]["end_ms"] - first_ms) / _DAY,
        sample_ratio([exposed_users[arm] for arm in arms], None if shares is None else [shares[arm] for arm in arms]),
        tuple(_uneven_fields(exposure, arms)),
        allocation,
        tuple(_EPOCH + timedelta(day) for day in period_days),
        "session" if has_no_user_ids(log.findings) else unit,
    )
    return assigned, exposure


def _allocation(log: InteractionLog, exposed: Relation, arms: Sequence[str]) -> tuple[int, Allocation]:
    """Return the first day of exposure, in days since 1970, and the periods of constant allocation from that day on."""
    if not (log.has_time and log.dated):
        return 0, CONSTANT
    rows = log.engine.rows(
        f"""
        SELECT exposed_ms // {_DAY} AS day, arm, count(*) AS users FROM {exposed} WHERE arms = 1
        GROUP BY exposed_ms // {_DAY}, arm"""
    )
    first_day, last_day = (bound(int(row["day"]) for row in rows) for bound in (min, max))
    # Days without new users are rows of zeros.
    counts = np.zeros((last_day - first_day + 1, len(arms)))
    for row in rows:
        counts[int(row["day"]) - first_day, arms.index(row["arm"])] = row["users"]
    return first_day, allocation_periods(counts)


def _uneven_fields(exposure: Exposure, arms: tuple[str, ...]) -> Iterator[str]:
    """Yield the fields that are filled more or less often in some arm than in the first one: broken telemetry.

    If the allocation changed, differences are means over its periods, because logging may change over time too.
    """
    log, unit = exposure.log, identifier(exposure.unit)
    counts = ", ".join(f"count({field}) AS {field}" for field in _TELEMETRY)
    # Moments of the ratio n / d by user, for the delta method: n pages with the field, of d pages.
    products = ", ".join(
        f"sum({field}) AS n_{field}, sum({field} * {field}) AS nn_{field}, sum({field} * pages) AS nd_{field}"
        for field in _TELEMETRY
    )
    periods = [str(i + 1) for i in range(len(exposure.period_starts) + 1)] if exposure.period_starts else [""]
    pages = exposure.pages(exposure.periods() if exposure.period_starts else None)
    rows = log.engine.rows(
        f"""
        SELECT slice, count(*) AS users, sum(pages) AS d, sum(pages * pages) AS dd, {products} FROM (
            SELECT s.slice, count(*) AS pages, {counts} FROM {pages} AS s
            JOIN {log.serp} AS p ON p.serp = s.serp GROUP BY s.slice, p.{unit}) GROUP BY slice"""
    )
    row_of_slice = {row["slice"]: row for row in rows}
    for field in _TELEMETRY:
        if any(abs(_uneven_z(row_of_slice, field, arms[0], arm, periods)) > _Z for arm in arms[1:]):
            yield field


def _uneven_z(rows: Mapping[str, Any], field: str, baseline: str, arm: str, slices: Sequence[str]) -> float:
    """Return the difference, in standard errors, between an arm and the baseline in how often a field is filled.

    The errors assume the pooled share for both arms: a field that is always filled in one arm and never in the other
    would have an error of 0.
    """
    value = variance = 0.0
    for slice_name in slices:
        arm_rows = [rows[key] for key in (slice_of(baseline, slice_name), slice_of(arm, slice_name)) if key in rows]
        if len(arm_rows) < 2:
            continue
        columns = f"n_{field}", "d", f"nn_{field}", f"nd_{field}", "dd"
        n, d, nn, nd, dd = np.array([[float(row[column]) for row in arm_rows] for column in columns])
        pooled = n.sum() / d.sum()
        squares = (nn - 2.0 * pooled * nd + pooled**2 * dd) / d**2
        # Cochran-Mantel-Haenszel weight of the period.
        weight = 1.0 / (1.0 / d).sum()
        value += weight * float(n[1] / d[1] - n[0] / d[0])
        variance += weight**2 * float(squares.sum())
    return value / math.sqrt(variance) if variance > 0 else 0.0
