"""How large a difference is: effect sizes, wins and losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal, p_text
from judged.stats.inputs import ROUNDING, check_share, paired_differences, score_matrix, spread, topics_text
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats


@dataclass(frozen=True)
class Effects:
    """The difference of two systems over the same topics, in several units."""

    difference: float  # mean of second minus first, in the measure's own unit. NaN without a topic.
    # Cohen's d for paired data: the mean of the differences over their standard deviation (n - 1). NaN if that is 0, or
    # for one topic.
    dz: float
    # the mean difference after each topic's scores were divided by their standard deviation over the reference systems
    # (Webber, Moffat and Zobel 2008), so that no topic weighs more because scores vary more on it. NaN without
    # reference systems.
    standardised: float
    standardised_topics: int  # the topics that it rests on: those where the reference systems do not all score the same
    # Cliff's delta within pairs: the share of topics that the second system wins, minus the share that it loses. From
    # -1 to 1; ties count as neither.
    cliffs_delta: float
    # Cliff's delta of the two sets of scores as if they were not paired: the probability that the second system on one
    # topic scores higher than the first on another or the same, minus that it scores lower
    cliffs_delta_between: float
    # n, left_out: topics with a score for both, and without
    n: int
    left_out: int


def effect_sizes(first: ArrayLike, second: ArrayLike, *, reference: ArrayLike | None = None) -> Effects:
    """Give the size of the difference between two systems in several units.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    reference
        (S, T): scores of the systems by which topics are standardised, such as all systems of the collection. The two
        that are compared may be among them; with these two alone, every difference would be the same.

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> found = effect_sizes([0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.5, 0.3])
    >>> round(found.difference, 3), round(found.dz, 3), found.cliffs_delta
    (0.125, 1.306, 0.75)
    """
    differences, left_out = paired_differences(first, second)
    size = len(differences)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    counted = ~(np.isnan(a) | np.isnan(b))
    mean = float(differences.mean()) if size else math.nan
    deviation = spread(differences)
    standardised = np.empty(0) if reference is None else _standardised(differences, reference, counted)
    return Effects(
        difference=mean,
        dz=mean / deviation if deviation > 0 else math.nan,
        standardised=float(standardised.mean()) if len(standardised) else math.nan,
        standardised_topics=len(standardised),
        cliffs_delta=float(np.sign(differences).mean()) if size else math.nan,
        cliffs_delta_between=_dominance(a[counted], b[counted]),
        n=size,
        left_out=left_out,
    )


def standardise(values: ArrayLike, *, reference: ArrayLike | None = None) -> Floats:
    """Standardise scores topic by topic: minus the mean, over the standard deviation (S - 1) of reference systems.

    Parameters
    ----------
    values
        (S, T): scores by system and topic; NaN where there is none.
    reference
        (R, T): the systems that give mean and deviation; the values themselves if left out.

    Returns
    -------
    (S, T) float64
        z-scores (Webber, Moffat and Zobel 2008). NaN for a score that is NaN, and for topics on which fewer than two
        reference systems have a score, or all score the same.

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> standardise([[1.0, 0.5], [2.0, 0.5], [6.0, 0.5]]).round(3).tolist()
    [[-0.756, nan], [-0.378, nan], [1.134, nan]]
    """
    scores = score_matrix(values, least=1)
    mean, deviation = _by_topic(scores if reference is None else reference, scores.shape[1])
    return (scores - mean) / deviation


def _by_topic(reference: ArrayLike, topics: int) -> tuple[Floats, Floats]:
    """Give mean and standard deviation of each topic over the reference systems; NaN where scores do not vary."""
    scores = score_matrix(reference)
    if scores.shape[1] != topics:
        raise InputError(f"the reference has {scores.shape[1]} topics, the scores {topics}", fix="give the same topics")
    counted = ~np.isnan(scores)
    size = counted.sum(axis=0)
    filled = np.where(counted, scores, 0.0)
    mean = filled.sum(axis=0) / np.maximum(size, 1)
    squares = (np.where(counted, scores - mean, 0.0) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(size - 1, 1))
    varied = (size > 1) & (deviation > ROUNDING * np.abs(filled).max(axis=0))
    return np.where(varied, mean, np.nan), np.where(varied, deviation, np.nan)


def _standardised(differences: Floats, reference: ArrayLike, counted: Bools) -> Floats:
    _, deviation = _by_topic(reference, len(counted))
    units = differences / deviation[counted]
    return units[~np.isnan(units)]


def _dominance(a: Floats, b: Floats) -> float:
    """Give P(b > a) - P(b < a) over all pairs, equal but for rounding counting as ties; by sorting."""
    if not len(a):
        return math.nan
    ordered, slack = np.sort(a), ROUNDING * np.abs(b)
    below = np.searchsorted(ordered, b - slack, side="left")
    above = len(a) - np.searchsorted(ordered, b + slack, side="right")
    return float((below - above).sum() / (len(a) * len(b)))


@dataclass(frozen=True)
class Wins:
    """On how many topics the second system is higher, about the same, or lower."""

    wins: int  # of the second system
    ties: int  # of the second system
    losses: int  # of the second system
    min_difference: float = 0.0  # the least difference that is a win or a loss; a smaller one is a tie
    left_out: int = 0  # topics without a score for both


def wins(first: ArrayLike, second: ArrayLike, min_difference: float = 0.0) -> Wins:
    """Count the topics that the second system wins, ties and loses.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    min_difference
        The least difference that counts, in the measure's unit; one of exactly this size counts.

    Raises
    ------
    InputError
        If the shapes do not fit, or the minimum is negative.

    Examples
    --------
    >>> found = wins([0.2, 0.4, 0.5, 0.3], [0.3, 0.6, 0.5, 0.1], min_difference=0.15)
    >>> found.wins, found.ties, found.losses
    (1, 2, 1)
    """
    if not min_difference >= 0:
        raise InputError(f"the minimum difference {min_difference} is below 0", fix="give 0 or more")
    differences, left_out = paired_differences(first, second)
    counts = (differences != 0) & (np.abs(differences) >= min_difference * (1 - ROUNDING) - ROUNDING)
    won, lost = int((counts & (differences > 0)).sum()), int((counts & (differences < 0)).sum())
    return Wins(won, len(differences) - won - lost, lost, float(min_difference), left_out)


def share_bound(seen: int, n: int, level: float = 0.95) -> float:
    """Give the largest share of all topics that is not ruled out, where so many of n had something (Clopper-Pearson).

    >>> round(share_bound(0, 48), 3), round(share_bound(3, 48), 3), share_bound(5, 5)
    (0.061, 0.154, 1.0)
    """
    from scipy.special import betaincinv

    return 1.0 if seen >= n else float(betaincinv(seen + 1, n - seen, level))


def unseen_loss(margin: float, n: int, level: float = 0.95) -> float:
    """Give the loss that outweighs a margin on as many topics as n may have missed altogether.

    >>> round(unseen_loss(0.02, 48), 2), round(unseen_loss(0.02, 150), 2)
    (0.33, 1.01)
    """
    # On a share of topics up to `share_bound(0, n)` such a loss is not ruled out, whatever a test of the mean says.
    return margin / share_bound(0, n, level)


@dataclass(frozen=True)
class Equivalence:
    """Whether the second system is as good as the first, within a margin: two one-sided t-tests, or one of them."""

    # `equivalence`: the difference is within the margin on either side. `non-inferiority`: the second system is not
    # worse than the first by the margin or more.
    kind: Literal["equivalence", "non-inferiority"]
    difference: float  # mean of second minus first
    margin: float
    higher_is_better: bool  # of the measure; matters for non-inferiority alone
    statistic: float  # t; of two tests, that of the one with the larger p
    # the probability of data that speak as clearly for it, were it at the margin. NaN for fewer than two topics.
    p: float
    # of level 1 - 2 alpha: it lies within the margin exactly where `significant` is true
    interval: tuple[float, float] | None
    # interval_level, level: 1 - 2 alpha, and 1 - alpha of each one-sided test
    interval_level: float
    level: float
    significant: bool  # whether `p < alpha`, with enough topics for a verdict
    # n, left_out: topics that were compared; topics that lack a score for one of the two
    n: int
    left_out: int
    note: str = ""  # what else a reader must know

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        claim = (
            f"the two systems differ by less than {self.margin:g}"
            if self.kind == "equivalence"
            else f"the second system is worse than the first by less than {self.margin:g}, if at all"
        )
        if self.interval is None:
            return f"It cannot be tested whether {claim}: {self.note}."
        low, high = self.interval
        numbers = (
            f"p {p_text(self.p, 1 - self.level)}; {self.interval_level:.0%} interval {decimal(low)} to {decimal(high)},"
            f" {topics_text(self.n)}"
        )
        note = f" Note: {self.note}." if self.note else ""
        if self.significant:
            return f"The data show that {claim} ({numbers}).{self._unseen()}{note}"
        return f"The data do not show that {claim} ({numbers}); that is no proof of the contrary.{note}"

    def _unseen(self) -> str:
        """Say what is so rare that these topics may not show it, and yet outweighs the margin; of shares, to 1."""
        share, size = share_bound(0, self.n, self.level), unseen_loss(self.margin, self.n, self.level)
        if size > 1:
            return ""
        return (
            f" It takes these {topics_text(self.n)} to be like all others: a difference of {size:.2g} or more on up to"
            f" {share:.1%} of all topics may show in none of them."
        )


def equivalence(first: ArrayLike, second: ArrayLike, margin: float, *, level: float = 0.95) -> Equivalence:
    """Test whether two systems differ by less than a margin: two one-sided paired t-tests (TOST, Schuirmann 1987).

    A difference that is not significant is no proof of equality; this is the test for it. The margin must be chosen
    before the scores are seen: the largest difference that nobody would care about.

    A mean is at the mercy of rare large differences. Where 6 % of all topics lose 0.5, the loss is at a margin of 0.03,
    and yet the test shows that it is less in 53 % of samples of 10 topics, 24 % of 25, and 15 % of 50, in place of 5 %
    (docs/calibration.md): none, or few, of the sample were among them.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    margin
        Above 0, in the measure's unit.
    level
        1 - alpha of each of the two tests, above 0.5.

    Returns
    -------
    Equivalence
        Where all differences are the same, t is infinite and p is 0 or 1: the sample shows no variation, which the
        note says. Fewer than two topics give no p, and fewer than six no verdict.

    Raises
    ------
    InputError
        If the shapes do not fit, or an option makes no sense.

    Examples
    --------
    >>> found = equivalence([0.2, 0.4, 0.5, 0.1, 0.3, 0.2], [0.21, 0.4, 0.49, 0.12, 0.3, 0.2], margin=0.03)
    >>> found.significant, round(found.p, 4)
    (True, 0.0007)
    """
    return _equivalence("equivalence", first, second, margin, level)


def non_inferiority(
    first: ArrayLike, second: ArrayLike, margin: float, *, level: float = 0.95, higher_is_better: bool = True
) -> Equivalence:
    """Test whether the second system is worse than the first by less than a margin: a one-sided paired t-test.

    Parameters and degenerate cases are those of `equivalence`.

    Raises
    ------
    InputError
        If the shapes do not fit, or an option makes no sense.

    Examples
    --------
    >>> non_inferiority([0.2, 0.4, 0.5] * 2, [0.3, 0.4, 0.6] * 2, margin=0.1).significant
    True
    """
    return _equivalence("non-inferiority", first, second, margin, level, higher_is_better=higher_is_better)


def _equivalence(
    kind: Literal["equivalence", "non-inferiority"],
    first: ArrayLike,
    second: ArrayLike,
    margin: float,
    level: float,
    *,
    higher_is_better: bool = True,
) -> Equivalence:
    if not 0 < margin < math.inf:
        raise InputError(f"the margin {margin} is not above 0", fix="give the largest difference that does not matter")
    check_share("level", level, 0.5)
    differences, left_out = paired_differences(first, second)
    size, deviation = len(differences), spread(differences)
    mean = float(differences.mean()) if size else math.nan
    within = 1 - 2 * (1 - level)
    statistic, p, interval = math.nan, math.nan, None
    note = "it takes at least two topics with a score for both systems"
    if size > 1:
        error = deviation / math.sqrt(size)
        distances = (margin + mean, margin - mean)  # from the lower end, and from the upper
        if kind == "non-inferiority":
            distances = (distances[0] if higher_is_better else distances[1],)
        statistic, p = _one_sided(min(distances), error, size - 1)
        half = _quantile(level, size - 1) * error
        interval = (mean - half, mean + half)
        note = "" if error else "all differences are the same, so the t-test takes their mean for exact"
    lacking = insufficiency(size, "verdict")
    if size > 1 and lacking:
        note = lacking.sentence("topic").removesuffix(".")
    return Equivalence(
        kind,
        mean,
        float(margin),
        higher_is_better,
        statistic,
        p,
        interval,
        within,
        level,
        p < 1 - level and lacking is None,
        size,
        left_out,
        note,
    )


def _one_sided(distance: float, error: float, df: int) -> tuple[float, float]:
    """Give t and P(T >= t) for a mean that is so far on the right side of its limit."""
    from scipy.special import stdtr

    if error == 0:
        return (math.inf, 0.0) if distance > ROUNDING else (-math.inf, 1.0)
    return distance / error, float(stdtr(df, -distance / error))


def _quantile(probability: float, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))
