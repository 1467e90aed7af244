"""Minimum amounts of data for an interval, a p-value, or a verdict.

Every statistic calls `insufficiency` before it reports more than a descriptive value, so that the same minimums apply
everywhere. Units are sampled independently: topics, users, sessions, participants, judges.
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
"""Minimum number of independent units. One or two units cannot show the variance between units. With five or fewer, the
smallest two-sided p-value of a sign-flip test is 1/16 or more, so no distribution-free test can reject at 0.05."""

MAX_SHARE = 0.5
"""Largest permitted share of the total weight. A unit with a larger share determines the result alone."""


@dataclass(frozen=True)
class Insufficiency:
    """Reason why a value has no interval, p-value, or verdict.

    Parameters
    ----------
    code
        ``few-units``: fewer units than the minimum; ``few-values``: fewer distinct values; ``no-variance``: all units
        have the same value; ``dominated``: one unit has more than half of the weight; ``few-effective-units``:
        unequal weights leave fewer effective units (Kish) than the minimum.
    observed
        Number, share, or value that was compared with `required`.
    required
        Limit for `observed`.
    """

    code: InsufficiencyCode
    observed: float
    required: float

    def sentence(self, unit: str = "unit") -> str:
        """Describe the reason in one sentence; `unit` is the singular noun for the sampled units.

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
            "few-effective-units": f"because of unequal weights, the effective number of {unit}s is {observed},"
            f" at least {required} is required",
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
    """Return the reason why the data do not support an interval or a verdict, or None if they do.

    Parameters
    ----------
    units
        Number of independent units with a value; for two groups, that of the smaller group.
    purpose
        ``interval`` for intervals and p-values, ``verdict`` for anything that says better, worse, equivalent,
        significant, passed, or failed.
    variance
        Estimated variance (or standard deviation, or standard error) that the statistic uses. 0 and NaN are
        insufficient. None: the statistic does not use one (a sign test, a bound from the measure's range).
    weights
        (units,) non-negative weights, such as pages by user; 0 or NaN weights do not count. Their largest share must
        be at most `MAX_SHARE`, and their effective number (Kish) at least the minimum.
    effective_units
        Effective number of units, if it is known without the weights.
    min_effective_units
        Minimum for the effective number; None: that for `units`.
    distinct_values
        Number of distinct values of a rank statistic or a quantile; at least 2 are required.
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
        raise InputError(f"weights must not be negative, got {positive.min():g}", fix="use weights of 0 or more")
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
    """Coefficient of reliability with its interval, and the number of topics for a target."""

    value: float  # from 0 to 1, for the observed number of topics; NaN if it is undefined
    interval: tuple[float, float] | None
    topics_needed: float  # number of topics for which the coefficient reaches the target; can be infinite
    topics_needed_interval: tuple[float, float] | None  # for the upper and the lower limit of the interval


@dataclass(frozen=True)
class Reliability:
    """Variance components of systems, topics, and the residual, and the reliability of the collection."""

    systems: int
    n: int  # topics with a score for every system
    left_out: int
    # Variance components of a two-way random-effects ANOVA with one score per cell; negative estimates are set to 0.
    # The residual contains the interaction of systems and topics. NaN for fewer than two topics.
    variance_systems: float
    variance_topics: float
    variance_residual: float
    generalizability: Coefficient  # E rho^2: reliability of differences between systems (relative decisions)
    dependability: Coefficient  # Phi: reliability of scores (absolute decisions); never above E rho^2
    target: float  # coefficient for `Coefficient.topics_needed`
    level: float  # of the intervals

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of systems, topics, and the residual in the total variance; NaN if it is 0."""
        components = (self.variance_systems, self.variance_topics, self.variance_residual)
        total = sum(components)
        systems, topics, residual = (component / total if total > 0 else math.nan for component in components)
        return systems, topics, residual

    @property
    def sentence(self) -> str:
        """Result in a few sentences."""
        if math.isnan(self.generalizability.value):
            return "The scores do not vary, or there are too few topics: the reliability coefficients are not defined."
        shares = ", ".join(
            f"{percent(share)} {source}"
            for share, source in zip(
                self.shares, ("systems", "topics", "interaction of systems and topics, and residual error"), strict=True
            )
        )
        return (
            f"Sources of the variance of the scores: {shares}. With these {topics_text(self.n)}, the"
            f" generalizability coefficient (E rho^2) is {_with_interval(self.generalizability, self.level)}, and the"
            f" index of dependability (Phi) is {_with_interval(self.dependability, self.level)}; "
            f"to reach {self.target:g}, E rho^2 requires {_format_topics(self.generalizability.topics_needed)}"
            f" topics, and Phi requires {_format_topics(self.dependability.topics_needed)} topics."
        )

    def coefficients_for(self, topics: int) -> tuple[float, float]:
        """Return E rho^2 and Phi for another number of topics.

        >>> study = reliability([[0.1, 0.2, 0.1, 0.3], [0.2, 0.4, 0.5, 0.6], [0.1, 0.5, 0.4, 0.7]])
        >>> study.coefficients_for(4) == (study.generalizability.value, study.dependability.value)
        True
        """
        relative, absolute = self.variance_residual, self.variance_topics + self.variance_residual
        systems = self.variance_systems
        return _coefficient(systems, relative, topics), _coefficient(systems, absolute, topics)


