"""Size of a difference: effect sizes, wins and losses, equivalence and non-inferiority."""

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
    """Difference of two systems over the same topics, in several units."""

    difference: float  # mean of second minus first, in the unit of the measure; NaN without topics
    # Cohen's d for paired data: mean of the differences over their standard deviation (n - 1). NaN if that is 0, or for
    # one topic.
    dz: float
    # Mean difference after the scores of each topic are divided by their standard deviation over the reference systems
    # (Webber, Moffat and Zobel 2008), so that topics with a larger variance do not weigh more. NaN without reference.
    standardized: float
    standardized_topics: int  # topics on which the scores of the reference systems vary
    # Cliff's delta within pairs: share of topics that the second system wins minus the share that it loses, -1 to 1.
    cliffs_delta: float
    # Cliff's delta of unpaired scores: P(score of the second system on any topic > score of the first on any topic)
    # minus P(<)
    cliffs_delta_between: float
    n: int  # topics with both scores
    left_out: int


def effect_sizes(first: ArrayLike, second: ArrayLike, *, reference: ArrayLike | None = None) -> Effects:
    """Compute the size of the difference between two systems in several units.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN for missing scores.
    reference
        (S, T): scores of the systems that standardize topics, such as all systems of the collection. They may include
        the two compared systems, but these two alone would make all standardized differences equal.

    Raises
    ------
    InputError
        If the shapes differ.

    Examples
    --------
    >>> effects = effect_sizes([0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.5, 0.3])
    >>> round(effects.difference, 3), round(effects.dz, 3), effects.cliffs_delta
    (0.125, 1.306, 0.75)
    """
    differences, left_out = paired_differences(first, second)
    n = len(differences)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    in_both = ~(np.isnan(a) | np.isnan(b))
    mean = float(differences.mean()) if n else math.nan
    sd = spread(differences)
    standardized = np.empty(0) if reference is None else _standardized_differences(differences, reference, in_both)
    return Effects(
        difference=mean,
        dz=mean / sd if sd > 0 else math.nan,
        standardized=float(standardized.mean()) if len(standardized) else math.nan,
        standardized_topics=len(standardized),
        cliffs_delta=float(np.sign(differences).mean()) if n else math.nan,
        cliffs_delta_between=_cliffs_delta(a[in_both], b[in_both]),
        n=n,
        left_out=left_out,
    )


def standardize(values: ArrayLike, *, reference: ArrayLike | None = None) -> Floats:
    """Standardize scores by topic: subtract the mean and divide by the standard deviation (S - 1) of reference systems.

    Parameters
    ----------
    values
        (S, T): scores by system and topic; NaN for missing scores.
    reference
        (R, T): systems that define mean and standard deviation. Default: `values`.

    Returns
    -------
    (S, T) float64
        z-scores (Webber, Moffat and Zobel 2008). NaN for missing scores, and for topics on which fewer than two
        reference systems have a score or all have the same score.

    Raises
    ------
    InputError
        If the shapes differ.

    Examples
    --------
    >>> standardize([[1.0, 0.5], [2.0, 0.5], [6.0, 0.5]]).round(3).tolist()
    [[-0.756, nan], [-0.378, nan], [1.134, nan]]
    """
    scores = score_matrix(values, least=1)
    mean, sd = _topic_statistics(scores if reference is None else reference, scores.shape[1])
    return (scores - mean) / sd


