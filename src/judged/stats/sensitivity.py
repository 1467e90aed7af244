"""Sensitivity of a verdict about a mean difference to few topics, in the sample or missing from it.

A test of a mean assumes that the sampled topics represent all topics. A rare kind of topic with large differences
violates this in two ways. If none is in the sample, no statistic can detect it: `missed_share` and
`reversing_difference` compute how many and how large such topics would have to be. If some are, their share of all
topics is uncertain: the verdict is sensitive if a share within its confidence bounds would reverse it.
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
"""Results with fewer topics mention how many topics the sample may miss; larger samples miss at most 3% of topics."""

# The constants below were chosen on simulated differences and tested on others (docs/calibration.md).
_MAX_SHARE = 0.25  # largest share of topics that are "few"
_GAPS = 8.0  # outlying topics are separated from the others by this many mean deviations of these ...
_TYPICAL = 5.0  # ... and by this many median differences
_NEAR_TIE = 0.1  # times the root mean square difference: smaller differences are ignored
_MAX_DIFFERING = 0.45  # share of differing topics up to which any large opposite difference is outlying
_LARGE = 0.5  # times the median size of the differences that are not near-ties
_MAX_NAMES = 5  # topics in a sentence
_SHARE_LEVEL = 0.975  # of the confidence bounds of the share of few topics


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a verdict about a mean difference to few topics.

    Parameters
    ----------
    bounded_p
        p-value of the test that is valid for all distributions within the measure's bounds; NaN without bounds.
    bounded_significant
        Whether that test is significant too.
    few_topics
        Topics (columns) whose uncertain share of all topics could reverse the verdict. Empty if there are none, or if
        the bounded test is significant.
    missed_share
        Share of all topics that the sample may miss completely (95% bound).
    reversing_difference
        Mean difference on such a share that would move the mean to the tested limit. NaN if the measure's bounds
        exclude it.
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
        """Whether few topics could reverse the verdict."""
        return bool(self.few_topics)

    @property
    def may_miss(self) -> bool:
        """Whether topics that the sample may miss could reverse the verdict."""
        small = self.n < MISSED_BELOW and not self.bounded_significant
        return small and not math.isnan(self.reversing_difference)


def sensitivity_sentences(result: Sensitivity | None, topics: Sequence[str]) -> Iterator[str]:
    """Yield the sentences on few and on missing topics, given the names of `few_topics`."""
    if result is not None and result.sensitive:
        yield sensitive_sentence(result, topics)
    if result is not None and result.may_miss:
        yield missing_topics_sentence(result)


def sensitive_sentence(result: Sensitivity, topics: Sequence[str]) -> str:
    """Return the sentence on the few topics that a verdict is sensitive to, given the names of `few_topics`.

    >>> old, new = [0.5] * 48, [0.53, 0.55] * 23 + [0.54, 0.0]
    >>> sensitive_sentence(sensitivity(old, new), ["t48"])[:78]
    'Sensitive to a few topics (t48): the result may not hold, because it is uncert'
    """
    names = ", ".join([*topics[:_MAX_NAMES], *["..."] * (len(topics) > _MAX_NAMES)])
    bounded_text = ""
    if not math.isnan(result.bounded_p):
        bounded_text = f" The bounded test does not confirm the result (p {p_text(result.bounded_p, None)})."
    return (
        f"Sensitive to a few topics ({names}): the result may not hold, because it is uncertain how common such"
        " topics are among all topics. Some shares of such topics within the 95% CI change the result."
        f"{bounded_text}"
    )


def missing_topics_sentence(result: Sensitivity) -> str:
    """Return the sentence on the topics that a sample may have missed, and that could reverse a verdict.

    >>> missing_topics_sentence(sensitivity([0.5] * 50, [0.52, 0.56] * 25, max_difference=1.0))[-77:]
    'A mean difference below -0.65 on the missing topics would reverse the result.'
    """
    size = decimal(result.reversing_difference, 2, "+")
    return (
        f"Up to {result.missed_share:.1%} of all topics (95% upper bound) may be of a kind that is missing from these"
        f" {result.n} topics. A mean difference {'below' if result.reversing_difference < 0 else 'above'} {size} on the"
        " missing topics would reverse the result."
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
    """Compute how sensitive the verdict that the mean difference is above, or below, a limit is to few topics.

    Parameters
    ----------
    first, second
        (T,) scores of two systems; NaN for missing scores.
    alpha
        Error rate of the verdict, two-sided.
    limit
        Mean difference that was tested.
    max_difference
        Largest possible difference of two scores, by the definition of the measure. None: unbounded.
    seed
        Of the bounded test.

    Examples
    --------
    >>> old, new = [0.5] * 48, [0.53, 0.55] * 23 + [0.54, 0.0]
    >>> result = sensitivity(old, new, max_difference=1.0)
    >>> result.sensitive, result.few_topics, round(result.missed_share, 3)
    (True, (47,), 0.061)
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    columns = np.flatnonzero(~(np.isnan(a) | np.isnan(b)))
    differences, _ = paired_differences(a, b)
    n, mean = len(differences), float(differences.mean())
    p = math.nan
    if max_difference is not None and math.isfinite(max_difference) and abs(limit) <= max_difference:
        p = bounded_p(differences, max_difference, null=limit, seed=seed)
    reversing = reversing_difference(mean, n, limit)
    if max_difference is not None and abs(reversing) > max_difference:
        reversing = math.nan
    side = 1.0 if mean >= limit else -1.0
    is_significant = p <= alpha * (1 + 1e-12)
    columns_of_few = () if is_significant else tuple(columns[few_topics(side * (differences - limit), alpha)].tolist())
    return Sensitivity(p, is_significant, columns_of_few, missed_share(n), reversing, n)


