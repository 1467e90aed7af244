"""Ways to grade the unjudged documents of a list, scored by the measure itself, and the extremes among them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.judged import gathered
from judged.scoring.uncertainty.ratio import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.unjudged import Open
    from judged.scoring.measures.base import Measure

_BLOCK = 1 << 16  # hits and judged pairs of the variants that are scored together: columns stay in a cache
_PIECES = 4  # into which a cell of the search is cut
_WAYS = 1 << 12  # that are listed together


@dataclass(frozen=True, eq=False)
class Arranged:
    """A list with open documents, the measure that scores it, and the grades to choose from."""

    open: Open
    measure: Measure
    states: Floats  # (S,): rising; grades that the measure cannot tell apart are left out

    @property
    def topics(self) -> Ints:
        """All topics: (T,)."""
        return np.arange(len(self.open.full))

    @property
    def undefined(self) -> Bools:
        """Mark the topics in which nothing is relevant as long as every open document has the lowest grade: (T,)."""
        full = self.open.full
        return ~np.asarray(self.measure.is_defined(full), dtype=np.bool_)

    def alike(self, state: int, known: int | None = None, topics: Ints | None = None) -> Floats:
        """Score topics with one grade for all open documents, and perhaps another for the judgments: (V,)."""
        topics = self.topics if topics is None else topics

        def make(first: int, behind: int) -> tuple[Floats, Floats | None]:
            count = int(self.open.counts[topics[first:behind]].sum())
            return np.full(count, self.states[state]), None if known is None else np.full(count, self.states[known])

        return self.scores(topics, make)

    def scores(self, topics: Ints, make: Callable[[int, int], tuple[Floats, Floats | None]]) -> Floats:
        """Score variants of topics, a block at a time, of which `make` gives the grades from one to before another."""
        full, found = self.open.full, np.empty(len(topics))
        labels = np.bincount(full.label_topic, minlength=len(full))
        size = (np.diff(full.starts) + labels)[topics]
        edges = np.flatnonzero(np.diff((np.cumsum(size) - size) // _BLOCK, prepend=-1)).tolist()
        for first, behind in itertools.pairwise([*edges, len(topics)]):
            grades, known = make(first, behind)
            found[first:behind] = self.measure(self.open.graded(topics[first:behind], grades, known))
        return found

    def counted(self, topics: Ints, counts: Ints, *, last: bool = False, known: Ints | None = None) -> Floats:
        """Score variants in which so many open documents, the first or the last, have at least each grade: (V,)."""
        # `counts`: (V, S - 1): for each grade but the lowest, how many have it or a higher one. `known`: (V, S - 1):
        # the same for the judgments, where these are to differ.

        def make(first: int, behind: int) -> tuple[Floats, Floats | None]:
            size = self.open.counts[topics[first:behind]]
            place = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            if last:
                place = np.repeat(size - 1, size) - place
            given = self._filled(place, np.repeat(counts[first:behind], size, axis=0))
            return given, None if known is None else self._filled(place, np.repeat(known[first:behind], size, axis=0))

        return self.scores(topics, make)

    def _filled(self, place: Ints, counts: Ints) -> Floats:
        """Give the grade at each place, where the first documents have at least each grade: (N,)."""
        if len(self.states) == 2:
            return np.where(place < counts[:, 0], self.states[1], self.states[0])
        return self.states[(place[:, np.newaxis] < counts).sum(axis=1)]


def ends(asked: Arranged) -> Range:
    """Give the range of a measure that more grade never lowers: everything lowest, everything highest."""
    # A topic in which nothing is relevant at first is left out, or scores what `undefined` says; of the grades that
    # bring something relevant into it, the least are one for one document.
    low, high = asked.alike(0), asked.alike(-1)
    exact = np.full(len(low), "exact", dtype="<U7")
    if getattr(asked.measure, "undefined", 0.0) == 0.0 or not (rows := np.flatnonzero(asked.undefined)).size:
        return Range(low, high, exact)
    single = np.full(len(rows), np.nan)
    for state in range(1, len(asked.states)):
        single = np.where(np.isnan(single), _least_single(asked, rows, state), single)
    some = np.stack((low[rows], high[rows], single))
    low[rows], high[rows] = _extremes(some)
    return Range(low, high, exact)


def _least_single(asked: Arranged, topics: Ints, state: int) -> Floats:
    """Give the least score with one open document of this grade; NaN where that brings nothing relevant: (T',)."""
    open_ = asked.open
    one = np.zeros(int(open_.counts[topics].sum()))
    first = np.concatenate(([0], np.cumsum(open_.counts[topics])))
    one[first[:-1]] = asked.states[state]
    brings = np.asarray(asked.measure.is_defined(open_.graded(topics, one)), dtype=np.bool_)
    many, place = np.repeat(topics, open_.counts[topics]), np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))

    def make(begin: int, behind: int) -> tuple[Floats, None]:
        at, whose = gathered(open_.starts, many[begin:behind])
        within = at - open_.starts[many[begin:behind]][whose]
        return np.where(within == place[begin:behind][whose], asked.states[state], asked.states[0]), None

    scores = asked.scores(many, make)
    return np.where(brings, np.minimum.reduceat(scores, first[:-1]), np.nan)


