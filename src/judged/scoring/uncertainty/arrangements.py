"""Assignments of grades to the unjudged documents of a list, and the extreme scores among them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.judged import gather_segments
from judged.scoring.uncertainty.ratio import ScoreRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.unjudged import CompletedList
    from judged.scoring.measures.base import Measure

_BLOCK = 1 << 16  # hits and judged pairs of the variants scored in one call: their columns fit into the CPU cache
_PIECES = 4  # pieces per cell in the search over counts
_MAX_ASSIGNMENTS = 1 << 12  # assignments of grades that are listed at a time


@dataclass(frozen=True, eq=False)
class GradeSearch:
    """Search space: a list with open documents, the grades that they may have, and the measure that scores it."""

    completed: CompletedList
    measure: Measure
    levels: Floats  # (S,): ascending; only grades that the measure can distinguish

    @property
    def topics(self) -> Ints:
        """All topics: (T,)."""
        return np.arange(len(self.completed.judged))

    @property
    def undefined(self) -> Bools:
        """Whether no document of a topic is relevant if every open document has the lowest grade: (T,)."""
        return ~np.asarray(self.measure.is_defined(self.completed.judged), dtype=np.bool_)

    def uniform_scores(self, level: int, label_level: int | None = None, topics: Ints | None = None) -> Floats:
        """Score topics with one grade for all open documents, optionally with another one in the judgments: (V,)."""
        topics = self.topics if topics is None else topics

        def make_grades(first: int, stop: int) -> tuple[Floats, Floats | None]:
            count = int(self.completed.counts[topics[first:stop]].sum())
            label_grades = None if label_level is None else np.full(count, self.levels[label_level])
            return np.full(count, self.levels[level]), label_grades

        return self.score_variants(topics, make_grades)

    def score_variants(self, topics: Ints, make_grades: Callable[[int, int], tuple[Floats, Floats | None]]) -> Floats:
        """Score variants of topics in blocks; `make_grades` returns the grades of variants ``first`` to ``stop``."""
        judged, scores = self.completed.judged, np.empty(len(topics))
        labels = np.bincount(judged.label_topic, minlength=len(judged))
        size = (np.diff(judged.starts) + labels)[topics]
        edges = np.flatnonzero(np.diff((np.cumsum(size) - size) // _BLOCK, prepend=-1)).tolist()
        for first, stop in itertools.pairwise([*edges, len(topics)]):
            variants = self.completed.with_grades(topics[first:stop], *make_grades(first, stop))
            scores[first:stop] = self.measure(variants)
        return scores

    def scores_by_count(
        self, topics: Ints, counts: Ints, *, from_last: bool = False, label_counts: Ints | None = None
    ) -> Floats:
        """Score variants in which a number of open documents, the first or the last, has at least each grade: (V,)."""
        # `counts`: (V, S - 1): for each level but the lowest, the number of documents with this grade or a higher one.
        # `label_counts`: (V, S - 1): the same for the grades in the judgments, if these differ.

        def make_grades(first: int, stop: int) -> tuple[Floats, Floats | None]:
            size = self.completed.counts[topics[first:stop]]
            position = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            if from_last:
                position = np.repeat(size - 1, size) - position
            grades = self._grades_at(position, np.repeat(counts[first:stop], size, axis=0))
            if label_counts is None:
                return grades, None
            return grades, self._grades_at(position, np.repeat(label_counts[first:stop], size, axis=0))

        return self.score_variants(topics, make_grades)

    def _grades_at(self, position: Ints, counts: Ints) -> Floats:
        """Return the grade at each position, if the first documents have at least each grade: (N,)."""
        if len(self.levels) == 2:
            return np.where(position < counts[:, 0], self.levels[1], self.levels[0])
        return self.levels[(position[:, np.newaxis] < counts).sum(axis=1)]


def range_of_monotone(search: GradeSearch) -> ScoreRange:
    """Return the range of a measure that never decreases with a grade: all grades lowest, all grades highest."""
    # A topic without a relevant document is left out, or scores `undefined`, which may be more than the least score of
    # a topic with one. The least scores among variants with a relevant document have exactly one.
    low, high = search.uniform_scores(0), search.uniform_scores(-1)
    exact = np.full(len(low), "exact", dtype="<U7")
    if getattr(search.measure, "undefined", 0.0) == 0.0 or not (rows := np.flatnonzero(search.undefined)).size:
        return ScoreRange(low, high, exact)
    single = np.full(len(rows), np.nan)
    for level in range(1, len(search.levels)):
        single = np.where(np.isnan(single), _least_score_with_one(search, rows, level), single)
    low[rows], high[rows] = _extremes(np.stack((low[rows], high[rows], single)))
    return ScoreRange(low, high, exact)


def _least_score_with_one(search: GradeSearch, topics: Ints, level: int) -> Floats:
    """Return the least score with one open document of this grade; NaN if that is not a relevant one: (T',)."""
    completed = search.completed
    first_raised = np.zeros(int(completed.counts[topics].sum()))
    first = np.concatenate(([0], np.cumsum(completed.counts[topics])))
    first_raised[first[:-1]] = search.levels[level]
    variants = completed.with_grades(topics, first_raised)
    is_relevant = np.asarray(search.measure.is_defined(variants), dtype=np.bool_)
    variant_topics = np.repeat(topics, completed.counts[topics])
    raised = np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))  # the open document with the grade

    def make_grades(begin: int, stop: int) -> tuple[Floats, None]:
        position, variant = gather_segments(completed.starts, variant_topics[begin:stop])
        offset = position - completed.starts[variant_topics[begin:stop]][variant]
        return np.where(offset == raised[begin:stop][variant], search.levels[level], search.levels[0]), None

    scores = search.score_variants(variant_topics, make_grades)
    return np.where(is_relevant, np.minimum.reduceat(scores, first[:-1]), np.nan)


