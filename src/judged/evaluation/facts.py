"""What a table of scores says beside its numbers, and one number as it is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.judging import Precision, TiePolicy, TopicPolicy


@dataclass(frozen=True)
class RunFacts:
    """What is worth knowing of one evaluated run."""

    name: str
    path: str
    sha256: str | None
    returned_topics: int
    missing_topics: tuple[str, ...]
    extra_topics: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class QrelsFacts:
    """What is worth knowing of the judgments."""

    name: str
    path: str
    sha256: str | None
    topics: int
    judgments: int
    grades: tuple[float, ...]


@dataclass(frozen=True)
class Policies:
    """The choices of a call that change which topics count and how documents are ranked.

    ``dialect`` names the rules that they come from; a choice that was made for the call goes before its own.
    """

    topics: TopicPolicy = "qrels"
    ties: TiePolicy = "docid"
    depth: int | None = None
    precision: Precision = "double"
    dialect: str = "judged"


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
    topics
        How many topics the value rests on.
    """

    run: str
    measure: str
    aggregate: str
    value: float
    ci: tuple[float, float] | None
    topics: int
