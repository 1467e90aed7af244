"""Tied documents: the mean, the least and the greatest score over all orders of documents with equal scores."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.types import ReadOnly
from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.grammar import parse
from judged.scoring.uncertainty.closed_forms import FORMS
from judged.scoring.uncertainty.groups import is_ours, relevant_members, tied_lists
from judged.scoring.uncertainty.orders import (
    COUNTED,
    Orders,
    additive_means,
    additive_worth,
    all_orders,
    counted_orders,
    rotation_means,
    sampled_orders,
    scores_in_order,
    scores_of_orders,
    sorted_orders,
)
from judged.scoring.uncertainty.ratio import Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.groups import TiedList

LIMIT = 20_000
"""So many distinct orders of a topic are tried one by one where there is no shorter way."""
SAMPLES = 1_000
"""So many orders of a topic are drawn where there are more than the limit."""
_LEAST_SAMPLES = 2
_MOST_KINDS = 4  # whose orders are all tried in a search: 120 with the unjudged


@dataclass(frozen=True, eq=False)
class Expected(ReadOnly):
    """The mean score of each topic over all orders of its tied documents, each as likely as every other."""

    values: Floats  # (T,): NaN for a topic that the measure leaves out
    kind: np.ndarray[Any, Any]  # (T,): `exact`, but for rounding; or `sampled`: the mean over orders drawn at random
    standard_error: Floats  # (T,): that of a sampled mean, else 0


@dataclass(frozen=True, eq=False)
class TiedShare(ReadOnly):
    """How much of what is judged in the first k ranks is tied."""

    # (T,): which share of the judged documents among the first k has the same score as another document; 0 where none
    # is judged there
    share: Floats
    # (T,): whether one of the groups of equal scores that begin among the first k has documents of different grades. A
    # document that is unjudged, or has a negative grade, counts as one of grade 0.
    matters: Bools


def tied_share(judged: Judged, cutoff: int | None) -> TiedShare:
    """Find how much of the first k ranks is tied, and whether that could change a number.

    Parameters
    ----------
    judged
        The judged list.
    cutoff
        k; None for the whole ranking.

    Examples
    --------
    >>> from judged import judge
    >>> qrels = {"q": {"a": 1, "b": 0, "c": 1}}
    >>> tied = tied_share(judge(qrels, {"q": {"c": 3.0, "a": 2.0, "b": 2.0}}), 2)
    >>> tied.share.tolist(), tied.matters.tolist()
    ([0.5], [True])
    """
    tied, within = judged.tie_last > judged.tie_first, judged.within(cutoff)
    share = divide(judged.sum(tied & within), judged.sum(within))
    groups = np.flatnonzero((np.diff(judged.topic, prepend=-1) != 0) | (np.diff(judged.tie_first, prepend=-1) != 0))
    grade = np.maximum(judged.grade, 0.0)
    most, least = (how.reduceat(grade, groups) if len(groups) else grade for how in (np.maximum, np.minimum))
    known = np.diff(np.append(groups, len(grade)))
    size = (judged.tie_last - judged.tie_first + 1)[groups]
    differ = (np.where(known < size, np.minimum(least, 0.0), least) < most) & (size > 1)
    if cutoff is not None:
        differ &= judged.tie_first[groups] <= cutoff
    return TiedShare(share, segment_sum(differ, judged.topic[groups], len(judged)) > 0)


def tie_expected(
    judged: Judged,
    measure: str | Measure,
    *,
    depth: int | None = None,
    max_orders: int = LIMIT,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Expected:
    """Compute the mean score of each topic over all orders of its tied documents.

    Every order of the documents that share a score is as likely as every other (McSherry and Najork 2008).

    Parameters
    ----------
    judged
        The judged list, judged without a depth.
    measure
        A measure or its name.
    depth
        How many documents of each topic count; None for all.
    max_orders
        Where no shorter way is known: how many distinct orders of a topic may be tried one by one.
    samples, seed
        How many orders are drawn where there are more than that, and where chance begins.

    Raises
    ------
    InputError
        If the list was cut within a tie group, a depth is given for a run without scores, or samples are too few.
    MeasureError
        If the measure cannot score the list.

    Examples
    --------
    Two tied documents, one of them relevant: its rank is 1 or 2.

    >>> from judged import RR, judge
    >>> tie_expected(judge({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}), RR()).values.tolist()
    [0.75]
    """
    if samples < _LEAST_SAMPLES:
        fix = f"give {_LEAST_SAMPLES} or more: their spread is the standard error"
        raise InputError(f"a mean of {samples} orders says nothing", fix=fix)
    base, lists = tied_lists(judged, parse(measure), depth)
    values, kind, error = base.copy(), np.full(len(base), "exact", dtype="<U7"), np.zeros(len(base))
    for tied in lists:
        rest = _exact_means(tied, values)
        if tied.doc is not None and tied.properties.additive:
            for topic in rest.tolist():
                values[topic] = rotation_means(tied, topic, float(base[topic]))
            continue
        orders = (all_orders(tied, t, max_orders) or sampled_orders(tied, t, samples, seed) for t in rest.tolist())
        for one, scores in scores_of_orders(tied, orders):
            values[one.topic] = float((one.weight * scores).sum())
            if not one.exact:
                kind[one.topic] = "sampled"
                error[one.topic] = float(scores.std(ddof=1)) / np.sqrt(one.count)
    return Expected(values, kind, error)


def _exact_means(tied: TiedList, values: Floats) -> Ints:
    """Fill in the means that need no list of orders, and give the topics that are left."""
    topics, name = tied.open_topics, _name(tied)
    if not len(topics) or not _is_plain(tied):
        return topics
    if name in FORMS:
        known = FORMS[name](tied, tied.measure)[topics]
        found = ~np.isnan(known)
        values[topics[found]] = known[found]
        return topics[~found]
    if name in COUNTED:
        for one, scores in scores_of_orders(tied, counted_orders(tied)):
            values[one.topic] = float((one.weight * scores).sum())
        return topics[:0]
    if tied.properties.additive:
        values[topics] = additive_means(tied)
        return topics[:0]
    return topics


def tie_range(
    judged: Judged,
    measure: str | Measure,
    *,
    depth: int | None = None,
    max_orders: int = LIMIT,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Range:
    """Find the least and the greatest score of each topic over all orders of its tied documents.

    Parameters
    ----------
    judged
        The judged list, judged without a depth.
    measure
        A measure or its name.
    depth
        How many documents of each topic count; None for all.
    max_orders
        Where no shorter way is known: how many distinct orders of a topic may be tried one by one.
    samples, seed
        How many orders are drawn where there are more than that, beside those that promise much, and where chance
        begins. The range is then called ``sampled``.

    Raises
    ------
    InputError
        If the list was cut within a tie group, or a depth is given for a run without scores.
    MeasureError
        If the measure cannot score the list.

    Examples
    --------
    >>> from judged import RR, judge
    >>> found = tie_range(judge({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}), RR())
    >>> found.low.tolist(), found.high.tolist(), found.kind.tolist()
    ([0.5], [1.0], ['exact'])
    """
    base, lists = tied_lists(judged, parse(measure), depth)
    low, high, kind = base.copy(), base.copy(), np.full(len(base), "exact", dtype="<U7")
    for tied in lists:
        if _exact_range(tied, low, high):
            continue
        for one, scores in scores_of_orders(tied, _tried(tied, max_orders, samples, seed)):
            low[one.topic] = min(float(scores.min()), low[one.topic])
            high[one.topic] = max(float(scores.max()), high[one.topic])
            kind[one.topic] = "exact" if one.exact else "sampled"
    return Range(low, high, kind)


def _exact_range(tied: TiedList, low: Floats, high: Floats) -> bool:
    """Fill in the least and the greatest scores where it is known which orders have them; tell whether it is."""
    topics, name, properties = tied.open_topics, _name(tied), tied.properties
    if not len(topics) or not _is_plain(tied):
        return not len(topics)
    if name in COUNTED:
        for one, scores in scores_of_orders(tied, counted_orders(tied)):
            low[one.topic], high[one.topic] = scores.min(), scores.max()
        return True
    if properties.better_first:
        grade = tied.judged.grade[tied.hit]
        worth = np.where(grade == 0, 1e-300, grade)  # with rel=0, better than unjudged
    elif properties.additive and name and not properties.uses_all_labels:  # assessors may each have another last rank
        worth = additive_worth(tied)
    elif name in {"Bpref", "GMBpref"}:  # unjudged documents are neither relevant nor known not to be
        relevant = relevant_members(tied, getattr(tied.measure, "rel", 1.0))
        worth = np.where(relevant, 1.0, np.where(tied.judged.grade[tied.hit] >= 0, -1.0, 0.0))
    else:
        return False
    ends = np.stack([scores_in_order(tied, worth), scores_in_order(tied, -worth)])
    low[topics], high[topics] = ends.min(axis=0), ends.max(axis=0)
    return True


def _tried(tied: TiedList, limit: int, samples: int, seed: int) -> Iterator[Orders]:
    """Give all orders of each open topic, or else those that promise much and some drawn at random."""
    for topic in tied.open_topics.tolist():
        every = all_orders(tied, topic, limit)
        if every is not None:
            yield every
            continue
        yield sorted_orders(tied, topic, _promising(tied, topic))
        if samples:
            yield sampled_orders(tied, topic, samples, seed)


def _promising(tied: TiedList, topic: int) -> Floats:
    """Give values that put like documents together, in every order of their kinds where these are few."""
    mine = slice(tied.starts[topic], tied.starts[topic + 1])
    moving = ~tied.fixed[mine]
    kinds = np.unique(tied.alike[mine][moving])
    if len(kinds) <= _MOST_KINDS:
        kind = np.searchsorted(kinds, tied.alike[mine])
        kind[~moving] = 0
        orders = np.array(list(itertools.permutations(range(len(kinds) + 1))), dtype=np.float64)
        return orders[:, kind] - orders[:, -1:]  # the last kind are the unjudged
    hit = tied.hit[mine]
    grade = np.where(hit >= 0, tied.judged.grade[hit], 0.0)
    return np.stack([grade, -grade])


def _is_plain(tied: TiedList) -> bool:
    """Tell whether the hits alone are the list, and stand at the ranks that the measure sees."""
    return tied.doc is None and not getattr(tied.measure, "judged_only", False)


def _name(tied: TiedList) -> str:
    """Give the name of a measure of the catalogue, which says what its formula is."""
    return tied.measure.entry.name if is_ours(tied.measure) else ""
