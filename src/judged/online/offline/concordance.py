"""Order of pages by score and by outcome, and intervals that respect users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.offline.answer import CalibrationBin, Relation, TopicRelation
from judged.stats.rankings import spearman
from judged.stats.ratio import effective_units, exact_share_interval, ratio_error, ratio_interval

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Parameters
    ----------
    value
        NaN where it is undefined.
    low, high
        The interval; NaN where there is none: fewer than two units, or a value that is undefined.

    Examples
    --------
    >>> str(Estimate(0.5, 0.25, 0.75)), str(Estimate(0.5, float("nan"), float("nan")))
    ('0.500 [0.250, 0.750]', '0.500')
    """

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (np.isnan(self.low) or np.isnan(self.high))

    def excludes(self, value: float) -> bool:
        """Whether the interval leaves out a value."""
        return self.known and not self.low <= value <= self.high

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "-"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.known else f"{self.value:.3f}"


UNKNOWN = Estimate(np.nan, np.nan, np.nan)


def by_unit(unit: Ints, column: Floats | Ints | Bools) -> Floats:
    """Add up a column by unit: (N,) and (N,) to (U,)."""
    return np.bincount(unit, column).astype(np.float64)


def ratio_estimate(
    above: Floats, below: Floats, level: float, *, share: bool = False, signed: bool = False
) -> Estimate:
    """Estimate a ratio of sums over units, with its interval.

    Parameters
    ----------
    above, below
        (U,): the sums of each unit. Units with nothing below do not count.
    level
        Of the interval.
    share
        Every row lies between 0 and 1.
    signed
        The numerator may be negative: the interval is symmetric.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> clicks, pages = np.array([1.0, 1.0, 0.0, 2.0]), np.array([1.0, 4.0, 2.0, 3.0])
    >>> str(ratio_estimate(clicks, pages, 0.95))
    '0.400 [0.080, 3.208]'
    """
    there = below > 0
    n, d = above[there], below[there]
    total = float(d.sum())
    if not total:
        return UNKNOWN
    value = float(n.sum()) / total
    error = ratio_error(len(d), float(n.sum()), total, float(n @ n), float(d @ d), float(n @ d))
    return _estimate(value, error, d, level, share=share, signed=signed)


def influenced(
    value: float, influence: Floats, size: Floats, level: float, *, share: bool = False, signed: bool = True
) -> Estimate:
    """Give a value the interval that its influences make.

    Parameters
    ----------
    value
        The statistic; NaN: it is undefined.
    influence
        (U,): of each unit.
    size
        (U,): how much each unit takes part; units of 0 do not count.
    level, share, signed
        As for `ratio_estimate`.

    Returns
    -------
    Estimate
    """
    there = size > 0
    units = int(there.sum())
    if np.isnan(value) or units < 2:
        return Estimate(value, np.nan, np.nan)
    own = influence[there]
    error = float(np.sqrt(own @ own * units / (units - 1)))
    return _estimate(value, error, size[there], level, share=share, signed=signed)


