"""The C/W/L framework: a user model defines the probability of reading on, and the rest follows.

C(i) is the probability that a user who has read the document at rank i reads the next one too. It determines W(i),
the share of attention at rank i, L(i), the probability that rank i is the last one read, and five expectations.
Sources: Moffat, Bailey, Scholer and Thomas 2017; Azzopardi, Thomas and Moffat 2019 (cwl_eval).

C may depend on the gains so far and on unjudged ranks. These measures therefore use dense matrices, with one row per
topic and one column per rank, for a block of topics at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from judged.results.types import cached_property
from judged.scoring.judging.ranking import segment_starts
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import (
    HIGHEST,
    LOWEST,
    MAX_SHOWN,
    TopRanks,
    check_order,
    check_scale,
    format_share,
    share_of_scale,
    shown_hits,
)
from judged.scoring.measures.parameters import Parameter, boolean, choice, integer, read_amounts, topic_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.judging.calculation import Operand


class ExplainedColumn(NamedTuple):
    """A column of an explanation: the arguments of `UserModelSheet.column`."""

    name: str
    values: Floats
    how: str
    parts: Mapping[str, Operand]


@dataclass(frozen=True, eq=False)
class RankMatrices:
    """Gains and costs of a block of topics: one row per topic, one column per rank. One row if all topics are equal."""

    gain: Floats  # (B, n): gain of each document, from 0 to 1
    cost: Floats  # (B, n) or (1, n): cost of each document to its reader
    relevant: Floats  # (B, 1): number of documents of the topic with a positive gain, returned or not
    # Intermediate columns of the continuation, if an explanation is requested; there is one topic then.
    columns: list[ExplainedColumn] | None = None

    def note(self, name: str, values: Floats, how: str, **parts: Operand) -> Floats:
        """Record a column for the explanation, and return its values: (B, n). Drop parts that `how` does not name."""
        if self.columns is not None:
            names = set(re.findall(r"\w+", how))
            own_parts = {key: part for key, part in parts.items() if key in names}
            self.columns.append(ExplainedColumn(name, values, how, own_parts))
        return values

    @cached_property
    def spent_word(self) -> str:
        """Name of the cost so far in formulas: "rank" if each document costs 1."""
        return "rank" if self.columns is None or bool((self.cost == 1).all()) else "spent"

    @cached_property
    def rank(self) -> Floats:
        """The ranks, from 1: (n,)."""
        return np.arange(1, self.gain.shape[1] + 1, dtype=np.float64)

    @cached_property
    def gained(self) -> Floats:
        """Cumulative gain down to and including each rank."""
        return np.cumsum(self.gain, axis=1)

    @cached_property
    def spent(self) -> Floats:
        """Cumulative cost down to and including each rank."""
        return np.cumsum(self.cost, axis=1)


LIMIT_TOLERANCE = 1e-9
"""A sum within this distance of a limit has reached it. It is relative to limits above 1."""


def is_below(total: Floats, limit: Floats | float) -> Floats:
    """Return 1 at each rank where a running total is below its limit, 0 where it has reached it: (B, n).

    Thirds and tenths have no exact double: 2/3 + 1 + 1/3 is computed as 1.9999999999999998. The error of a sum of 1,000
    such terms stays far below `LIMIT_TOLERANCE`, and practical gains and costs differ by far more.

    Examples
    --------
    >>> is_below(np.cumsum([[2 / 3, 1.0, 1 / 3]], axis=1), 2.0).tolist()
    [[1.0, 1.0, 0.0]]
    """
    limit = np.asarray(limit, dtype=np.float64)
    # A limit that moves accumulates the rounding errors of its largest value so far.
    largest = np.maximum.accumulate(np.abs(limit), axis=1) if limit.ndim else np.abs(limit)
    return (total < limit - LIMIT_TOLERANCE * np.maximum(largest, 1.0)).astype(np.float64)


_MIN_REACHED = 0.001  # ranks that a smaller share of users reach are shown as one number
_SUMMANDS = {"gained": "gain", "spent": "cost"}


@dataclass(frozen=True, eq=False)
class UserModelSheet:
    """Tables of an explanation: columns by rank, each after the columns in its formula, and totals below them."""

    top: TopRanks  # the ranks that are shown
    last_rank: int  # the last rank that a noticeable share of users reach
    matrices: RankMatrices
    gain: Floats | None  # (H,): gain of each hit; None if unjudged documents gain as well
    how_gain: str
    hits: Bools | None = None  # (H,): in a table of hits, those that have a row; None in a table of ranks
    column_names: set[str] = field(default_factory=set[str])  # the columns of the current table

    @classmethod
    def of(cls, judged: Judged, matrices: RankMatrices, reached: Floats, gain: Floats | None, how_gain: str) -> Self:
        """Create a sheet of the returned ranks that a noticeable share of users reach, at most `MAX_SHOWN`."""
        last_rank = int(np.flatnonzero(reached[0] >= _MIN_REACHED).max(initial=0)) + 1
        count = max(1, min(last_rank, int(judged.returned[0]), MAX_SHOWN))
        if gain is None:
            title = f"{judged.title}, with the highest gain for documents without a judgment"
            judged = replace(
                judged, title=title, stored_docs=judged.stored_docs if judged.reordered else judged.returned_docs
            )
            how_gain += ", 1 for documents without a judgment"
        return cls(TopRanks(judged, count), last_rank, matrices, gain, how_gain)

    def by_hit(self) -> UserModelSheet:
        """Return a sheet that continues with a table of hits, if unjudged documents have no gain."""
        if self.gain is None:
            return self
        judged = self.top.judged
        return replace(self, hits=shown_hits(judged, self.gain, None) & (judged.rank <= self.last_rank))

    def column(self, name: str, values: Floats, how: str = "", **parts: Operand) -> None:
        """Add a column: (1, n), or (n,) for all topics. Parts that are not in this table yet are added before it."""
        shape = self.matrices.gain.shape
        row_parts: dict[str, Any] = {
            key: np.broadcast_to(part, shape)[0] if np.ndim(part) else part for key, part in parts.items()
        }
        for key, part in row_parts.items():
            if key not in self.column_names and isinstance(part, np.ndarray):
                self._add_part(key, part)
        self.column_names.add(name)
        row = np.broadcast_to(values, shape)[0]
        if self.hits is None:
            self.top.column(name, row, how, **row_parts)
        else:
            hit_parts = {key: self._select_hits(part) for key, part in row_parts.items()}
            self.top.judged.column(name, self._select_hits(row), how, where=self.hits, **hit_parts)

    def _select_hits(self, row: Any) -> Any:
        if not isinstance(row, np.ndarray):  # a number for all ranks
            return row
        return row[np.minimum(self.top.judged.rank, len(row)) - 1]

    def _add_part(self, name: str, values: Floats) -> None:
        """Add an input of the calculation, or a column of an earlier table."""
        if name == "gain" and self.gain is not None:
            judged = self.top.judged
            where = judged.rank <= self.top.count if self.hits is None else self.hits
            self.column_names.add(name)
            judged.column(name, self.gain, self.how_gain, where=where)
        elif name == "gain":
            self.column(name, values, self.how_gain)
        elif summand := _SUMMANDS.get(name):
            self.column(name, values, f"{summand} so far", **{summand: getattr(self.matrices, summand)})
        else:
            self.column(name, values)

    def add_continuation(self) -> None:
        """Add the columns that the continuation recorded."""
        for name, values, how, parts in self.matrices.columns or ():
            self.column(name, values, how, **parts)

    def total(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Add the total of a column, and start the next table."""
        row = np.broadcast_to(values, self.matrices.gain.shape)[0]
        if self.hits is None:
            self.top.total(name, row, total, summand)
        else:
            judged = self.top.judged
            judged.column("so far", judged.sum_so_far(self._select_hits(row) * self.hits), where=self.hits)
            TopRanks(judged, self.last_rank).add_up(name, row, total, summand)
        self.column_names.clear()


