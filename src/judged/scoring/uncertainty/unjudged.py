"""Least and greatest score over all grades that the unjudged documents of a list could have."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import complete_judgments, find_unjudged, repeat_topics
from judged.scoring.measures.gain import gains
from judged.scoring.measures.grammar import parse
from judged.scoring.uncertainty.arrangements import (
    GradeSearch,
    add_outer_bounds,
    range_by_counts,
    range_by_enumeration,
    range_of_monotone,
)
from judged.scoring.uncertainty.ratio import ScoreRange, range_by_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

_BLOCK = 1 << 19  # returned documents and judged pairs of the topics that are processed in one block
_MAX_SCALE = 1000  # a scale with a higher grade consists of the grades in use only
LIMIT = 20_000
"""Default number of assignments of grades that are scored per topic, if no faster method applies."""


def unjudged_range(
    judged: Judged, measure: str | Measure, *, highest: float | None = None, max_orders: int = LIMIT
) -> ScoreRange:
    """Compute the least and greatest score of each topic over all grades of its unjudged documents.

    Every returned document without a judgment gets a grade from 0 to the highest; documents with a negative grade
    are judged and keep it. The measure is computed with these grades in the qrels, so that the ideal ranking and the
    number of relevant documents change, too. Grade 0 for all unjudged documents need not give the least score, nor
    the highest grade the greatest. Because no document is unjudged any more, the current score of a measure that
    treats unjudged documents specially (Bpref, Judged) may be outside of the range.

    Grades are the integers from 0, the fractions among the grades of the qrels, and the highest. If documents can
    have several labels (subtopics, assessors, users with preferences), each unjudged document gets a grade from every
    one of them that labeled a document of the topic.

    Parameters
    ----------
    judged
        Judged list.
    measure
        Measure or its name.
    highest
        Highest grade of the scale. Default: the ``max`` of the measure, or else the highest grade of the qrels, at
        least 1. If it is above 1000, the scale consists of 0, the grades of the qrels and the highest.
    max_orders
        Number of assignments of grades that are scored at most per topic, if no faster method applies to the
        measure. If there are more, the range is an outer one: no score lies outside. It can be infinite.

    Returns
    -------
    ScoreRange
        A topic that the measure leaves out (``undefined=skip``) has the range over the assignments in which it
        counts, NaN if there are none.

    Raises
    ------
    InputError
        If `highest` or `max_orders` is negative, or `highest` is infinite or NaN.
    MeasureError
        If the measure cannot score the list, or the maximum grade of the measure is below a grade.

    Examples
    --------
    The unjudged document at rank 5 may be better than all others: the ranking is perfect only while it has grade 0.

    >>> from judged import nDCG
    >>> from judged.scoring.judging import judge_list
    >>> bounds = unjudged_range(judge_list([1, 0, 0, 0, None]), nDCG(cutoff=5), highest=3)
    >>> bounds.low.round(3).tolist(), bounds.high.tolist(), bounds.kind.tolist()
    ([0.595], [1.0], ['exact'])
    """
    if max_orders < 0:
        raise InputError(
            f"`max_orders` must be 0 or more, got {max_orders}", fix="use max_orders=0 to skip the search over grades"
        )
    measure = parse(measure)
    levels = grade_levels(judged, measure, highest)
    judged, scores = _with_stored_docs(judged, measure)
    low, high, kind = scores.copy(), scores.copy(), np.full(len(judged), "exact", dtype="<U7")
    for topics in _blocks(judged):
        block = _range_of_block(repeat_topics(judged, topics), measure, levels, max_orders)
        low[topics], high[topics], kind[topics] = block.low, block.high, block.kind
    return ScoreRange(low, high, kind)


def grade_levels(judged: Judged, measure: Measure, highest: float | None = None) -> Floats:
    """Return the grades that an unjudged document may have, ascending from 0.

    >>> from judged import ERR
    >>> from judged.scoring.judging import judge_list
    >>> grade_levels(judge_list([1, 0.5, -1]), ERR(max=2)).tolist()
    [0.0, 0.5, 1.0, 2.0]
    """
    grades = judged.qrels.index.grade
    if highest is None:
        maximum, has_table = getattr(measure, "max", None), isinstance(getattr(measure, "gain", None), tuple)
        highest = maximum if isinstance(maximum, float) and not has_table else max(1.0, float(grades.max()))
    if not 0 <= highest < math.inf:
        raise InputError(f"`highest` must be a finite number, 0 or more, got {highest}", fix="use the highest grade")
    integers = np.arange(math.floor(highest) + 1.0) if highest <= _MAX_SCALE else np.zeros(1)
    used = grades[(grades >= 0) & (grades <= highest)]
    return np.unique(np.concatenate((integers, used, [highest])))


def _with_stored_docs(judged: Judged, measure: Measure) -> tuple[Judged, Floats]:
    """Score the list, and store its returned documents in it if the measure reads them or needs document ids."""
    copy = replace(judged)  # a copy without cached properties shows which of them the measure reads
    scores = measure(copy)
    needs_docs = "returned_docs" in vars(copy) or measure.properties.uses_all_labels
    return (replace(copy, stored_docs=copy.returned_docs) if needs_docs else judged), scores


def _blocks(judged: Judged) -> Iterator[Ints]:
    """Yield the topics that have unjudged documents, in blocks."""
    topics = np.flatnonzero(judged.returned > np.diff(judged.starts))
    size = judged.returned + np.bincount(judged.label_topic, minlength=len(judged))
    block = (np.cumsum(size[topics]) - size[topics]) // _BLOCK
    if len(topics):
        yield from np.split(topics, np.flatnonzero(np.diff(block)) + 1)


def _range_of_block(judged: Judged, measure: Measure, levels: Floats, limit: int) -> ScoreRange:
    """Compute the range of topics with unjudged documents, by the fastest method that applies to the measure."""
    properties = _without_judged_only(measure).properties
    if properties.uses_all_labels:
        return range_by_labels(judged, measure, _distinct_levels(measure, levels), limit)
    search = GradeSearch(complete_judgments(judged), measure, _distinct_levels(measure, levels))
    is_rising = _is_gain_rising(search, levels)
    if properties.monotone and is_rising and (properties.graded or not properties.depends_on_missing):
        return range_of_monotone(search)
    better_first = properties.better_first or properties.judged_better_first
    is_binary = len(search.levels) <= 2
    if not properties.graded and is_binary and (better_first or not _depends_on_order(measure)):
        return range_by_counts(search, bounded=properties.relative_to_ideal)
    if (ranges := range_by_ratio(search)) is not None:
        return ranges
    ranges = range_by_enumeration(search, limit, sorted_only=better_first and is_rising)
    return add_outer_bounds(search, ranges, bounded=properties.relative_to_ideal and is_rising)


def _without_judged_only(measure: Measure) -> Measure:
    # Once every document is judged, ``judged_only`` removes the same documents in all variants.
    return measure.replace(judged_only=False) if getattr(measure, "judged_only", False) else measure


def _distinct_levels(measure: Measure, levels: Floats) -> Floats:
    """Select the grades, ascending, that the measure can distinguish."""
    # A measure of binary relevance distinguishes two grades, or one if its `rel` is outside the scale. A custom measure
    # without `rel` may distinguish any grades.
    properties, rel = measure.properties, getattr(measure, "rel", None)
    if not properties.depends_on_relevance:
        return levels[:1]
    if properties.graded or rel is None:
        return levels
    return levels[[0, -1]] if levels[0] < rel <= levels[-1] else levels[:1]


def _depends_on_order(measure: Measure) -> bool:
    return measure.properties.needs_ranking or getattr(measure, "cutoff", None) is not None


def _is_gain_rising(search: GradeSearch, levels: Floats) -> bool:
    """Return whether gains never fall with the grade and are never negative; a custom table of gains may violate it."""
    table = getattr(search.measure, "gain", None)
    if not isinstance(table, tuple):
        return True
    level_gains, label_grades = gains(levels, table), search.completed.judged.label_grade
    return bool((np.diff(level_gains) >= 0).all() and (gains(label_grades, table) >= 0).all())


_ROWS = 1 << 18  # labels of the variants that are judged in one call


def range_by_labels(judged: Judged, measure: Measure, levels: Floats, limit: int) -> ScoreRange:
    """Score all grades under every aspect, for topics with at most `limit` assignments; else the declared range."""
    # The aspects are those of the topic: every subtopic, assessor or user that labeled one of its documents.
    count, properties = len(judged), measure.properties
    undefined = float(getattr(measure, "undefined", 0.0))
    low = np.full(count, np.fmin(-math.inf if properties.low is None else properties.low, undefined))
    high = np.full(count, np.fmax(math.inf if properties.high is None else properties.high, undefined))
    kind = np.full(count, "outer", dtype="<U7")
    ranks = np.split(find_unjudged(judged)[1], np.cumsum(judged.returned - np.diff(judged.starts))[:-1])
    for topic in range(count):
        labels = _labels_of(judged, topic)
        aspects = sorted(set(labels["iteration"])) or ["0"]
        cells = len(ranks[topic]) * len(aspects)
        if len(levels) > 1 and len(levels) ** cells > limit:
            continue
        scores = np.concatenate(
            [
                _label_scores(judged, measure, topic, labels, _grade_grid(ranks[topic], aspects, grades))
                for grades in _assignments(levels, cells, len(labels["doc_id"]))
            ]
        )
        low[topic], high[topic], kind[topic] = np.fmin.reduce(scores), np.fmax.reduce(scores), "exact"
    return ScoreRange(low, high, kind)


def _labels_of(judged: Judged, topic: int) -> dict[str, list[Any]]:
    labels = judged.label_aspects
    rows = np.flatnonzero(judged.label_topic[labels.owner] == topic)
    names, aspects = judged.qrels.index.row_names, judged.qrels.aspects.names
    return {
        "doc_id": [names[row] for row in judged.label_row[labels.owner[rows]].tolist()],
        "iteration": [aspects[code] for code in labels.aspect[rows].tolist()],
        "relevance": labels.grade[rows].tolist(),
    }


def _assignments(levels: Floats, cells: int, labels: int) -> Iterator[Floats]:
    """Yield all assignments of grades to cells, in blocks: (V, cells) each."""
    assignments, size = itertools.product(levels.tolist(), repeat=cells), max(1, _ROWS // (labels + cells + 1))
    while block := list(itertools.islice(assignments, size)):
        yield np.array(block).reshape(len(block), cells)


def _grade_grid(ranks: Ints, aspects: list[str], grades: Floats) -> dict[str, Any]:
    """Combine grades with the unjudged rank and the aspect of each cell."""
    return {"rank": np.repeat(ranks, len(aspects)).tolist(), "iteration": aspects * len(ranks), "grades": grades}


def _label_scores(
    judged: Judged, measure: Measure, topic: int, labels: dict[str, list[Any]], grid: dict[str, Any]
) -> Floats:
    """Judge a topic again, once for each row of grades, and score it: (V,)."""
    returned, variants = judged.returned_docs, len(grid["grades"])
    docs = returned.doc.take(np.flatnonzero(returned.topic == topic)).to_pylist()
    names = [f"{variant:09d}" for variant in range(variants)]
    listed = [*labels["doc_id"], *(docs[rank - 1] for rank in grid["rank"])]
    fixed = np.broadcast_to(np.array(labels["relevance"], dtype=np.float64), (variants, len(labels["relevance"])))
    columns = {
        "query_id": np.repeat(names, len(listed)),
        "doc_id": listed * variants,
        "iteration": [*labels["iteration"], *grid["iteration"]] * variants,
        "relevance": np.concatenate((fixed, grid["grades"]), axis=1).ravel(),
    }
    run = {
        "query_id": np.repeat(names, len(docs)),
        "doc_id": docs * variants,
        "score": np.tile(-np.arange(1.0, len(docs) + 1), variants),
    }
    rejudged = judge(Qrels(pa.table(columns)), pa.table(run))
    return measure(replace(rejudged, ranked=judged.ranked, documents=judged.documents))
