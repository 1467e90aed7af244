"""How far scores could move: what `evaluate` asks of every run and measure where that is wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from judged.errors import InputError
from judged.scoring.evaluation.facts import Reach, TopicRanges
from judged.scoring.judging import TiePolicy
from judged.scoring.measures.aggregates import aggregate, logarithms
from judged.scoring.measures.grammar import find

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.types import Floats
    from judged.scoring.evaluation.facts import TieTreatment
    from judged.scoring.judging import Judged
    from judged.scoring.measures.aggregates import Aggregate
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import Range


_ABOUT_JUDGING = {"Judged", "Unjudged", "Hole", "RBPResidual"}


class Sampled(NamedTuple):
    """In how many topics a score is the mean of a sample, and the largest standard error."""

    n: int = 0
    error: float = 0.0


@dataclass(frozen=True)
class Movement:
    """What is wanted beyond one number per topic."""

    ties: TieTreatment  # how ties are treated; `expected` changes the scores, `bounds` adds ranges to them
    unjudged: bool  # whether the returned documents without a judgment are given every grade that they could have
    depth: int | None  # how many documents of each topic count
    seed: int  # of the samples that are drawn where there are too many orders

    def __post_init__(self) -> None:
        if self.ties not in (known := (*get_args(TiePolicy), "expected", "bounds")):
            raise InputError(f"no tie policy {self.ties!r}", fix=f"use one of {', '.join(known)}")
        if self.unjudged and self.ties == "expected":
            raise InputError(
                "the range that unjudged documents leave open is that of one order of the ties, not of their mean",
                fix="choose ties=docid or ties=bounds with unjudged",
            )

    @property
    def of_ties(self) -> bool:
        """Whether all orders of tied documents count."""
        return self.ties in {"expected", "bounds"}

    def judging(self) -> dict[str, Any]:
        """Give ties and depth for `judge`; where all orders count, no tied document may be cut off before."""
        order: TiePolicy = "docid" if self.of_ties else self.ties  # type: ignore[assignment]
        return {"ties": order, "depth": None if self.of_ties else self.depth}

    def cut(self, judged: Judged) -> Judged:
        """Cut a list that was judged whole at the depth."""
        if not self.of_ties or self.depth is None:
            return judged
        from judged.scoring.judging.unjudged import cut

        return cut(judged, self.depth)

    def score(self, whole: Judged, measure: Measure) -> tuple[Floats, Sampled]:
        """Score every topic, and say how far the numbers are samples: (T,)."""
        if self.ties != "expected":
            return measure(self.cut(whole)), Sampled()
        from judged.scoring.uncertainty.ties import tie_expected

        expected = tie_expected(whole, measure, depth=self.depth, seed=self.seed)
        sampled = expected.kind == "sampled"
        return expected.values, Sampled(int(sampled.sum()), float(expected.standard_error[sampled].max(initial=0.0)))

    def ranges(self) -> list[tuple[str, Callable[[Judged, Measure], Range]]]:
        """Give the reasons why scores could move that were asked about, each with what computes the range."""
        ranges: list[tuple[str, Callable[[Judged, Measure], Range]]] = []
        if self.ties == "bounds":
            from judged.scoring.uncertainty.ties import tie_range

            ranges.append(("ties", lambda whole, measure: tie_range(whole, measure, depth=self.depth, seed=self.seed)))
        if self.unjudged:
            from judged.scoring.uncertainty.unjudged import unjudged_range

            ranges.append(("unjudged", lambda whole, measure: unjudged_range(self.cut(whole), measure)))
        return ranges


def all_ranges(
    movement: Movement, lists: Sequence[Judged], measures: Sequence[Measure], query_ids: Sequence[str]
) -> tuple[TopicRanges, ...]:
    """Lay out the ranges of all runs and measures over the topics of all runs."""
    column_of = {name: at for at, name in enumerate(query_ids)}
    shape = (len(lists), len(measures), len(query_ids))
    made: list[TopicRanges] = []
    for reason, of in movement.ranges():
        low, high = np.full(shape, np.nan), np.full(shape, np.nan)
        kind, shares = np.full(shape, "exact", dtype="<U7"), np.full(shape[:2], np.nan)
        for at, judged in enumerate(lists):
            columns = [column_of[name] for name in judged.query_ids]
            for row, measure in enumerate(measures):
                if reason == "unjudged" and _about_judging(measure):
                    continue
                span, place = of(judged, measure), (at, row, columns)
                low[place], high[place], kind[place] = span.low, span.high, span.kind
                if reason == "unjudged" and judged.ranked:
                    share = find("Judged")[0].cls(cutoff=getattr(measure, "cutoff", None))
                    shares[at, row] = np.mean(share(movement.cut(judged)))
        made.append(TopicRanges(reason, low, high, kind, shares))
    return tuple(made)


def _about_judging(measure: Measure) -> bool:
    """Whether a measure says how much is judged: once all were judged, there would be nothing to say."""
    return measure.entry.name in _ABOUT_JUDGING or getattr(measure, "residual", False) is True


def reach(ranges: TopicRanges, at: tuple[int, int], scores: Floats, kind: Aggregate) -> Reach:
    """Aggregate the ranges of one run and measure over its topics."""
    from judged.scoring.uncertainty.ratio import weakest

    # A topic that the measure leaves out today (`undefined=skip`), but that would count with other grades, joins a mean
    # only where that moves the end further out.
    low, high = ranges.low[at], ranges.high[at]
    counts, joins = ~np.isnan(scores), np.isnan(scores) & ~np.isnan(low)
    low = np.where(np.isnan(low), scores, low)
    high = np.where(np.isnan(high), scores, high)
    return Reach(
        ranges.reason,
        aggregate(kind, np.append(low[counts], _joining(kind, low[counts], np.sort(low[joins]), 1.0))),
        aggregate(kind, np.append(high[counts], _joining(kind, high[counts], -np.sort(-high[joins]), -1.0))),
        weakest(ranges.kind[at][counts | joins]),
        float(ranges.judged[at]),
    )


def _joining(kind: Aggregate, here: Floats, others: Floats, sign: float) -> Floats:
    """Choose the topics, in this order, that move the mean of those here further; all for a sum that they move.

    >>> _joining("mean", np.array([1.0, 0.5]), np.array([0.2, 0.6, 0.9]), 1.0).tolist()
    [0.2]
    """
    if kind in {"sum", "count"}:
        return others[sign * others < 0]
    joined = 0
    worth, all_worth = (logarithms(part) if kind == "geometric mean" else part for part in (others, here))
    total, count = float(all_worth.sum()), len(all_worth)
    for value in worth.tolist():
        mean = total / count if count else math.inf * sign
        if sign * value >= sign * mean:
            break
        total, count, joined = total + value, count + 1, joined + 1
    return others[:joined]