def missed_share(n: int, level: float = 0.95) -> float:
    """Return the largest share of all topics that a sample of n may miss completely: 1 - (1 - level)^(1/n).

    >>> round(missed_share(10), 3), round(missed_share(50), 3), round(missed_share(100), 3)
    (0.259, 0.058, 0.03)
    """
    return -math.expm1(math.log1p(-level) / n)


def reversing_difference(mean: float, n: int, limit: float = 0.0, level: float = 0.95) -> float:
    """Return the mean difference on the missed share of topics that brings the mean over all topics to a limit.

    The observed mean is that of the other topics, so that (1 - share) * mean + share * x = limit.

    >>> round(reversing_difference(0.05, 50), 3)  # -0.05 * (1 - 0.0582) / 0.0582
    -0.81
    """
    share = missed_share(n, level)
    return (limit - (1 - share) * mean) / share


def few_topics(differences: Floats, alpha: float = 0.05) -> Ints:
    """Return the few topics (columns) whose uncertain share could reverse a mean difference above 0, or none.

    Parameters
    ----------
    differences
        (n,) differences whose mean is above 0.
    alpha
        Error rate of the verdict, two-sided.
    """
    # First candidates: outlying topics with much larger differences than the others. If they support the verdict, they
    # may be rarer than in the sample; if they oppose it, more frequent. Second: if most topics tie, there are no
    # typical differences to compare with, so all large differences against the verdict are candidates.
    n = len(differences)
    from_center = differences - np.median(differences)
    order = np.argsort(np.abs(from_center), kind="stable")
    for n_outliers in _outlier_counts(np.abs(from_center)[order], float(abs(np.median(differences)))):
        outliers = order[n - n_outliers :]
        for side in (1, -1):
            group = outliers[side * from_center[outliers] > 0]
            if len(group) and _reverses(differences, group, side, alpha):
                return np.sort(group)
    for group in _opposing_groups(differences):
        if _reverses(differences, group, -1, alpha):
            return np.sort(group)
    return np.empty(0, dtype=np.int64)


def _outlier_counts(distances: Floats, median_difference: float) -> list[int]:
    """Return the numbers of largest distances that are separated from all smaller ones; `distances` ascending."""
    n = len(distances)
    max_outliers = math.floor(_MAX_SHARE * n + 1e-9)
    min_gap = max(
        _GAPS * float(distances[: n - max_outliers].mean()), _TYPICAL * median_difference, 1e-9 * float(distances[-1])
    )
    gaps = distances[1:] - distances[:-1]
    return [
        n_outliers
        for n_outliers in range(1, max_outliers + 1)
        if gaps[n - n_outliers - 1] > 0 and gaps[n - n_outliers - 1] >= min_gap
    ]


def _opposing_groups(differences: Floats) -> list[Ints]:
    """Return the 1, 2, ... largest differences below 0, if few topics differ."""
    n, sizes = len(differences), np.abs(differences)
    is_differing = sizes > _NEAR_TIE * math.sqrt(float((differences**2).mean()))
    if not 0 < np.count_nonzero(is_differing) <= _MAX_DIFFERING * n:
        return []
    opposing = np.flatnonzero(-differences >= _LARGE * np.median(sizes[is_differing]))
    largest = opposing[np.argsort(differences[opposing], kind="stable")]
    return [largest[:size] for size in range(1, min(len(largest), math.floor(_MAX_SHARE * n + 1e-9)) + 1)]