OF = Parameter(
    "Expected value that is the score. `EU`: the gain per document read. `ETU`: the total gain. `EC`: the cost"
    " per document read. `ETC`: the total cost. `ED`: the number of documents read.",
    "EU",
    choice("EU", "ETU", "EC", "ETC", "ED"),
)
COSTS = Parameter(
    "The cost of reading a document. `unit`: 1 for each document. `column`: the value in the column `cost` of the"
    " table of documents, and 1 for each rank below the end of the ranking.",
    "unit",
    choice("unit", "column"),
)
DEPTH = Parameter(
    "The length to which the ranking is truncated, or extended by documents without gain.", 1000, integer(1, 10**6)
)
RESIDUAL = Parameter(
    "Whether the score is the residual: the increase of the usual score if every unjudged document, and every rank"
    " below the end of the ranking, had the highest gain.",
    False,
    boolean,
)
EXPECTED = Properties(graded=True, depends_on_missing=False)
"""Properties of EU without residual. Other expectations have no upper bound, and a residual can be negative."""
ADAPTIVE = Properties(graded=True, monotone=False, depends_on_missing=False)
"""Properties of EU if more gain can make the user stop or read on, and so lower the gain per document read."""
FIXED = replace(EXPECTED, additive=True, better_first=True)
"""Properties of EU if the probability of reading on does not depend on the ranking."""

