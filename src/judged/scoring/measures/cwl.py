"""The C/W/L framework: a measure says how likely its user reads on, and everything else follows from that.

C(i) is the probability that a user who has read the document at rank i reads the next one too. From it follow
W(i), the share of attention that rank i gets, L(i), the probability that rank i is the last one read, and
five expectations. Moffat, Bailey, Scholer and Thomas 2017; Azzopardi, Thomas and Moffat 2019 (cwl_eval).

A user's patience may depend on what was read, judged or not, so this family works on dense matrices: one row
a topic, one column per rank, a block of topics at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.results.types import cached_property
from judged.scoring.judging.ranking import segment_starts
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import (
    HIGHEST,
    LOWEST,
    MOST_SHOWN,
    TopRanks,
    check_order,
    check_scale,
    down_to_last,
    share_in_words,
    share_of_scale,
)
from judged.scoring.measures.parameters import Parameter, amounts, blocks, one_of, whole, yes_no

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
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


OF = Parameter(
    "What is expected of the user: EU, the gain for each document read; ETU, the gain of all that is read; EC and ETC,"
    " the same of costs; ED, how many documents are read.",
    "EU",
    one_of("EU", "ETU", "EC", "ETC", "ED"),
)
COSTS = Parameter(
    "What a document costs its reader: unit is 1 each, given is the column cost of the table of documents (and 1"
    " for each place below the end of the ranking).",
    "unit",
    one_of("unit", "given"),
)
DEPTH = Parameter(
    "The ranking is cut, or filled up with documents that gain nothing, to this many.", 1000, whole(1, 10**6)
)
RESIDUAL = Parameter(
    "Give what unjudged documents could change: the number if each of them, and each place below the end of the"
    " ranking, gained the most, minus the number as it is.",
    False,
    yes_no,
)
EXPECTED = Properties(graded=True, missing_matter=False)
"""What is true of EU without residual: the other expectations have no upper bound, and a residual may be negative."""
ADAPTIVE = Properties(graded=True, monotone=False, missing_matter=False)
"""The same where more gain can make the user stop, or read on, and so lower the gain for each document read."""
FIXED = replace(EXPECTED, additive=True, better_first=True)
"""The same where users read on alike whatever they read."""

_FACTORS = {"EU": ("W", "gain"), "ETU": ("L", "gained"), "EC": ("W", "cost"), "ETC": ("L", "spent")}


@dataclass(frozen=True, eq=False)
class Expected:
    """What follows from a user's continuation: weights, the last rank, and five expectations, one a topic each.

    A user who always reads two documents, of which the first gains 1:

    >>> seen = Reading(gain=np.array([[1.0, 0.0, 1.0]]), cost=np.ones((1, 3)), relevant=np.array([[2.0]]))
    >>> user = Expected(seen, continuation=np.array([[1.0, 0.0, 0.0]]))
    >>> user.W.tolist(), user.L.tolist()
    ([[0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0]])
    >>> [float(user.total(of)[0]) for of in ("EU", "ETU", "EC", "ETC", "ED")]
    [0.5, 1.0, 1.0, 2.0, 2.0]
    """

    reading: Reading
    continuation: Floats

    @cached_property
    def reached(self) -> Floats:
        """The probability that the user reads each rank: 1 for the first."""
        reached = np.ones_like(self.continuation)
        np.cumprod(self.continuation[:, :-1], axis=1, out=reached[:, 1:])
        return reached

    @cached_property
    def W(self) -> Floats:
        """The share of all reading that goes to each rank."""
        return self.reached / self.ED[:, np.newaxis]

    @cached_property
    def L(self) -> Floats:
        """The probability that each rank is the last one read."""
        return self.reached * (1.0 - self.continuation)

    def added(self, of: str) -> Floats:
        """Give what each rank adds to an expectation."""
        weight, amount = _FACTORS[of]
        return getattr(self, weight) * getattr(self.reading, amount)

    @cached_property
    def ED(self) -> Floats:
        """The expected number of documents read."""
        return _total(self.reached)

    def total(self, of: str) -> Floats:
        """Return an expectation: EU and EC for each document read, ETU and ETC of all that is read, ED."""
        return self.ED if of == "ED" else _total(self.added(of))

    def write(self, sheet: Sheet, of: str, name: object) -> None:
        """Write down how an expectation comes about."""
        if of == "ED":
            self.write_ED(sheet, name)
            return
        weight, amount = _FACTORS[of]
        how, parts = f"{weight} * {amount}", {weight: getattr(self, weight), amount: getattr(self.reading, amount)}
        sheet = self.write_L(sheet) if weight == "L" else self.write_W(sheet, amount)
        sheet.column(how, self.added(of), how, **parts)
        sheet.total(name, self.added(of), self.total(of), how)

    def write_ED(self, sheet: Sheet, name: object) -> None:
        """Write down how many documents are read."""
        self.write_reached(sheet)
        sheet.total(name, self.reached, self.ED, "reached")

    def write_W(self, sheet: Sheet, amount: str) -> Sheet:
        """Write down each rank's share of all reading, and say where to go on."""
        self.write_ED(sheet, "ED")
        sheet = sheet.by_hit() if amount == "gain" else sheet
        sheet.column("W", self.W, "reached / ED", reached=self.reached, ED=float(self.ED[0]))
        return sheet

    def write_L(self, sheet: Sheet) -> Sheet:
        """Write down how likely each rank is the last, and say where to go on."""
        self.write_reached(sheet)
        sheet.column("L", self.L, "reached * (1 - C)", reached=self.reached, C=self.continuation)
        return sheet

    def write_reached(self, sheet: Sheet) -> None:
        """Write down how likely users read on, and how likely they come to each rank."""
        sheet.notes()
        sheet.column("reached", self.reached, "C of all ranks above, multiplied", C=self.continuation)


