"""Extremes of a ratio: the weighted gain of a ranking, divided by that of the ideal ranking.

The search works on sums of weights; its results are then scored by the measure. Let u documents be open, and v_0 < v_1
< ... the gains that they may have. With the weighted gain N of the ranking and I of the ideal:

- The ideal is the greatest weighted gain over all orders, hence convex in the gains, and N - λI is concave. At the
  least ratio λ, its minimum 0 is attained where each open document has the least or the greatest gain; and of c
  documents with the greatest, those with the least weights, the last ones, minimize N. That leaves u + 1 candidates.
- For the greatest ratio, gains descend with rank. With c_j open documents of gain v_j or more, both N and I are sums
  over j of terms that depend on c_j alone. So the best c_1 >= c_2 >= ... for a given λ are found by dynamic
  programming, and λ is set to the ratio attained until it no longer rises (Dinkelbach 1967).
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
    from judged.scoring.uncertainty.arrangements import GradeSearch


Exactness: TypeAlias = Literal["exact", "outer", "sampled"]
_KIND_TEXTS = {
    "exact": "both limits are possible scores",
    "outer": "every possible score is between these limits; the true range may be narrower",
    "sampled": "estimated by search: the true range may be wider",
}


@dataclass(frozen=True, eq=False)
class ScoreRange(ReadOnly):
    """Least and greatest score that each topic could have."""

    # low, high: (T,): NaN for a topic that the measure leaves out
    low: Floats
    high: Floats
    # (T,): `exact`: both ends are attained. `outer`: no score lies outside, but the ends may not be attained.
    # `sampled`: over a sample; the true range may be wider.
    kind: np.ndarray[Any, Any]

    def sentence(self, topic: int, score: float, by: str) -> str:
        """Format the range of one topic, `by` an order of ties or by unjudged documents.

        >>> import numpy as np
        >>> ScoreRange(np.array([0.25]), np.array([1.0]), np.array(["exact"])).sentence(0, 0.5, "order of ties")
        'The score is between 0.2500 and 1.0000, depending on the order of ties; both limits are possible scores.'
        """
        low, high = float(self.low[topic]), float(self.high[topic])
        if math.isnan(low) or math.isnan(high):
            return "The measure excludes this topic."
        if low == high == score:
            return f"The score does not depend on the {by}."
        return (
            f"The score is between {decimal(low)} and {decimal(high)}, depending on the {by};"
            f" {_KIND_TEXTS[str(self.kind[topic])]}."
        )


def combine_kinds(kinds: np.ndarray[Any, Any]) -> Exactness:
    """Return the kind of a range that combines ranges of these kinds.

    >>> import numpy as np
    >>> combine_kinds(np.array(["exact", "outer"])), combine_kinds(np.array(["outer", "sampled"]))
    ('outer', 'sampled')
    """
    distinct = set(kinds.tolist())
    return "sampled" if "sampled" in distinct else "outer" if "outer" in distinct else "exact"


_MAX_ITERATIONS = 100  # Dinkelbach's method needs about five
_MAX_CELLS = 1 << 21  # cells of a table of counts, which limits the number of topics per block


def range_by_ratio(search: GradeSearch) -> ScoreRange | None:
    """Return the range of nDCG and NCG; None for other measures, and for tables with negative gains."""
    measure = search.measure
    if type(measure) not in {nDCG, NCG}:
        return None
    gain: Gain = measure.gain  # type: ignore[attr-defined]
    level_gains, first = np.unique(gains(search.levels, gain), return_index=True)
    if level_gains[0] < 0 or (gains(search.completed.judged.grade, gain) < 0).any():
        return None
    search = replace(search, levels=search.levels[first])
    lowest, exact = search.uniform_scores(0), np.full(len(search.topics), "exact", dtype="<U7")
    if len(level_gains) == 1:
        return ScoreRange(lowest, lowest.copy(), exact)
    low, high = lowest.copy(), lowest.copy()
    width = (int(search.completed.counts.max(initial=0)) + 1) * len(level_gains)
    for topics in np.array_split(search.topics, -(-len(lowest) * width // _MAX_CELLS)):
        terms = RatioTerms.of(search, topics, level_gains, gain)
        for counts, from_last in ((terms.least(), True), (terms.greatest(), False)):
            scores = search.scores_by_count(topics, counts, from_last=from_last)
            low[topics], high[topics] = np.fmin(low[topics], scores), np.fmax(high[topics], scores)
    return ScoreRange(low, high, exact)


@dataclass(frozen=True, eq=False)
class RatioTerms:
    """Terms of N and I of some topics, by the number of open documents with each gain."""

    counts: Ints  # (T,): number of open documents
    counted: Ints  # (T,): number of open documents with a weight; those below a cutoff can only add to the ideal
    steps: Floats  # (S - 1,): differences between successive gains
    weight: Floats  # (T, W + 1): sums of the weights of the first 0, 1, ... open documents
    # (S - 1, T, u + 1): terms of the ideal for the documents with at least each gain, by the number of open ones
    ideal: Floats
    fixed: tuple[Floats, Floats]  # two of (T,): the terms of N and of I that do not depend on the open documents

    @classmethod
    def of(cls, search: GradeSearch, topics: Ints, level_gains: Floats, gain: Gain) -> RatioTerms:
        """Sum the weights of the list, and of the ideal ranking of its judged documents."""
        judged, measure = search.completed.judged, search.measure
        is_open = np.zeros(len(judged.rank), dtype=np.bool_)
        is_open[search.completed.open_hits] = True
        if measure.judged_only:  # type: ignore[attr-defined]
            is_open, judged = is_open[judged.grade >= 0], judged.condensed
        depth = max(int(judged.rank.max(initial=1)), int(np.bincount(judged.label_topic).max()))
        weights = _weights(measure, depth)
        weight = weights[judged.rank]
        new_row = np.full(len(search.topics), -1)
        new_row[topics] = np.arange(len(topics))
        size, row = len(topics), new_row[judged.topic]
        open_hit = (row >= 0) & is_open
        counts = search.completed.counts[topics]
        sums = np.zeros((size, int(counts.max(initial=0)) + 1))
        starts = segment_starts(row[open_hit], size)
        position = np.arange(int(open_hit.sum())) - starts[row[open_hit]] + 1
        sums[row[open_hit], position] = weight[open_hit]
        np.cumsum(sums, axis=1, out=sums)
        fixed_hit = (row >= 0) & ~is_open
        fixed_gain = gains(judged.grade[fixed_hit], gain) * weight[fixed_hit]
        ranking = segment_sum(fixed_gain, row[fixed_hit], size) + level_gains[0] * sums[:, -1]
        ideal, fixed_ideal = _ideal_terms(search, topics, new_row, level_gains, gain, np.cumsum(weights), sums.shape[1])
        counted = segment_sum(weight[open_hit] > 0, row[open_hit], size).astype(np.int64)
        return cls(counts, counted, np.diff(level_gains), sums, ideal, (ranking, fixed_ideal))

    def least(self) -> Ints:
        """Return the number of last open documents with the greatest gain that minimizes the ratio: (T, S - 1)."""
        rows, count = np.arange(len(self.counts))[:, np.newaxis], np.arange(self.weight.shape[1])
        total, before = self.weight[:, -1:], np.maximum(self.counts[:, np.newaxis] - count, 0)
        numerator = self.fixed[0][:, np.newaxis] + self.steps.sum() * (total - self.weight[rows, before])
        ratio = _ratio(numerator, self.fixed[1][:, np.newaxis] + self.ideal.sum(axis=0))
        ratio[count > self.counts[:, np.newaxis]] = np.inf
        best = np.argmin(ratio, axis=1)
        return np.repeat(best[:, np.newaxis], len(self.steps), axis=1)

    def greatest(self) -> Ints:
        """Return the number of open documents with at least each gain that maximizes the ratio: (T, S - 1)."""
        rows = np.arange(len(self.counts))
        allowed = np.arange(self.weight.shape[1]) <= self.counted[:, np.newaxis]
        counts = np.repeat(np.minimum(self.counted, 1)[:, np.newaxis], len(self.steps), axis=1)
        best = self.ratio(rows, counts)
        for _ in range(_MAX_ITERATIONS):
            candidate = self._best_counts(best, allowed)
            ratio = self.ratio(rows, candidate)
            better = ratio > best
            if not better.any():
                break
            counts[better], best[better] = candidate[better], ratio[better]
        return counts

    def ratio(self, rows: Ints, counts: Ints) -> Floats:
        """Return the ratios of topics for a number of open documents with at least each gain."""
        numerator = self.fixed[0] + (self.steps * self.weight[rows[:, np.newaxis], counts]).sum(axis=1)
        denominator = self.fixed[1] + sum(part[rows, counts[:, step]] for step, part in enumerate(self.ideal))
        return np.where(denominator > 0, divide(numerator, denominator), 0.0)

    def _best_counts(self, ratio: Floats, allowed: Bools) -> Ints:
        """Find the non-increasing counts that maximize N minus ratio times I: (T, S - 1)."""
        # Dynamic programming over the steps: `total` is the best value with c documents at the current step, and
        # `previous` stores which count at the step before it belongs to.
        rows, total = np.arange(len(ratio)), None
        previous: list[Ints] = []
        for step, part in zip(self.steps, self.ideal, strict=True):
            value = np.where(allowed, step * self.weight - ratio[:, np.newaxis] * part, -np.inf)
            if total is not None:
                reverse = total[:, ::-1]
                best = np.maximum.accumulate(reverse, axis=1)
                is_new = reverse == best
                position = np.maximum.accumulate(np.where(is_new, np.arange(reverse.shape[1]), 0), axis=1)
                previous.append(reverse.shape[1] - 1 - position[:, ::-1])
                value += best[:, ::-1]
            total = value
        assert total is not None  # noqa: S101 - there are at least two gains
        counts = [np.argmax(total, axis=1)]
        for count_before in reversed(previous):
            counts.append(count_before[rows, counts[-1]])
        return np.stack(counts[::-1], axis=1)


def _weights(measure: object, depth: int) -> Floats:
    """Return the weight of each rank from 1, after a 0 for rank 0; ranks beyond the cutoff weigh 0."""
    ranks = np.arange(depth + 1)
    if isinstance(measure, NCG):
        weights = np.ones(depth + 1)
    else:
        weights = 1.0 / discounts(np.maximum(ranks, 1), measure.discount, measure.base)  # type: ignore[attr-defined]
    cutoff = measure.cutoff  # type: ignore[attr-defined]
    return np.where((ranks > 0) & (ranks <= (cutoff or depth)), weights, 0.0)


def _ideal_terms(
    search: GradeSearch, topics: Ints, new_row: Ints, level_gains: Floats, gain: Gain, weight_sums: Floats, width: int
) -> tuple[Floats, Floats]:
    """Return the terms of the ideal for each gain: (S - 1, T, u + 1), and the term that is always there: (T,)."""
    # The ideal is a sum over levels of gain: the difference to the level below, times the weights of as many first
    # ranks as there are documents of at least this level.
    judged, size = search.completed.judged, len(topics)
    is_fixed = np.ones(len(judged.label_grade), dtype=np.bool_)
    is_fixed[judged.row[search.completed.open_hits]] = False
    is_fixed &= new_row[judged.label_topic] >= 0
    fixed_gains, row = gains(judged.label_grade[is_fixed], gain), new_row[judged.label_topic[is_fixed]]
    levels = np.unique(np.concatenate((fixed_gains[fixed_gains > 0], level_gains[level_gains > 0])))
    indices = np.searchsorted(level_gains, levels)  # the least gain of open documents that reaches each level
    ideal, fixed = np.zeros((len(level_gains) - 1, size, width)), np.zeros(size)
    counts = search.completed.counts[topics]
    for level, step, index in zip(levels, np.diff(levels, prepend=0.0), indices, strict=True):
        reaching = segment_sum(fixed_gains >= level, row, size).astype(np.int64)
        if 0 < index < len(level_gains):
            ranks = np.minimum(reaching[:, np.newaxis] + np.arange(width), len(weight_sums) - 1)
            ideal[index - 1] += step * weight_sums[ranks]
        else:
            fixed += step * weight_sums[np.minimum(reaching + counts * (index == 0), len(weight_sums) - 1)]
    return ideal, fixed


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.where(denominator > 0, divide(numerator, denominator), np.inf)