def range_by_counts(search: GradeSearch, *, bounded: bool) -> ScoreRange:
    """Return the range of a measure of binary relevance that is best with relevant documents first."""
    # Of all assignments with c relevant documents, the extremes are the first c and the last c. With `bounded`, the
    # score rises with the grades of the ranking and falls with those of the judgments. So b relevant documents in the
    # ranking and a in the judgments (a < b) bound the scores of all counts between, and most counts need not be scored.
    exact = np.full(len(search.topics), "exact", dtype="<U7")
    lowest = search.uniform_scores(0)
    if len(search.levels) == 1:
        return ScoreRange(lowest, lowest.copy(), exact)
    start = _extremes(np.stack((lowest, search.uniform_scores(-1))))
    low = 0.0 - _search_counts(search, -start[0], -1.0, bounded=bounded)
    return ScoreRange(low, _search_counts(search, start[1], 1.0, bounded=bounded), exact)


def _search_counts(search: GradeSearch, best: Floats, sign: float, *, bounded: bool) -> Floats:
    """Find the greatest score (sign 1) with the first c relevant, or minus the least (-1) with the last c: (T,)."""
    # Branch and bound. A cell is an interval of counts whose ends are scored. It is split into pieces, whose new ends
    # are scored; pieces with counts inside are bounded, and dropped if the bound is no better than the best score.
    limit = search.measure.properties.high if sign > 0 else search.measure.properties.low
    limit = math.inf if limit is None else sign * limit
    topic, low, high = search.topics, np.ones_like(search.topics), search.completed.counts
    best = np.fmax(best, sign * search.scores_by_count(topic, low[:, np.newaxis], from_last=sign < 0))
    while True:
        is_active = (high - low > 1) & ~(best[topic] >= limit)
        topic, low, high = topic[is_active], low[is_active], high[is_active]
        if not len(topic):
            return best
        topic, low, high, is_new = _split_cells(topic, low, high, _PIECES if bounded else None)
        scores = sign * search.scores_by_count(topic[is_new], low[is_new][:, np.newaxis], from_last=sign < 0)
        np.fmax.at(best, topic[is_new], scores)
        wide = np.flatnonzero(high - low > 1)
        topic, low, high = topic[wide], low[wide], high[wide]
        counts, labels = (high, low) if sign > 0 else (low, high)
        bound = sign * search.scores_by_count(
            topic, counts[:, np.newaxis], from_last=sign < 0, label_counts=labels[:, np.newaxis]
        )
        is_open = ~(bound <= best[topic])
        topic, low, high = topic[is_open], low[is_open], high[is_open]


def _split_cells(topic: Ints, low: Ints, high: Ints, pieces: int | None) -> tuple[Ints, Ints, Ints, Bools]:
    """Split cells into pieces (all of width 1 for None), and mark the pieces that begin inside their cell."""
    width = high - low
    count = width if pieces is None else np.minimum(width, pieces)
    cell = np.repeat(np.arange(len(count)), count)
    piece = np.arange(len(cell)) - np.repeat(np.cumsum(count) - count, count)
    begin = low[cell] + width[cell] * piece // count[cell]
    end = low[cell] + width[cell] * (piece + 1) // count[cell]
    return topic[cell], begin, end, piece > 0


