"""The C/W/L framework: a measure says how likely its user reads on, and everything else follows from that.

C(i) is the probability that a user who has read the document at rank i reads the next one too. From it follow
W(i), the share of attention that rank i gets, L(i), the probability that rank i is the last one read, and
five expectations. Moffat, Bailey, Scholer and Thomas 2017; Azzopardi, Thomas and Moffat 2019 (cwl_eval).

A user's patience may depend on what was read, judged or not, so this family works on dense matrices: one row
a topic, one column a rank, a block of topics at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from judged.judging.segments import segment_starts
from judged.measures.base import Measure, Properties
from judged.measures.facts import amounts, blocks
from judged.measures.parameters import Parameter, one_of, whole, yes_no
from judged.measures.scale import check_order, check_scale, share_of_scale

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.judging import Judged

OF = Parameter(
    "What is expected of the user: EU, the gain for each document read; ETU, the gain of all that is read; EC and ETC,"
    " the same of costs; ED, how many documents are read.",
    "EU",
    one_of("EU", "ETU", "EC", "ETC", "ED"),
    values="EU, ETU, EC, ETC, ED",
)
COSTS = Parameter(
    "What a document costs its reader: unit is 1 each, given is the column cost of the table of documents (and 1"
    " for each place below the end of the ranking).",
    "unit",
    one_of("unit", "given"),
    values="unit or given",
)
DEPTH = Parameter(
    "The ranking is cut, or filled up with documents that gain nothing, to this many.",
    1000,
    whole(1, 10**6),
    values="whole number from 1 to 1000000",
)
RESIDUAL = Parameter(
    "Give what unjudged documents could change: the number if each of them, and each place below the end of the"
    " ranking, gained the most, minus the number as it is.",
    False,
    yes_no,
    values="true or false",
)
EXPECTED = Properties(graded=True)
"""What is true of EU without residual: the other expectations have no upper bound, and a residual may be negative."""
ADAPTIVE = Properties(graded=True, monotone=False)
"""The same where more gain can make the user stop, or read on, and so lower the gain for each document read."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What users read on some topics: one row a topic, one column a rank; one row for all where they are alike.

    Attributes
    ----------
    gain, cost : (B, n) float64, (B, n) or (1, n) float64
        What each document gives, from 0 to 1, and what it takes.
    relevant : (B, 1) float64
        How many documents of the topic gain something, returned or not.
    """

    gain: Floats
    cost: Floats
    relevant: Floats

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


@dataclass(frozen=True, eq=False)
class Expected:
    """What follows from a user's continuation: weights, the last rank, and five expectations, one a topic each.

    Examples
    --------
    A user who always reads two documents, of which the first gains 1:

    >>> seen = Reading(gain=np.array([[1.0, 0.0, 1.0]]), cost=np.ones((1, 3)), relevant=np.array([[2.0]]))
    >>> user = Expected(seen, continuation=np.array([[1.0, 0.0, 0.0]]))
    >>> user.W.tolist(), user.L.tolist()
    ([[0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0]])
    >>> [float(value[0]) for value in (user.EU, user.ETU, user.EC, user.ETC, user.ED)]
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

    @property
    def EU(self) -> Floats:
        """The expected gain for each document read."""
        return _total(self.W * self.reading.gain)

    @property
    def ETU(self) -> Floats:
        """The expected gain of all that is read."""
        return _total(self.L * self.reading.gained)

    @property
    def EC(self) -> Floats:
        """The expected cost of each document read."""
        return _total(self.W * self.reading.cost)

    @property
    def ETC(self) -> Floats:
        """The expected cost of all that is read."""
        return _total(self.L * self.reading.spent)

    @cached_property
    def ED(self) -> Floats:
        """The expected number of documents read."""
        return _total(self.reached)


class UserModel(Measure):
    """Base of the measures of the framework. Each declares these parameters and gives its `continuation`."""

    max: float
    min: float
    of: str
    costs: str
    depth: int
    residual: bool

    @property
    def properties(self) -> Properties:
        """What is true of these scores: more than one document's gain has no bound, a cost is neither good nor bad."""
        known = self.entry.properties
        if self.costs == "given":  # an unjudged document has a cost too
            known = replace(known, ignores_unjudged_tail=False)
        if self.residual:
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
            value = getattr(self.expected(ranks.reading(first, behind, 0.0)), self.of)
            if self.residual:
                value = getattr(self.expected(ranks.reading(first, behind, 1.0)), self.of) - value
            scores[first:behind] = value
        return scores


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
        relevant = self.relevant[first:behind]
        if unjudged:
            relevant = np.maximum(relevant, np.count_nonzero(gain, axis=1)[:, np.newaxis])
        if self.cost is None:
            return Reading(gain, np.ones((1, self.columns)), relevant)
        cost, every = np.ones(shape), judged.everything
        part = slice(self.cost_starts[first], self.cost_starts[behind])
        _lay_out(cost, every.topic[part] - first, every.rank[part], self.cost[part])
        return Reading(gain, cost, relevant)


def _lay_out(dense: Floats, row: Ints, rank: Ints, values: Floats) -> None:
    kept = rank <= dense.shape[1]
    dense[row[kept], rank[kept] - 1] = values[kept]


def _total(values: Floats) -> Floats:
    """Add up each row, one rank after the other."""
    return np.cumsum(values, axis=1)[:, -1]
