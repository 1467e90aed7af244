"""Mean, least and greatest score over all orders of documents with equal scores."""

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
from judged.scoring.uncertainty.groups import is_from_catalog, relevant_members, tied_lists
from judged.scoring.uncertainty.orders import (
    SET_MEASURES,
    TopicOrders,
    additive_gains,
    additive_means,
    all_orders,
    orders_by_relevant_count,
    rotation_mean,
    sample_orders,
    score_orders,
    score_sorted,
    sorted_orders,
)
from judged.scoring.uncertainty.ratio import ScoreRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.groups import TiedList

LIMIT = 20_000
"""Default number of distinct orders that are scored per topic, if no faster method applies."""
SAMPLES = 1_000
"""Default number of random orders of a topic with more orders than the limit."""
_MIN_SAMPLES = 2
_MAX_KINDS = 4  # kinds of documents of which all orders are tried in a search: 120 orders, with the unjudged


@dataclass(frozen=True, eq=False)
class ExpectedScores(ReadOnly):
    """Mean score of each topic over all orders of its tied documents, all orders equally likely."""

    values: Floats  # (T,): NaN for a topic that the measure leaves out
    kind: np.ndarray[Any, Any]  # (T,): `exact`, up to rounding; or `sampled`: the mean over random orders
    standard_error: Floats  # (T,): standard error of a sampled mean, else 0


@dataclass(frozen=True, eq=False)
class TiedShare(ReadOnly):
    """Share of tied documents among the judged documents of the first k ranks."""

    # (T,): share of the judged documents among the first k that have the same score as another document; 0 if no
    # document is judged there
    share: Floats
    # (T,): whether a group of equal scores that begins among the first k has documents of different grades. Documents
    # that are unjudged or have a negative grade count as grade 0.
    matters: Bools


