"""The C/W/L framework: a measure says how likely its user reads on, and everything else follows from that.

C(i) is the probability that a user who has read the document at rank i reads the next one too. From it follow
W(i), the share of attention that rank i gets, L(i), the probability that rank i is the last one read, and
five expectations. Moffat, Bailey, Scholer and Thomas 2017; Azzopardi, Thomas and Moffat 2019 (cwl_eval).

A user's patience may depend on what was read, judged or not, so this family works on dense matrices: one row
a topic, one column per rank, a block of topics at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.results.cache import cached_property
from judged.scoring.judging.segments import segment_starts
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.cwl_reading import Note, Reading, Sheet
from judged.scoring.measures.facts import amounts, blocks
from judged.scoring.measures.parameters import Parameter, one_of, whole, yes_no
from judged.scoring.measures.scale import HIGHEST, LOWEST, check_order, check_scale, share_in_words, share_of_scale

if TYPE_CHECKING:
    from typing import Literal

    from judged._types import Floats, Ints
    from judged.scoring.judging import Judged

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

    def added(self, of: str) -> Floats:
        """Give what each rank adds to an expectation."""
        weight, amount = _FACTORS[of]
        return getattr(self, weight) * getattr(self.reading, amount)

    @property
    def EU(self) -> Floats:
        """The expected gain for each document read."""
        return _total(self.added("EU"))

    @property
    def ETU(self) -> Floats:
        """The expected gain of all that is read."""
        return _total(self.added("ETU"))

    @property
    def EC(self) -> Floats:
        """The expected cost of each document read."""
        return _total(self.added("EC"))

    @property
    def ETC(self) -> Floats:
        """The expected cost of all that is read."""
        return _total(self.added("ETC"))

    @cached_property
    def ED(self) -> Floats:
        """The expected number of documents read."""
        return _total(self.reached)

    def write(self, sheet: Sheet, of: str, name: object) -> None:
        """Write down how an expectation comes about."""
        if of == "ED":
            self.write_ED(sheet, name)
            return
        weight, amount = _FACTORS[of]
        how, parts = f"{weight} * {amount}", {weight: getattr(self, weight), amount: getattr(self.reading, amount)}
        sheet = self.write_L(sheet) if weight == "L" else self.write_W(sheet, amount)
        sheet.column(how, self.added(of), how, **parts)
        sheet.total(name, self.added(of), getattr(self, of), how)

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
        return getattr(user, self.of)


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
