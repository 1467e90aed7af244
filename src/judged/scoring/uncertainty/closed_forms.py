"""Closed forms of expected scores, for common measures and for groups that are too large to enumerate all orders.

Source: McSherry and Najork 2008, "Computing information retrieval performance measures efficiently in the presence of
tied scores". Notation: a group of n tied documents, r of them relevant, begins below a documents; all orders of the
group are equally likely. Only the first m positions of the group count; m < n if a cutoff falls within it, which is
then the last group.

Each form returns one number per topic, NaN if it does not apply.
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
    from judged.scoring.uncertainty.groups import TiedList, TieGroups


@lru_cache(maxsize=1024)
def hypergeometric(size: int, relevant: int, sample_size: int) -> tuple[int, Floats]:
    """Return the distribution of the number x of relevant documents in a sample of a group: least x, probabilities.

    >>> least, probabilities = hypergeometric(size=4, relevant=2, sample_size=3)
    >>> least, probabilities.tolist()
    (1, [0.5, 0.5])
    """
    least, most = max(0, relevant - (size - sample_size)), min(relevant, sample_size)
    ways = math.comb(size, sample_size)
    probabilities = np.array(
        [math.comb(relevant, x) * math.comb(size - relevant, sample_size - x) / ways for x in range(least, most + 1)]
    )
    probabilities.flags.writeable = False  # the cache returns the same array again
    return least, probabilities


def _counted_positions(groups: TieGroups) -> tuple[Ints, Ints]:
    """List all positions that count: the index of the group, and the number of documents of the group above it."""
    group = np.repeat(np.arange(len(groups.first)), groups.inside)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(groups.inside) - groups.inside, groups.inside)


def average_precision(tied: TiedList, measure: Any) -> Floats:
    r"""Compute the expected AP.

    A position below j others of its group is relevant with probability r/n. Given that, each position above it is
    relevant with probability (r-1)/(n-1). With b relevant documents above the group:

    .. math:: E = \frac{1}{R} \sum_{\text{groups}} \sum_{j < m} \frac{r}{n} \cdot
        \frac{b + 1 + j\,(r-1)/(n-1)}{a + j + 1}

    With ``norm=returned`` the divisor is the number of returned relevant documents. It varies in the last group only,
    so that group is summed over the number x of relevant documents in its m positions, which has a
    hypergeometric distribution: given x, it is a group of m documents with x relevant ones.
    """
    groups, relevant, above = relevant_groups(tied, measure.rel)
    group, upper = _counted_positions(groups)
    size, count = groups.size[group], relevant[group]
    rank = groups.first[group] + upper
    expected = count / size * (above[group] + 1 + upper * divide(count - 1, size - 1)) / rank
    num_relevant, norm = tied.judged.num_relevant(measure.rel), getattr(measure, "norm", "relevant")
    if norm != "returned":
        total = segment_sum(expected, groups.topic[group], len(tied.judged))
        cutoff = getattr(measure, "cutoff", None)
        return divide(total, np.minimum(num_relevant, cutoff) if norm == "cutoff" and cutoff else num_relevant)
    is_complete = groups.inside == groups.size
    total = segment_sum(expected * is_complete[group], groups.topic[group], len(tied.judged))
    returned = segment_sum(relevant * is_complete, groups.topic, len(tied.judged))
    scores = divide(total, returned)
    for last in np.flatnonzero(~is_complete).tolist():
        topic, inside = int(groups.topic[last]), int(groups.inside[last])
        upper = np.arange(inside)
        # The expected sum is a quadratic function of x: `linear` x + `quadratic` x (x - 1).
        linear = float(((above[last] + 1) / (groups.first[last] + upper)).sum()) / inside
        quadratic = float((upper / (groups.first[last] + upper)).sum()) / max(inside * (inside - 1), 1)
        least, probabilities = hypergeometric(int(groups.size[last]), int(relevant[last]), inside)
        x = least + np.arange(len(probabilities))
        sums = total[topic] + x * linear + x * (x - 1) * quadratic
        scores[topic] = float((probabilities * divide(sums, returned[topic] + x)).sum())
    return scores


def reciprocal_rank(tied: TiedList, measure: Any) -> Floats:
    r"""Compute the expected RR.

    The first group with a relevant document decides. Its first relevant document is below j others of the group if
    these are drawn from the n - r that are not relevant, and the next one is not:

    .. math:: E = \sum_{j < m} \frac{1}{a + j + 1} \cdot \frac{r}{n-j} \prod_{i < j} \frac{n - r - i}{n - i}

    ``which=last``: the last group decides in the same way, in reverse from its last position that counts; if no
    document in its m positions is relevant, the group before it decides.
    """
    groups, relevant, _ = relevant_groups(tied, measure.rel)
    scores = np.zeros(len(tied.judged))
    last = measure.which == "last"
    order = range(len(groups.topic) - 1, -1, -1) if last else range(len(groups.topic))
    p_none = np.ones(len(tied.judged))  # probability that no group so far had a relevant document
    for group in order:
        topic = int(groups.topic[group])
        if p_none[topic] == 0.0:
            continue
        size, count, inside = int(groups.size[group]), int(relevant[group]), int(groups.inside[group])
        passed = np.arange(inside)
        # probability that the first 0, 1, ... documents of the group are not relevant
        p_passed = np.cumprod(np.append(1.0, np.maximum(size - count - passed, 0) / (size - passed)))
        rank = groups.first[group] + (inside - 1 - passed if last else passed)
        terms = p_passed[:-1] * np.minimum(1.0, count / (size - passed)) / rank
        scores[topic] += p_none[topic] * float(terms.sum())
        p_none[topic] *= float(p_passed[-1])
    return scores


def expected_reciprocal_rank(tied: TiedList, measure: Any) -> Floats:
    r"""Compute the expected ERR.

    The probability that a user passes j documents of the group, averaged over all orders, is the mean over all
    sets of j of its documents of the product of their 1 - R. This is an elementary symmetric polynomial, divided by
    its number of terms, :math:`p_j = e_j / \binom{n}{j}`. A user who has passed all documents above (probability A)
    is satisfied at the position below j others with probability :math:`p_j - p_{j+1}`:

    .. math:: E = \sum_{\text{groups}} A \sum_{j < m} \frac{p_j - p_{j+1}}{a + j + 1}

    The means are computed from those without one document, whose 1 - R is q, as an average of positive numbers, so that
    no digits cancel: :math:`p_j^{(i)} = \frac{i-j}{i}\, p_j^{(i-1)} + \frac{j}{i}\, q\, p_{j-1}^{(i-1)}`.
    """
    p_continue = 1.0 - gains(tied.judged.grade, "exp2")[tied.hit] / 2.0**measure.max
    groups, scores = tied.groups, np.full(len(tied.judged), np.nan)
    begin = np.searchsorted(groups.topic, tied.open_topics)
    end = np.searchsorted(groups.topic, tied.open_topics, side="right")
    for topic, low, high in zip(tied.open_topics.tolist(), begin.tolist(), end.tolist(), strict=True):
        p_reached, total = 1.0, 0.0
        for group in range(low, high):
            first, inside = int(groups.first[group]), int(groups.inside[group])
            members = p_continue[groups.start[group] : groups.stop[group]]
            if groups.size[group] == 1:
                total += p_reached * (1.0 - float(members[0])) / first
                p_reached *= float(members[0])
                continue
            mean = _mean_products(members, int(groups.size[group]), inside)
            total += p_reached * float(((mean[:-1] - mean[1:]) / (first + np.arange(inside))).sum())
            p_reached *= float(members.prod())
        scores[topic] = total
    return scores


def _mean_products(factors: Floats, size: int, most: int) -> Floats:
    """Return the mean product of j of these factors, padded with ones to `size`, for j from 0 to ``most``.

    >>> means = _mean_products(np.array([0.5, 0.25]), size=3, most=3)
    >>> (means * [1, 3, 3, 1]).round(12).tolist()  # sums over all sets of size 0, 1, 2 and 3
    [1.0, 1.75, 0.875, 0.125]
    """
    mean, counts = np.ones(most + 1), np.arange(1, most + 1)
    proper_factors = factors[factors != 1.0]
    for number, factor in enumerate(proper_factors.tolist(), size - len(proper_factors) + 1):
        share = np.minimum(counts / number, 1.0)  # counts above `number` have no mean yet; it is not used
        mean[1:] = (1.0 - share) * mean[1:] + share * factor * mean[:-1]
    return mean


def binary_preference(tied: TiedList, measure: Any) -> Floats:
    r"""Compute the expected Bpref; NaN if a depth falls within a group.

    Of the N' documents of the group that are judged not relevant, any number from 0 to N' is equally likely to be
    above a given relevant one, and b of them are above the group:

    .. math:: E = \frac{1}{R} \sum_{\text{groups}} \frac{r}{N' + 1} \sum_{i \le N'}
        \left(1 - \frac{\min(b + i, R)}{\min(R, N)}\right)
    """
    groups, relevant = tied.groups, relevant_members(tied, measure.rel)
    nonrelevant = (tied.judged.grade[tied.hit] >= 0) & ~relevant
    num_relevant = tied.judged.num_relevant(measure.rel)
    num_nonrelevant = tied.judged.sum_labels(tied.judged.label_grade >= 0) - num_relevant
    bound = np.minimum(num_nonrelevant, num_relevant)
    running_nonrelevant = np.concatenate(([0], np.cumsum(nonrelevant)))
    running_relevant = np.concatenate(([0], np.cumsum(relevant)))
    above = running_nonrelevant[groups.start] - running_nonrelevant[tied.starts[groups.topic]]
    group_relevant = running_relevant[groups.stop] - running_relevant[groups.start]
    group_nonrelevant = running_nonrelevant[groups.stop] - running_nonrelevant[groups.start]
    terms = group_nonrelevant + 1
    group = np.repeat(np.arange(len(terms)), terms)
    passed = np.arange(len(group)) - np.repeat(np.cumsum(terms) - terms, terms)
    topic = groups.topic[group]
    preference = 1.0 - divide(np.minimum(above[group] + passed, num_relevant[topic]), bound[topic])
    total = segment_sum(preference * (group_relevant / terms)[group], topic, len(num_relevant))
    scores = divide(total, num_relevant)
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
"""Closed form of each measure that has one, by name."""
