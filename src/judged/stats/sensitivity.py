"""Whether a verdict about a mean difference rests on a few topics, in the sample or missed by it.

A test of a mean assumes that the topics at hand are like all others. A rare kind of topic with large differences breaks
this in two ways. If the sample has none of them, no statistic can see it: `missed_share` and `reversing_difference` say
what would have to be missed. If it has some, their share of all topics is uncertain: the verdict is sensitive if a
share that is within its confidence bound would undo it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.results.decimals import decimal, p_text
from judged.stats.bounded import bounded_p
from judged.stats.inputs import ROUNDING, check_share, paired_differences, topics_text
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints


MISSED_BELOW = 100
"""Sample sizes below this state what may be missed: from here on at most 3% of all topics."""

# The constants below were chosen on simulated differences (docs/calibration.md), and tried on others.
_MAX_SHARE = 0.25  # a larger part of the topics is not a few
_GAPS = 8.0  # few topics are apart from the others by as many mean deviations of these ...
_TYPICAL = 5.0  # ... and by as many typical (median) differences
_NEAR_TIE = 0.1  # of the root mean square difference: smaller differences move nothing
_MAX_MOVED = 0.45  # part of the topics that differ, up to which any large opposite difference counts as apart
_LARGE = 0.5  # of the median size of the differences that are no near-ties
_NAMED = 5  # topics in a sentence
_SHARE_LEVEL = 0.975  # of the confidence bounds of the share of such topics


@dataclass(frozen=True)
class Sensitivity:
    """How far a verdict about a mean difference rests on a few topics.

    Parameters
    ----------
    bounded_p
        p-value of the test that holds for every distribution within the measure's bounds; NaN where these are unknown.
    bounded_significant
        Whether that test shows the same.
    few_topics
        The topics (columns) whose uncertain share of all topics could undo the verdict. Empty: none, or the bounded
        test shows the same.
    missed_share
        Share of all topics that the sample may have missed altogether (95% bound).
    reversing_difference
        Mean difference on a share as large that would bring the mean to the limit that was tested. NaN where the
        measure's bounds allow none so large.
    n
        Number of topics.
    """

    bounded_p: float
    bounded_significant: bool
    few_topics: tuple[int, ...]
    missed_share: float
    reversing_difference: float
    n: int

    @property
    def sensitive(self) -> bool:
        """Whether the verdict is sensitive to a few topics."""
        return bool(self.few_topics)

    @property
    def may_miss(self) -> bool:
        """Whether a share of topics that the sample may have missed could reverse the verdict."""
        small = self.n < MISSED_BELOW and not self.bounded_significant
        return small and not math.isnan(self.reversing_difference)


def doubts_of(found: Sensitivity | None, topics: Sequence[str]) -> Iterator[str]:
    """Yield the sentences on what a verdict rests on, and may have missed, given the names of `few_topics`."""
    if found is not None and found.sensitive:
        yield sensitive_sentence(found, topics)
    if found is not None and found.may_miss:
        yield missed_sentence(found)


def sensitive_sentence(found: Sensitivity, topics: Sequence[str]) -> str:
    """Return the sentence on the few topics that a verdict is sensitive to, given the names of `few_topics`.

    >>> old, new = [0.5] * 48, [0.53, 0.55] * 23 + [0.54, 0.0]
    >>> sensitive_sentence(sensitivity(old, new), ["t48"])
    'Sensitive to a few topics (t48): within the 95% interval of their share of all topics, this may not hold.'
    """
    named = ", ".join([*topics[:_NAMED], *["..."] * (len(topics) > _NAMED)])
    unshown = ""
    if not math.isnan(found.bounded_p):
        unshown = f" The bounded test does not show it (p {p_text(found.bounded_p, None)})."
    return (
        f"Sensitive to a few topics ({named}): within the 95% interval of their share of all topics, this may not"
        f" hold.{unshown}"
    )


def missed_sentence(found: Sensitivity) -> str:
    """Return the sentence on the topics that a sample may have missed, and that could reverse a verdict.

    >>> missed_sentence(sensitivity([0.5] * 50, [0.52, 0.56] * 25, max_difference=1.0))[-53:]
    'a mean difference below -0.65 there would reverse it.'
    """
    size = decimal(found.reversing_difference, 2, "+")
    return (
        f"Up to {found.missed_share:.1%} of all topics may be of a kind that is not among these {found.n}: a mean"
        f" difference {'below' if found.reversing_difference < 0 else 'above'} {size} there would reverse it."
    )


def sensitivity(
    first: ArrayLike,
    second: ArrayLike,
    *,
    alpha: float = 0.05,
    limit: float = 0.0,
    max_difference: float | None = None,
    seed: int = 0,
) -> Sensitivity:
    """Return how far the verdict that the mean difference is above, or below, a limit rests on a few topics.

    Parameters
    ----------
    first, second
        (T,) scores of two systems; NaN where a topic has none.
    alpha
        Error rate of the verdict, two-sided.
    limit
        Mean difference that was tested.
    max_difference
        Largest possible difference of two scores, by the definition of the measure. None: there is no bound.
    seed
        Of the bounded test.

    Examples
    --------
    >>> old, new = [0.5] * 48, [0.53, 0.55] * 23 + [0.54, 0.0]
    >>> found = sensitivity(old, new, max_difference=1.0)
    >>> found.sensitive, found.few_topics, round(found.missed_share, 3)
    (True, (47,), 0.061)
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    columns = np.flatnonzero(~(np.isnan(a) | np.isnan(b)))
    differences, _ = paired_differences(a, b)
    n, mean = len(differences), float(differences.mean())
    p = math.nan
    if max_difference is not None and math.isfinite(max_difference) and abs(limit) <= max_difference:
        p = bounded_p(differences, max_difference, null=limit, seed=seed)
    missed = reversing_difference(mean, n, limit)
    if max_difference is not None and abs(missed) > max_difference:
        missed = math.nan
    side = 1.0 if mean >= limit else -1.0
    shown = p <= alpha * (1 + 1e-12)
    few = () if shown else tuple(columns[few_topics(side * (differences - limit), alpha)].tolist())
    return Sensitivity(p, shown, few, missed_share(n), missed, n)


