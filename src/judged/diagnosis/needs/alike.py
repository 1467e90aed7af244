"""How alike the rankings are that a run gives to several wordings of one need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.judging.dense import all_returned
from judged.judging.policies import Ranking
from judged.judging.segments import segment_starts
from judged.stats.rbo import overlap_at, rbo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints
    from judged.data import Run
    from judged.judging import Precision, TiePolicy

_MOST_PAIRS = 300  # of one need; of more, as many are taken at even distances


def alike(
    run: Run,
    groups: Sequence[Sequence[str]],
    *,
    depth: int = 10,
    p: float = 0.9,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> tuple[Floats, Floats]:
    """Give the mean overlap, and the mean rank-biased overlap, of the rankings of every two wordings of a need.

    >>> from judged.data import Run
    >>> run = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"b": 2.0, "a": 1.0}, "3": {"a": 2.0, "c": 1.0}})
    >>> overlap, _ = alike(run, [["1", "2", "3"]], depth=2)
    >>> round(float(overlap[0]), 3)  # 1 and 2 share both, the others one of two
    0.667
    """
    # Returns overlap, rbo: (N,): NaN for a need with fewer than two wordings that returned something.
    query_ids = tuple(sorted({query for group in groups for query in group}))
    place = {query: at for at, query in enumerate(query_ids)}
    shown = all_returned(run, query_ids, Ranking(ties, depth, precision))
    docs = shown.doc.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    starts = segment_starts(shown.topic, len(query_ids))
    lists = [docs[starts[at] : starts[at + 1]] for at in range(len(query_ids))]
    pairs = [_of_need([lists[place[query]] for query in group], depth, p) for group in groups]
    overlaps, rbos = (np.array(column) for column in zip(*pairs, strict=True)) if pairs else (np.zeros(0), np.zeros(0))
    return overlaps, rbos


def _of_need(lists: Sequence[Ints], depth: int, p: float) -> tuple[float, float]:
    there = [docs for docs in lists if len(docs)]
    first, second = np.triu_indices(len(there), 1)
    if not len(first):
        return math.nan, math.nan
    step = np.unique(np.linspace(0, len(first) - 1, min(len(first), _MOST_PAIRS)).round().astype(np.int64))
    found = [_two(there[first[at]], there[second[at]], depth, p) for at in step.tolist()]
    return float(np.mean([one for one, _ in found])), float(np.mean([two for _, two in found]))


def _two(one: Ints, other: Ints, depth: int, p: float) -> tuple[float, float]:
    union = np.unique(np.concatenate((one, other)))
    ranks = np.zeros((2, len(union)), dtype=np.int64)
    for row, docs in enumerate((one, other)):
        ranks[row, np.searchsorted(union, docs)] = np.arange(1, len(docs) + 1)
    return overlap_at(ranks[0], ranks[1], depth), rbo(ranks[0], ranks[1], p).value
