"""Results of comparisons of many systems over the same topics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results.decimals import counted, p_text
from judged.results.types import ReadOnly
from judged.stats.inputs import ROUNDING, complete_topics, score_matrix, topics_text
from judged.stats.results import TEST_NAMES
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Simultaneous(ReadOnly):
    """Simultaneous comparisons with one error rate: base class of `AllPairs` and `AgainstBaseline`."""

    test: str
    means: Floats
    differences: Floats
    p: Floats
    statistic: Floats
    low: Floats | None = None
    high: Floats | None = None
    critical: float
    level: float
    n: int
    left_out: int
    resamples: int | None = None
    exact: bool = False
    seed: int | None = None
    note: str = ""

    @property
    def significant(self) -> Bools:
        """Whether each comparison is significant at the family's level, shaped like `p`; False with too few topics."""
        enough = insufficiency(self.n, "verdict") is None
        return (self.p <= significance(self.level) * (1 + ROUNDING)) & enough

    def _describe(self, findings: str, family: str, quantity: str) -> str:
        name = TEST_NAMES[self.test][0].upper() + TEST_NAMES[self.test][1:]
        if self.n < 2:
            return f"{name}: {self.note}."
        if shortage := insufficiency(self.n, "verdict"):
            return f"{name}: {shortage.sentence('topic')}"
        requirement = f"significant if the {quantity} differ by more than {self.critical:.4g}"
        if math.isinf(self.critical):
            requirement = "no difference can be significant with so few permutations"
        return (
            f"{name} over {topics_text(self.n)}: {findings} with p <= {significance(self.level):g} for all {family}"
            f" together ({requirement}). For the other comparisons, the data show neither a difference nor its absence."
            f"{_note_text(self.note)}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AllPairs(Simultaneous):
    """All pairs of systems, compared with one error rate for all pairs together.

    Attributes
    ----------
    test
        ``tukey``, ``randomized-tukey`` or ``nemenyi``.
    means : (S,)
        Mean score of each system.
    differences : (S, S)
        ``differences[first, second]``: mean score of the second system minus that of the first, for every test.
    p : (S, S)
        Adjusted for all pairs: at most ``1 - level`` is significant for the family. 1 on the diagonal; NaN with
        fewer than two topics.
    statistic : (S, S)
        Test statistic without sign: a studentized range (``tukey``, ``nemenyi``), or the difference itself
        (``randomized-tukey``). 0 on the diagonal.
    low, high : (S, S), or None
        Simultaneous intervals of `differences`, if the test has them.
    critical
        Larger differences of mean scores (of mean ranks for ``nemenyi``) are significant. Infinite if no difference
        can be.
    level
        Confidence level of the family of all pairs.
    n, left_out
        Topics that were used; topics without a score for some system.
    ranks : (S,), or None
        For ``nemenyi``: mean rank of each system; 1 is the highest score.
    resamples, exact, seed
        Of a randomization test: number of permutations, drawn or (if `exact`) all.
    note
        Warning about the result.
    """

    ranks: Floats | None = None

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return math.comb(len(self.means), 2)

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        n_significant = int(np.count_nonzero(np.triu(self.significant, 1)))
        verb = "differs" if n_significant == 1 else "differ"
        findings = f"{n_significant} of {counted(self.pairs, 'pair')} of systems {verb}"
        return self._describe(findings, "pairs", "mean scores" if self.ranks is None else "mean ranks")


@dataclass(frozen=True, eq=False, kw_only=True)
class AgainstBaseline(Simultaneous):
    """All systems compared with one baseline, with one error rate for all of them together.

    Attributes
    ----------
    test
        ``dunnett`` or ``randomized-dunnett``.
    baseline
        Row of the baseline.
    means, differences : (S,)
        Mean score of each system, and its mean minus that of the baseline.
    p : (S,)
        Two-sided, adjusted for all systems. 1 for the baseline itself; NaN with fewer than two topics.
    statistic : (S,)
        Dunnett's t, with sign, or the difference itself.
    low, high : (S,), or None
        Simultaneous intervals of `differences`, if the test has them.
    critical
        Larger differences of mean scores are significant. Infinite if no difference can be.
    level, n, left_out, resamples, exact, seed, note
        As in `AllPairs`.
    """

    baseline: int

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        higher = int(np.count_nonzero(self.significant & (self.differences > 0)))
        lower = int(np.count_nonzero(self.significant & (self.differences < 0)))
        findings = (
            f"of {counted(len(self.means) - 1, 'system')}, {higher} {_is_or_are(higher)} better than the baseline and"
            f" {lower} {_is_or_are(lower)} worse"
        )
        return self._describe(findings, "of them", "means")


@dataclass(frozen=True)
class Factor:
    """Source of variation of a two-way ANOVA: systems or topics."""

    squares: float  # sum of squares
    df: int
    mean_square: float
    f: float  # over the residual variance; NaN if neither varies, infinite if only the factor varies
    p: float
    eta_squared: float  # share of the variance that the factor explains
    omega_squared: float  # the same without bias; can be below 0
    partial_eta_squared: float  # share without the variance of the other factor
    partial_omega_squared: float


@dataclass(frozen=True, eq=False)
class Anova(ReadOnly):
    """Two-way analysis of variance without replication: score = system + topic + residual.

    Parameters
    ----------
    systems, topics
        The two factors.
    residual_squares, residual_df, residual_variance
        Of the residual: interaction of systems and topics plus noise, which cannot be separated.
    total_squares
        Sum of squares of all scores around their mean.
    n, left_out
        Topics that were used; topics without a score for some system.
    note
        Warning about the result.
    """

    systems: Factor
    topics: Factor
    residual_squares: float
    residual_df: int
    residual_variance: float
    total_squares: float
    n: int
    left_out: int
    note: str = ""

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        if self.n < 2:
            return f"Two-way ANOVA: {self.note}."
        if not self.total_squares:
            return f"Two-way ANOVA over {topics_text(self.n)}: all scores are the same."
        systems = self.systems
        return (
            f"Two-way ANOVA over {topics_text(self.n)}: systems explain {systems.eta_squared:.1%} of the variance of"
            f" scores, and topics explain {self.topics.eta_squared:.1%}; test of equal system means:"
            f" F({systems.df}, {self.residual_df}) = {systems.f:.4g}, p {p_text(systems.p, None)}."
            f" The test does not show which systems differ.{_note_text(self.note)}"
        )


@dataclass(frozen=True, eq=False)
class Friedman(ReadOnly):
    """Friedman's test that all systems have the same expected rank, with the F of Iman and Davenport.

    Attributes
    ----------
    ranks : (S,)
        Mean rank of each system over topics: 1 is the highest score, ties share the mean of their ranks.
    chi_square, df, p
        Friedman's statistic, corrected for ties, and its approximate p-value, which is conservative.
    f, f_df, f_p
        Statistic and p-value of Iman and Davenport (1980); more accurate and to be preferred.
    concordance
        Kendall's W, from 0 (topics rank the systems at random) to 1 (all topics rank them in the same order).
    n, left_out
        Topics that were used; topics without a score for some system.
    note
        Warning about the result.
    """

    ranks: Floats
    chi_square: float
    df: int
    p: float
    f: float
    f_df: tuple[int, int]
    f_p: float
    concordance: float
    n: int
    left_out: int
    note: str = ""

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        if self.n < 2:
            return f"Friedman's test: {self.note}."
        return (
            f"Friedman's test over {topics_text(self.n)}: the concordance of topics on the order of systems is W = "
            f"{self.concordance:.3g} (0: no agreement, 1: complete agreement); test of equal ranks: "
            f"F({self.f_df[0]}, {self.f_df[1]}) = {self.f:.4g}, p {p_text(self.f_p, None)}. "
            f"The test does not show which systems differ.{_note_text(self.note)}"
        )


def _is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def _note_text(note: str) -> str:
    return f" Note: {note}." if note else ""


NO_VARIATION = "no p-value: at least two topics are required"
NO_RESIDUAL = (
    "the differences between systems are equal on all topics: without residual variance, p is 0 for any difference; "
    "use the randomized test instead"
)
UNEVEN = 1.2
"""Unevenness from which tests that assume equal variances err too often, by simulation (docs/calibration.md)."""


@dataclass(frozen=True, eq=False)
class CompleteScores:
    """Scores of the topics that every system has a score for."""

    scores: Floats  # (S, n)
    left_out: int  # topics without a score for some system

    @property
    def n(self) -> int:
        """Number of topics."""
        return self.scores.shape[1]

    @property
    def means(self) -> Floats:
        """Mean score of each system: (S,); NaN without topics."""
        return self.scores.mean(axis=1) if self.n else np.full(len(self.scores), np.nan)

    @property
    def differences(self) -> Floats:
        """Mean of the second system minus that of the first, [first, second]: (S, S); rounding error is set to 0."""
        differences = self.means - self.means[:, np.newaxis]
        return np.where(np.abs(differences) <= self.tolerance, 0.0, differences)

    @property
    def tolerance(self) -> float:
        """Largest difference of scores, or of their means, that is only rounding error."""
        return ROUNDING * float(np.abs(self.scores).max(initial=0.0))

    @property
    def counted(self) -> dict[str, Any]:
        """Fields that all results share: means and numbers of topics."""
        return {"means": self.means, "n": self.n, "left_out": self.left_out}

    @property
    def note(self) -> str:
        """Warning about the number of topics."""
        return "" if self.n > 1 else NO_VARIATION

    @property
    def unevenness(self) -> float:
        """Largest root mean variance of a system's differences from the others, relative to that of all pairs."""
        if self.n < 2:
            return 1.0
        covariance = np.cov(self.scores)
        variance = np.diagonal(covariance)
        variances = np.maximum(variance + variance[:, np.newaxis] - 2 * covariance, 0.0)
        mean_variance = float(variances.mean())
        return (
            float(np.sqrt(variances.mean(axis=1).max() / mean_variance)) if mean_variance > self.tolerance**2 else 1.0
        )

    @property
    def uneven_note(self) -> str:
        """Warning for tests that assume equal variances of all differences."""
        if self.unevenness <= UNEVEN:
            return ""
        return (
            f"the standard deviation of the differences of one system is {self.unevenness:.1f} times the standard"
            " deviation of all differences; the test assumes equal variances, and unequal variances cause a false"
            " positive in 10% to 25% of families of comparisons instead of 5%; the randomization test with Holm's"
            " correction does not assume equal variances"
        )


def complete_scores(values: ArrayLike) -> CompleteScores:
    """Select the topics that every system has a score for; `values` is (S, T) with NaN for missing scores.

    >>> complete_scores([[0.1, 0.2, float("nan")], [0.3, 0.4, 0.5]])
    CompleteScores(scores=array([[0.1, 0.2], [0.3, 0.4]]), left_out=1)
    """
    scores, left_out = complete_topics(score_matrix(values))
    return CompleteScores(scores, left_out)


def significance(level: float) -> float:
    """Return ``1 - level``, rounded to remove the error of the subtraction."""
    return round(1 - level, 12)


def studentize(differences: Floats, error: float) -> Floats:
    """Divide differences by their standard error; 0 stays 0, and other differences over an error of 0 are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(differences == 0.0, 0.0, differences / error)
