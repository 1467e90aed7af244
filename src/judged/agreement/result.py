"""What `agree` returns: agreement of each two judges, and what their disagreement does to systems."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.agreement import layout

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.stats.agreement import Agreement, Confusion
    from judged.stats.rankings import Correlation
    from judged.tables import Table


@dataclass(frozen=True)
class TopicAgreement:
    """Two judges on one topic.

    Attributes
    ----------
    query_id : str
    shared : int
        Documents that both judged.
    same : float
        The share of equal grades.
    distance : float
        The mean distance of the two grades.
    bias : float
        The mean of the second judge's grade minus the first's.
    """

    query_id: str
    shared: int
    same: float
    distance: float
    bias: float


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """Two judges on all that both judged.

    Attributes
    ----------
    first, second : str
    shared, only_first, only_second : int
        Pairs of topic and document that both judged, and one alone.
    same : float
        The share of equal grades; NaN where nothing is shared.
    kappa, linear, quadratic, alpha : Agreement
        Cohen's kappa, plain and weighted, and Krippendorff's alpha. The plain kappa is undefined where
        grades are no whole numbers.
    confusion : Confusion
    topics : tuple of TopicAgreement
        Of the topics in which something is shared, in byte order of their ids.
    """

    first: str
    second: str
    shared: int
    only_first: int
    only_second: int
    same: float
    kappa: Agreement
    linear: Agreement
    quadratic: Agreement
    alpha: Agreement
    confusion: Confusion = field(repr=False)
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
            f"{self.first} and {self.second} gave {self.same:.0%} of {self.shared} documents in {len(self.topics)}"
            f" topics the same grade. {best.sentence}{higher}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        found = {name: getattr(self, name) for name in ("first", "second", "shared", "only_first", "only_second")}
        found |= {"same": _number(self.same), "sentence": self.sentence}
        found |= {name: _clean(getattr(self, name).to_dict()) for name in ("kappa", "linear", "quadratic", "alpha")}
        counts = {"grades": self.confusion.grades.tolist(), "counts": self.confusion.counts.tolist()}
        return found | {"confusion": counts, "topics": [vars(topic) for topic in self.topics]}


@dataclass(frozen=True, eq=False)
class SystemEffect:
    """What becomes of the systems' scores by one measure, if the second judge stands in for the first.

    Attributes
    ----------
    first, second, measure : str
    topics : int
        Topics in which both judged something.
    runs : tuple of R str
    scores, other_scores : (R,) float64
        The aggregate of each run by the judgments of the first, and of the second.
    tau, tau_ap, spearman : Correlation
        How alike the rankings of systems are: tau_b, tau_AP,b, Spearman's rho.
    """

    first: str
    second: str
    measure: str
    topics: int
    runs: tuple[str, ...]
    scores: Floats = field(repr=False)
    other_scores: Floats = field(repr=False)
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
            f"{head}{self.tau.discordant} of {pairs} pairs of systems change places (tau {self.tau.value:.3f}, tau_AP"
            f" {self.tau_ap.value:.3f}); a score moves by up to {self.largest_change:.3f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        scores = {
            run: [_number(one), _number(other)]
            for run, one, other in zip(self.runs, self.scores.tolist(), self.other_scores.tolist(), strict=True)
        }
        found = {"first": self.first, "second": self.second, "measure": self.measure, "topics": self.topics}
        rankings = {name: _clean(getattr(self, name).to_dict()) for name in ("tau", "tau_ap", "spearman")}
        largest = {"largest_change": _number(self.largest_change), "sentence": self.sentence}
        return found | {"scores": scores} | rankings | largest


@dataclass(frozen=True, eq=False)
class JudgeAgreement:
    """What `agree` found.

    Attributes
    ----------
    judges : tuple of str
    levels : tuple of (float or None)
        From which grade on each judge's grades were made 1, if they were.
    pairs : tuple of PairAgreement
        Each two judges, in the order given.
    alpha : Agreement
        Krippendorff's alpha of all judges together.
    fleiss : Agreement
        Fleiss' kappa of all judges, over what all of them judged.
    systems : tuple of SystemEffect
        Pair by pair, measure by measure; none without runs, or for two judges without a common topic.
    notes : tuple of str
        What to know before the numbers are read.
    """

    judges: tuple[str, ...]
    levels: tuple[float | None, ...]
    pairs: tuple[PairAgreement, ...]
    alpha: Agreement
    fleiss: Agreement
    systems: tuple[SystemEffect, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Lay out one row for each two judges."""
        return layout.pairs_table(self.pairs)

    def confusion_table(self, pair: int = 0) -> Table:
        """Lay out how often each grade of the first judge (rows) met each of the second (columns)."""
        return layout.confusion_table(self.pairs[pair])

    def topic_table(self, pair: int = 0) -> Table:
        """Lay out one row a topic, the least agreement first."""
        return layout.topic_table(self.pairs[pair])

    def systems_table(self) -> Table:
        """Lay out one row for each two judges and measure: how alike they rank the systems."""
        return layout.systems_table(self.systems)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            "judges": list(self.judges),
            "levels": list(self.levels),
            "alpha": _clean(self.alpha.to_dict()),
            "fleiss": _clean(self.fleiss.to_dict()),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "systems": [effect.to_dict() for effect in self.systems],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [self.table().text()]
        if self.systems:
            parts.append(self.systems_table().text())
        return "\n\n".join([*parts, *self.notes])


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _clean(found: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if isinstance(value, float) else value for name, value in found.items()}