_FACTORS = {"EU": ("W", "gain"), "ETU": ("L", "gained"), "EC": ("W", "cost"), "ETC": ("L", "spent")}


@dataclass(frozen=True, eq=False)
class UserExpectations:
    """Weights and expectations that follow from the continuation of a user: one value per topic for an expectation.

    A user who always reads two documents, of which the first has a gain of 1:

    >>> matrices = RankMatrices(gain=np.array([[1.0, 0.0, 1.0]]), cost=np.ones((1, 3)), relevant=np.array([[2.0]]))
    >>> user = UserExpectations(matrices, continuation=np.array([[1.0, 0.0, 0.0]]))
    >>> user.W.tolist(), user.L.tolist()
    ([[0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0]])
    >>> [float(user.total(of)[0]) for of in ("EU", "ETU", "EC", "ETC", "ED")]
    [0.5, 1.0, 1.0, 2.0, 2.0]
    """

    matrices: RankMatrices
    continuation: Floats

    @cached_property
    def reached(self) -> Floats:
        """Probability that the user reads each rank: 1 for the first."""
        reached = np.ones_like(self.continuation)
        np.cumprod(self.continuation[:, :-1], axis=1, out=reached[:, 1:])
        return reached

    @cached_property
    def W(self) -> Floats:
        """Share of all reading at each rank."""
        # The expected number of documents read normalizes the weights: they sum to 1.
        return self.reached / self.ED[:, np.newaxis]

    @cached_property
    def L(self) -> Floats:
        """Probability that each rank is the last one read."""
        # The user reaches the rank, and then stops.
        return self.reached * (1.0 - self.continuation)

    def terms(self, of: str) -> Floats:
        """Return the contribution of each rank to an expectation."""
        weight, amount = _FACTORS[of]
        return getattr(self, weight) * getattr(self.matrices, amount)

    @cached_property
    def ED(self) -> Floats:
        """Expected number of documents read."""
        return _total(self.reached)

    def total(self, of: str) -> Floats:
        """Return an expectation: EU and EC per document read, ETU and ETC in total, or ED."""
        return self.ED if of == "ED" else _total(self.terms(of))

    def explain(self, sheet: UserModelSheet, of: str, name: object) -> None:
        """Add the calculation of an expectation to the sheet."""
        if of == "ED":
            self.explain_ED(sheet, name)
            return
        weight, amount = _FACTORS[of]
        how, parts = f"{weight} * {amount}", {weight: getattr(self, weight), amount: getattr(self.matrices, amount)}
        sheet = self.explain_L(sheet) if weight == "L" else self.explain_W(sheet, amount)
        sheet.column(how, self.terms(of), how, **parts)
        sheet.total(name, self.terms(of), self.total(of), how)

    def explain_ED(self, sheet: UserModelSheet, name: object) -> None:
        """Add the calculation of the number of documents read."""
        self.explain_reached(sheet)
        sheet.total(name, self.reached, self.ED, "reached")

    def explain_W(self, sheet: UserModelSheet, amount: str) -> UserModelSheet:
        """Add each rank's share of all reading. Return the sheet to continue with."""
        self.explain_ED(sheet, "ED")
        sheet = sheet.by_hit() if amount == "gain" else sheet
        sheet.column("W", self.W, "reached / ED", reached=self.reached, ED=float(self.ED[0]))
        return sheet

    def explain_L(self, sheet: UserModelSheet) -> UserModelSheet:
        """Add the probability that each rank is the last. Return the sheet to continue with."""
        self.explain_reached(sheet)
        sheet.column("L", self.L, "reached * (1 - C)", reached=self.reached, C=self.continuation)
        return sheet

    def explain_reached(self, sheet: UserModelSheet) -> None:
        """Add the probabilities of reading on and of reaching each rank."""
        sheet.add_continuation()
        sheet.column("reached", self.reached, "product of C over all ranks above", C=self.continuation)


