"""What users read, rank by rank: gains, costs and what their continuations note; and the sheet that shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.results.cache import cached_property
from judged.scoring.measures.gain import down_to_last
from judged.scoring.measures.top_ranks import MOST_SHOWN, TopRanks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.scoring.judging.working import Part


class Note(NamedTuple):
    """One column of a working: the arguments of `Sheet.column`."""

    name: str
    values: Floats
    how: str
    parts: Mapping[str, Part]


@dataclass(frozen=True, eq=False)
class Reading:
    """What users read on some topics: one row per topic, one column per rank; one row for all where they are alike."""

    # gain, cost: (B, n) float64, (B, n): what each document gives, from 0 to 1, and what it takes
    gain: Floats
    cost: Floats
    relevant: Floats  # (B, 1): how many documents of the topic gain something, returned or not
    # what continuations write down, where someone asked for it; there is one topic then
    notes: list[Note] | None = None

    def note(self, name: str, values: Floats, how: str, **parts: Part) -> Floats:
        """Write down one number per rank, and give it back: (B, n). Parts that the formula does not name are left."""
        if self.notes is not None:
            named = set(re.findall(r"\w+", how))
            self.notes.append(Note(name, values, how, {key: part for key, part in parts.items() if key in named}))
        return values

    @cached_property
    def spent_word(self) -> str:
        """What a formula calls the cost so far: the rank, where each document costs 1."""
        return "rank" if self.notes is None or bool((self.cost == 1).all()) else "spent"

    @cached_property
    def rank(self) -> Floats:
        """The ranks, from 1: (n,)."""
        return np.arange(1, self.gain.shape[1] + 1, dtype=np.float64)

    @cached_property
    def gained(self) -> Floats:
        """What was gained down to and including each rank."""
        return np.cumsum(self.gain, axis=1)

    @cached_property
    def spent(self) -> Floats:
        """What was spent down to and including each rank."""
        return np.cumsum(self.cost, axis=1)


LIMIT_TOLERANCE = 1e-9
"""A sum this close to a limit has reached it. It is relative to limits above 1."""


def is_below(total: Floats, limit: Floats | float) -> Floats:
    """Return 1 at each rank where a running total is below its limit, 0 where it has reached it: (B, n).

    Thirds and tenths have no exact double: 2/3 + 1 + 1/3 adds up to 1.9999999999999998. The error of a sum of 1,000
    such terms stays far below `LIMIT_TOLERANCE`, and gains and costs that people choose differ by far more.

    Examples
    --------
    >>> is_below(np.cumsum([[2 / 3, 1.0, 1 / 3]], axis=1), 2.0).tolist()
    [[1.0, 1.0, 0.0]]
    """
    limit = np.asarray(limit, dtype=np.float64)
    # A limit that moves carries the rounding errors of the largest value it has had.
    largest = np.maximum.accumulate(np.abs(limit), axis=1) if limit.ndim else np.abs(limit)
    return (total < limit - LIMIT_TOLERANCE * np.maximum(largest, 1.0)).astype(np.float64)


_LEAST_SHOWN = 0.001  # ranks that fewer users reach are shown as one number
_ADDED_UP = {"gained": "gain", "spent": "cost"}


@dataclass(frozen=True, eq=False)
class Sheet:
    """The tables of a working: columns by rank, each behind those that it is made of, and totals below them."""

    top: TopRanks  # which ranks are shown
    far: int  # the last rank that noticeably many users reach
    reading: Reading
    gain: Floats | None  # (H,): what each hit gains; None where unjudged documents gain as well
    how_gain: str
    hits: Bools | None = None  # (H,): in a table of hits, those that have a row; None in a table of ranks
    written: set[str] = field(default_factory=set[str])  # the columns of the present table

    @classmethod
    def of(cls, judged: Judged, reading: Reading, reached: Floats, gain: Floats | None, how_gain: str) -> Sheet:
        """Choose the ranks that are shown: those returned that noticeably many users reach, and not too many."""
        far = int(np.flatnonzero(reached[0] >= _LEAST_SHOWN).max(initial=0)) + 1
        count = max(1, min(far, int(judged.returned[0]), MOST_SHOWN))
        if gain is None:
            title = f"{judged.title}, where documents without a judgment gain the most"
            judged = replace(judged, title=title, shown=judged.shown if judged.reordered else judged.everything)
            how_gain += ", 1 without a judgment"
        return cls(TopRanks(judged, count), far, reading, gain, how_gain)

    def by_hit(self) -> Sheet:
        """Go on with a table of the hits, where nothing else gains."""
        if self.gain is None:
            return self
        judged = self.top.judged
        return replace(self, hits=down_to_last(judged, self.gain, None) & (judged.rank <= self.far))

    def column(self, name: str, values: Floats, how: str = "", **parts: Part) -> None:
        """Write a column down: (1, n), or (n,) for all; parts that stand in no column of this table go before it."""
        width = self.reading.gain.shape
        wide: dict[str, Any] = {
            key: np.broadcast_to(part, width)[0] if np.ndim(part) else part for key, part in parts.items()
        }
        for key, part in wide.items():
            if key not in self.written and isinstance(part, np.ndarray):
                self._given(key, part)
        self.written.add(name)
        row = np.broadcast_to(values, width)[0]
        if self.hits is None:
            self.top.column(name, row, how, **wide)
        else:
            at_hits = {key: self._at_hits(part) if isinstance(part, np.ndarray) else part for key, part in wide.items()}
            self.top.judged.column(name, self._at_hits(row), how, where=self.hits, **at_hits)

    def _at_hits(self, row: Floats) -> Floats:
        return row[np.minimum(self.top.judged.rank, len(row)) - 1]

    def _given(self, name: str, values: Floats) -> None:
        """Write down what the calculation begins with, or what an earlier table has."""
        if name == "gain" and self.gain is not None:
            judged = self.top.judged
            where = judged.rank <= self.top.count if self.hits is None else self.hits
            self.written.add(name)
            judged.column(name, self.gain, self.how_gain, where=where)
        elif name == "gain":
            self.column(name, values, self.how_gain)
        elif summand := _ADDED_UP.get(name):
            self.column(name, values, f"{summand} so far", **{summand: getattr(self.reading, summand)})
        else:
            self.column(name, values)

    def notes(self) -> None:
        """Write down what the continuation noted."""
        for name, values, how, parts in self.reading.notes or ():
            self.column(name, values, how, **parts)

    def total(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Write down the total of a column, and begin the next table."""
        row = np.broadcast_to(values, self.reading.gain.shape)[0]
        if self.hits is None:
            self.top.total(name, row, total, summand)
        else:
            judged = self.top.judged
            judged.column("so far", judged.sum_so_far(self._at_hits(row) * self.hits), where=self.hits)
            TopRanks(judged, self.far).add_up(name, row, total, summand)
        self.written.clear()
