"""How far unjudged documents could move a score: its least and greatest value over all grades they might have."""

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
from judged.scoring.judging.unjudged import copies, opened, unjudged
from judged.scoring.measures.gain import gains
from judged.scoring.measures.grammar import parse
from judged.scoring.uncertainty.arrangements import Arranged, by_counts, by_enumeration, by_parts, ends
from judged.scoring.uncertainty.ratio import Range, by_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

_BLOCK = 1 << 19  # returned documents and judged pairs that are looked at together
_MOST_WHOLE = 1000  # a scale with more whole numbers is taken to consist of the grades in use
LIMIT = 20_000
"""How many ways to grade one topic's documents are tried, where nothing is known that needs fewer."""


def unjudged_range(
    judged: Judged, measure: str | Measure, *, highest: float | None = None, max_orders: int = LIMIT
) -> Range:
    """Give the least and the greatest score of each topic over all ways to grade its unjudged documents.

    Every returned document without a judgment gets one, a grade from 0 to the highest; documents with a negative
    grade are judged and keep it. The score is that of the measure with these grades in the qrels: the ideal and the
    number of relevant documents are made anew. All unjudged documents at 0 need not be the least score, nor all at
    the highest grade the greatest; and as the measure sees no unjudged document any more, a score that tells these
    apart (Bpref, Judged) may lie outside the range today.

    Grades are whole numbers from 0, the fractions among the grades of the qrels, and the highest. Where a document
    may have several labels (subtopics, assessors, users with preferences), each unjudged one gets a grade from every
    one of them that labelled some document of the topic.

    Parameters
    ----------
    judged
        The judged list.
    measure
        A measure or its name.
    highest
        The highest grade of the scale. Without it, the measure's own ``max``; or the highest of the qrels, at
        least 1. Above 1000 the scale is taken to consist of 0, the grades of the qrels and the highest.
    max_orders
        How many ways to grade a topic's documents are tried at most, where the measure is not known well enough to
        do with fewer. Beyond it the range is an outer one: no score lies outside. It can be infinite.

    Returns
    -------
    Range
        A topic that the measure leaves out (``undefined=skip``) has the range of the arrangements in which it
        counts, NaN if there are none.

    Raises
    ------
    InputError
        If the highest grade or the limit makes no sense.
    MeasureError
        If the measure cannot score the list, or its scale has no room for the grades.

    Examples
    --------
    The unjudged document at rank 5 may be better than all others: the ranking was perfect as long as it was not.

    >>> from judged import nDCG
    >>> from judged.scoring.judging import judge_list
    >>> found = unjudged_range(judge_list([1, 0, 0, 0, None]), nDCG(cutoff=5), highest=3)
    >>> found.low.round(3).tolist(), found.high.tolist(), found.kind.tolist()
    ([0.595], [1.0], ['exact'])
    """
    if max_orders < 0:
        raise InputError(f"the limit {max_orders} makes no sense", fix="give a whole number from 0")
    measure = parse(measure)
    levels = levels_of(judged, measure, highest)
    judged, scores = _at_hand(judged, measure)
    low, high, kind = scores.copy(), scores.copy(), np.full(len(judged), "exact", dtype="<U7")
    for topics in _blocks(judged):
        found = _range(copies(judged, topics), measure, levels, max_orders)
        low[topics], high[topics], kind[topics] = found.low, found.high, found.kind
    return Range(low, high, kind)


def levels_of(judged: Judged, measure: Measure, highest: float | None = None) -> Floats:
    """Give the grades that an unjudged document may have, rising from 0.

    >>> from judged import ERR
    >>> from judged.scoring.judging import judge_list
    >>> levels_of(judge_list([1, 0.5, -1]), ERR(max=2)).tolist()
    [0.0, 0.5, 1.0, 2.0]
    """
    known = judged.qrels.index.grade
    if highest is None:
        own, table = getattr(measure, "max", None), isinstance(getattr(measure, "gain", None), tuple)
        highest = own if isinstance(own, float) and not table else max(1.0, float(known.max()))
    if not 0 <= highest < math.inf:
        raise InputError(f"the highest grade {highest} makes no sense", fix="give a number from 0")
    whole = np.arange(math.floor(highest) + 1.0) if highest <= _MOST_WHOLE else np.zeros(1)
    used = known[(known >= 0) & (known <= highest)]
    return np.unique(np.concatenate((whole, used, [highest])))


def _at_hand(judged: Judged, measure: Measure) -> tuple[Judged, Floats]:
    """Score the list as it is; where the measure asks for every returned document, or needs names, keep them."""
    asked = replace(judged)
    scores = measure(asked)
    names = "everything" in vars(asked) or measure.properties.uses_all_labels
    return (replace(asked, shown=asked.everything) if names else judged), scores


def _blocks(judged: Judged) -> Iterator[Ints]:
    """Give the topics that have unjudged documents, a block at a time."""
    topics = np.flatnonzero(judged.returned > np.diff(judged.starts))
    size = judged.returned + np.bincount(judged.label_topic, minlength=len(judged))
    block = (np.cumsum(size[topics]) - size[topics]) // _BLOCK
    if len(topics):
        yield from np.split(topics, np.flatnonzero(np.diff(block)) + 1)