class UserModel(Measure):
    """Base of the measures of the framework. These parameters follow those of the subclass."""

    max: float = param(HIGHEST)
    min: float = param(LOWEST)
    of: Literal["EU", "ETU", "EC", "ETC", "ED"] = param(OF)
    costs: Literal["unit", "column"] = param(COSTS)
    depth: int = param(DEPTH)
    residual: bool = param(RESIDUAL)

    @property
    def properties(self) -> Properties:
        """Properties of the scores: only EU has an upper bound, and a cost is neither good nor bad."""
        declared = self.entry.properties
        if self.costs == "column":  # an unjudged document has a cost too
            declared = replace(declared, ignores_unjudged_tail=False, additive=False, better_first=False)
        if self.residual:
            declared = replace(declared, better_first=False)
            return replace(declared, low=None, high=None, monotone=False, higher_is_better=False)
        if self.of == "EU":
            return declared
        higher_is_better = True if self.of == "ETU" else None
        return replace(declared, high=None, monotone=False, higher_is_better=higher_is_better)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, the probability of reading on after each rank."""
        raise NotImplementedError

    def expected(self, matrices: RankMatrices) -> UserExpectations:
        """Return the weights and expectations of the continuation."""
        return UserExpectations(matrices, self.continuation(matrices))

    def columns(self) -> int:
        """Return the number of ranks that can affect the score."""
        return self.depth

    def verify(self) -> None:
        """Raise unless `min` is below `max`."""
        check_order(self.min, self.max)

    def score(self, judged: Judged) -> Floats:
        """Compute the expectation `of`, for a block of topics at a time."""
        check_scale(judged, self.max, self)
        builder = _MatrixBuilder(judged, self)
        scores = np.empty(len(judged))
        # Dense matrices of all topics could be too large: 50,000 topics of depth 1000 would need 400 MB each.
        for start, end in topic_blocks(len(judged), builder.columns):
            block = builder, start, end
            if self.residual:
                least = self._expect(*block, 0.0, f"{self.of} with gain 0")
                most = self._expect(*block, 1.0, f"{self.of} with highest gain")
                parts = {f"{self.of}_with_highest_gain": most, f"{self.of}_with_gain_0": least}
                value = judged.step(self, most - least, " - ".join(parts), **parts)
            else:
                value = self._expect(*block, 0.0, self)
            scores[start:end] = value
        return scores

    def _expect(self, builder: _MatrixBuilder, start: int, end: int, unjudged_gain: float, name: object) -> Floats:
        matrices = builder.build(start, end, unjudged_gain)
        user = self.expected(matrices)
        if matrices.columns is not None:
            how = format_share(builder.judged.grade, self.min, self.max)
            gain = None if unjudged_gain else builder.gain
            sheet = UserModelSheet.of(builder.judged, matrices, user.reached, gain, how)
            user.explain(sheet, self.of, name)
        return user.total(self.of)


class CutoffUserModel(UserModel):
    """Base of the user models whose users do not read below rank k, the parameter `cutoff`."""

    def columns(self) -> int:
        """Return the number of ranks that can affect the score: k at most."""
        return min(self.depth, vars(self)["cutoff"])


class _MatrixBuilder:
    """Gains and costs of the hits of a judged list, from which dense matrices of blocks of topics are built."""

    def __init__(self, judged: Judged, measure: UserModel) -> None:
        self.judged = judged
        self.columns = measure.columns()
        self.gain = share_of_scale(judged.grade, measure.min, measure.max)
        label_gain = share_of_scale(judged.label_grade, measure.min, measure.max)
        self.relevant = judged.sum_labels(label_gain > 0)[:, np.newaxis]
        self.cost = None
        if measure.costs == "column":
            self.cost = read_amounts(judged, "cost", measure, allow_zero=False)
            self.cost_starts = segment_starts(judged.returned_docs.topic, len(judged))

    def build(self, start: int, end: int, unjudged_gain: float) -> RankMatrices:
        """Build the matrices of the topics from `start` to before `end`."""
        shape, judged = (end - start, self.columns), self.judged
        gain = np.full(shape, unjudged_gain)
        hits = slice(judged.starts[start], judged.starts[end])
        _fill(gain, judged.topic[hits] - start, judged.rank[hits], self.gain[hits])
        relevant = self.relevant[start:end]
        columns = None if judged.calculation is None else list[ExplainedColumn]()
        if unjudged_gain:
            relevant = np.maximum(relevant, np.count_nonzero(gain, axis=1)[:, np.newaxis])
        if self.cost is None:
            return RankMatrices(gain, np.ones((1, self.columns)), relevant, columns)
        # Every returned document has a cost, judged or not. Ranks below the end of the ranking cost 1.
        cost, returned = np.ones(shape), judged.returned_docs
        docs = slice(self.cost_starts[start], self.cost_starts[end])
        _fill(cost, returned.topic[docs] - start, returned.rank[docs], self.cost[docs])
        return RankMatrices(gain, cost, relevant, columns)


def _fill(dense: Floats, row: Ints, rank: Ints, values: Floats) -> None:
    is_within = rank <= dense.shape[1]
    dense[row[is_within], rank[is_within] - 1] = values[is_within]


def _total(values: Floats) -> Floats:
    # A sequential sum of each row: NumPy's pairwise sum can differ in the last bits.

    return np.cumsum(values, axis=1)[:, -1]