def reliability(values: ArrayLike, *, target: float = 0.95, level: float = 0.95) -> Reliability:
    """Estimate the reliability of a collection's scores by generalizability theory.

    Bodoff and Li (2007); Urbano, Marrero and Martin (2013). Systems and topics are treated as random samples, so the
    systems should be many and typical. The interval of E rho^2 is that of Feldt (1965), exact for normal scores; that
    of Phi is the approximation of Shrout and Fleiss (1979) for their ICC(2,k).

    Parameters
    ----------
    values
        (S, T): scores of at least two systems; topics without a score for some system are left out.
    target
        Coefficient for which the number of topics is computed.
    level
        Confidence level of the intervals.

    Returns
    -------
    Reliability
        If the scores do not vary, or there are fewer than two topics, the coefficients are NaN. If systems differ by
        no more than chance, the coefficients are 0, and no number of topics is enough.

    Raises
    ------
    InputError
        If an option is out of range.

    Examples
    --------
    >>> ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> study = reliability(ratings)
    >>> round(study.generalizability.value, 2), round(study.dependability.value, 2)
    (0.91, 0.62)
    """
    check_share("target", target)
    check_share("level", level)
    scores, left_out = complete_topics(score_matrix(values))
    systems, n = scores.shape
    if n < 2:
        undefined = Coefficient(math.nan, None, math.nan, None)
        nan = math.nan
        return Reliability(systems, n, left_out, nan, nan, nan, undefined, undefined, target, level)
    mean_squares = _mean_squares(scores)
    bms, jms, ems = mean_squares
    var_systems = max((bms - ems) / n, 0.0)
    var_topics = max((jms - ems) / systems, 0.0)
    relative, absolute = (
        _coefficient_with_interval(var_systems, noise, n, interval, target)
        for noise, interval in (
            (ems, _feldt(mean_squares, systems, n, level)),
            (var_topics + ems, _shrout_fleiss(mean_squares, systems, n, level)),
        )
    )
    return Reliability(systems, n, left_out, var_systems, var_topics, ems, relative, absolute, target, level)


def _mean_squares(scores: Floats) -> tuple[float, float, float]:
    """Return BMS, JMS, and EMS of Shrout and Fleiss: the mean squares of systems, topics, and residuals."""
    systems, n = scores.shape
    mean, rows, columns = scores.mean(), scores.mean(axis=1), scores.mean(axis=0)
    residual = scores - rows[:, None] - columns + mean
    smallest = (ROUNDING * float(np.abs(scores).max())) ** 2
    unrounded = (
        n * float(((rows - mean) ** 2).sum()) / (systems - 1),
        systems * float(((columns - mean) ** 2).sum()) / (n - 1),
        float((residual**2).sum()) / ((systems - 1) * (n - 1)),
    )
    bms, jms, ems = (square if square > smallest * n * systems else 0.0 for square in unrounded)
    return bms, jms, ems