def by_counts(asked: Arranged, *, bounded: bool) -> Range:
    """Give the range of a measure that asks for relevance alone, and better documents first."""
    # Of all ways to have c relevant documents, the extremes are the first c and the last c. With `bounded`, the score
    # rises with the ranking and falls with the judgments: the first b documents in the ranking against a in the
    # judgments are then more than any count between the two can reach, so that most counts need not be tried.
    exact = np.full(len(asked.topics), "exact", dtype="<U7")
    lowest = asked.alike(0)
    if len(asked.states) == 1:
        return Range(lowest, lowest.copy(), exact)
    start = _extremes(np.stack((lowest, asked.alike(-1))))
    low = 0.0 - _climb(asked, -start[0], -1.0, bounded=bounded)
    return Range(low, _climb(asked, start[1], 1.0, bounded=bounded), exact)


def _climb(asked: Arranged, best: Floats, sign: float, *, bounded: bool) -> Floats:
    """Find the greatest score (sign 1) of the first c, or the greatest of minus the score (-1) of the last c: (T,)."""
    # A cell is a range of counts whose ends are known. It is cut into pieces; the scores at the cuts are computed, and
    # the bound of each piece that has counts between its ends; a piece whose bound is no better than the best is done.
    most = asked.measure.properties.high if sign > 0 else asked.measure.properties.low
    most = math.inf if most is None else sign * most
    topic, low, high = asked.topics, np.ones_like(asked.topics), asked.open.counts
    best = np.fmax(best, sign * asked.counted(topic, low[:, np.newaxis], last=sign < 0))
    while True:
        going = (high - low > 1) & ~(best[topic] >= most)
        topic, low, high = topic[going], low[going], high[going]
        if not len(topic):
            return best
        topic, low, high, cut = _cut(topic, low, high, _PIECES if bounded else None)
        scores = sign * asked.counted(topic[cut], low[cut][:, np.newaxis], last=sign < 0)
        np.fmax.at(best, topic[cut], scores)
        wide = np.flatnonzero(high - low > 1)
        topic, low, high = topic[wide], low[wide], high[wide]
        given, known = (high, low) if sign > 0 else (low, high)
        bound = sign * asked.counted(topic, given[:, np.newaxis], last=sign < 0, known=known[:, np.newaxis])
        kept = ~(bound <= best[topic])
        topic, low, high = topic[kept], low[kept], high[kept]


def _cut(topic: Ints, low: Ints, high: Ints, pieces: int | None) -> tuple[Ints, Ints, Ints, Bools]:
    """Cut cells into pieces, all of width 1 for None, and mark those that begin inside of their cell."""
    width = high - low
    count = width if pieces is None else np.minimum(width, pieces)
    whose = np.repeat(np.arange(len(count)), count)
    at = np.arange(len(whose)) - np.repeat(np.cumsum(count) - count, count)
    begin = low[whose] + width[whose] * at // count[whose]
    end = low[whose] + width[whose] * (at + 1) // count[whose]
    return topic[whose], begin, end, at > 0