def _estimate(value: float, error: float, size: Floats, level: float, *, share: bool, signed: bool) -> Estimate:
    """Make the interval: units of very unequal size tell as little as fewer equal ones."""
    counted = effective_units(float(size.sum()), float(size @ size))
    if share and value in (0.0, 1.0):
        low, high = exact_share_interval(max(counted, 2.0), level, value) if len(size) > 1 else (np.nan, np.nan)
    else:
        low, high = ratio_interval(value, error, len(size), level, share=share, effective=counted, signed=signed)
    return Estimate(value, low, high)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that each page is in: (N,) each. Every pair stands here twice, once for each of its pages.

    Parameters
    ----------
    net
        Pairs in the same order by both quantities, minus those in opposite orders: between minus and plus `second`.
    first, second
        Pairs that differ in the first quantity, and in the second.
    both
        Pairs that differ in both: those that are in some order.
    """

    net: Ints
    first: Ints
    second: Ints
    both: Ints

    @property
    def count(self) -> int:
        """How many pairs differ in both quantities, each counted once: of none, nothing is compared."""
        return int(self.both.sum()) // 2


def pairs_of(first: Floats, second: Floats, stratum: Ints | None = None) -> Pairs:
    """Count the pairs of each page.

    Pages are sorted by the first quantity, and cut in two by the second one again and again: at each cut a page is
    compared with those of the other half by running sums. The cost is ``N log N`` for the sorting, and N for each
    doubling of the number of different second quantities.

    Parameters
    ----------
    first, second
        (N,) each, no NaN.
    stratum
        (N,): only pages of one stratum are compared; None: all.

    Returns
    -------
    Pairs

    Examples
    --------
    >>> found = pairs_of(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> found.net.tolist(), found.first.tolist(), found.second.tolist(), found.count
    ([2, 1, 1, 2], [3, 2, 2, 3], [2, 2, 2, 2], 3)
    """
    strata = np.zeros(len(first), dtype=np.int64) if stratum is None else stratum
    rank, code = (np.unique(column, return_inverse=True)[1].ravel() for column in (first, second))
    order = np.lexsort((rank, strata))
    one, other = (_unlike(strata, column) for column in (rank, code))
    cell = np.unique(rank * (code.max(initial=0) + 1) + code, return_inverse=True)[1].ravel()
    net = np.zeros(len(order), dtype=np.int64)
    for bit in reversed(range(int(code.max(initial=0)).bit_length())):
        upper = (code[order] >> bit & 1).astype(np.bool_)
        group = _changes(strata[order], code[order] >> (bit + 1))
        net[order] += _net(upper, group, group | _changes(rank[order]))
        order = order[np.argsort(2 * np.cumsum(group) + upper, kind="stable")]
    return Pairs(net, one, other, one + other - _unlike(strata, cell))


def _unlike(stratum: Ints, code: Ints) -> Ints:
    """Count for each page those of its stratum with another code."""
    _, place = np.unique(stratum, return_inverse=True)
    place = place.ravel()
    _, cell = np.unique(place * (code.max(initial=0) + 1) + code, return_inverse=True)
    cell = cell.ravel()
    return np.bincount(place)[place] - np.bincount(cell)[cell]


def _changes(*columns: Ints) -> Bools:
    """Tell the rows where a group begins: where any of the columns differs from the row before."""
    begins = np.ones(len(columns[0]), dtype=np.bool_)
    begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return begins


def _net(upper: Bools, group: Bools, run: Bools) -> Ints:
    """Compare each row with the rows of its group in the other half.

    Parameters
    ----------
    upper
        (N,): in the half with more of the second quantity.
    group, run
        (N,): where groups, and runs of the same first quantity in a group, begin.
    """
    balance = []
    for half in (~upper, upper):
        total = np.concatenate([[0], np.cumsum(half)])
        (low, high), (begin, end) = (_bounds(begins) for begins in (group, run))
        balance.append((total[begin] - total[low]) - (total[high] - total[end]))  # below minus above
    return np.where(upper, balance[0], -balance[1])


def _bounds(begins: Bools) -> tuple[Ints, Ints]:
    """Give where the group of each row begins, and where it ends."""
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(begins))
    sizes = ends - starts
    return np.repeat(starts, sizes), np.repeat(ends, sizes)


def probability(pairs: Pairs) -> float:
    """Give the probability that of two pages the one with more of the second has more of the first.

    Pairs tied in the first count half, pairs tied in the second do not count. For a second quantity of 0 and 1 this is
    the area under the ROC curve (Hanley and McNeil 1982), for any other Harrell's c (1982). NaN where every pair is
    tied in one of them: then nothing was compared.

    Examples
    --------
    Of four pairs three are right, and one is tied:

    >>> probability(pairs_of(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])))
    0.875
    """
    return 0.5 + int(pairs.net.sum()) / int(pairs.second.sum()) / 2 if pairs.count else np.nan


def tau_b(pairs: Pairs) -> float:
    """Give Kendall's tau_b, as `judged.stats.kendall_tau` does; NaN where all pages are tied in one quantity."""
    unlike = float(pairs.first.sum()) * float(pairs.second.sum())
    return float(pairs.net.sum()) / float(np.sqrt(unlike)) if unlike else np.nan


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
    # The logit of the half of 1 and the value is twice Fisher's z.
    found = influenced((1 + value) / 2, influence / 2, _told(pairs, unit), level, share=True)
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
        own = pages.over(place == at)
        ends, mean = (float(own.score.min()), float(own.score.max())), float(own.score.mean())
        sums, counts = by_unit(own.unit, own.value), by_unit(own.unit, np.ones(len(own.unit)))
        rate = ratio_estimate(sums, counts, level, share=own.share)
        made.append(CalibrationBin(own.measure, own.outcome, *ends, len(own.score), own.units, mean, rate))
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
