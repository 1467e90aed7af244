"""What a comparison of two systems found: the number, how sure it is, and what may be said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from judged.decimals import p_text

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

_ROUNDING = 1e-12
TEST_NAMES = {
    "randomisation": "randomisation test",
    "t": "t-test",
    "wilcoxon": "Wilcoxon test",
    "sign": "sign test",
    "bootstrap": "bootstrap test",
    "bca": "BCa bootstrap test",
    "studentised": "studentised bootstrap test",
    "ratio": "randomisation test of the ratio",
    "bayes": "Bayesian comparison",
    "tukey": "Tukey's HSD",
    "randomised-tukey": "randomised Tukey HSD",
    "nemenyi": "Nemenyi's test",
    "dunnett": "Dunnett's test",
    "randomised-dunnett": "randomised test of the largest difference",
}
_NOT_OF_MEANS = {
    "sign": "It says on which topics a system is ahead, and nothing of the mean",
    "wilcoxon": "It says that the differences are not symmetric about 0, and nothing of the mean",
}


@dataclass(frozen=True)
class Posterior:
    """What a Bayesian comparison believes about the mean difference after seeing the topics."""

    higher: float  # probability that the second system's true mean is higher
    lower: float  # probability that it is lower: `1 - higher`
    # practically_higher, equivalent, practically_lower: probabilities that the mean difference is above, inside and
    # below the region of practical equivalence
    practically_higher: float
    equivalent: float
    practically_lower: float
    rope: float  # that region is from `-rope` to `rope`


@dataclass(frozen=True)
class Difference:
    """The second system minus the first, over the topics that have a score for both.

    Parameters
    ----------
    method
        A name in `judged.stats.paired.METHODS`: the test that was done, which where few topics differ may be another
        than the one that was asked for.
    difference
        Mean of the differences; for ``ratio`` the logarithm of the ratio of the geometric means. NaN without a topic.
    statistic
        What the test is made of: see the method.
    p
        Probability of a difference at least as large if there were none. NaN where there is no test: fewer than
        two topics, or ``bayes``.
    interval
        For `difference`; a one-sided test has an infinite limit. None where the method gives none.
    level
        Of the interval.
    alpha
        A deciding p-value up to here is significant.
    effect
        Cohen's dz: mean of the differences over their standard deviation. NaN if that is 0, or for one topic.
    n, differing, left_out
        Topics that were compared; those of them with a difference; topics that lack a score for one of the two.
    resamples
        How many were drawn, or all there are where `exact`; None for a method that draws none.
    exact
        The p-value is that of the exact null distribution, not of a sample from it or an approximation.
    seed
        Of the resamples; None where nothing was drawn.
    alternative
        ``greater``: the second system is higher.
    note
        What else a reader must know.
    posterior
        For ``bayes``.
    adjusted, correction
        The p-value after correction for many comparisons, and how; see `corrected`.

    Examples
    --------
    >>> from judged.stats.paired import paired_test
    >>> found = paired_test([0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.6, 0.3], "t")
    >>> round(found.difference, 3), round(found.p, 4), found.significant
    (0.15, 0.0138, True)
    """

    method: str
    difference: float
    statistic: float
    p: float
    interval: tuple[float, float] | None
    level: float
    alpha: float
    effect: float
    n: int
    differing: int
    left_out: int
    resamples: int | None
    exact: bool
    seed: int | None
    alternative: Alternative
    note: str = ""
    posterior: Posterior | None = None
    adjusted: float | None = None
    correction: str = ""

    @property
    def decisive_p(self) -> float:
        """The p-value that decides: the adjusted one where there was a correction."""
        return self.p if self.adjusted is None else self.adjusted

    @property
    def significant(self) -> bool:
        """Whether the deciding p-value is at most alpha; never for NaN."""
        return self.decisive_p <= self.alpha * (1 + _ROUNDING)

    @property
    def side(self) -> int:
        """1 where the test sees the second system higher, -1 where lower: in the mean, the wins, or the ranks."""
        middle = {"sign": self.differing / 2, "wilcoxon": self.differing * (self.differing + 1) / 4}
        seen = self.statistic - middle[self.method] if self.method in middle else self.difference
        return int(seen > 0) - int(seen < 0)

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not, in plain words."""
        return _sentence(self)

    def corrected(self, adjusted: float, correction: str, alpha: float | None = None) -> Difference:
        """Give the same difference with a p-value adjusted for the other comparisons made, to be held against alpha.

        The interval stays what it is: `judged.stats.correction.corrected_family` gives one that fits.
        """
        return replace(self, adjusted=adjusted, correction=correction, alpha=self.alpha if alpha is None else alpha)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON: NaN and infinite limits become None."""
        from judged.stats.pairing import plain

        return {**plain(self), "sentence": self.sentence}


def _sentence(found: Difference) -> str:
    """Say what was found; second and first are the two systems."""
    if found.n == 0:
        return "No topic has a score for both systems: there is nothing to compare."
    if found.n == 1:
        return f"On the only topic {_seen(found)}; one topic cannot show whether others would agree."
    if found.difference == 0 and math.isnan(found.effect):
        return f"The two systems have the same score on each of the {found.n} topics: these show no difference."
    if found.posterior is not None:
        return _belief(found)
    if math.isnan(found.p):
        return (
            f"On each of the {found.n} topics {_seen(found)}; the {_test(found)} judges by how much differences"
            " vary, and these do not: take the randomisation test."
        )
    return _tested(found)


def _tested(found: Difference) -> str:
    over = f"Over {found.n} topics {_seen(found)}{_interval(found)}"
    alpha = found.alpha
    p = f"p {p_text(found.p, alpha)}, {_test(found)}"
    if found.adjusted is not None and found.correction not in {"", "none", found.method}:
        p += f"; p {p_text(found.adjusted, alpha)} with the correction {found.correction}"
    if found.significant:
        said = "" if found.method not in _NOT_OF_MEANS else f" {_NOT_OF_MEANS[found.method]}."
        return f"{over}. Chance alone would seldom give as much ({p}): significant at {alpha:g}.{said}"
    claim = {
        "two-sided": "the two cannot be told apart with these",
        "greater": "that it is higher cannot be shown with these",
        "less": "that it is lower cannot be shown with these",
    }[found.alternative]
    return f"{over}, but {claim} {found.n} topics ({p}, above {alpha:g}). A real difference may have been missed."


def _belief(found: Difference) -> str:
    posterior = found.posterior
    if posterior is None or math.isnan(found.statistic):
        return ""
    return (
        f"Over {found.n} topics {_seen(found)}{_interval(found)}. Knowing nothing but these scores, and taking"
        f" differences as normal, the probability that its true mean is higher is {_share(posterior.higher)}, and"
        f" that the two means are within {posterior.rope:g} of each other {_share(posterior.equivalent)}."
    )


def _test(found: Difference) -> str:
    return TEST_NAMES.get(found.method, f"{found.method} test")


def _seen(found: Difference) -> str:
    """Say what the test looked at, which for signs and ranks is not the mean, and which system is higher."""
    mean = _mean(found)
    if math.isnan(found.p) or found.method not in _NOT_OF_MEANS:
        return mean
    if found.method == "sign":
        lower = found.differing - found.statistic
        return f"the second system scores higher on {found.statistic:g}, and lower on {lower:g}; {mean}"
    leaning = {1: "lean to the second system", -1: "lean to the first system", 0: "lean to neither"}[found.side]
    return f"the signed ranks of the differences {leaning}; {mean}"


def _mean(found: Difference) -> str:
    """Say which system is higher, and by how much."""
    average = "" if found.n == 1 or (math.isnan(found.p) and found.posterior is None) else " on average"
    if found.method == "ratio":
        kind = "geometric mean" if found.n > 1 else "score"
        return f"the second system's {kind} is {_number(math.exp(found.difference))} times the first's"
    if found.difference == 0:
        return f"both systems score the same{average}"
    word = "higher" if found.difference > 0 else "lower"
    return f"the second system scores {_number(abs(found.difference))} {word}{average}"


def _interval(found: Difference) -> str:
    if found.interval is None:
        return ""
    low, high = found.interval
    kind = f"{found.level * 100:g}% {'interval' if found.posterior is None else 'credible interval'}"
    if math.isinf(low) and math.isinf(high):
        return f" (no finite {kind}: too few topics)"
    shown = math.exp if found.method == "ratio" else float
    if math.isinf(high):
        text = f"at least {_number(shown(low))}"
    elif math.isinf(low):
        text = f"at most {_number(shown(high))}"
    else:
        text = f"{_number(shown(low))} to {_number(shown(high))}"
    return f" ({kind} {text})"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _share(probability: float) -> str:
    """Write a probability that is neither 0 nor 1, however near.

    >>> _share(0.9234), _share(0.99999), _share(0.0)
    ('0.923', 'above 0.999', 'below 0.001')
    """
    if probability > 0.999:
        return "above 0.999"
    return "below 0.001" if probability < 0.001 else f"{probability:.3f}"
