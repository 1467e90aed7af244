"""Scores of pages against outcomes of pages: the numbers, with intervals over units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.offline.clusters import cluster_estimates
from judged.online.offline.concordance import Pairs, probability, tau_b
from judged.online.offline.rows import CalibrationBin, Relation, TopicRelation

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.stats.interval import IntervalMethod

_HELD = 1 << 22  # numbers held at a time
_LEAST_TOPICS = 5  # of fewer, an order says nothing


@dataclass(frozen=True, eq=False)
class Compared:
    """One measure and one outcome of the same pages, both (N,), and what the pages belong to.

    Parameters
    ----------
    measure, outcome
        Their names.
    score, value
        (N,) each.
    signs
        1 or -1 for the score and the value: whether more of it is better.
    unit, topic, slice
        (N,): codes.
    """

    measure: str
    outcome: str
    score: Floats
    value: Floats
    signs: tuple[int, int]
    unit: Ints
    topic: Ints
    slice: Ints

    def over(self, kept: Bools) -> Compared:
        """Leave some of the pages, and number their units anew."""
        _, unit = np.unique(self.unit[kept], return_inverse=True)
        columns = {name: getattr(self, name)[kept] for name in ("score", "value", "topic", "slice")}
        return replace(self, unit=unit.ravel(), **columns)

    @property
    def units(self) -> int:
        """How many units the pages are of."""
        return int(self.unit.max(initial=-1)) + 1


def relation(pages: Compared, slice: str | None, method: IntervalMethod) -> Relation:
    """Relate a measure to an outcome."""
    score, value = pages.score * pages.signs[0], pages.value * pages.signs[1]
    pooled = Pairs.of(score, value, pages.unit)
    within = Pairs.of(score, value, pages.unit, pages.topic)

    def statistics(weights: Floats) -> Floats:
        pairs = pooled.counted(weights)
        columns = [probability(pairs), probability(within.counted(weights)), tau_b(pairs), _slopes(pages, weights)]
        return np.stack(columns, axis=1)

    found = cluster_estimates(statistics, pages.units, method)
    return Relation(
        pages.measure, pages.outcome, slice, len(score), pages.units, len(np.unique(pages.topic)),
        float(pages.value.mean()) if len(score) else np.nan, *found,
    )  # fmt: skip


def _slopes(pages: Compared, weights: Floats) -> Floats:
    """Give the slope of least squares for each row of weights of units."""
    middle = pages.score.mean() if len(pages.score) else 0.0
    x, y = pages.score - middle, pages.value
    count, sx, sy, sxx, sxy = (_summed(pages, column, weights) for column in (np.ones(len(x)), x, y, x * x, x * y))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = sxx - sx**2 / count
        slope = (sxy - sx * sy / count) / spread
    return np.where(spread > 1e-12 * np.maximum(sxx, 1e-300), slope, np.nan)


def _summed(pages: Compared, column: Floats, weights: Floats) -> Floats:
    return weights @ np.bincount(pages.unit, column, minlength=pages.units)


def calibration(pages: Compared, bins: int, method: IntervalMethod) -> list[CalibrationBin]:
    """Cut pages into bins of about equally many by their score, equal scores together, and look at the outcome."""
    if not len(pages.score):
        return []
    edges = np.unique(np.quantile(pages.score, np.arange(1, bins) / bins, method="inverted_cdf"))
    place = np.searchsorted(edges, pages.score, side="left")  # an edge is the highest score of its bin
    kinds, place = np.unique(place, return_inverse=True)
    place = place.ravel()
    cell = pages.unit * len(kinds) + place
    size = pages.units * len(kinds)
    counts, sums = (
        np.bincount(cell, column, minlength=size).reshape(pages.units, -1)
        for column in (np.ones(len(cell)), pages.value)
    )

    def rates(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return (weights @ sums) / (weights @ counts)

    found = cluster_estimates(rates, pages.units, method)
    made: list[CalibrationBin] = []
    for at, rate in enumerate(found):
        scores = pages.score[place == at]
        units = len(np.unique(pages.unit[place == at]))
        made.append(
            CalibrationBin(pages.measure, pages.outcome, float(scores.min()), float(scores.max()), len(scores), units,
                           float(scores.mean()), rate)
        )  # fmt: skip
    return made


def topic_relation(pages: Compared, least: int, method: IntervalMethod) -> TopicRelation | None:
    """Relate the means of topics with at least so many pages; None where there are too few such topics."""
    often = np.bincount(pages.topic, minlength=1)[pages.topic] >= least
    pages = pages.over(often)
    topics, place = np.unique(pages.topic, return_inverse=True)
    if len(topics) < _LEAST_TOPICS:
        return None
    place = place.ravel()
    columns = (np.ones(len(place)), pages.score * pages.signs[0], pages.value * pages.signs[1])

    size = len(topics)
    sums = [_by_unit(pages, place, one, size) for one in columns]

    def rhos(weights: Floats) -> Floats:
        step = max(1, _HELD // (size * size))
        parts = [weights[start : start + step] for start in range(0, len(weights), step)]
        return np.concatenate([_rhos(*(part @ one for one in sums)) for part in parts])[:, None]

    rho = cluster_estimates(rhos, pages.units, method)[0]
    return TopicRelation(pages.measure, pages.outcome, len(topics), len(place), rho)


def _by_unit(pages: Compared, place: Ints, column: Floats, size: int) -> Floats:
    """Add up a column by unit and topic: (U, T)."""
    sums = np.bincount(pages.unit * size + place, column, minlength=pages.units * size)
    return sums.reshape(-1, size).astype(np.float64)


def _rhos(count: Floats, score: Floats, value: Floats) -> Floats:
    """Give Spearman's rho of the means of topics, (b, T) to (b,), over those that were drawn: as `spearman` does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.round(one / count, 12) for one in (score, value)]  # means that are equal are a tie
        one, other = (
            (side[:, :, None] > side[:, None, :]).sum(axis=2) - (side[:, :, None] < side[:, None, :]).sum(axis=2)
            for side in means
        )  # twice the mean rank, its middle taken away
        return (one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