def _reverses(differences: Floats, group: Ints, side: int, alpha: float) -> bool:
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
    """Difference of means and p-value without each topic.

    Parameters
    ----------
    alpha
        Significance level of the test.
    difference, p
        Over all topics: mean of second minus first, and its decisive p-value.
    topics
        (n,) columns of the topics with both scores.
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
        """Columns of the topics without which the test was repeated."""
        return tuple(topic for topic, p in zip(self.topics, self.p_values, strict=True) if not math.isnan(p))

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Describe what depends on single topics; `names` are those of all columns."""
        if len(self.topics) < 2:
            return f"{topics_text(len(self.topics))}, so the test cannot be repeated without one topic."
        if not any(self.differences):
            return "The mean difference is 0, regardless of which topic is removed."
        names = names or [f"topic {column}" for column in range(max(self.topics) + 1)]
        return " ".join(filter(None, (self._about_sign(names), self._about_significance(names))))

    def _about_sign(self, names: Sequence[str]) -> str:
        if not self.sign_topics:
            return "The sign of the difference does not depend on any single topic."
        difference_without = dict(zip(self.topics, self.differences, strict=True))
        change = (
            "changes its sign"
            if all(difference_without[topic] for topic in self.sign_topics)
            else "is 0 or changes its sign"
        )
        return f"Without {_any_of(self.sign_topics, names)}, the difference {change}."

    def _about_significance(self, names: Sequence[str]) -> str:
        if math.isnan(self.p) or insufficiency(len(self.topics), "verdict"):
            return ""
        verdicts = ("not significant", "significant")
        if not self.significance_topics:
            verdict = f"{verdicts[self.significant]} (alpha {self.alpha:g})"
            text = f"The difference is {verdict} regardless of which topic is removed."
        else:
            topics = _any_of(self.significance_topics, names)
            text = f"Without {topics}, the difference would be {verdicts[not self.significant]} (alpha {self.alpha:g})."
        if self.significant and self.min_removals is not None:
            count = topics_text(self.min_removals)
            text += (
                f" Removing the {count} with the largest differences in the direction of the mean would reverse the"
                " sign of the mean difference."
            )
        return text


def _any_of(columns: tuple[int, ...], names: Sequence[str]) -> str:
    """Format the first of some topics, and the number of others.

    >>> _any_of((1,), "abc"), _any_of((0, 2), "abc"), _any_of((0, 1, 2), "abc")
    ('b', 'a (or without 1 other topic)', 'a (or without any one of 2 other topics)')
    """
    others = len(columns) - 1
    more = {0: "", 1: " (or without 1 other topic)"}.get(others, f" (or without any one of {others} other topics)")
    return names[columns[0]] + more


def leave_one_topic_out(
    first: ArrayLike, second: ArrayLike, p_value: Callable[[Bools], float], *, alpha: float = 0.05, max_tests: int = 10
) -> LeaveOneTopicOut:
    """Compare two systems again without each topic, by the same test.

    Parameters
    ----------
    first, second
        (T,) scores by topic; NaN for missing scores.
    p_value
        The test: maps a mask (T,) of the remaining topics to their decisive p-value, corrected like that of all
        topics. NaN if there is none.
    alpha
        Significance level.
    max_tests
        Maximum number of repeated tests: without the topics whose removal moves Student's t farthest toward the other
        verdict. Testing stops after three topics in a row that do not change the verdict.

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
    >>> result = leave_one_topic_out(first, second, lambda mask: paired_test(first[mask], second[mask], "t").p)
    >>> result.sign_topics, result.min_removals, round(result.differences[3], 4)
    ((3,), 1, -0.0333)
    """
    check_share("alpha", alpha)
    differences, left_out = paired_differences(first, second)
    in_both = ~(np.isnan(np.asarray(first, dtype=np.float64)) | np.isnan(np.asarray(second, dtype=np.float64)))
    topics, n = np.flatnonzero(in_both), len(differences)
    mean = float(differences.mean()) if n else math.nan
    difference_without = (differences.sum() - differences) / (n - 1) if n > 1 else np.full(n, np.nan)
    sign = _sign(mean, differences)
    sign_topics = [i for i in range(n) if n > 1 and sign and _sign(float(difference_without[i]), differences) != sign]
    p = p_value(in_both)
    p_values, changed = np.full(n, np.nan), list[int]()
    unchanged = 0
    for i in _by_influence(differences, p <= alpha)[:max_tests] if n > 1 and not math.isnan(p) else ():
        mask = in_both.copy()
        mask[topics[i]] = False
        p_values[i] = p_value(mask)
        if (p_values[i] <= alpha) != (p <= alpha):
            changed.append(i)
            unchanged = 0
        elif (unchanged := unchanged + 1) == 3:
            break
    error = math.sqrt((n - 1) / n * float(((difference_without - mean) ** 2).sum())) if n > 1 else math.nan
    return LeaveOneTopicOut(
        alpha=alpha,
        difference=mean,
        p=p,
        topics=tuple(topics.tolist()),
        differences=tuple(difference_without.tolist()),
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
    # |t| increases with (sum)^2 / (sum of squares) for every n
    ratio = np.divide(total**2, squares, out=np.full(n, np.inf), where=squares > 0)
    return np.argsort(ratio if significant else -ratio, kind="stable").tolist()


def _sign(mean: float, differences: Floats) -> int:
    """Return the sign of a mean of these differences; 0 if it is within rounding of 0."""
    scale = float(np.abs(differences).max(initial=0.0))
    return 0 if math.isnan(mean) or abs(mean) <= ROUNDING * scale else int(math.copysign(1, mean))


def _min_removals(differences: Floats) -> int | None:
    """Return how many of the largest differences must be removed until the sum is not above 0; None if all."""
    remaining_sum = np.cumsum(np.sort(differences))[::-1]  # sum without the 0, 1, 2, ... largest
    removals = np.flatnonzero(remaining_sum <= ROUNDING * np.abs(differences).max())
    return int(removals[0]) if len(removals) else None
