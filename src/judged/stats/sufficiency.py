"""Whether there is enough data for an interval, a p-value, or a verdict.

Every statistic of the product asks `insufficiency` before it reports more than a descriptive value, so that one table
of minimums holds everywhere. Units are what was sampled independently: topics, users, sessions, participants, judges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal, percent
from judged.stats.inputs import ROUNDING, check_share, complete_topics, score_matrix, topics_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats


Purpose: TypeAlias = Literal["interval", "verdict"]
InsufficiencyCode: TypeAlias = Literal["few-units", "few-values", "no-variance", "dominated", "few-effective-units"]

MIN_UNITS: dict[Purpose, int] = {"interval": 3, "verdict": 6}
"""Minimum number of independent units. One or two units cannot show how units vary; with five or fewer, no assignment
of signs to differences is rarer than 1 in 16 two-sided, so no distribution-free test can reject at 0.05."""

MAX_SHARE = 0.5
"""A unit with a larger share of the total weight decides the result alone."""


@dataclass(frozen=True)
class Insufficiency:
    """Why a value has no interval, p-value, or verdict.

    Parameters
    ----------
    code
        ``few-units``: fewer units than the minimum; ``few-values``: fewer distinct values; ``no-variance``: all units
        have the same value; ``dominated``: one unit has more than half of the weight; ``few-effective-units``:
        unequal weights leave fewer effective units (Kish) than the minimum.
    observed
        The number, share, or value that was compared with the limit.
    required
        The limit.
    """

    code: InsufficiencyCode
    observed: float
    required: float

    def sentence(self, unit: str = "unit") -> str:
        """Describe the reason in one sentence; `unit` is the singular noun for what was sampled.

        >>> Insufficiency("few-units", 2, 6).sentence("participant")
        'Not enough data: 2 participants, at least 6 are required.'
        """
        observed, required = _number(self.observed), _number(self.required)
        noun, values = (f"{word}{'' if observed == '1' else 's'}" for word in (unit, "value"))
        reason = {
            "few-units": f"{observed} {noun}, at least {required} are required",
            "few-values": f"{observed} distinct {values}, at least {required} are required",
            "no-variance": f"all {unit}s have the same value, so their variance cannot be estimated",
            "dominated": f"one {unit} has {100 * self.observed:.0f}% of the weight, at most"
            f" {100 * self.required:.0f}% is allowed",
            "few-effective-units": f"unequal weights leave {observed} effective {noun},"
            f" at least {required} are required",
        }[self.code]
        return f"Not enough data: {reason}."


def insufficiency(
    units: float,
    purpose: Purpose = "interval",
    *,
    variance: float | None = None,
    weights: ArrayLike | None = None,
    effective_units: float | None = None,
    min_effective_units: float | None = None,
    distinct_values: int | None = None,
    min_units: int | None = None,
) -> Insufficiency | None:
    """Return why the data do not support an interval or a verdict, or None if they do.

    Parameters
    ----------
    units
        Number of independent units with a value: the smaller number where two groups are compared.
    purpose
        ``interval`` for intervals and p-values, ``verdict`` for anything that says better, worse, equivalent,
        significant, passed, or failed.
    variance
        Estimated variance (or standard deviation, or standard error) that the statistic rests on. 0 and NaN are
        insufficient. None: the statistic does not estimate one (a sign test, a bound from the measure's range).
    weights
        (units,) non-negative weights, such as pages by user; 0 or NaN weights do not count. Their largest share must
        be at most `MAX_SHARE`, and their effective number (Kish) at least the minimum.
    effective_units
        Effective number of units, where it is known without the weights.
    min_effective_units
        Minimum for the effective number; None: that for `units`.
    distinct_values
        Number of distinct values that a rank statistic or a quantile rests on; at least 2 are required.
    min_units
        A larger minimum than `MIN_UNITS`; a smaller one is ignored.

    Raises
    ------
    InputError
        If a weight is negative.

    Examples
    --------
    >>> insufficiency(12, "verdict", variance=0.3) is None
    True
    >>> insufficiency(2, variance=0.0)
    Insufficiency(code='few-units', observed=2, required=3)
    >>> insufficiency(8, variance=0.0).code, insufficiency(8, weights=[1] * 7 + [20]).code
    ('no-variance', 'dominated')
    """
    required = max(MIN_UNITS[purpose], min_units or 0)
    if not units >= required:
        return Insufficiency("few-units", units, required)
    if distinct_values is not None and distinct_values < 2:
        return Insufficiency("few-values", distinct_values, 2)
    if variance is not None and not variance > 0:
        return Insufficiency("no-variance", variance, 0.0)
    if weights is not None:
        share, effective = _concentration(weights)
        if not share <= MAX_SHARE:
            return Insufficiency("dominated", share, MAX_SHARE)
        effective_units = effective if effective_units is None else min(effective, effective_units)
    if effective_units is not None and not effective_units >= (limit := min_effective_units or required) * (1 - 1e-9):
        return Insufficiency("few-effective-units", effective_units, limit)
    return None


def _concentration(weights: ArrayLike) -> tuple[float, float]:
    """Return the largest share of the total weight, and Kish's effective number of units."""
    positive = np.asarray(weights, dtype=np.float64)
    if np.any(positive < 0):
        raise InputError(f"weights must not be negative, got {positive.min():g}", fix="give weights of 0 or more")
    positive = positive[positive > 0]  # NaN is not above 0
    total = float(positive.sum())
    if not total > 0:
        return math.nan, 0.0
    shares = positive / total
    return float(shares.max()), 1.0 / float((shares**2).sum())


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of reliability with its interval, and the topics that a target would take."""

    value: float  # from 0 to 1, for the number of topics at hand. NaN where it is not defined.
    interval: tuple[float, float] | None
    topics_needed: float  # the topics for which the coefficient reaches the target: a whole number, or infinite
    topics_needed_interval: tuple[float, float] | None  # the same for the upper and the lower end of the interval


@dataclass(frozen=True)
class Reliability:
    """Variance components of systems, topics and the rest, and what they say about the collection."""

    # systems, n, left_out: systems; topics with a score for every system; the others
    systems: int
    n: int
    left_out: int
    # variance_systems, variance_topics, variance_residual: components of a two-way random-effects ANOVA with one score
    # a cell; a negative estimate is taken as 0. The residual holds the interaction: topics that suit one system more
    # than another. NaN for fewer than two topics.
    variance_systems: float
    variance_topics: float
    variance_residual: float
    # E rho^2: whether other topics would rank the systems, and space them, alike (relative decisions)
    generalisability: Coefficient
    # Phi: whether they would give them the same scores (absolute decisions). Never above E rho^2.
    dependability: Coefficient
    target: float  # the coefficient that `Coefficient.topics_needed` is for
    level: float  # of the intervals

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of systems, topics and the rest in the total variance; NaN if there is none."""
        parts = (self.variance_systems, self.variance_topics, self.variance_residual)
        total = sum(parts)
        systems, topics, rest = (part / total if total > 0 else math.nan for part in parts)
        return systems, topics, rest

    @property
    def sentence(self) -> str:
        """The reliability in plain words."""
        if math.isnan(self.generalisability.value):
            return "The scores do not vary, or the topics are too few: reliability is not defined."
        shares = ", ".join(
            f"{percent(share)} {what}"
            for share, what in zip(self.shares, ("systems", "topics", "their interaction and chance"), strict=True)
        )
        return (
            f"Of the variance of the scores, {shares}. With these {topics_text(self.n)} E rho^2 is "
            f"{_with_interval(self.generalisability)} and Phi {_with_interval(self.dependability)}; "
            f"{self.target:g} would take {_many(self.generalisability.topics_needed)} and "
            f"{_many(self.dependability.topics_needed)} topics."
        )

    def at(self, topics: int) -> tuple[float, float]:
        """Give E rho^2 and Phi for another number of topics.

        >>> found = reliability([[0.1, 0.2, 0.1, 0.3], [0.2, 0.4, 0.5, 0.6], [0.1, 0.5, 0.4, 0.7]])
        >>> [round(value, 3) for value in found.at(4)] == [
        ...     round(found.generalisability.value, 3), round(found.dependability.value, 3)]
        True
        """
        relative, absolute = self.variance_residual, self.variance_topics + self.variance_residual
        systems = self.variance_systems
        return _coefficient(systems, relative, topics), _coefficient(systems, absolute, topics)


def reliability(values: ArrayLike, *, target: float = 0.95, level: float = 0.95) -> Reliability:
    """Estimate how reliable a collection's scores are, by generalisability theory.

    Bodoff and Li (2007); Urbano, Marrero and Martin (2013). Systems and topics are taken as random samples, so the
    estimate is as good as the systems are many and typical. The interval of E rho^2 is that of Feldt (1965), exact for
    normal scores; that of Phi is the approximation of Shrout and Fleiss (1979) for their ICC(2,k).

    Parameters
    ----------
    values
        (S, T): scores of at least two systems; topics that lack one are left out.
    target
        The coefficient to plan topics for.
    level
        Of the intervals.

    Returns
    -------
    Reliability
        If the scores do not vary, or there are fewer than two topics, the coefficients are NaN. If systems differ by
        no more than chance the coefficients are 0, and no number of topics is enough.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> found = reliability([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(found.generalisability.value, 2), round(found.dependability.value, 2)
    (0.91, 0.62)
    """
    check_share("target", target)
    check_share("level", level)
    scores, left_out = complete_topics(score_matrix(values))
    systems, n = scores.shape
    if n < 2:
        nothing = Coefficient(math.nan, None, math.nan, None)
        nan = math.nan
        return Reliability(systems, n, left_out, nan, nan, nan, nothing, nothing, target, level)
    squares = _mean_squares(scores)
    between, across, rest = squares
    system = max((between - rest) / n, 0.0)
    topic = max((across - rest) / systems, 0.0)
    relative, absolute = (
        _made(system, noise, n, interval, target)
        for noise, interval in (
            (rest, _feldt(squares, systems, n, level)),
            (topic + rest, _shrout_fleiss(squares, systems, n, level)),
        )
    )
    return Reliability(systems, n, left_out, system, topic, rest, relative, absolute, target, level)


def _mean_squares(scores: Floats) -> tuple[float, float, float]:
    """Give the mean squares of systems, topics and residuals; exactly 0 where they are 0 but for rounding."""
    systems, n = scores.shape
    mean, rows, columns = scores.mean(), scores.mean(axis=1), scores.mean(axis=0)
    residual = scores - rows[:, None] - columns + mean
    least = (ROUNDING * float(np.abs(scores).max())) ** 2
    found = (
        n * float(((rows - mean) ** 2).sum()) / (systems - 1),
        systems * float(((columns - mean) ** 2).sum()) / (n - 1),
        float((residual**2).sum()) / ((systems - 1) * (n - 1)),
    )
    between, across, rest = (square if square > least * n * systems else 0.0 for square in found)
    return between, across, rest


def _coefficient(system: float, noise: float, topics: int) -> float:
    """Give the share of true variance in means over so many topics; NaN if nothing varies."""
    return system / (system + noise / topics) if system + noise > 0 else math.nan


def _made(system: float, noise: float, n: int, single: tuple[float, float] | None, target: float) -> Coefficient:
    """Put a coefficient together; ``single`` is the interval of the coefficient of one topic."""
    interval = ends = None
    if single is not None:
        low, high = ((_stepped(end, n)) for end in single)
        interval = (low, high)
        ends = (_needed(single[1], target), _needed(single[0], target))
    one = _coefficient(system, noise, 1)
    return Coefficient(_coefficient(system, noise, n), interval, _needed(one, target), ends)


def _stepped(one: float, topics: int) -> float:
    """Step the coefficient of one topic up to several (Spearman and Brown)."""
    return topics * one / (1 + (topics - 1) * one)


def _needed(one: float, target: float) -> float:
    """Give the topics that step the coefficient of one topic up to the target."""
    if math.isnan(one) or one <= 0:
        return one if math.isnan(one) else math.inf
    return float(max(1, math.ceil((1 - one) / one * target / (1 - target) * (1 - 1e-12))))


def _feldt(squares: tuple[float, float, float], systems: int, n: int, level: float) -> tuple[float, float] | None:
    """Give the interval of E rho^2 of one topic: the ratio of mean squares follows F, but for the true ratio."""
    from scipy.special import fdtri

    between, _, rest = squares
    if rest == 0:
        return None if between == 0 else (1.0, 1.0)
    freedom = systems - 1, (systems - 1) * (n - 1)
    ratios = (between / rest / float(fdtri(*freedom, end)) for end in ((1 + level) / 2, (1 - level) / 2))
    low, high = (max(0.0, (ratio - 1) / (ratio - 1 + n)) for ratio in ratios)
    return low, high


def _shrout_fleiss(
    squares: tuple[float, float, float], systems: int, n: int, level: float
) -> tuple[float, float] | None:
    """Give the interval of Phi of one topic: that of ICC(2,1), with Satterthwaite's degrees of freedom."""
    from scipy.special import fdtri

    between, across, rest = squares
    total = between + (n - 1) * rest + n * (across - rest) / systems
    if rest == 0 or total <= 0:
        return None
    icc = (between - rest) / total
    ratio = n * icc * across / rest
    other = systems * (1 + (n - 1) * icc) - n * icc
    bottom = (systems - 1) * ratio**2 + other**2
    freedom = (n - 1) * (systems - 1) * (ratio + other) ** 2 / bottom if bottom else 0.0
    if not freedom:
        return None
    upper, lower = (float(fdtri(*pair, (1 + level) / 2)) for pair in ((systems - 1, freedom), (freedom, systems - 1)))
    weight = n * systems - n - systems
    low = systems * (between - upper * rest) / (upper * (n * across + weight * rest) + systems * between)
    high = systems * (lower * between - rest) / (n * across + weight * rest + systems * lower * between)
    return max(0.0, low), max(0.0, high)


def _with_interval(one: Coefficient) -> str:
    ends = "" if one.interval is None else f" [{decimal(one.interval[0], 3)}, {decimal(one.interval[1], 3)}]"
    return f"{decimal(one.value, 3)}{ends}"


def _many(topics: float) -> str:
    return f"{topics:.0f}" if math.isfinite(topics) else "infinitely many"