def by_enumeration(asked: Arranged, limit: int, *, few: bool) -> Range:
    """Try all ways to grade the open documents of each topic that has at most so many; NaN and outer for the others."""
    # With `few`, better documents first is better: of the ways that use the same grades as often, the extremes are
    # grades falling and grades rising.
    count = len(asked.topics)
    low, high, kind = np.full(count, np.nan), np.full(count, np.nan), np.full(count, "outer", dtype="<U7")
    for topic, size in enumerate(asked.open.counts.tolist()):
        falling = few and math.comb(size + len(asked.states) - 1, size) * 2 < len(asked.states) ** size
        ways = math.comb(size + len(asked.states) - 1, size) * 2 if falling else len(asked.states) ** size
        if ways > limit and len(asked.states) > 1:
            continue
        scores = np.concatenate(list(_all_scores(asked, topic, size, falling=falling)))
        (low[topic],), (high[topic],) = _extremes(scores[:, np.newaxis])
        kind[topic] = "exact"
    return Range(low, high, kind)


def _all_scores(asked: Arranged, topic: int, size: int, *, falling: bool) -> Iterator[Floats]:
    every = np.arange(len(asked.states))
    ways = itertools.combinations_with_replacement(every, size) if falling else itertools.product(every, repeat=size)
    while some := list(itertools.islice(ways, _WAYS)):
        grades = asked.states[np.array(some, dtype=np.int64)]
        for one in (grades, grades[:, ::-1]) if falling else (grades,):
            yield asked.scores(np.full(len(one), topic), partial(_rows, one))


def _rows(grades: Floats, first: int, behind: int) -> tuple[Floats, None]:
    return grades[first:behind].ravel(), None


def by_parts(asked: Arranged, found: Range, *, bounded: bool) -> Range:
    """Bound the topics that are not known exactly from outside."""
    # With `bounded`, the ranking at its worst against judgments at their best, and the other way round; else the range
    # that the measure declares.
    rows = np.flatnonzero(found.kind == "outer")
    if not len(rows):
        return found
    known, low, high = asked.measure.properties, found.low.copy(), found.high.copy()
    least = np.full(len(rows), -math.inf if known.low is None else known.low)
    most = np.full(len(rows), math.inf if known.high is None else known.high)
    if bounded:
        least = np.fmax(least, asked.alike(0, -1, rows))
        most = np.fmin(most, _over_ideal(asked, rows))
    unchanged = asked.alike(0, topics=rows)
    never = np.isnan(unchanged) & np.isnan(asked.alike(-1, topics=rows))
    low[rows] = np.where(never, np.nan, np.fmin(least, unchanged))
    high[rows] = np.where(never, np.nan, np.fmax(most, unchanged))
    return Range(low, high, found.kind.copy())


def _over_ideal(asked: Arranged, topics: Ints) -> Floats:
    """Give the score of the best ranking against the least judgments in which something is relevant: (V,)."""
    open_, found = asked.open, np.full(len(topics), -np.inf)
    first = np.concatenate(([0], np.cumsum(open_.counts[topics])))[:-1]
    for state in range(len(asked.states)):
        known = np.full(int(open_.counts[topics].sum()), asked.states[0])
        known[first] = asked.states[state]
        many = open_.graded(topics, np.full(len(known), asked.states[-1]), known)
        found = np.where(
            np.asarray(asked.measure.is_defined(many), dtype=np.bool_) & (found == -np.inf), asked.measure(many), found
        )
    return np.where(found == -np.inf, np.inf, found)


def _extremes(scores: Floats) -> tuple[Floats, Floats]:
    """Give the least and the greatest of each column; NaN where it holds nothing else: (N, T) to (T,) and (T,)."""
    return np.fmin.reduce(scores, axis=0), np.fmax.reduce(scores, axis=0)