def _coefficient(system: float, noise: float, topics: int) -> float:
    """Return the share of system variance in the variance of means over `topics` topics; NaN if nothing varies."""
    return system / (system + noise / topics) if system + noise > 0 else math.nan


def _coefficient_with_interval(
    system: float, noise: float, n: int, single: tuple[float, float] | None, target: float
) -> Coefficient:
    """Build a coefficient; ``single`` is the interval of the coefficient of one topic."""
    interval = topics_interval = None
    if single is not None:
        low, high = (_spearman_brown(limit, n) for limit in single)
        interval = (low, high)
        topics_interval = (_topics_needed(single[1], target), _topics_needed(single[0], target))
    single_topic = _coefficient(system, noise, 1)
    return Coefficient(_coefficient(system, noise, n), interval, _topics_needed(single_topic, target), topics_interval)


def _spearman_brown(single_topic: float, topics: int) -> float:
    """Return the coefficient for several topics, from that of one topic (Spearman-Brown formula)."""
    return topics * single_topic / (1 + (topics - 1) * single_topic)


def _topics_needed(single_topic: float, target: float) -> float:
    """Return the number of topics for which the coefficient reaches the target (inverse Spearman-Brown formula)."""
    if math.isnan(single_topic) or single_topic <= 0:
        return single_topic if math.isnan(single_topic) else math.inf
    return float(max(1, math.ceil((1 - single_topic) / single_topic * target / (1 - target) * (1 - 1e-12))))


def _feldt(squares: tuple[float, float, float], systems: int, n: int, level: float) -> tuple[float, float] | None:
    """Compute the interval of E rho^2 for one topic (Feldt 1965): the ratio of mean squares follows a scaled F."""
    from scipy.special import fdtri

    bms, _, ems = squares
    if ems == 0:
        return None if bms == 0 else (1.0, 1.0)
    df = systems - 1, (systems - 1) * (n - 1)
    ratios = (bms / ems / float(fdtri(*df, p)) for p in ((1 + level) / 2, (1 - level) / 2))
    low, high = (max(0.0, (ratio - 1) / (ratio - 1 + n)) for ratio in ratios)
    return low, high


def _shrout_fleiss(
    squares: tuple[float, float, float], systems: int, n: int, level: float
) -> tuple[float, float] | None:
    """Compute the interval of Phi for one topic: that of ICC(2,1), with Satterthwaite's degrees of freedom."""
    from scipy.special import fdtri

    bms, jms, ems = squares
    total = bms + (n - 1) * ems + n * (jms - ems) / systems
    if ems == 0 or total <= 0:
        return None
    icc = (bms - ems) / total
    ratio = n * icc * jms / ems
    other = systems * (1 + (n - 1) * icc) - n * icc
    denominator = (systems - 1) * ratio**2 + other**2
    df = (n - 1) * (systems - 1) * (ratio + other) ** 2 / denominator if denominator else 0.0
    if not df:
        return None
    upper, lower = (float(fdtri(*dfs, (1 + level) / 2)) for dfs in ((systems - 1, df), (df, systems - 1)))
    weight = n * systems - n - systems
    low = systems * (bms - upper * ems) / (upper * (n * jms + weight * ems) + systems * bms)
    high = systems * (lower * bms - ems) / (n * jms + weight * ems + systems * lower * bms)
    return max(0.0, low), max(0.0, high)


def _with_interval(coefficient: Coefficient, level: float) -> str:
    interval = (
        ""
        if coefficient.interval is None
        else f", {level:.0%} CI [{decimal(coefficient.interval[0], 3)}, {decimal(coefficient.interval[1], 3)}]"
    )
    return f"{decimal(coefficient.value, 3)}{interval}"


def _format_topics(topics: float) -> str:
    return f"{topics:.0f}" if math.isfinite(topics) else "infinitely many"