def _range(judged: Judged, measure: Measure, levels: Floats, limit: int) -> Range:
    """Give the range of a block of topics, each with something unjudged, by the first way that is known to do."""
    known = _all_judged(measure).properties
    if known.uses_all_labels:
        return by_labels(judged, measure, _states(measure, levels), limit)
    asked = Arranged(opened(judged), measure, _states(measure, levels))
    rising = _gains_rise(asked, levels)
    if known.monotone and rising and (known.graded or not known.depends_on_missing):
        return ends(asked)
    better_first = known.better_first or known.judged_better_first
    two = len(asked.states) <= 2  # relevant or not
    if not known.graded and two and (better_first or not _ordered(measure)):
        return by_counts(asked, bounded=known.relative_to_ideal)
    if (found := by_ratio(asked)) is not None:
        return found
    found = by_enumeration(asked, limit, few=better_first and rising)
    return by_parts(asked, found, bounded=known.relative_to_ideal and rising)


def _all_judged(measure: Measure) -> Measure:
    """Leave out ``judged_only``: once every document is judged, it leaves out the same ones of all arrangements."""
    return measure.replace(judged_only=False) if getattr(measure, "judged_only", False) else measure


def _states(measure: Measure, levels: Floats) -> Floats:
    """Leave of the grades, rising, those that differ to the measure."""
    # One that asks for relevance alone knows two, or one if its level is not among them. Without a level to be seen, as
    # in a measure of one's own, any grade may make the difference.
    known, rel = measure.properties, getattr(measure, "rel", None)
    if not known.depends_on_relevance:
        return levels[:1]
    if known.graded or rel is None:
        return levels
    return levels[[0, -1]] if levels[0] < rel <= levels[-1] else levels[:1]


def _ordered(measure: Measure) -> bool:
    return measure.properties.needs_ranking or getattr(measure, "cutoff", None) is not None


def _gains_rise(asked: Arranged, levels: Floats) -> bool:
    """Whether higher grades gain more, and none less than nothing: a table of gains need not be so."""
    table = getattr(asked.measure, "gain", None)
    if not isinstance(table, tuple):
        return True
    worth = gains(levels, table)
    return bool((np.diff(worth) >= 0).all() and (gains(asked.open.full.label_grade, table) >= 0).all())


_ROWS = 1 << 18  # labels of the variants that are judged together


def by_labels(judged: Judged, measure: Measure, states: Floats, limit: int) -> Range:
    """Try all grades under every aspect for each topic that has at most so many ways; else what is declared."""
    # The aspects are those of the topic: every subtopic, assessor or user that labelled some document of it.
    count, known = len(judged), measure.properties
    undefined = float(getattr(measure, "undefined", 0.0))
    low = np.full(count, np.fmin(-math.inf if known.low is None else known.low, undefined))
    high = np.full(count, np.fmax(math.inf if known.high is None else known.high, undefined))
    kind = np.full(count, "outer", dtype="<U7")
    ranks = np.split(unjudged(judged)[1], np.cumsum(judged.returned - np.diff(judged.starts))[:-1])
    for topic in range(count):
        labels = _labels(judged, topic)
        aspects = sorted(set(labels["iteration"])) or ["0"]
        cells = len(ranks[topic]) * len(aspects)
        if len(states) > 1 and len(states) ** cells > limit:
            continue
        scores = np.concatenate(
            [
                _scores(judged, measure, topic, labels, _grid(ranks[topic], aspects, some))
                for some in _ways(states, cells, len(labels["doc_id"]))
            ]
        )
        low[topic], high[topic], kind[topic] = np.fmin.reduce(scores), np.fmax.reduce(scores), "exact"
    return Range(low, high, kind)


def _labels(judged: Judged, topic: int) -> dict[str, list[Any]]:
    """Give the labels of one topic."""
    only = judged.label_aspects
    kept = np.flatnonzero(judged.label_topic[only.of] == topic)
    names, aspects = judged.qrels.index.row_names, judged.qrels.aspects.names
    return {
        "doc_id": [names[row] for row in judged.label_row[only.of[kept]].tolist()],
        "iteration": [aspects[code] for code in only.aspect[kept].tolist()],
        "relevance": only.grade[kept].tolist(),
    }


def _ways(states: Floats, cells: int, labels: int) -> Any:
    """Give all ways to fill the cells, some at a time: (V, cells) each."""
    ways, size = itertools.product(states.tolist(), repeat=cells), max(1, _ROWS // (labels + cells + 1))
    while some := list(itertools.islice(ways, size)):
        yield np.array(some).reshape(len(some), cells)


def _grid(ranks: Ints, aspects: list[str], grades: Floats) -> dict[str, Any]:
    """Lay out grades by unjudged rank and aspect."""
    return {"rank": np.repeat(ranks, len(aspects)).tolist(), "iteration": aspects * len(ranks), "grades": grades}


def _scores(judged: Judged, measure: Measure, topic: int, labels: dict[str, list[Any]], grid: dict[str, Any]) -> Floats:
    """Judge a topic anew, once for each row of grades, and score it: (V,)."""
    every, variants = judged.everything, len(grid["grades"])
    docs = every.doc.take(np.flatnonzero(every.topic == topic)).to_pylist()
    names = [f"{at:09d}" for at in range(variants)]
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
    made = judge(Qrels(pa.table(columns)), pa.table(run))
    return measure(replace(made, ranked=judged.ranked, documents=judged.documents))
