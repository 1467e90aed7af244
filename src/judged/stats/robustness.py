"""Whether a result rests on a few topics: each left out in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import ROUNDING, check_share, paired_differences, topics_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from judged._types import Bools, Floats, Ints
    from judged.stats.results import Difference


@dataclass(frozen=True)
class LeaveOneTopicOut:
    """A difference and its significance, with each topic left out in turn."""

    test: str  # the test that was done with all topics, as in `judged.stats.paired.TESTS`
    alpha: float
    # difference, p: of all topics: the mean of second minus first
    difference: float
    p: float
    topics: tuple[int, ...]  # the columns of the topics that have a score for both
    # differences, p_values: without each of these topics; NaN where nothing is left to test
    differences: tuple[float, ...]
    p_values: tuple[float, ...]
    # the topics (columns) without which the sign of the difference is another, or the difference is gone
    sign_rests_on: tuple[int, ...]
    # the topics without which the answer to `p <= alpha` is another, whichever way
    significance_rests_on: tuple[int, ...]
    # the least number of topics whose removal leaves no difference, or one of the other sign. None where there is none
    # to begin with, or all topics agree.
    to_reverse: int | None
    standard_error: float  # the jackknife's, of the difference. NaN for fewer than two topics.
    left_out: int  # topics without a score for both

    @property
    def sentence(self) -> str:
        """What leaving topics out shows, in plain words; topics are named by their columns."""
        return self.sentence_with([f"topic {at}" for at in range(max(self.topics, default=-1) + 1)])

    def sentence_with(self, names: Sequence[str]) -> str:
        """Say what leaving topics out shows; ``names`` are those of all columns."""
        if len(self.topics) < 2:
            return f"{topics_text(len(self.topics))}: none can be left out."
        without = dict(zip(self.topics, self.differences, strict=True))
        if self.to_reverse is None and not self.sign_rests_on and not any(self.differences):
            return "The two systems do not differ, whichever topic is left out."
        if not self.sign_rests_on:
            sign = "The sign of the difference rests on no single topic"
        elif all(without[at] for at in self.sign_rests_on):
            sign = f"Without {_any_of(self.sign_rests_on, names)} the sign of the difference flips"
        else:
            sign = f"Without {_any_of(self.sign_rests_on, names)} the difference vanishes or its sign flips"
        states = ("not significant", "significant")
        significant = self.p <= self.alpha
        if math.isnan(self.p):
            significance = "there is no p-value that could rest on anything"
        elif self.significance_rests_on:
            those = _any_of(self.significance_rests_on, names)
            significance = f"without {those} it would be {states[not significant]} (alpha {self.alpha:g})"
        else:
            significance = f"it stays {states[significant]} (alpha {self.alpha:g}) whichever topic is left out"
        reverse = (
            ""
            if self.to_reverse is None
            else f" Removing the {self.to_reverse} most favourable of the {len(self.topics)} topics would undo it."
        )
        return f"{sign}; {significance}.{reverse}"


def _any_of(columns: tuple[int, ...], names: Sequence[str]) -> str:
    """Name the first of some topics, and say how many more there are."""
    others = len(columns) - 1
    return names[columns[0]] + (f" (or any one of {others} others)" if others > 1 else " (or one other)" * others)


def leave_one_topic_out(
    first: ArrayLike,
    second: ArrayLike,
    *,
    alpha: float = 0.05,
    test: str = "t",
    resamples: int = 100_000,
    seed: int = 0,
) -> LeaveOneTopicOut:
    """Compare two systems again with each topic left out, to see whether the result rests on one.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    alpha
        The level of the test.
    test, resamples, seed
        The test, as in `judged.stats.paired.paired_test`; it is done once a topic.

    Returns
    -------
    LeaveOneTopicOut
        With no difference at all nothing rests on any topic.

    Raises
    ------
    InputError
        If the shapes do not fit, or an option makes no sense.

    Examples
    --------
    >>> found = leave_one_topic_out([0.2, 0.4, 0.5, 0.1], [0.3, 0.3, 0.4, 0.9])
    >>> found.sign_rests_on, found.to_reverse, round(found.differences[3], 4)
    ((3,), 1, -0.0333)
    """
    from judged.stats.paired import paired_test

    check_share("alpha", alpha)
    differences, left_out = paired_differences(first, second)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    topics = np.flatnonzero(~(np.isnan(a) | np.isnan(b)))
    a, b, n = a[topics], b[topics], len(topics)

    def tested(kept: Ints | Bools) -> Difference:
        return paired_test(a[kept], b[kept], test, level=1 - alpha, resamples=resamples, seed=seed)

    others = ~np.eye(n, dtype=np.bool_)
    mean = float(differences.mean()) if n else math.nan
    without = [float(differences[kept].mean()) if n > 1 else math.nan for kept in others]
    whole = tested(np.arange(n))
    p = whole.p
    p_without = [tested(kept).p if n > 1 else math.nan for kept in others]
    sign = _sign(mean, differences)
    rests = [at for at, other in enumerate(without) if n > 1 and sign and _sign(other, differences) != sign]
    changes = [at for at, other in enumerate(p_without) if n > 1 and (other <= alpha) != (p <= alpha)]
    error = math.sqrt((n - 1) / n * float(((np.array(without) - mean) ** 2).sum())) if n > 1 else math.nan
    return LeaveOneTopicOut(
        test=whole.test,
        alpha=alpha,
        difference=mean,
        p=p,
        topics=tuple(topics.tolist()),
        differences=tuple(without),
        p_values=tuple(p_without),
        sign_rests_on=tuple(topics[rests].tolist()),
        significance_rests_on=tuple(topics[changes].tolist()),
        to_reverse=_to_reverse(differences * sign) if sign else None,
        standard_error=error,
        left_out=left_out,
    )


def _sign(mean: float, differences: Floats) -> int:
    """Give the sign of a mean of these differences, 0 where it is 0 but for rounding."""
    scale = float(np.abs(differences).max(initial=0.0))
    return 0 if math.isnan(mean) or abs(mean) <= ROUNDING * scale else int(math.copysign(1, mean))


def _to_reverse(differences: Floats) -> int | None:
    """Count how many of the largest must go until the sum is not above 0; None if that takes all."""
    rest = np.cumsum(np.sort(differences))[::-1]  # the sum without the 0, 1, 2, ... largest
    gone = np.flatnonzero(rest <= ROUNDING * np.abs(differences).max())
    return int(gone[0]) if len(gone) else None
