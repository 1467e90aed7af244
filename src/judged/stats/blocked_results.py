"""What comparisons of many systems over the same topics found, and what may be said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.decimals import p_text
from judged.stats.complete import significance
from judged.stats.pairing import ROUNDING, plain, topics_text

if TYPE_CHECKING:
    from judged._types import Bools, Floats

AllPairsMethod: TypeAlias = Literal["tukey", "randomised tukey", "nemenyi"]
BaselineMethod: TypeAlias = Literal["dunnett", "randomised dunnett"]

_NAMES = {
    "tukey": "Tukey's HSD",
    "randomised tukey": "Randomised Tukey HSD",
    "nemenyi": "Nemenyi's test",
    "dunnett": "Dunnett's test",
    "randomised dunnett": "The randomised test of the largest difference",
}


@dataclass(frozen=True, eq=False)
class Result:
    """What all results do; their arrays cannot be written to."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON: NaN and infinite numbers become None."""
        return {**{one.name: _plain(getattr(self, one.name)) for one in fields(self)}, "sentence": self.sentence}


@dataclass(frozen=True, eq=False)
class AllPairs(Result):
    """Every pair of systems, compared so that the error rate holds for all pairs together.

    Attributes
    ----------
    method
        ``tukey``, ``randomised tukey`` or ``nemenyi``.
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
        (``randomised tukey``). 0 on the diagonal.
    low, high : (S, S), or None
        Simultaneous intervals of `differences`, where the method gives some.
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

    method: AllPairsMethod
    means: Floats
    differences: Floats
    p: Floats
    statistic: Floats
    low: Floats | None
    high: Floats | None
    critical: float
    level: float
    n: int
    left_out: int
    ranks: Floats | None = None
    resamples: int | None = None
    exact: bool = False
    seed: int | None = None
    note: str = ""

    @property
    def significant(self) -> Bools:
        """Mark the pairs that differ at the level of the family: (S, S), symmetric."""
        return self.p <= significance(self.level) * (1 + ROUNDING)

    @property
    def pairs(self) -> int:
        """How many pairs were compared."""
        return len(self.means) * (len(self.means) - 1) // 2

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        name = _NAMES[self.method]
        if self.n < 2:
            return f"{name}: {self.note}."
        found = int(np.count_nonzero(np.triu(self.significant, 1)))
        alpha = f"{significance(self.level):g}"
        what = "mean ranks" if self.method == "nemenyi" else "mean scores"
        least = (
            "no difference could be significant with so few arrangements"
            if math.isinf(self.critical)
            else f"the {what} must differ by more than {self.critical:.4g}"
        )
        start = f"{name} over {topics_text(self.n)}"
        return (
            f"{start}: {found} of {_count(self.pairs, 'pair')} of systems {_differ(found)} with "
            f"p <= {alpha} for all pairs together ({least}). Of the others nothing is shown: "
            f"neither a difference nor its absence.{_end(self.note)}"
        )


@dataclass(frozen=True, eq=False)
class AgainstBaseline(Result):
    """Every system against one baseline, compared so that the error rate holds for all of them together.

    Attributes
    ----------
    method
        ``dunnett`` or ``randomised dunnett``.
    baseline
        Row of the baseline.
    means, differences : (S,)
        Mean score of each system, and its mean minus that of the baseline.
    p : (S,)
        Two-sided, adjusted for all systems. 1 for the baseline itself; NaN with fewer than two topics.
    statistic : (S,)
        Dunnett's t, with sign, or the difference itself.
    low, high : (S,), or None
        Simultaneous intervals of `differences`, where the method gives some.
    critical
        A difference of mean scores greater than this is significant. Infinite where no difference could be.
    level, n, left_out, resamples, exact, seed, note
        As in `AllPairs`.
    """

    method: BaselineMethod
    baseline: int
    means: Floats
    differences: Floats
    p: Floats
    statistic: Floats
    low: Floats | None
    high: Floats | None
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
        """Mark the systems that differ from the baseline at the level of the family: (S,)."""
        return self.p <= significance(self.level) * (1 + ROUNDING)

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        name = _NAMES[self.method]
        if self.n < 2:
            return f"{name}: {self.note}."
        higher = int(np.count_nonzero(self.significant & (self.differences > 0)))
        lower = int(np.count_nonzero(self.significant & (self.differences < 0)))
        least = (
            "no difference could be significant with so few arrangements"
            if math.isinf(self.critical)
            else f"the means must differ by more than {self.critical:.4g}"
        )
        start = f"{name} over {topics_text(self.n)}"
        return (
            f"{start}: of {_count(len(self.means) - 1, 'system')}, {higher} {_is(higher)} better "
            f"than the baseline and {lower} {_is(lower)} worse with p <= {significance(self.level):g} for all of them "
            f"together ({least}). Of the others nothing is shown: neither a difference nor its absence."
            f"{_end(self.note)}"
        )


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
class Anova(Result):
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
        one, other, start = self.systems, self.topics, f"Two-way ANOVA over {topics_text(self.n)}"
        return (
            f"{start}: systems explain {one.eta_squared:.1%} of the variance of scores, "
            f"topics {other.eta_squared:.1%}; that all systems have the same mean: F({one.df}, {self.residual_df}) = "
            f"{one.f:.4g}, p {p_text(one.p, None)}. It does not say which systems differ.{_end(self.note)}"
        )


@dataclass(frozen=True, eq=False)
class Friedman(Result):
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


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return [plain(row) for row in value]
    return plain(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _differ(number: int) -> str:
    return "differs" if number == 1 else "differ"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _end(note: str) -> str:
    return f" Note: {note}." if note else ""
