"""Whether a difference, or its significance, depends on single topics: each topic is left out in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import ROUNDING, check_share, paired_differences, topics_text
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from judged._types import Bools, Floats


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
