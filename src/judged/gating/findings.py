"""What a gate found, check by check: the numbers and the decision, which its forms are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from judged.evaluation import Scores
    from judged.gating.config import Check, GateConfig, Guardrail

_ROUNDING = 1e-12

Status: TypeAlias = Literal["pass", "inconclusive", "fail"]


@dataclass(frozen=True)
class TopicLoss:
    """One topic on which the candidate is worse: both scores, in the measure's unit."""

    query_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class CheckFinding:
    """What was found by one check."""

    check: Check  # what was asked
    measure: str  # the canonical name
    owner: str  # of the slice
    # n, left_out: topics of the slice with a score for both runs; topics of it that lack one
    n: int
    left_out: int
    minimum: int  # with fewer topics nothing is decided
    baseline: float  # aggregates over the n topics
    candidate: float  # aggregates over the n topics
    # mean of candidate minus baseline. Where `kind` is `ratio` (geometric means), the relative change.
    difference: float
    # of the difference, two-sided at level 1 - 2 alpha: its limits decide as the one-sided tests do, before any
    # correction. A limit is infinite where so few topics can rule out nothing.
    interval: tuple[float, float] | None
    level: float
    margin: float  # the largest loss that is allowed, in the unit of `difference`, from 0
    kind: Literal["difference", "ratio"]
    lower_is_better: bool  # then a loss is a positive difference
    # p, adjusted: of the test for a loss of more than the margin, before and after the correction. NaN where nothing is
    # tested.
    p: float
    adjusted: float
    # of the test for a loss of less than the margin, which needs no correction: the gate passes only if all do
    p_safe: float
    # a true loss of this size would have been noticed with the configured power. NaN where that is not known, or where
    # no loss could fail by itself.
    detectable: float
    power: float
    correction: str
    method: str  # `randomisation`, `ratio` or `t`
    # `fail`: more than the margin was lost. `pass`: that is ruled out. `inconclusive`: neither is shown.
    status: Status
    strict: bool  # whether the gate fails where this check is inconclusive
    note: str = ""  # why nothing was tested, or what else must be known
    worst: tuple[TopicLoss, ...] = ()  # the topics that lost most, at most three
    family: int = 1  # how many checks share alpha
    least_p: float = math.nan  # below this p cannot be with so many topics, or resamples. NaN where nothing is tested.
    large_loss: float = math.nan  # what counts as a large loss of a topic, in the measure's unit
    large_losses: int = 0  # how many of the n topics lost more
    max_share_of_large_losses: float | None = None  # a larger share of them fails
    identical: bool = False  # whether both runs have the same score on each of the n topics
    # a loss of this size on a topic, on so few of all topics that these may have none, outweighs the margin: that is
    # not ruled out by any test of these topics. NaN where no topic can lose as much.
    unseen_loss: float = math.nan

    @property
    def name(self) -> str:
        """Measure and slice."""
        return self.check.name

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of it."""
        return self.status == "fail" or (self.strict and self.status == "inconclusive")

    @property
    def alpha(self) -> float:
        """Of each of the two one-sided tests, before any correction."""
        return (1 - self.level) / 2

    @property
    def proved(self) -> bool:
        """Whether it is shown that more than the margin was lost."""
        return self.adjusted <= self.alpha * (1 + _ROUNDING)

    @property
    def too_many_large_losses(self) -> bool:
        """Whether more topics had a large loss than the configured limit allows."""
        most = self.max_share_of_large_losses
        return most is not None and self.large_losses > most * self.n * (1 + _ROUNDING)

    @property
    def loss(self) -> float:
        """What was lost: positive where the candidate is worse."""
        return self.difference if self.lower_is_better else 0.0 - self.difference

    @property
    def largest_loss(self) -> float:
        """The largest loss that is not ruled out; infinite where none is."""
        if self.interval is None:
            return math.inf
        return self.interval[1] if self.lower_is_better else 0.0 - self.interval[0]

    @property
    def least_loss(self) -> float:
        """The least loss that is not ruled out; below 0 it is a gain."""
        if self.interval is None:
            return -math.inf
        return self.interval[0] if self.lower_is_better else 0.0 - self.interval[1]


@dataclass(frozen=True)
class GuardrailFinding:
    """What a guardrail found: numbers that are compared as they stand."""

    guardrail: Guardrail  # what was asked
    # baseline, candidate: the numbers. NaN where a number plays no part.
    baseline: float
    candidate: float
    limits: tuple[str, ...]  # what was allowed, in words
    status: Status  # `pass` or `fail`

    @property
    def name(self) -> str:
        """What is limited."""
        return self.guardrail.name

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of it."""
        return self.status == "fail"


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Whether the candidate may take the baseline's place."""

    config: GateConfig  # what was asked
    baseline: str  # the names of the runs
    candidate: str  # the names of the runs
    checks: tuple[CheckFinding, ...]  # in the order of the configuration
    guardrails: tuple[GuardrailFinding, ...]
    scores: Scores = field(repr=False)  # of both runs, which the checks are made of
    warnings: tuple[str, ...] = ()  # what should be known before the decision is used

    @property
    def parts(self) -> tuple[CheckFinding | GuardrailFinding, ...]:
        """Checks and guardrails."""
        return self.checks + self.guardrails

    @property
    def status(self) -> Status:
        """``fail`` if anything blocks, else ``inconclusive`` if anything is, else ``pass``."""
        if any(one.blocks for one in self.parts):
            return "fail"
        return "inconclusive" if any(one.status == "inconclusive" for one in self.parts) else "pass"

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way: True also where a check that is not strict is inconclusive."""
        return self.status != "fail"

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0, or 1 where something blocks."""
        return 0 if self.passed else 1
