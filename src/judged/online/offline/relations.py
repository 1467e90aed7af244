"""Scores of pages against outcomes of pages: the numbers, with intervals over units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.offline.answer import CalibrationBin, Relation, TopicRelation
from judged.online.offline.concordance import (
    Estimate,
    by_unit,
    influenced,
    pairs_of,
    probability,
    ratio_estimate,
    tau_b,
)
from judged.stats.rankings import spearman

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.online.offline.concordance import Pairs

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
    share
        The value lies between 0 and 1 on every page.
    """

    measure: str
    outcome: str
    score: Floats
    value: Floats
    signs: tuple[int, int]
    unit: Ints
    topic: Ints
    slice: Ints
    share: bool

    def over(self, kept: Bools) -> Compared:
        """Leave some of the pages, and number their units anew."""
        _, unit = np.unique(self.unit[kept], return_inverse=True)
        columns = {name: getattr(self, name)[kept] for name in ("score", "value", "topic", "slice")}
        return replace(self, unit=unit.ravel(), **columns)

    @property
    def units(self) -> int:
        """How many units the pages are of."""
        return int(self.unit.max(initial=-1)) + 1


def relation(pages: Compared, slice: str | None, level: float) -> Relation:
    """Relate a measure to an outcome."""
    score, value = pages.score * pages.signs[0], pages.value * pages.signs[1]
    pooled, own = pairs_of(score, value), pairs_of(score, value, pages.topic)
    return Relation(
        pages.measure,
        pages.outcome,
        slice,
        len(score),
        pages.units,
        len(np.unique(pages.topic)),
        float(pages.value.mean()) if len(score) else np.nan,
        ordered(pooled, pages.unit, level),
        pooled.count,
        ordered(own, pages.unit, level),
        own.count,
        correlated(pooled, pages.unit, level),
        slope(pages, level),
    )


def ordered(pairs: Pairs, unit: Ints, level: float) -> Estimate:
    """Estimate the probability that pages are in order, ``(1 + net / second) / 2``: an area under a curve, or c.

    A sum over pairs grows twice by what a unit adds, as either page of a pair may be its own. For an outcome of 0 and 1
    the influences are sums of the placement values of DeLong, DeLong and Clarke-Pearson (1988).
    """
    value = probability(pairs)
    net, second = by_unit(unit, pairs.net), by_unit(unit, pairs.second)
    if np.isnan(value):
        return Estimate(value, np.nan, np.nan)
    return influenced(value, (net - (2 * value - 1) * second) / second.sum(), _told(pairs, unit), level, share=True)


def correlated(pairs: Pairs, unit: Ints, level: float) -> Estimate:
    """Estimate tau_b, ``net / sqrt(first * second)``; its interval is made on the scale of Fisher's z."""
    value = tau_b(pairs)
    net, first, second = (by_unit(unit, column) for column in (pairs.net, pairs.first, pairs.second))
    if np.isnan(value):
        return Estimate(value, np.nan, np.nan)
    influence = 2 * net / np.sqrt(first.sum() * second.sum()) - value * (first / first.sum() + second / second.sum())
    found = influenced(
        (1 + value) / 2, influence / 2, _told(pairs, unit), level, share=True
    )  # its logit is twice Fisher's z
    return Estimate(value, 2 * found.low - 1, 2 * found.high - 1)


def _told(pairs: Pairs, unit: Ints) -> Floats:
    """Give what each unit tells of pairs, (U,): of few pages with a click among many, the clicks.

    The influence of a page has a variance that grows with the square of the pairs that it decides: sums of these are
    what Kish's effective number of units, and so Student's t, is made of.
    """
    return by_unit(unit, pairs.second.astype(np.float64) ** 2)


def slope(pages: Compared, level: float) -> Estimate:
    """Estimate the slope of least squares: a ratio of sums, as the means that are taken away do not move it."""
    if not len(pages.score):
        return Estimate(np.nan, np.nan, np.nan)
    x, y = pages.score - pages.score.mean(), pages.value - pages.value.mean()
    if not float(x @ x) > 1e-12 * float(pages.score @ pages.score):
        return Estimate(np.nan, np.nan, np.nan)
    above, below = by_unit(pages.unit, x * y), by_unit(pages.unit, x * x)
    value = float(above.sum() / below.sum())
    return influenced(value, (above - value * below) / below.sum(), by_unit(pages.unit, (x * y) ** 2), level)


def calibration(pages: Compared, bins: int, level: float) -> list[CalibrationBin]:
    """Cut pages into bins of about equally many by their score, equal scores together, and look at the outcome."""
    if not len(pages.score):
        return []
    edges = np.unique(np.quantile(pages.score, np.arange(1, bins) / bins, method="inverted_cdf"))
    place = np.searchsorted(edges, pages.score, side="left")  # an edge is the highest score of its bin
    made: list[CalibrationBin] = []
    for at in np.unique(place).tolist():
        kept = place == at
        scores, counts = pages.score[kept], np.bincount(pages.unit[kept])
        rate = ratio_estimate(
            by_unit(pages.unit[kept], pages.value[kept]), counts.astype(np.float64), level, share=pages.share
        )
        made.append(
            CalibrationBin(
                pages.measure,
                pages.outcome,
                float(scores.min()),
                float(scores.max()),
                len(scores),
                int((counts > 0).sum()),
                float(scores.mean()),
                rate,
            )
        )
    return made


def topic_relation(pages: Compared, least: int, level: float) -> TopicRelation | None:
    """Relate the means of topics with at least so many pages; None where there are too few such topics."""
    often = np.bincount(pages.topic, minlength=1)[pages.topic] >= least
    topics, place = np.unique(pages.topic[often], return_inverse=True)
    if len(topics) < _LEAST_TOPICS:
        return None
    place = place.ravel()
    count = np.bincount(place)
    score, value = (
        np.round(np.bincount(place, column[often] * sign) / count, 12)  # means that are equal are a tie
        for column, sign in zip((pages.score, pages.value), pages.signs, strict=True)
    )
    rho = spearman(score, value).value
    return TopicRelation(pages.measure, pages.outcome, len(topics), len(place), _of_topics(rho, len(topics), level))


def _of_topics(rho: float, topics: int, level: float) -> Estimate:
    """Give Spearman's rho the interval of Bonett and Wright (Psychometrika 2000), of topics drawn from many.

    Ranks of means do not move when a unit counts a little more, so that influences of units tell nothing here; and an
    order of few topics is first of all a matter of which topics they are.
    """
    if not abs(rho) < 1:
        return Estimate(rho, np.nan, np.nan)
    from statistics import NormalDist  # its fractions take a while to import

    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt((1 + rho**2 / 2) / (topics - 3))
    return Estimate(rho, float(np.tanh(np.arctanh(rho) - half)), float(np.tanh(np.arctanh(rho) + half)))