def missed_share(n: int, level: float = 0.95) -> float:
    """Return the largest share of all topics that a sample of n may have missed altogether: 1 - (1 - level)^(1/n).

    >>> round(missed_share(10), 3), round(missed_share(50), 3), round(missed_share(100), 3)
    (0.259, 0.058, 0.03)
    """
    return -math.expm1(math.log1p(-level) / n)


def reversing_difference(mean: float, n: int, limit: float = 0.0, level: float = 0.95) -> float:
    """Return the mean difference on the missed share of topics that brings the mean over all topics to a limit.

    The topics at hand stand for the others, so that (1 - share) * mean + share * x = limit.

    >>> round(reversing_difference(0.05, 50), 3)  # -0.05 * (1 - 0.0582) / 0.0582
    -0.81
    """
    share = missed_share(n, level)
    return (limit - (1 - share) * mean) / share


def few_topics(differences: Floats, alpha: float = 0.05) -> Ints:
    """Return the few topics (columns) whose uncertain share could undo that the mean difference is above 0, or none.

    Parameters
    ----------
    differences
        (n,) differences whose mean is above 0.
    alpha
        Error rate of the verdict, two-sided.
    """
    # Two kinds of topics are tried. First, those apart from the bulk, whose differences are many times as large: if
    # they speak for the verdict, they may be rarer than they seem, and if they oppose it, more frequent. Second, where
    # most topics tie, there is no bulk to be apart from: then all large differences against the verdict are tried.
    n = len(differences)
    from_center = differences - np.median(differences)
    order = np.argsort(np.abs(from_center), kind="stable")
    for few in _apart(np.abs(from_center)[order], float(abs(np.median(differences)))):
        outside = order[n - few :]
        for side in (1, -1):
            group = outside[side * from_center[outside] > 0]
            if len(group) and _undoes(differences, group, side, alpha):
                return np.sort(group)
    for group in _opposing(differences):
        if _undoes(differences, group, -1, alpha):
            return np.sort(group)
    return np.empty(0, dtype=np.int64)


def _apart(rising: Floats, typical: float) -> list[int]:
    """Return the numbers of largest distances from the center that are apart from all smaller ones; `rising` sorted."""
    n = len(rising)
    most = math.floor(_MAX_SHARE * n + 1e-9)
    least = max(_GAPS * float(rising[: n - most].mean()), _TYPICAL * typical, 1e-9 * float(rising[-1]))
    gaps = rising[1:] - rising[:-1]
    return [few for few in range(1, most + 1) if gaps[n - few - 1] > 0 and gaps[n - few - 1] >= least]


