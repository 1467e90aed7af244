"""Unjudged documents for measures that look at every label: subtopics, assessors, users with preferences."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data import Qrels
from judged.judging import judge
from judged.judging.grading import unjudged
from judged.uncertainty.range import Range

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.judging import Judged
    from judged.measures import Measure

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
