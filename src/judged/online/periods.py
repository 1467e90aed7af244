"""Two stretches of a log, the later beside the one before it: what changed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.online.engine import Relation
    from judged.online.log import InteractionLog

_DAY = 86_400_000
_WEEK = 7 * _DAY
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Periods:
    """Two stretches of equal length, or as long before as the log goes back; times in milliseconds since 1970.

    Parameters
    ----------
    begin, since, end
        From `begin` to below `since` is before, from there to below `end` is after.
    """

    begin: int
    since: int
    end: int

    @property
    def whole_weeks(self) -> bool:
        """Whether both have each weekday equally often."""
        return (self.since - self.begin) % _WEEK == 0 and (self.end - self.since) % _WEEK == 0

    @property
    def sql(self) -> str:
        """Give the SQL that says of a page in which it is, by its ``time_ms``; null for none."""
        inside = f"time_ms >= {self.begin} AND time_ms < {self.end}"
        return f"CASE WHEN {inside} THEN CASE WHEN time_ms < {self.since} THEN '{BEFORE}' ELSE '{AFTER}' END END"

    def slices(self, log: InteractionLog) -> Relation:
        """Give ``serp`` and ``slice`` of the pages in one of them."""
        return log.engine.query(f"SELECT serp, {self.sql} AS slice FROM {log.serp} WHERE ({self.sql}) IS NOT NULL")

    @property
    def compared(self) -> str:
        """What is compared, and whether weekdays may differ."""
        weeks = "" if self.whole_weeks else "; these are no whole weeks, so weekdays may differ"
        return f"{self} (UTC){weeks}"

    def __str__(self) -> str:
        return f"{_written(self.since)} to {_written(self.end - 1)}, before: from {_written(self.begin)}"


def periods(log: InteractionLog, since: str | None = None) -> Periods:
    """Part a log.

    Parameters
    ----------
    log
        The log.
    since
        The date, or date and time (UTC), at which the later stretch begins; it ends with the log. None: a week before
        the log's last page; of a log of less than two weeks, its middle.

    Raises
    ------
    InputError
        If the log has no dates, this is none, or there are no pages on one side of it.

    Examples
    --------
    >>> day = 86_400_000
    >>> Periods(0, 7 * day, 14 * day).whole_weeks, str(Periods(0, day, 3 * day))
    (True, '1970-01-02 00:00 to 1970-01-03 23:59, before: from 1970-01-01 00:00')
    """
    if not (log.has_time and log.dated):
        raise InputError("this log has no dates: nothing is before anything else", fix="compare slices", path=log.name)
    ends = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    if ends["first"] is None or ends["first"] == ends["last"]:
        raise InputError("this log is of one moment: nothing is before it", fix="compare slices", path=log.name)
    first, end = int(ends["first"]), int(ends["last"]) + 1
    if since is None:
        length = _WEEK if end - first >= 2 * _WEEK - _DAY else (end - first) // 2
        return Periods(end - 2 * length, end - length, end)
    start = _read(since)
    if not first < start < end:
        stretch = f"{_written(first)} to {_written(end - 1)}"
        raise InputError(f"no page is on one side of {since}", fix=f"give a time within {stretch}", path=log.name)
    return Periods(max(first, 2 * start - end), start, end)


def _read(since: str) -> int:
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise InputError(f"{since!r} is no date", fix="write it as 2024-05-31 or 2024-05-31T09:00") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _written(time_ms: int) -> str:
    return np.datetime_as_string(np.datetime64(time_ms, "ms"), unit="m").replace("T", " ")