def _opposing(differences: Floats) -> list[Ints]:
    """Return the 1, 2, ... largest differences below 0, where few topics differ at all."""
    n, sizes = len(differences), np.abs(differences)
    moved = sizes > _NEAR_TIE * math.sqrt(float((differences**2).mean()))
    if not 0 < np.count_nonzero(moved) <= _MAX_MOVED * n:
        return []
    against = np.flatnonzero(-differences >= _LARGE * np.median(sizes[moved]))
    largest = against[np.argsort(differences[against], kind="stable")]
    return [largest[:few] for few in range(1, min(len(largest), math.floor(_MAX_SHARE * n + 1e-9)) + 1)]


def _undoes(differences: Floats, group: Ints, side: int, alpha: float) -> bool:
    """Return whether the mean is not significantly above 0 if the group has the share at its confidence bound."""
    from scipy.special import betaincinv, stdtrit

    n, count = len(differences), len(group)
    opposes = side < 0
    share = betaincinv(count + opposes, n - count + (not opposes), _SHARE_LEVEL if opposes else 1 - _SHARE_LEVEL)
    weights = np.full(n, (1 - share) / (n - count))
    weights[group] = share / count
    mean = float(weights @ differences)
    variance = float(weights @ (differences - mean) ** 2) * n / (n - 1)
    return mean <= float(stdtrit(n - 1, 1 - alpha / 2)) * math.sqrt(variance / n)