class UserModel(Measure):
    """Base of the measures of the framework: each has these parameters behind its own, and gives its `continuation`."""

    max: float = param(HIGHEST)
    min: float = param(LOWEST)
    of: Literal["EU", "ETU", "EC", "ETC", "ED"] = param(OF)
    costs: Literal["unit", "given"] = param(COSTS)
    depth: int = param(DEPTH)
    residual: bool = param(RESIDUAL)

    @property
    def properties(self) -> Properties:
        """What is true of these scores: more than one document's gain has no bound, a cost is neither good nor bad."""
        known = self.entry.properties
        if self.costs == "given":  # an unjudged document has a cost too
            known = replace(known, ignores_unjudged_tail=False, additive=False, better_first=False)
        if self.residual:
            known = replace(known, better_first=False)
            return replace(known, low=None, high=None, monotone=False, higher_is_better=False)
        if self.of == "EU":
            return known
        better = True if self.of == "ETU" else None
        return replace(known, high=None, monotone=False, higher_is_better=better)

    def continuation(self, reading: Reading) -> Floats:
        """Give C: the probability of reading on after each rank."""
        raise NotImplementedError

    def expected(self, reading: Reading) -> Expected:
        """Give all that follows from the continuation."""
        return Expected(reading, self.continuation(reading))

    def columns(self) -> int:
        """Give how many ranks must be looked at."""
        return self.depth

    def verify(self) -> None:
        """Refuse a scale that does not rise."""
        check_order(self.min, self.max)

    def score(self, judged: Judged) -> Floats:
        """Compute the expectation that was asked for, a block of topics at a time."""
        check_scale(judged, self.max, self)
        ranks = _Ranks(judged, self)
        scores = np.empty(len(judged))
        for first, behind in blocks(len(judged), ranks.columns):
            block = ranks, first, behind
            if self.residual:
                least = self._expect(*block, 0.0, f"{self.of} as it is")
                most = self._expect(*block, 1.0, f"{self.of} with the most gain")
                parts = {f"{self.of}_with_the_most_gain": most, f"{self.of}_as_it_is": least}
                value = judged.step(self, most - least, " - ".join(parts), **parts)
            else:
                value = self._expect(*block, 0.0, self)
            scores[first:behind] = value
        return scores

    def _expect(self, ranks: _Ranks, first: int, behind: int, unjudged: float, name: object) -> Floats:
        """Compute the expectation for some topics, where unjudged documents gain what is said."""
        reading = ranks.reading(first, behind, unjudged)
        user = self.expected(reading)
        if reading.notes is not None:
            how = share_in_words(ranks.judged.grade, self.min, self.max)
            sheet = Sheet.of(ranks.judged, reading, user.reached, None if unjudged else ranks.gain, how)
            user.write(sheet, self.of, name)
        return user.total(self.of)


class _Ranks:
    """The hits and costs of a judged list, ready to be laid out densely."""

    def __init__(self, judged: Judged, measure: UserModel) -> None:
        self.judged = judged
        self.columns = measure.columns()
        self.gain = share_of_scale(judged.grade, measure.min, measure.max)
        known = share_of_scale(judged.label_grade, measure.min, measure.max)
        self.relevant = judged.sum_labels(known > 0)[:, np.newaxis]
        self.cost = None
        if measure.costs == "given":
            self.cost = amounts(judged, "cost", measure, zero=False)
            self.cost_starts = segment_starts(judged.everything.topic, len(judged))

    def reading(self, first: int, behind: int, unjudged: float) -> Reading:
        """Lay out the topics from the first to that before ``behind``; unjudged documents gain what is said."""
        shape, judged = (behind - first, self.columns), self.judged
        gain = np.full(shape, unjudged)
        part = slice(judged.starts[first], judged.starts[behind])
        _lay_out(gain, judged.topic[part] - first, judged.rank[part], self.gain[part])
        relevant, notes = self.relevant[first:behind], None if judged.working is None else list[Note]()
        if unjudged:
            relevant = np.maximum(relevant, np.count_nonzero(gain, axis=1)[:, np.newaxis])
        if self.cost is None:
            return Reading(gain, np.ones((1, self.columns)), relevant, notes)
        cost, every = np.ones(shape), judged.everything
        part = slice(self.cost_starts[first], self.cost_starts[behind])
        _lay_out(cost, every.topic[part] - first, every.rank[part], self.cost[part])
        return Reading(gain, cost, relevant, notes)


def _lay_out(dense: Floats, row: Ints, rank: Ints, values: Floats) -> None:
    kept = rank <= dense.shape[1]
    dense[row[kept], rank[kept] - 1] = values[kept]


def _total(values: Floats) -> Floats:
    """Add up each row, one rank after the other."""
    return np.cumsum(values, axis=1)[:, -1]
