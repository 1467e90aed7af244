"""How far scores would come out the same on other topics: generalisability theory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.results.decimals import decimal, percent
from judged.stats.inputs import ROUNDING, check_share, complete_topics, score_matrix, topics_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats


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
        return _coefficient(self.variance_systems, relative, topics), _coefficient(
            self.variance_systems, absolute, topics
        )


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