@dataclass(frozen=True)
class LeaveOneTopicOut:
    """A difference of means and its p-value without single topics.

    Parameters
    ----------
    alpha
        Significance level of the test.
    difference, p
        Over all topics: mean of second minus first, and the p-value that decides.
    topics
        (n,) columns of the topics that have a score for both systems.
    differences
        (n,) mean difference without each of these topics; NaN if no other topic is left.
    p_values
        (n,) p-value without each of these topics, from the same test and correction; NaN for topics that were not
        tested, see `leave_one_topic_out`.
    sign_topics
        Columns of the topics without which the difference is 0 or has the other sign.
    significance_topics
        Columns of the tested topics without which the verdict ``p <= alpha`` changes, the most influential first.
    min_removals
        Smallest number of topics whose removal leaves a difference of 0 or of the other sign. None if the difference
        is 0, or if all topics have the same sign.
    standard_error
        Jackknife standard error of the difference; NaN for fewer than two topics.
    left_out
        Number of topics without a score for both systems.
    """

    alpha: float
    difference: float
    p: float
    topics: tuple[int, ...]
    differences: tuple[float, ...]
    p_values: tuple[float, ...]
    sign_topics: tuple[int, ...]
    significance_topics: tuple[int, ...]
    min_removals: int | None
    standard_error: float
    left_out: int

    @property
    def significant(self) -> bool:
        """Whether the difference over all topics is significant."""
        return self.p <= self.alpha and insufficiency(len(self.topics), "verdict") is None

    @property
    def tested(self) -> tuple[int, ...]:
        """Columns of the topics that were left out of the test."""
        return tuple(topic for topic, p in zip(self.topics, self.p_values, strict=True) if not math.isnan(p))

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Describe what depends on single topics; `names` are those of all columns."""
        if len(self.topics) < 2:
            return f"{topics_text(len(self.topics))}: none can be left out."
        if not any(self.differences):
            return "The two systems do not differ, whichever topic is left out."
        names = names or [f"topic {column}" for column in range(max(self.topics) + 1)]
        return " ".join(filter(None, (self._about_sign(names), self._about_significance(names))))

    def _about_sign(self, names: Sequence[str]) -> str:
        if not self.sign_topics:
            return "The sign of the difference does not depend on any single topic."
        without = dict(zip(self.topics, self.differences, strict=True))
        change = "changes its sign" if all(without[topic] for topic in self.sign_topics) else "is 0 or changes its sign"
        return f"Without {_any_of(self.sign_topics, names)} the difference {change}."

    def _about_significance(self, names: Sequence[str]) -> str:
        if math.isnan(self.p) or insufficiency(len(self.topics), "verdict"):
            return ""
        verdicts = ("not significant", "significant")
        if not self.significance_topics:
            text = f"It is {verdicts[self.significant]} (alpha {self.alpha:g}) whichever topic is left out."
        else:
            topics = _any_of(self.significance_topics, names)
            text = f"Without {topics} it would be {verdicts[not self.significant]} (alpha {self.alpha:g})."
        if self.significant and self.min_removals is not None:
            count = topics_text(self.min_removals)
            text += f" Removing the {count} with the largest differences in its favor would reverse its sign."
        return text


def _any_of(columns: tuple[int, ...], names: Sequence[str]) -> str:
    """Format the first of some topics, and how many others there are.

    >>> _any_of((1,), "abc"), _any_of((0, 2), "abc"), _any_of((0, 1, 2), "abc")
    ('b', 'a (or 1 other topic)', 'a (or any of 2 other topics)')
    """
    others = len(columns) - 1
    more = {0: "", 1: " (or 1 other topic)"}.get(others, f" (or any of {others} other topics)")
    return names[columns[0]] + more


def leave_one_topic_out(
    first: ArrayLike,
    second: ArrayLike,
    p_value: Callable[[Bools], float],
    *,
    alpha: float = 0.05,
    max_tests: int = 10,
) -> LeaveOneTopicOut:
    """Compare two systems again without single topics, by the test that gave the verdict.

    Parameters
    ----------
    first, second
        (T,) scores by topic; NaN where the topic has none.
    p_value
        The test: takes a mask (T,) of the topics that stay, and returns the p-value that decides over them, corrected
        as that of all topics is. NaN if there is none.
    alpha
        Significance level.
    max_tests
        The test is repeated without this many topics at most: those without which Student's t statistic moves farthest
        toward the other verdict. It stops after three topics in a row that do not change the verdict.

    Returns
    -------
    LeaveOneTopicOut

    Raises
    ------
    InputError
        If the shapes differ, or alpha is not between 0 and 1.

    Examples
    --------
    >>> from judged.stats import paired_test
    >>> first, second = np.array([0.2, 0.4, 0.5, 0.1]), np.array([0.3, 0.3, 0.4, 0.9])
    >>> result = leave_one_topic_out(first, second, lambda kept: paired_test(first[kept], second[kept], "t").p)
    >>> result.sign_topics, result.min_removals, round(result.differences[3], 4)
    ((3,), 1, -0.0333)
    """
    check_share("alpha", alpha)
    differences, left_out = paired_differences(first, second)
    known = ~(np.isnan(np.asarray(first, dtype=np.float64)) | np.isnan(np.asarray(second, dtype=np.float64)))
    topics, n = np.flatnonzero(known), len(differences)
    mean = float(differences.mean()) if n else math.nan
    without = (differences.sum() - differences) / (n - 1) if n > 1 else np.full(n, np.nan)
    sign = _sign(mean, differences)
    sign_topics = [i for i in range(n) if n > 1 and sign and _sign(float(without[i]), differences) != sign]
    p = p_value(known)
    p_values, changed = np.full(n, np.nan), list[int]()
    unchanged = 0
    for i in _by_influence(differences, p <= alpha)[:max_tests] if n > 1 and not math.isnan(p) else ():
        kept = known.copy()
        kept[topics[i]] = False
        p_values[i] = p_value(kept)
        if (p_values[i] <= alpha) != (p <= alpha):
            changed.append(i)
            unchanged = 0
        elif (unchanged := unchanged + 1) == 3:
            break
    error = math.sqrt((n - 1) / n * float(((without - mean) ** 2).sum())) if n > 1 else math.nan
    return LeaveOneTopicOut(
        alpha=alpha,
        difference=mean,
        p=p,
        topics=tuple(topics.tolist()),
        differences=tuple(without.tolist()),
        p_values=tuple(p_values.tolist()),
        sign_topics=tuple(topics[sign_topics].tolist()),
        significance_topics=tuple(topics[changed].tolist()),
        min_removals=_min_removals(differences * sign) if sign else None,
        standard_error=error,
        left_out=left_out,
    )


def _by_influence(differences: Floats, significant: bool) -> list[int]:
    """Order topics by how far Student's t moves toward the other verdict if they are left out."""
    n = len(differences)
    total, squares = differences.sum() - differences, (differences**2).sum() - differences**2
    # |t| grows with (sum)^2 / (sum of squares), whatever n is
    ratio = np.divide(total**2, squares, out=np.full(n, np.inf), where=squares > 0)
    return np.argsort(ratio if significant else -ratio, kind="stable").tolist()


def _sign(mean: float, differences: Floats) -> int:
    """Return the sign of a mean of these differences; 0 if it is 0 but for rounding."""
    scale = float(np.abs(differences).max(initial=0.0))
    return 0 if math.isnan(mean) or abs(mean) <= ROUNDING * scale else int(math.copysign(1, mean))


def _min_removals(differences: Floats) -> int | None:
    """Count how many of the largest must go until the sum is not above 0; None if that takes all."""
    rest = np.cumsum(np.sort(differences))[::-1]  # the sum without the 0, 1, 2, ... largest
    gone = np.flatnonzero(rest <= ROUNDING * np.abs(differences).max())
    return int(gone[0]) if len(gone) else None