def range_by_enumeration(search: GradeSearch, limit: int, *, sorted_only: bool) -> ScoreRange:
    """Score all assignments of each topic with at most `limit` of them; NaN and outer for the other topics."""
    # `sorted_only`: the measure is best with better documents first. So of the assignments that use each grade equally
    # often, the extremes are those with descending and with ascending grades.
    count = len(search.topics)
    low, high, kind = np.full(count, np.nan), np.full(count, np.nan), np.full(count, "outer", dtype="<U7")
    for topic, size in enumerate(search.completed.counts.tolist()):
        total = len(search.levels) ** size
        sorted_total = math.comb(size + len(search.levels) - 1, size) * 2
        is_sorted = sorted_only and sorted_total < total
        if (sorted_total if is_sorted else total) > limit and len(search.levels) > 1:
            continue
        scores = np.concatenate(list(_enumerated_scores(search, topic, size, is_sorted=is_sorted)))
        (low[topic],), (high[topic],) = _extremes(scores[:, np.newaxis])
        kind[topic] = "exact"
    return ScoreRange(low, high, kind)


def _enumerated_scores(search: GradeSearch, topic: int, size: int, *, is_sorted: bool) -> Iterator[Floats]:
    codes = np.arange(len(search.levels))
    combinations = itertools.combinations_with_replacement(codes, size)
    assignments = combinations if is_sorted else itertools.product(codes, repeat=size)
    while block := list(itertools.islice(assignments, _MAX_ASSIGNMENTS)):
        ascending = search.levels[np.array(block, dtype=np.int64)]
        for grades in (ascending, ascending[:, ::-1]) if is_sorted else (ascending,):
            yield search.score_variants(np.full(len(grades), topic), partial(_flat_rows, grades))


def _flat_rows(grades: Floats, first: int, stop: int) -> tuple[Floats, None]:
    return grades[first:stop].ravel(), None


def add_outer_bounds(search: GradeSearch, ranges: ScoreRange, *, bounded: bool) -> ScoreRange:
    """Fill in outer bounds for the topics without an exact range."""
    # With `bounded`: the worst ranking with the best judgments, and vice versa. Otherwise: the range that the measure
    # declares.
    rows = np.flatnonzero(ranges.kind == "outer")
    if not len(rows):
        return ranges
    properties, low, high = search.measure.properties, ranges.low.copy(), ranges.high.copy()
    least = np.full(len(rows), -math.inf if properties.low is None else properties.low)
    greatest = np.full(len(rows), math.inf if properties.high is None else properties.high)
    if bounded:
        least = np.fmax(least, search.uniform_scores(0, -1, rows))
        greatest = np.fmin(greatest, _scores_with_least_ideal(search, rows))
    unchanged = search.uniform_scores(0, topics=rows)
    is_never_defined = np.isnan(unchanged) & np.isnan(search.uniform_scores(-1, topics=rows))
    low[rows] = np.where(is_never_defined, np.nan, np.fmin(least, unchanged))
    high[rows] = np.where(is_never_defined, np.nan, np.fmax(greatest, unchanged))
    return ScoreRange(low, high, ranges.kind.copy())


def _scores_with_least_ideal(search: GradeSearch, topics: Ints) -> Floats:
    """Score the best ranking with the least judgments that have a relevant document: (V,)."""
    completed, scores = search.completed, np.full(len(topics), -np.inf)
    first = np.concatenate(([0], np.cumsum(completed.counts[topics])))[:-1]
    for level in range(len(search.levels)):
        label_grades = np.full(int(completed.counts[topics].sum()), search.levels[0])
        label_grades[first] = search.levels[level]
        variants = completed.with_grades(topics, np.full(len(label_grades), search.levels[-1]), label_grades)
        is_defined = np.asarray(search.measure.is_defined(variants), dtype=np.bool_)
        scores = np.where(is_defined & (scores == -np.inf), search.measure(variants), scores)
    return np.where(scores == -np.inf, np.inf, scores)


def _extremes(scores: Floats) -> tuple[Floats, Floats]:
    """Return the minimum and maximum of each column, ignoring NaN: (N, T) to (T,) and (T,)."""
    return np.fmin.reduce(scores, axis=0), np.fmax.reduce(scores, axis=0)
