"""What comparisons of many systems over the same topics found, and what may be said about it."""

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
    """Many comparisons of which one error rate holds: what `AllPairs` and `AgainstBaseline` have in common."""

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
        """What differs at the level of the family, in the shape of `p`; nothing with too few topics for a verdict."""
        enough = insufficiency(self.n, "verdict") is None
        return (self.p <= significance(self.level) * (1 + ROUNDING)) & enough

    def _said(self, found: str, family: str, what: str) -> str:
        """Say what was found, and what it takes to be found."""
        name = TEST_NAMES[self.test][0].upper() + TEST_NAMES[self.test][1:]
        if self.n < 2:
            return f"{name}: {self.note}."
        if lacking := insufficiency(self.n, "verdict"):
            return f"{name}: {lacking.sentence('topic')}"
        least = f"the {what} must differ by more than {self.critical:.4g}"
        if math.isinf(self.critical):
            least = "no difference could be significant with so few arrangements"
        return (
            f"{name} over {topics_text(self.n)}: {found} with p <= {significance(self.level):g} for all {family}"
            f" together ({least}). For the others, neither a difference nor its absence is shown."
            f"{_end(self.note)}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AllPairs(Simultaneous):
    """Every pair of systems, compared so that the error rate holds for all pairs together.

    Attributes
    ----------
    test
        ``tukey``, ``randomised-tukey`` or ``nemenyi``.
    means : (S,)
        Mean score of each system.
    differences : (S, S)
        ``differences[first, second]``: mean of the second system minus mean of the first, of scores whatever the
        method.
    p : (S, S)
        Adjusted for all pairs: at most ``1 - level`` is significant for the family. 1 on the diagonal; NaN with
        fewer than two topics.
    statistic : (S, S)
        What the test looks at, without sign: a studentised range (``tukey``, ``nemenyi``), or the difference itself
        (``randomised-tukey``). 0 on the diagonal.
    low, high : (S, S), or None
        Simultaneous intervals of `differences`, where the test gives some.
    critical
        A difference greater than this is significant: of mean scores, or of mean ranks for ``nemenyi``. Infinite
        where no difference could be.
    level
        Of the family of all pairs.
    n, left_out
        Topics that were used; topics that lack a score for some system.
    ranks : (S,), or None
        For ``nemenyi``: the mean rank of each system; 1 is the highest score.
    resamples, exact, seed
        Of a randomised test: how many arrangements were drawn, or listed where `exact`.
    note
        What else a reader must know.
    """

    ranks: Floats | None = None

    @property
    def pairs(self) -> int:
        """How many pairs were compared."""
        return math.comb(len(self.means), 2)

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        found = int(np.count_nonzero(np.triu(self.significant, 1)))
        differ = "differs" if found == 1 else "differ"
        said = f"{found} of {counted(self.pairs, 'pair')} of systems {differ}"
        return self._said(said, "pairs", "mean scores" if self.ranks is None else "mean ranks")


@dataclass(frozen=True, eq=False, kw_only=True)
class AgainstBaseline(Simultaneous):
    """Every system against one baseline, compared so that the error rate holds for all of them together.

    Attributes
    ----------
    test
        ``dunnett`` or ``randomised-dunnett``.
    baseline
        Row of the baseline.
    means, differences : (S,)
        Mean score of each system, and its mean minus that of the baseline.
    p : (S,)
        Two-sided, adjusted for all systems. 1 for the baseline itself; NaN with fewer than two topics.
    statistic : (S,)
        Dunnett's t, with sign, or the difference itself.
    low, high : (S,), or None
        Simultaneous intervals of `differences`, where the test gives some.
    critical
        A difference of mean scores greater than this is significant. Infinite where no difference could be.
    level, n, left_out, resamples, exact, seed, note
        As in `AllPairs`.
    """

    baseline: int

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        higher = int(np.count_nonzero(self.significant & (self.differences > 0)))
        lower = int(np.count_nonzero(self.significant & (self.differences < 0)))
        said = (
            f"of {counted(len(self.means) - 1, 'system')}, {higher} {_is(higher)} better than the baseline and {lower}"
            f" {_is(lower)} worse"
        )
        return self._said(said, "of them", "means")


@dataclass(frozen=True)
class Factor:
    """One source of variation: systems or topics."""

    # squares, df, mean_square: sum of squares, degrees of freedom, and one over the other
    squares: float
    df: int
    mean_square: float
    # f, p: against the residual variance. NaN where neither varies; F is infinite where only the factor does.
    f: float
    p: float
    # eta_squared, omega_squared: share of the variance that it explains; omega squared is corrected for luck, and can
    # fall below 0
    eta_squared: float
    omega_squared: float
    # partial_eta_squared, partial_omega_squared: the same share with the other factor left aside
    partial_eta_squared: float
    partial_omega_squared: float


@dataclass(frozen=True, eq=False)
class Anova(ReadOnly):
    """Two-way analysis of variance without replication: score = system + topic + residual.

    Parameters
    ----------
    systems, topics
        The two factors.
    residual_squares, residual_df, residual_variance
        What neither explains: interaction of systems and topics, and noise, which cannot be told apart.
    total_squares
        Of all scores around their mean.
    n, left_out
        Topics that were used; topics that lack a score for some system.
    note
        What else a reader must know.
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
        """What may be concluded, and what not, in plain words."""
        if self.n < 2:
            return f"Two-way ANOVA: {self.note}."
        if not self.total_squares:
            return f"Two-way ANOVA over {topics_text(self.n)}: all scores are the same."
        systems = self.systems
        return (
            f"Two-way ANOVA over {topics_text(self.n)}: systems explain {systems.eta_squared:.1%} of the variance of"
            f" scores, topics {self.topics.eta_squared:.1%}; that all systems have the same mean:"
            f" F({systems.df}, {self.residual_df}) = {systems.f:.4g}, p {p_text(systems.p, None)}."
            f" It does not say which systems differ.{_end(self.note)}"
        )


@dataclass(frozen=True, eq=False)
class Friedman(ReadOnly):
    """Friedman's test that all systems tend to the same rank, with the F of Iman and Davenport.

    Attributes
    ----------
    ranks : (S,)
        Mean rank of each system over topics: 1 is the highest score, ties share the mean of their ranks.
    chi_square, df, p
        Friedman's statistic, corrected for ties, and its approximate p-value, which is conservative.
    f, f_df, f_p
        That of Iman and Davenport (1980), which is nearer to the truth: prefer it.
    concordance
        Kendall's W, from 0 (topics rank the systems by luck) to 1 (all topics alike).
    n, left_out
        Topics that were used; topics that lack a score for some system.
    note
        What else a reader must know.
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
        """What may be concluded, and what not, in plain words."""
        if self.n < 2:
            return f"Friedman's test: {self.note}."
        return (
            f"Friedman's test over {topics_text(self.n)}: topics agree on the order of systems with W = "
            f"{self.concordance:.3g} (0 not at all, 1 fully); that all systems tend to the same rank: "
            f"F({self.f_df[0]}, {self.f_df[1]}) = {self.f:.4g}, p {p_text(self.f_p, None)}. "
            f"It does not say which systems differ.{_end(self.note)}"
        )


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _end(note: str) -> str:
    return f" Note: {note}." if note else ""


NO_VARIATION = "no p-value: with fewer than two topics nothing tells a difference from luck"
NO_RESIDUAL = (
    "every topic shows the same differences: with no residual variance p is 0 for any difference, "
    "which only the randomised test puts into proportion"
)
UNEVEN = 1.2
"""From here on tests that take all differences to vary alike err too often, by simulation (docs/calibration.md)."""


@dataclass(frozen=True, eq=False)
class Complete:
    """The topics that have a score for every system."""

    scores: Floats  # (S, n)
    left_out: int  # topics that lack a score for some system

    @property
    def n(self) -> int:
        """How many topics there are."""
        return self.scores.shape[1]

    @property
    def means(self) -> Floats:
        """The mean score of each system: (S,); NaN without a topic."""
        return self.scores.mean(axis=1) if self.n else np.full(len(self.scores), np.nan)

    @property
    def differences(self) -> Floats:
        """Mean of the second system minus that of the first, [first, second]: (S, S); 0 if it is only rounding."""
        found = self.means - self.means[:, np.newaxis]
        return np.where(np.abs(found) <= self.tolerance, 0.0, found)

    @property
    def tolerance(self) -> float:
        """Scores, or means of scores, that differ by no more than this are equal but for rounding."""
        return ROUNDING * float(np.abs(self.scores).max(initial=0.0))

    @property
    def counted(self) -> dict[str, Any]:
        """The means and numbers of topics that every result of these tells, by the names of its fields."""
        return {"means": self.means, "n": self.n, "left_out": self.left_out}

    @property
    def note(self) -> str:
        """What a reader must know about the number of topics."""
        return "" if self.n > 1 else NO_VARIATION

    @property
    def unevenness(self) -> float:
        """How many times as widely as all on average the differences of the most uneven system from others spread."""
        if self.n < 2:
            return 1.0
        covariance = np.cov(self.scores)
        own = np.diagonal(covariance)
        variances = np.maximum(own + own[:, np.newaxis] - 2 * covariance, 0.0)
        spread = float(variances.mean())
        return float(np.sqrt(variances.mean(axis=1).max() / spread)) if spread > self.tolerance**2 else 1.0

    @property
    def uneven(self) -> str:
        """What a reader must know of a test that takes all differences to vary alike."""
        if self.unevenness <= UNEVEN:
            return ""
        return (
            f"the differences of one system vary {self.unevenness:.1f} times as much as those of all; the test"
            " assumes that they vary equally, and where they do not it finds differences that are not there in 10 to"
            " 25 % of families, not in 5 %; the randomisation test corrected by Holm does not"
        )


def complete(values: ArrayLike) -> Complete:
    """Keep the topics that have a score for every system.

    >>> complete([[0.1, 0.2, float("nan")], [0.3, 0.4, 0.5]])
    Complete(scores=array([[0.1, 0.2], [0.3, 0.4]]), left_out=1)
    """
    # `values`: (S, T): S systems over T topics. NaN: the topic has no score for that system.
    scores, left_out = complete_topics(score_matrix(values))
    return Complete(scores, left_out)


def significance(level: float) -> float:
    """Give ``1 - level`` without the last bits of the subtraction."""
    return round(1 - level, 12)


def in_errors(differences: Floats, error: float) -> Floats:
    """Divide differences by their standard error; 0 stays 0, anything else over an error of 0 is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(differences == 0.0, 0.0, differences / error)
