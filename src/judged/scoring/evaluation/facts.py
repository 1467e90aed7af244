"""What a table of scores says beside its numbers, and one number as it is reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from judged._types import ReadOnly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Floats
    from judged.data.origin import Origin
    from judged.scoring.judging import Precision, TiePolicy, TopicPolicy
    from judged.scoring.uncertainty.range import Exactness

TieTreatment: TypeAlias = "TiePolicy | Literal['expected', 'bounds']"
"""How ties are broken, or that they are not: the mean over all orders, or the least and greatest score."""
_TIES = {
    "docid": "ties by document id",
    "docid-rising": "ties by document id, rising",
    "stable": "ties as the run lists them",
    "rank": "ordered by the rank column",
    "expected": "the mean over all orders of tied documents",
    "bounds": "ties by document id, and bounds over all orders",
}


@dataclass(frozen=True)
class RunFacts:
    """What is worth knowing of one evaluated run; where it returned 0 judged documents, nothing of it was measured."""

    name: str
    path: str
    sha256: str | None
    returned_topics: int
    missing_topics: tuple[str, ...]
    extra_topics: int
    returned_judged: int


@dataclass(frozen=True)
class QrelsFacts:
    """What is worth knowing of the judgments."""

    name: str
    path: str
    sha256: str | None
    n: int  # topics
    judgments: int
    grades: tuple[float, ...]
    where: str = ""  # the expression by which topics were chosen; empty: all
    origin: Origin | None = None  # of whose labels they were made, and how, where that is known


@dataclass(frozen=True)
class Policies:
    """The choices of a call that change which topics count and how documents are ranked.

    ``dialect`` names the rules that they come from; a choice that was made for the call goes before its own.
    ``exclude_self``: documents with the id of their topic are left out.
    """

    topics: TopicPolicy = "qrels"
    ties: TieTreatment = "docid"
    depth: int | None = None
    precision: Precision = "double"
    dialect: str = "judged"
    exclude_self: bool = False

    def words(self, topics: int, over: str = "") -> str:
        """Say over how many topics numbers are, or over what, and how documents were ranked."""
        over = (
            over
            or {
                "qrels": f"the {topics} topics of the qrels" if topics > 1 else "the one topic",
                "run": "the topics of the run",
                "both": "the topics that qrels and run have in common",
            }[self.topics]
        )
        rules = "Over" if self.dialect == "judged" else f"{self.dialect}: over"
        bits = "; scores compared as 32-bit numbers" if self.precision == "single" else ""
        cut = "" if self.depth is None else f"; first {self.depth} documents"
        cut += "; without documents that have the id of their topic" if self.exclude_self else ""
        return f"{rules} {over}; {_TIES[self.ties]}{bits}{cut}"


@dataclass(frozen=True, eq=False)
class TopicRanges(ReadOnly):
    """How far every score could move, for one reason."""

    reason: str  # `ties`, or `unjudged`: documents without a judgment
    # low, high: (R, M, T): for each run, measure and topic; NaN where the score is
    low: Floats
    high: Floats
    # (R, M, T): `exact`, `outer` (the ends may not be reached) or `sampled` (the truth may be wider)
    kind: np.ndarray[Any, Any]
    # (R, M): the mean share of judged documents among those that the measure looks at, down to its cutoff; NaN where
    # the reason is another one, and for a run without a ranking
    judged: Floats

    def without(self, left_out: Bools) -> Self:
        """Remove the ranges of scores that do not count: (R, M, T)."""
        if not left_out.any():
            return self
        return replace(self, low=np.where(left_out, np.nan, self.low), high=np.where(left_out, np.nan, self.high))

    def of_measures(self, rows: Sequence[int]) -> Self:
        """Take the measures of these places, in this order."""
        low, high, kind, judged = (table[:, rows] for table in (self.low, self.high, self.kind, self.judged))
        return replace(self, low=low, high=high, kind=kind, judged=judged)


@dataclass(frozen=True)
class Reach:
    """How far an aggregate could move, for one reason."""

    reason: str  # as in `TopicRanges`
    # low, high: the aggregate if every topic had its least, or its greatest, score
    low: float
    high: float
    kind: Exactness  # the weakest of the topics' kinds
    judged: float  # as in `TopicRanges`


@dataclass(frozen=True)
class Estimate:
    """One number of a result table: a measure of a run over the topics.

    Parameters
    ----------
    run, measure
        Of what.
    aggregate
        How the topics became one number: mean, sum or count.
    value
        The number; NaN where no topic counts.
    ci
        Low and high of the interval; None where there is none.
    n
        How many topics the value rests on.
    reaches
        How far the value could move, where that was asked for.
    """

    run: str
    measure: str
    aggregate: str
    value: float
    ci: tuple[float, float] | None
    n: int
    reaches: tuple[Reach, ...] = ()
