"""Two judges: how far they agree, topic by topic, and what becomes of systems if one stands in for the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.decimals import decimal, percent

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.stats.agreement import Agreement, Confusion
    from judged.stats.rankings import Correlation


@dataclass(frozen=True)
class TopicAgreement:
    """Two judges on one topic."""

    query_id: str
    shared: int  # documents that both judged
    same: float  # the share of equal grades
    distance: float  # the mean distance of the two grades
    bias: float  # the mean of the second judge's grade minus the first's


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """Two judges on all that both judged."""

    first: str
    second: str
    # shared, only_first, only_second: pairs of topic and document that both judged, and one alone
    shared: int
    only_first: int
    only_second: int
    same: float  # the share of equal grades; NaN where nothing is shared
    # kappa, linear, quadratic, alpha: Cohen's kappa, plain and weighted, and Krippendorff's alpha. The plain kappa is
    # undefined where grades are no whole numbers.
    kappa: Agreement
    linear: Agreement
    quadratic: Agreement
    alpha: Agreement
    confusion: Confusion = field(repr=False)
    # of the topics in which something is shared, in byte order of their ids
    topics: tuple[TopicAgreement, ...] = field(repr=False)

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        if not self.shared:
            return f"{self.first} and {self.second} judged nothing in common."
        best = self.alpha if math.isnan(self.kappa.value) else self.kappa
        bias = sum(topic.bias * topic.shared for topic in self.topics) / self.shared
        higher = (
            f" {self.second} grades {abs(bias):.2f} {'higher' if bias > 0 else 'lower'} on average." if bias else ""
        )
        return (
            f"{self.first} and {self.second} gave {percent(self.same)} of {self.shared} documents in {len(self.topics)}"
            f" topics the same grade. {best.sentence}{higher}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        found = {name: getattr(self, name) for name in ("first", "second", "shared", "only_first", "only_second")}
        found |= {"same": _number(self.same), "sentence": self.sentence}
        found |= {
            name: without_nan(getattr(self, name).to_dict()) for name in ("kappa", "linear", "quadratic", "alpha")
        }
        counts = {"grades": self.confusion.grades.tolist(), "counts": self.confusion.counts.tolist()}
        return found | {"confusion": counts, "topics": [vars(topic) for topic in self.topics]}


@dataclass(frozen=True, eq=False)
class SystemEffect:
    """What becomes of the systems' scores by one measure, if the second judge stands in for the first."""

    first: str
    second: str
    measure: str
    topics: int  # topics in which both judged something
    runs: tuple[str, ...]  # R
    # scores, other_scores: (R,): the aggregate of each run by the judgments of the first, and of the second
    scores: Floats = field(repr=False)
    other_scores: Floats = field(repr=False)
    # tau, tau_ap, spearman: how alike the rankings of systems are: tau_b, tau_AP,b, Spearman's rho
    tau: Correlation
    tau_ap: Correlation
    spearman: Correlation

    def __post_init__(self) -> None:
        for column in (self.scores, self.other_scores):
            column.flags.writeable = False

    @property
    def largest_change(self) -> float:
        """The largest difference of a run's two scores; NaN without any."""
        change = np.abs(self.other_scores - self.scores)
        return float(np.nanmax(change)) if np.isfinite(change).any() else math.nan

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        head = f"{self.measure}, {self.second} in place of {self.first}, {self.topics} topics: "
        if math.isnan(self.tau.value):
            return head + self.tau.sentence
        pairs = self.tau.concordant + self.tau.discordant + self.tau.tied
        return (
            f"{head}{self.tau.discordant} of {pairs} pairs of systems change places (tau"
            f" {decimal(self.tau.value, 3)}, tau_AP"
            f" {decimal(self.tau_ap.value, 3)}); a score moves by up to {decimal(self.largest_change, 3)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        scores = {
            run: [_number(one), _number(other)]
            for run, one, other in zip(self.runs, self.scores.tolist(), self.other_scores.tolist(), strict=True)
        }
        found = {"first": self.first, "second": self.second, "measure": self.measure, "topics": self.topics}
        rankings = {name: without_nan(getattr(self, name).to_dict()) for name in ("tau", "tau_ap", "spearman")}
        largest = {"largest_change": _number(self.largest_change), "sentence": self.sentence}
        return found | {"scores": scores} | rankings | largest


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def without_nan(found: dict[str, Any]) -> dict[str, Any]:
    """Give the same values with None for NaN."""
    return {name: _number(value) if isinstance(value, float) else value for name, value in found.items()}
