"""A first look at the events, by application and action: what is decided before they are read in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.online.actions import action_of
from judged.online.making.work import SCRIPTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.online.making.work import Work

_RARE = 10
"""Positions 0 are how a log counts, and no accident, if they are at least a tenth as frequent as positions 1."""


@dataclass(frozen=True)
class Dialect:
    """How one application counts positions.

    Parameters
    ----------
    application
        Its name; None: events that name none.
    base
        0 or 1.
    placed, zeros, ones
        Events with a position, with position 0, with position 1.
    sure
        False: there are too few positions at 0 or 1 to tell.
    """

    application: str | None
    base: int
    placed: int
    zeros: int
    ones: int
    sure: bool

    @property
    def words(self) -> str:
        """Say how it counts, and how sure that is."""
        name = self.application or "events without an application"
        sure = "" if self.sure else ", not sure"
        return f"{name} from {self.base} ({self.zeros:,} of {self.placed:,} positions are 0, {self.ones:,} are 1{sure})"


@dataclass(frozen=True)
class Peek:
    """What the first look shows.

    Parameters
    ----------
    rows
        Events read.
    dialects
        How applications count positions.
    meanings
        Actions by the log's names, the most frequent first; None: unknown.
    unknown
        Unknown names and how often each occurs, the most frequent first.
    impressions, programs, propensities, values
        How many events are impressions, come from programs, carry a propensity, carry a value.
    dwell_everywhere
        What the log calls dwell stands on most events that open nothing as well: it is the age of the page or of the
        session then, and no visit.
    dwelling
        Events that carry a dwell.
    """

    rows: int
    dialects: tuple[Dialect, ...]
    meanings: Mapping[str, str | None]
    unknown: tuple[tuple[str, int], ...]
    impressions: int
    programs: int
    propensities: int
    values: int
    dwell_everywhere: bool
    dwelling: int

    @property
    def extras(self) -> tuple[str, ...]:
        """Columns that few logs have: a column of nulls costs as much as any other."""
        dwelling = self.dwelling and not self.dwell_everywhere
        having = (("dwell_ms", dwelling), ("value", self.values), ("propensity", self.propensities))
        return tuple(name for name, count in having if count)


def peek(work: Work, actions: Mapping[str, str]) -> Peek:
    """Look at the events once, by application and action."""
    rows = work.run(
        """SELECT application, action, count(*), count(position), count(*) FILTER (position = 0),
            count(*) FILTER (position = 1), count(dwell_ms), count(*) FILTER ($scripted), count(propensity),
            count(value)
        FROM $event GROUP BY ALL""",
        scripted=SCRIPTED,
    )
    frequent = sorted(rows, key=lambda row: (-row[2], str(row[1])))
    meanings = {action: action_of(action, actions) for action in dict.fromkeys(row[1] for row in frequent if row[1])}
    unknown: dict[str, int] = {}
    placed: dict[str | None, list[int]] = {}
    for application, action, count, *positions in rows:
        if meanings.get(action) is None:
            unknown[action or "(none)"] = unknown.get(action or "(none)", 0) + count
        sums = placed.setdefault(application, [0, 0, 0])
        placed[application] = [old + new for old, new in zip(sums, positions[:3], strict=True)]
    opened = ("click", "heartbeat", "page_exit")
    aside = [row for row in rows if meanings.get(row[1]) not in opened]
    aside_rows, aside_dwelling = sum(row[2] for row in aside), sum(row[6] for row in aside)
    return Peek(
        rows=sum(row[2] for row in rows),
        dialects=tuple(
            _dialect(work, name, *sums)
            for name, sums in sorted(placed.items(), key=lambda one: one[0] or "")
            if sums[0]
        ),
        meanings=meanings,
        unknown=tuple(sorted(unknown.items(), key=lambda one: (-one[1], one[0]))),
        impressions=sum(row[2] for row in rows if meanings.get(row[1]) == "impression"),
        programs=sum(row[7] for row in rows),
        propensities=sum(row[8] for row in rows),
        values=sum(row[9] for row in rows),
        dwell_everywhere=aside_dwelling > 0 and 2 * aside_dwelling >= aside_rows,
        dwelling=sum(row[6] for row in rows),
    )


def _dialect(work: Work, application: str | None, placed: int, zeros: int, ones: int) -> Dialect:
    given = work.choices.rank_base if work.choices.rank_base is not None else work.raw.rank_base
    found = int(zeros * _RARE < ones or not zeros)
    sure = given is not None or (zeros + ones >= _RARE and not (found and zeros))
    return Dialect(application, found if given is None else given, placed, zeros, ones, sure)
