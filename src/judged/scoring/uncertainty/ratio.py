"""The extremes of a ratio: a ranking's gain, weighed by rank, divided by that of the ideal ranking.

The search works on sums of weights; what it finds is scored by the measure. Let u documents be open, and v_0 < v_1 <
... the gains that they may have. With the ranking's weighed gain N and the ideal's I:

- The ideal is the greatest weighed gain over all orders, hence convex in the gains, and N - λI is concave. At the
  least ratio λ its least value 0 is reached where each open document has the least or the greatest gain; and of c
  documents with the greatest, those with the least weights, the last ones, make N least. That leaves u + 1 ways.
- For the greatest ratio, gains fall with rank. With c_j open documents of gain v_j or more, both N and I are sums
  over j of terms that depend on c_j alone. So the best c_1 >= c_2 >= ... for one λ follow one after the other, and
  λ rises to the ratio that they reach until it stays (Dinkelbach 1967).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.results.decimals import decimal
from judged.results.types import ReadOnly
from judged.scoring.judging.ranking import segment_starts, segment_sum
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.dcg import NCG, nDCG
from judged.scoring.measures.gain import Gain, discounts, gains

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.uncertainty.arrangements import Arranged


Exactness: TypeAlias = Literal["exact", "outer", "sampled"]
_HOW = {
    "exact": "both ends can be reached",
    "outer": "no score lies outside, though the ends may not be reached",
    "sampled": "found by trying: the true range may be wider",
}


@dataclass(frozen=True, eq=False)
class Range(ReadOnly):
    """The least and the greatest score that each topic could have."""

    # low, high: (T,): NaN for a topic that the measure leaves out
    low: Floats
    high: Floats
    # (T,): `exact`: some arrangement reaches each end. `outer`: no arrangement lies outside, though the ends may not be
    # reached. `sampled`: found by trying; the true range may be wider.
    kind: np.ndarray[Any, Any]

    def sentence(self, at: int, score: float, by: str) -> str:
        """Say how far the score of one topic could move, by what.

        >>> import numpy as np
        >>> Range(np.array([0.25]), np.array([1.0]), np.array(["exact"])).sentence(0, 0.5, "order of ties")
        'Between 0.2500 and 1.0000, by the order of ties; both ends can be reached.'
        """
        low, high = float(self.low[at]), float(self.high[at])
        if math.isnan(low) or math.isnan(high):
            return "The measure leaves this topic out."
        if low == high == score:
            return f"Whatever the {by}, it stays."
        return f"Between {decimal(low)} and {decimal(high)}, by the {by}; {_HOW[str(self.kind[at])]}."


def weakest(kinds: np.ndarray[Any, Any]) -> Exactness:
    """Say what holds of several ranges together.

    >>> import numpy as np
    >>> weakest(np.array(["exact", "outer"])), weakest(np.array(["outer", "sampled"])), weakest(np.array([], dtype=str))
    ('outer', 'sampled', 'exact')
    """
    found = set(kinds.tolist())
    return "sampled" if "sampled" in found else "outer" if "outer" in found else "exact"


_MOST_STEPS = 100  # of the iteration; it takes about five
_CELLS = 1 << 21  # of a table of counts: topics are taken so many at a time


def by_ratio(asked: Arranged) -> Range | None:
    """Give the range of nDCG and NCG; None for other measures, and for tables with gains below 0."""
    one = asked.measure
    if type(one) not in {nDCG, NCG}:
        return None
    gain: Gain = one.gain  # type: ignore[attr-defined]
    worth, first = np.unique(gains(asked.states, gain), return_index=True)
    if worth[0] < 0 or (gains(asked.open.full.grade, gain) < 0).any():
        return None
    asked = replace(asked, states=asked.states[first])
    lowest, exact = asked.alike(0), np.full(len(asked.topics), "exact", dtype="<U7")
    if len(worth) == 1:
        return Range(lowest, lowest.copy(), exact)
    low, high = lowest.copy(), lowest.copy()
    width = (int(asked.open.counts.max(initial=0)) + 1) * len(worth)
    for some in np.array_split(asked.topics, -(-len(lowest) * width // _CELLS)):
        parts = Parts.of(asked, some, worth, gain)
        for counts, last in ((parts.least(), True), (parts.greatest(), False)):
            scores = asked.counted(some, counts, last=last)
            low[some], high[some] = np.fmin(low[some], scores), np.fmax(high[some], scores)
    return Range(low, high, exact)


@dataclass(frozen=True, eq=False)
class Parts:
    """What N and I of some topics are made of, by the number of open documents that have each gain."""

    counts: Ints  # (T,): the open documents
    counted: Ints  # (T,): those with a weight: where there is a cutoff, the others can only add to the ideal
    steps: Floats  # (S - 1,): what each gain has more than the one before it
    weight: Floats  # (T, W + 1): the weights of the first 0, 1, ... open documents, added up.
    # (S - 1, T, u + 1): what the documents with at least each gain add to the ideal, if so many are open ones
    ideal: Floats
    fixed: tuple[Floats, Floats]  # two of (T,): what is in N and in I whatever the open documents have

    @classmethod
    def of(cls, asked: Arranged, topics: Ints, worth: Floats, gain: Gain) -> Parts:
        """Add up the weights of the list, and of the ideal of its judged documents."""
        full, one = asked.open.full, asked.measure
        is_open = np.zeros(len(full.rank), dtype=np.bool_)
        is_open[asked.open.hits] = True
        if one.judged_only:  # type: ignore[attr-defined]
            is_open, full = is_open[full.grade >= 0], full.condensed
        weights = _weights(one, max(int(full.rank.max(initial=1)), int(np.bincount(full.label_topic).max())))
        weight = weights[full.rank]
        new_row = np.full(len(asked.topics), -1)
        new_row[topics] = np.arange(len(topics))
        size, row = len(topics), new_row[full.topic]
        mine = row >= 0
        hit = mine & is_open
        counts = asked.open.counts[topics]
        dense = np.zeros((size, int(counts.max(initial=0)) + 1))
        starts = segment_starts(row[hit], size)
        place = np.arange(int(hit.sum())) - starts[row[hit]] + 1
        dense[row[hit], place] = weight[hit]
        np.cumsum(dense, axis=1, out=dense)
        judged = mine & ~is_open
        ranking = (
            segment_sum(gains(full.grade[judged], gain) * weight[judged], row[judged], size) + worth[0] * dense[:, -1]
        )
        ideal, at_least = _ideal(asked, topics, new_row, worth, gain, np.cumsum(weights), dense.shape[1])
        counted = segment_sum(weight[hit] > 0, row[hit], size).astype(np.int64)
        return cls(counts, counted, np.diff(worth), dense, ideal, (ranking, at_least))

    def least(self) -> Ints:
        """Give how many of the last open documents have the greatest gain where the ratio is least: (T, S - 1)."""
        rows, c = np.arange(len(self.counts))[:, np.newaxis], np.arange(self.weight.shape[1])
        total, before = self.weight[:, -1:], np.maximum(self.counts[:, np.newaxis] - c, 0)
        above = self.fixed[0][:, np.newaxis] + self.steps.sum() * (total - self.weight[rows, before])
        ratio = _ratio(above, self.fixed[1][:, np.newaxis] + self.ideal.sum(axis=0))
        ratio[c > self.counts[:, np.newaxis]] = np.inf
        best = np.argmin(ratio, axis=1)
        return np.repeat(best[:, np.newaxis], len(self.steps), axis=1)

    def greatest(self) -> Ints:
        """Give how many open documents have at least each gain where the ratio is greatest: (T, S - 1)."""
        rows = np.arange(len(self.counts))
        allowed = np.arange(self.weight.shape[1]) <= self.counted[:, np.newaxis]
        counts = np.repeat(np.minimum(self.counted, 1)[:, np.newaxis], len(self.steps), axis=1)
        best = self.reached(rows, counts)
        for _ in range(_MOST_STEPS):
            tried = self._chain(best, allowed)
            reached = self.reached(rows, tried)
            better = reached > best
            if not better.any():
                break
            counts[better], best[better] = tried[better], reached[better]
        return counts

    def reached(self, rows: Ints, counts: Ints) -> Floats:
        """Give the ratios of topics with so many open documents of at least each gain."""
        above = self.fixed[0] + (self.steps * self.weight[rows[:, np.newaxis], counts]).sum(axis=1)
        below = self.fixed[1] + sum(part[rows, counts[:, at]] for at, part in enumerate(self.ideal))
        return np.where(below > 0, divide(above, below), 0.0)

    def _chain(self, ratio: Floats, allowed: Bools) -> Ints:
        """Find the counts, none greater than the one before, of the greatest N minus ratio times I: (T, S - 1)."""
        rows, total = np.arange(len(ratio)), None
        passed: list[Ints] = []
        for step, part in zip(self.steps, self.ideal, strict=True):
            value = np.where(allowed, step * self.weight - ratio[:, np.newaxis] * part, -np.inf)
            if total is not None:
                falling = total[:, ::-1]
                best = np.maximum.accumulate(falling, axis=1)
                is_new = falling == best
                place = np.maximum.accumulate(np.where(is_new, np.arange(falling.shape[1]), 0), axis=1)
                passed.append(falling.shape[1] - 1 - place[:, ::-1])
                value += best[:, ::-1]
            total = value
        assert total is not None  # noqa: S101 - there are at least two gains
        chosen = [np.argmax(total, axis=1)]
        for before in reversed(passed):
            chosen.append(before[rows, chosen[-1]])
        return np.stack(chosen[::-1], axis=1)


def _weights(one: object, deepest: int) -> Floats:
    """Give the weight of each rank from 1; none for 0, and for those beyond the cutoff."""
    ranks = np.arange(deepest + 1)
    plain = isinstance(one, NCG)
    weights = np.ones(deepest + 1) if plain else 1.0 / discounts(np.maximum(ranks, 1), one.discount, one.base)  # type: ignore[attr-defined]
    cutoff = one.cutoff  # type: ignore[attr-defined]
    return np.where((ranks > 0) & (ranks <= (cutoff or deepest)), weights, 0.0)


def _ideal(
    asked: Arranged, topics: Ints, new_row: Ints, worth: Floats, gain: Gain, so_far: Floats, width: int
) -> tuple[Floats, Floats]:
    """Give what documents add to the ideal by their gain: (S - 1, T, u + 1), and what there is in any case: (T,)."""
    # The ideal is a sum over levels of gain: what a level is above the one below it, times the weights of as many first
    # ranks as there are documents of at least this level.
    full, size = asked.open.full, len(topics)
    closed = np.ones(len(full.label_grade), dtype=np.bool_)
    closed[full.row[asked.open.hits]] = False
    closed &= new_row[full.label_topic] >= 0
    known, row = gains(full.label_grade[closed], gain), new_row[full.label_topic[closed]]
    levels = np.unique(np.concatenate((known[known > 0], worth[worth > 0])))
    of = np.searchsorted(worth, levels)  # the least of the gains that reaches each level
    ideal, fixed = np.zeros((len(worth) - 1, size, width)), np.zeros(size)
    counts = asked.open.counts[topics]
    for level, step, at in zip(levels, np.diff(levels, prepend=0.0), of, strict=True):
        reaching = segment_sum(known >= level, row, size).astype(np.int64)
        if 0 < at < len(worth):
            places = np.minimum(reaching[:, np.newaxis] + np.arange(width), len(so_far) - 1)
            ideal[at - 1] += step * so_far[places]
        else:
            fixed += step * so_far[np.minimum(reaching + counts * (at == 0), len(so_far) - 1)]
    return ideal, fixed


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, divide(above, below), np.inf)
