"""Closed forms of expected scores: for measures that many use, and groups too large to try all orders.

After McSherry and Najork 2008, "Computing information retrieval performance measures efficiently in the presence of
tied scores", and in their words: a group of n tied documents, of which some are relevant, begins below a documents;
every order of the group is as likely as every other. Only the first m places of the group count, m below n where a
cutoff falls into it. That is the last group then.

Each form gives one number per topic, NaN where it does not know it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.gain import gains
from judged.scoring.uncertainty.groups import relevant_groups, relevant_members

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.types import Floats, Ints
    from judged.scoring.uncertainty.groups import Groups, TiedList


@lru_cache(maxsize=1024)
def hypergeometric(size: int, relevant: int, drawn: int) -> tuple[int, Floats]:
    """Give how likely it is to draw x relevant documents of a group: the least x, and the chances from there on.

    >>> least, chances = hypergeometric(size=4, relevant=2, drawn=3)
    >>> least, chances.tolist()
    (1, [0.5, 0.5])
    """
    least, most = max(0, relevant - (size - drawn)), min(relevant, drawn)
    ways = math.comb(size, drawn)
    chances = np.array(
        [math.comb(relevant, x) * math.comb(size - relevant, drawn - x) / ways for x in range(least, most + 1)]
    )
    chances.flags.writeable = False
    return least, chances


def _places(groups: Groups) -> tuple[Ints, Ints]:
    """List every place that counts: whose it is, and how many of its group stand above it."""
    whose = np.repeat(np.arange(len(groups.first)), groups.inside)
    return whose, np.arange(len(whose)) - np.repeat(np.cumsum(groups.inside) - groups.inside, groups.inside)


def average_precision(tied: TiedList, measure: Any) -> Floats:
    r"""Give the expected AP.

    A place below j others of its group is relevant with probability r/n. Given that, each place above it is
    relevant with probability (r-1)/(n-1), and with b relevant documents above the group

    .. math:: E = \frac{1}{R} \sum_{\text{groups}} \sum_{j < m} \frac{r}{n} \cdot
        \frac{b + 1 + j\,(r-1)/(n-1)}{a + j + 1}

    With ``norm=returned`` the divisor is how many relevant documents are found. It is open in the last group
    alone, so that group is summed over the number x of relevant documents in its m places, which has a
    hypergeometric distribution: given x, it is a group of m documents with x relevant ones.
    """
    groups, relevant, above = relevant_groups(tied, measure.rel)
    whose, upper = _places(groups)
    size, count = groups.size[whose], relevant[whose]
    rank = groups.first[whose] + upper
    expected = count / size * (above[whose] + 1 + upper * divide(count - 1, size - 1)) / rank
    known, norm = tied.judged.num_relevant(measure.rel), getattr(measure, "norm", "relevant")
    if norm != "returned":
        total = segment_sum(expected, groups.topic[whose], len(tied.judged))
        cutoff = getattr(measure, "cutoff", None)
        return divide(total, np.minimum(known, cutoff) if norm == "cutoff" and cutoff else known)
    within = groups.inside == groups.size
    total = segment_sum(expected * within[whose], groups.topic[whose], len(tied.judged))
    found = segment_sum(relevant * within, groups.topic, len(tied.judged))
    scores = divide(total, found)
    for at in np.flatnonzero(~within).tolist():
        topic, inside = int(groups.topic[at]), int(groups.inside[at])
        upper = np.arange(inside)
        first = float(((above[at] + 1) / (groups.first[at] + upper)).sum()) / inside
        second = float((upper / (groups.first[at] + upper)).sum()) / max(inside * (inside - 1), 1)
        least, chances = hypergeometric(int(groups.size[at]), int(relevant[at]), inside)
        drawn = least + np.arange(len(chances))
        sums = total[topic] + drawn * first + drawn * (drawn - 1) * second
        scores[topic] = float((chances * divide(sums, found[topic] + drawn)).sum())
    return scores


def reciprocal_rank(tied: TiedList, measure: Any) -> Floats:
    r"""Give the expected RR.

    The first group with something relevant decides. Its first relevant document stands below j others of it if
    these are all drawn from the n - r that are not relevant, and the next one is not:

    .. math:: E = \sum_{j < m} \frac{1}{a + j + 1} \cdot \frac{r}{n-j} \prod_{i < j} \frac{n - r - i}{n - i}

    ``which=last``: the last group decides in the same way, read from its last place that counts up; if none of its
    m places is relevant, the group before it does.
    """
    groups, relevant, _ = relevant_groups(tied, measure.rel)
    scores = np.zeros(len(tied.judged))
    last = measure.which == "last"
    order = range(len(groups.topic) - 1, -1, -1) if last else range(len(groups.topic))
    left = np.ones(len(tied.judged))  # the chance that no group so far had a relevant document
    for at in order:
        topic = int(groups.topic[at])
        if left[topic] == 0.0:
            continue
        size, count, inside = int(groups.size[at]), int(relevant[at]), int(groups.inside[at])
        passed = np.arange(inside)
        none = np.cumprod(np.append(1.0, np.maximum(size - count - passed, 0) / (size - passed)))
        rank = groups.first[at] + (inside - 1 - passed if last else passed)
        here = none[:-1] * np.minimum(1.0, count / (size - passed)) / rank
        scores[topic] += left[topic] * float(here.sum())
        left[topic] *= float(none[-1])
    return scores


def expected_reciprocal_rank(tied: TiedList, measure: Any) -> Floats:
    r"""Give the expected ERR.

    The probability that a user passes j documents of the group, averaged over all orders, is the mean over all
    sets of j of its documents of the product of their 1 - R: an elementary symmetric polynomial, divided by its
    number of terms, :math:`p_j = e_j / \binom{n}{j}`. A user who has passed everything above (probability A) is
    satisfied at the place below j others with probability :math:`p_j - p_{j+1}`:

    .. math:: E = \sum_{\text{groups}} A \sum_{j < m} \frac{p_j - p_{j+1}}{a + j + 1}

    The means follow from those without one document, whose 1 - R is q, as an average of positive numbers, so that
    nothing is lost: :math:`p_j^{(i)} = \frac{i-j}{i}\, p_j^{(i-1)} + \frac{j}{i}\, q\, p_{j-1}^{(i-1)}`.
    """
    passes = 1.0 - gains(tied.judged.grade, "exp2")[tied.hit] / 2.0**measure.max
    groups, scores = tied.groups, np.full(len(tied.judged), np.nan)
    begin = np.searchsorted(groups.topic, tied.open_topics)
    end = np.searchsorted(groups.topic, tied.open_topics, side="right")
    for topic, low, high in zip(tied.open_topics.tolist(), begin.tolist(), end.tolist(), strict=True):
        reads_on, total = 1.0, 0.0
        for at in range(low, high):
            first, inside = int(groups.first[at]), int(groups.inside[at])
            members = passes[groups.start[at] : groups.stop[at]]
            if groups.size[at] == 1:
                total += reads_on * (1.0 - float(members[0])) / first
                reads_on *= float(members[0])
                continue
            mean = _mean_products(members, int(groups.size[at]), inside)
            total += reads_on * float(((mean[:-1] - mean[1:]) / (first + np.arange(inside))).sum())
            reads_on *= float(members.prod())
        scores[topic] = total
    return scores


def _mean_products(factors: Floats, size: int, most: int) -> Floats:
    """Give the mean product of j of these factors, filled up with ones to a size, for j from 0 to ``most``.

    >>> means = _mean_products(np.array([0.5, 0.25]), size=3, most=3)
    >>> (means * [1, 3, 3, 1]).round(12).tolist()  # the sums over all sets of 0, 1, 2 and 3
    [1.0, 1.75, 0.875, 0.125]
    """
    mean, drawn = np.ones(most + 1), np.arange(1, most + 1)
    some = factors[factors != 1.0]
    for number, factor in enumerate(some.tolist(), size - len(some) + 1):
        share = np.minimum(drawn / number, 1.0)  # more than there are so far: no such mean is used
        mean[1:] = (1.0 - share) * mean[1:] + share * factor * mean[:-1]
    return mean


def binary_preference(tied: TiedList, measure: Any) -> Floats:
    r"""Give the expected Bpref; unknown where a depth falls into a group.

    Of the N' documents of the group that are judged not relevant, every number from 0 to N' is equally likely to
    stand above a given relevant one, and b of them stand above the group:

    .. math:: E = \frac{1}{R} \sum_{\text{groups}} \frac{r}{N' + 1} \sum_{i \le N'}
        \left(1 - \frac{\min(b + i, R)}{\min(R, N)}\right)
    """
    groups, relevant = tied.groups, relevant_members(tied, measure.rel)
    others = (tied.judged.grade[tied.hit] >= 0) & ~relevant
    known = tied.judged.num_relevant(measure.rel)
    most = np.minimum(tied.judged.sum_labels(tied.judged.label_grade >= 0) - known, known)
    so_far = np.concatenate(([0], np.cumsum(others)))
    above = so_far[groups.start] - so_far[tied.starts[groups.topic]]
    count = np.concatenate(([0], np.cumsum(relevant)))
    found, wrong = count[groups.stop] - count[groups.start], so_far[groups.stop] - so_far[groups.start]
    whose = np.repeat(np.arange(len(wrong)), wrong + 1)
    passed = np.arange(len(whose)) - np.repeat(np.cumsum(wrong + 1) - wrong - 1, wrong + 1)
    topic = groups.topic[whose]
    worth = 1.0 - divide(np.minimum(above[whose] + passed, known[topic]), most[topic])
    total = segment_sum(worth * (found / (wrong + 1))[whose], topic, len(known))
    scores = divide(total, known)
    scores[groups.topic[groups.inside < groups.size]] = np.nan
    return scores


FORMS: dict[str, Callable[[TiedList, Any], Floats]] = {
    "AP": average_precision,
    "GMAP": average_precision,
    "RR": reciprocal_rank,
    "ERR": expected_reciprocal_rank,
    "Bpref": binary_preference,
    "GMBpref": binary_preference,
}
"""The closed form of each measure that has one, by its name."""
