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
from judged.stats.inputs import paired_differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from judged._types import Floats, Ints

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