def _topic_statistics(reference: ArrayLike, topics: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each topic over the reference systems; NaN if scores do not vary."""
    scores = score_matrix(reference)
    if scores.shape[1] != topics:
        problem = f"`reference` must have the {topics} topics of the scores, got {scores.shape[1]}"
        raise InputError(problem, fix="use the same topics")
    is_scored = ~np.isnan(scores)
    n = is_scored.sum(axis=0)
    filled = np.where(is_scored, scores, 0.0)
    mean = filled.sum(axis=0) / np.maximum(n, 1)
    squares = (np.where(is_scored, scores - mean, 0.0) ** 2).sum(axis=0)
    sd = np.sqrt(squares / np.maximum(n - 1, 1))
    is_varied = (n > 1) & (sd > ROUNDING * np.abs(filled).max(axis=0))
    return np.where(is_varied, mean, np.nan), np.where(is_varied, sd, np.nan)


def _standardized_differences(differences: Floats, reference: ArrayLike, in_both: Bools) -> Floats:
    _, sd = _topic_statistics(reference, len(in_both))
    standardized = differences / sd[in_both]
    return standardized[~np.isnan(standardized)]


def _cliffs_delta(a: Floats, b: Floats) -> float:
    """Return P(b > a) - P(b < a) over all pairs; values within rounding are ties."""
    if not len(a):
        return math.nan
    sorted_a, tolerance = np.sort(a), ROUNDING * np.abs(b)
    below = np.searchsorted(sorted_a, b - tolerance, side="left")
    above = len(a) - np.searchsorted(sorted_a, b + tolerance, side="right")
    return float((below - above).sum() / (len(a) * len(b)))


@dataclass(frozen=True)
class Wins:
    """Number of topics on which the second system is higher, tied, or lower."""

    wins: int  # of the second system
    ties: int
    losses: int
    min_difference: float = 0.0  # smaller differences are ties
    left_out: int = 0  # topics without a score for both


def wins(first: ArrayLike, second: ArrayLike, min_difference: float = 0.0) -> Wins:
    """Count the topics that the second system wins, ties, and loses.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN for missing scores.
    min_difference
        Smallest difference that is a win or a loss, in the unit of the measure.

    Raises
    ------
    InputError
        If the shapes differ, or `min_difference` is negative.

    Examples
    --------
    >>> counts = wins([0.2, 0.4, 0.5, 0.3], [0.3, 0.6, 0.5, 0.1], min_difference=0.15)
    >>> counts.wins, counts.ties, counts.losses
    (1, 2, 1)
    """
    if not min_difference >= 0:
        raise InputError(f"`min_difference` must be 0 or more, got {min_difference}", fix="use 0, for example")
    differences, left_out = paired_differences(first, second)
    is_decided = (differences != 0) & (np.abs(differences) >= min_difference * (1 - ROUNDING) - ROUNDING)
    n_wins, n_losses = int((is_decided & (differences > 0)).sum()), int((is_decided & (differences < 0)).sum())
    return Wins(n_wins, len(differences) - n_wins - n_losses, n_losses, float(min_difference), left_out)


def share_bound(count: int, n: int, level: float = 0.95) -> float:
    """Return the upper confidence bound of a proportion with `count` of n observed (Clopper-Pearson).

    >>> round(share_bound(0, 48), 3), round(share_bound(3, 48), 3), share_bound(5, 5)
    (0.061, 0.154, 1.0)
    """
    from scipy.special import betaincinv

    return 1.0 if count >= n else float(betaincinv(count + 1, n - count, level))


def unsampled_loss(margin: float, n: int, level: float = 0.95) -> float:
    """Compute the loss that would offset a margin on the largest share of topics that n topics may all have missed.

    >>> round(unsampled_loss(0.02, 48), 2), round(unsampled_loss(0.02, 150), 2)
    (0.33, 1.01)
    """
    # No sample of n topics rules out such a loss on a share `share_bound(0, n)` of all topics, whatever its mean.
    return margin / share_bound(0, n, level)


@dataclass(frozen=True)
class Equivalence:
    """Test whether the second system is as good as the first within a margin: one or two one-sided t-tests."""

    # `equivalence`: |difference| < margin. `non-inferiority`: the second system is worse by less than the margin.
    kind: Literal["equivalence", "non-inferiority"]
    difference: float  # mean of second minus first
    margin: float
    higher_is_better: bool  # of the measure; used by non-inferiority only
    statistic: float  # t; the smaller one of two tests
    p: float  # p-value for a true difference at the margin; NaN for fewer than two topics
    interval: tuple[float, float] | None  # within the margin exactly if `significant`, given enough topics
    interval_level: float  # 1 - 2 alpha
    level: float  # 1 - alpha of each one-sided test
    significant: bool  # whether `p < alpha`, with enough topics for a verdict
    n: int  # topics with both scores
    left_out: int
    note: str = ""  # warning about the result

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        claim = (
            f"the two systems differ by less than {self.margin:g}"
            if self.kind == "equivalence"
            else f"the second system is worse than the first by less than {self.margin:g}, if at all"
        )
        if self.interval is None:
            return f"It cannot be tested whether {claim}: {self.note}."
        low, high = self.interval
        numbers = (
            f"p {p_text(self.p, 1 - self.level)}; {self.interval_level:.0%} CI [{decimal(low)}, {decimal(high)}],"
            f" n = {topics_text(self.n)}"
        )
        note = f" Note: {self.note}." if self.note else ""
        if self.significant:
            return f"The data show that {claim} ({numbers}).{self._rare_difference_note()}{note}"
        return f"The data do not show that {claim} ({numbers}). This does not show that the opposite is true.{note}"

    def _rare_difference_note(self) -> str:
        """Describe differences too rare for these topics to show that would offset the margin; for measures up to 1."""
        share, size = share_bound(0, self.n, self.level), unsampled_loss(self.margin, self.n, self.level)
        if size > 1:
            return ""
        return (
            f" The test assumes that these {topics_text(self.n)} represent all topics. Up to {share:.1%} of all topics"
            f" may be of a kind that is missing from the sample. A mean difference of {size:.2g} or more on the missing"
            " topics would make the result false."
        )


def equivalence(first: ArrayLike, second: ArrayLike, margin: float, *, level: float = 0.95) -> Equivalence:
    """Test whether two systems differ by less than a margin: two one-sided paired t-tests (TOST, Schuirmann 1987).

    The absence of a significant difference does not show equality; this test does. Choose the margin before you see the
    scores: the largest difference that does not matter.

    Rare large differences can invalidate the test. If 6% of all topics lose 0.5, the true loss is 0.03. With a margin
    of 0.03, the test shows equivalence in 53% of samples of 10 topics, 24% of 25, and 15% of 50, instead of 5%
    (docs/calibration.md), because few or none of these topics are in the sample.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN for missing scores.
    margin
        Positive, in the unit of the measure.
    level
        1 - alpha of each of the two tests, above 0.5.

    Returns
    -------
    Equivalence
        If all differences are the same, t is infinite, p is 0 or 1, and `note` warns about it. Fewer than two topics
        have no p-value, and fewer than six no verdict.

    Raises
    ------
    InputError
        If the shapes differ, or an option is out of range.

    Examples
    --------
    >>> test = equivalence([0.2, 0.4, 0.5, 0.1, 0.3, 0.2], [0.21, 0.4, 0.49, 0.12, 0.3, 0.2], margin=0.03)
    >>> test.significant, round(test.p, 4)
    (True, 0.0007)
    """
    return _equivalence("equivalence", first, second, margin, level)


def non_inferiority(
    first: ArrayLike, second: ArrayLike, margin: float, *, level: float = 0.95, higher_is_better: bool = True
) -> Equivalence:
    """Test whether the second system is worse than the first by less than a margin: a one-sided paired t-test.

    Parameters and special cases are those of `equivalence`.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN for missing scores.
    margin
        Smallest loss that matters, above 0, in the unit of the scores.
    level
        Confidence level; the test has significance level 1 - `level`.
    higher_is_better
        Whether higher scores are better.

    Raises
    ------
    InputError
        If the shapes differ, or an option is out of range.

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
        raise InputError(
            f"`margin` must be positive, got {margin}",
            fix="use the largest difference that is not important in practice",
        )
    check_share("level", level, 0.5)
    differences, left_out = paired_differences(first, second)
    n, sd = len(differences), spread(differences)
    mean = float(differences.mean()) if n else math.nan
    interval_level = 1 - 2 * (1 - level)
    statistic, p, interval = math.nan, math.nan, None
    note = "at least two topics with a score for both systems are required"
    if n > 1:
        error = sd / math.sqrt(n)
        distances = (margin + mean, margin - mean)  # to the lower and the upper margin
        if kind == "non-inferiority":
            distances = (distances[0] if higher_is_better else distances[1],)
        statistic, p = _one_sided_t(min(distances), error, n - 1)
        half = _quantile(level, n - 1) * error
        interval = (mean - half, mean + half)
        note = "" if error else "all differences are equal, so the t-test cannot estimate the uncertainty of their mean"
    shortage = insufficiency(n, "verdict")
    if n > 1 and shortage:
        note = shortage.sentence("topic").removesuffix(".")
    return Equivalence(
        kind,
        mean,
        float(margin),
        higher_is_better,
        statistic,
        p,
        interval,
        interval_level,
        level,
        p < 1 - level and shortage is None,
        n,
        left_out,
        note,
    )


def _one_sided_t(distance: float, error: float, df: int) -> tuple[float, float]:
    """Return t and P(T >= t) for a mean at this distance inside of the margin."""
    from scipy.special import stdtr

    if error == 0:
        return (math.inf, 0.0) if distance > ROUNDING else (-math.inf, 1.0)
    return distance / error, float(stdtr(df, -distance / error))


def _quantile(probability: float, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))