def tied_share(judged: Judged, cutoff: int | None) -> TiedShare:
    """Compute the share of tied documents in the first k ranks, and whether their order could change a score.

    Parameters
    ----------
    judged
        Judged list.
    cutoff
        k; None for the complete ranking.

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
    highest, lowest = (ufunc.reduceat(grade, groups) if len(groups) else grade for ufunc in (np.maximum, np.minimum))
    judged_count = np.diff(np.append(groups, len(grade)))
    size = (judged.tie_last - judged.tie_first + 1)[groups]
    lowest = np.where(judged_count < size, np.minimum(lowest, 0.0), lowest)  # the others have no grade
    differ = (lowest < highest) & (size > 1)
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
) -> ExpectedScores:
    """Compute the mean score of each topic over all orders of its tied documents.

    All orders of the documents with equal scores are equally likely (McSherry and Najork 2008).

    Parameters
    ----------
    judged
        List that was judged without a depth.
    measure
        Measure or its name.
    depth
        Number of documents per topic that count; None for all.
    max_orders
        Number of distinct orders that are scored at most per topic, if no faster method applies.
    samples, seed
        Number of random orders of a topic with more orders than `max_orders`, and seed of the random generator.

    Raises
    ------
    InputError
        If the list ends within a tie group, the run has no scores but `depth` is set, or `samples` is below 2.
    MeasureError
        If the measure cannot score the list.

    Examples
    --------
    Two tied documents, one of them relevant: it has rank 1 or 2.

    >>> from judged import RR, judge
    >>> tie_expected(judge({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}), RR()).values.tolist()
    [0.75]
    """
    if samples < _MIN_SAMPLES:
        fix = f"use samples={_MIN_SAMPLES} or more: the standard error is computed from their spread"
        raise InputError(f"`samples` must be at least {_MIN_SAMPLES}, got {samples}", fix=fix)
    base, lists = tied_lists(judged, parse(measure), depth)
    values, kind, error = base.copy(), np.full(len(base), "exact", dtype="<U7"), np.zeros(len(base))
    for tied in lists:
        topics = _fill_exact_means(tied, values)
        if tied.doc is not None and tied.properties.additive:
            for topic in topics.tolist():
                values[topic] = rotation_mean(tied, topic, float(base[topic]))
            continue
        orders_by_topic = (
            all_orders(tied, topic, max_orders) or sample_orders(tied, topic, samples, seed)
            for topic in topics.tolist()
        )
        for orders, scores in score_orders(tied, orders_by_topic):
            values[orders.topic] = float((orders.weight * scores).sum())
            if not orders.exact:
                kind[orders.topic] = "sampled"
                error[orders.topic] = float(scores.std(ddof=1)) / np.sqrt(orders.count)
    return ExpectedScores(values, kind, error)


def _fill_exact_means(tied: TiedList, values: Floats) -> Ints:
    """Fill in the means that need no enumeration of orders. Return the other open topics."""
    topics, name = tied.open_topics, _catalog_name(tied)
    if not len(topics) or not _is_list_of_hits(tied):
        return topics
    if name in FORMS:
        means = FORMS[name](tied, tied.measure)[topics]
        has_form = ~np.isnan(means)
        values[topics[has_form]] = means[has_form]
        return topics[~has_form]
    if name in SET_MEASURES:
        for orders, scores in score_orders(tied, orders_by_relevant_count(tied)):
            values[orders.topic] = float((orders.weight * scores).sum())
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
) -> ScoreRange:
    """Compute the least and greatest score of each topic over all orders of its tied documents.

    Parameters
    ----------
    judged
        List that was judged without a depth.
    measure
        Measure or its name.
    depth
        Number of documents per topic that count; None for all.
    max_orders
        Number of distinct orders that are scored at most per topic, if no faster method applies.
    samples, seed
        If a topic has more orders: number of random orders that are scored besides promising ones, and seed of the
        random generator. The kind of the range is then ``sampled``.

    Raises
    ------
    InputError
        If the list ends within a tie group, or the run has no scores but `depth` is set.
    MeasureError
        If the measure cannot score the list.

    Examples
    --------
    >>> from judged import RR, judge
    >>> bounds = tie_range(judge({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}), RR())
    >>> bounds.low.tolist(), bounds.high.tolist(), bounds.kind.tolist()
    ([0.5], [1.0], ['exact'])
    """
    base, lists = tied_lists(judged, parse(measure), depth)
    low, high, kind = base.copy(), base.copy(), np.full(len(base), "exact", dtype="<U7")
    for tied in lists:
        if _fill_exact_range(tied, low, high):
            continue
        for orders, scores in score_orders(tied, _candidate_orders(tied, max_orders, samples, seed)):
            low[orders.topic] = min(float(scores.min()), low[orders.topic])
            high[orders.topic] = max(float(scores.max()), high[orders.topic])
            kind[orders.topic] = "exact" if orders.exact else "sampled"
    return ScoreRange(low, high, kind)


def _fill_exact_range(tied: TiedList, low: Floats, high: Floats) -> bool:
    """Fill in the range of a measure whose best and worst orders are known. Return whether they are."""
    topics, name, properties = tied.open_topics, _catalog_name(tied), tied.properties
    if not len(topics) or not _is_list_of_hits(tied):
        return not len(topics)
    if name in SET_MEASURES:
        for orders, scores in score_orders(tied, orders_by_relevant_count(tied)):
            low[orders.topic], high[orders.topic] = scores.min(), scores.max()
        return True
    if properties.better_first:
        grade = tied.judged.grade[tied.hit]
        sort_value = np.where(grade == 0, 1e-300, grade)  # with rel=0, better than unjudged
    elif properties.additive and name and not properties.uses_all_labels:  # the last rank may differ between assessors
        sort_value = additive_gains(tied)
    elif name in {"Bpref", "GMBpref"}:  # unjudged documents do not count: they are between the two others
        relevant = relevant_members(tied, getattr(tied.measure, "rel", 1.0))
        sort_value = np.where(relevant, 1.0, np.where(tied.judged.grade[tied.hit] >= 0, -1.0, 0.0))
    else:
        return False
    ends = np.stack([score_sorted(tied, sort_value), score_sorted(tied, -sort_value)])
    low[topics], high[topics] = ends.min(axis=0), ends.max(axis=0)
    return True


def _candidate_orders(tied: TiedList, limit: int, samples: int, seed: int) -> Iterator[TopicOrders]:
    """Yield all orders of each open topic; if there are too many, promising ones and a random sample."""
    for topic in tied.open_topics.tolist():
        orders = all_orders(tied, topic, limit)
        if orders is not None:
            yield orders
            continue
        yield sorted_orders(tied, topic, _promising_values(tied, topic))
        if samples:
            yield sample_orders(tied, topic, samples, seed)


def _promising_values(tied: TiedList, topic: int) -> Floats:
    """Return sort values that group documents by kind: in every order of the kinds if there are few, else by grade."""
    members = slice(tied.starts[topic], tied.starts[topic + 1])
    is_open = ~tied.fixed[members]
    kinds = np.unique(tied.kind[members][is_open])
    if len(kinds) <= _MAX_KINDS:
        kind = np.searchsorted(kinds, tied.kind[members])
        kind[~is_open] = 0
        orders = np.array(list(itertools.permutations(range(len(kinds) + 1))), dtype=np.float64)
        return orders[:, kind] - orders[:, -1:]  # the last kind are the unjudged
    hit = tied.hit[members]
    grade = np.where(hit >= 0, tied.judged.grade[hit], 0.0)
    return np.stack([grade, -grade])


def _is_list_of_hits(tied: TiedList) -> bool:
    """Return whether the members are the hits, and the measure sees their ranks unchanged."""
    return tied.doc is None and not getattr(tied.measure, "judged_only", False)


def _catalog_name(tied: TiedList) -> str:
    """Return the name of a measure of the catalog, which identifies its formula; empty for a custom measure."""
    return tied.measure.entry.name if is_from_catalog(tied.measure) else ""
