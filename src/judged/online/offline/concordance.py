"""Concordance of scores and outcomes over pages, with intervals clustered by user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.offline.outcome_results import CalibrationBin, OutcomeRelation, TopicRelation
from judged.stats.rankings import spearman
from judged.stats.ratio import effective_units, exact_share_interval, ratio_error, ratio_interval

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


@dataclass(frozen=True)
class IntervalEstimate:
    """A value with its confidence interval.

    Parameters
    ----------
    value
        NaN if undefined.
    low, high
        Interval; NaN if the value is undefined or there are fewer than two units.

    Examples
    --------
    >>> str(IntervalEstimate(0.5, 0.25, 0.75)), str(IntervalEstimate(0.5, float("nan"), float("nan")))
    ('0.500 [0.250, 0.750]', '0.500')
    """

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not (np.isnan(self.low) or np.isnan(self.high))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Limits of the interval, or None."""
        return (self.low, self.high) if self.has_interval else None

    def excludes(self, value: float) -> bool:
        """Return whether the interval excludes a value."""
        return self.has_interval and not self.low <= value <= self.high

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "-"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.has_interval else f"{self.value:.3f}"


NO_ESTIMATE = IntervalEstimate(np.nan, np.nan, np.nan)


def unit_sums(unit: Ints, column: Floats | Ints | Bools) -> Floats:
    """Return the sums of a column by unit: (N,) and (N,) to (U,)."""
    return np.bincount(unit, column).astype(np.float64)


def ratio_estimate(
    numerators: Floats, denominators: Floats, level: float, *, share: bool = False, signed: bool = False
) -> IntervalEstimate:
    """Estimate a ratio of sums over units, with its interval.

    Parameters
    ----------
    numerators, denominators
        (U,), sums of each unit. Units with denominator 0 do not count.
    level
        Confidence level of the interval.
    share
        Whether each row is between 0 and 1.
    signed
        Whether the numerator may be negative. The interval is then symmetric.

    Returns
    -------
    IntervalEstimate

    Examples
    --------
    >>> clicks, pages = np.array([1.0, 1.0, 0.0, 2.0]), np.array([1.0, 4.0, 2.0, 3.0])
    >>> str(ratio_estimate(clicks, pages, 0.95))
    '0.400 [0.080, 3.208]'
    """
    is_counted = denominators > 0
    # Linearization of a ratio of sums (delta method), clustered by unit.
    n, d = numerators[is_counted], denominators[is_counted]
    total = float(d.sum())
    if not total:
        return NO_ESTIMATE
    value = float(n.sum()) / total
    error = ratio_error(len(d), float(n.sum()), total, float(n @ n), float(d @ d), float(n @ d))
    return _build_estimate(value, error, d, level, share=share, signed=signed)


def influence_estimate(
    value: float, influence: Floats, sizes: Floats, level: float, *, share: bool = False, signed: bool = True
) -> IntervalEstimate:
    """Compute the interval of a statistic from the influence of each unit.

    Parameters
    ----------
    value
        Statistic; NaN if undefined.
    influence
        (U,), influence of each unit.
    sizes
        (U,), weight of each unit for the effective number of units; units with size 0 do not count.
    level, share, signed
        As in `ratio_estimate`.

    Returns
    -------
    IntervalEstimate
    """
    is_counted = sizes > 0
    n_units = int(is_counted.sum())
    if np.isnan(value) or n_units < 2:
        return IntervalEstimate(value, np.nan, np.nan)
    influences = influence[is_counted]
    error = float(np.sqrt(influences @ influences * n_units / (n_units - 1)))
    return _build_estimate(value, error, sizes[is_counted], level, share=share, signed=signed)


def _build_estimate(
    value: float, error: float, sizes: Floats, level: float, *, share: bool, signed: bool
) -> IntervalEstimate:
    # Units of very unequal size are as informative as fewer equal units (Kish).
    n_effective = effective_units(float(sizes.sum()), float(sizes @ sizes))
    # At 0 and 1 the linearized error is 0: use an exact binomial interval with the effective number of units.
    if share and value in (0.0, 1.0):
        low, high = exact_share_interval(max(n_effective, 2.0), level, value) if len(sizes) > 1 else (np.nan, np.nan)
    else:
        low, high = ratio_interval(value, error, len(sizes), level, share=share, effective=n_effective, signed=signed)
    return IntervalEstimate(value, low, high)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of pairs by page, (N,) each. Each pair counts for both of its pages.

    Parameters
    ----------
    net
        Concordant minus discordant pairs.
    untied_first, untied_second
        Pairs that differ in the first quantity, and in the second.
    untied_both
        Pairs that differ in both: concordant plus discordant pairs.
    """

    net: Ints
    untied_first: Ints
    untied_second: Ints
    untied_both: Ints

    @property
    def n_untied(self) -> int:
        """Number of concordant and discordant pairs, each counted once."""
        return int(self.untied_both.sum()) // 2


def count_pairs(first: Floats, second: Floats, stratum: Ints | None = None) -> PairCounts:
    """Count concordant, discordant, and untied pairs of each page.

    Pages are sorted by the first quantity and repeatedly bisected by the second (one bit of its codes at a time).
    Running sums compare a page with the other half. The cost is N log N for sorting, plus N per bit.

    Parameters
    ----------
    first, second
        (N,) each, no NaN.
    stratum
        (N,), compare only pages of the same stratum; None: all.

    Returns
    -------
    PairCounts

    Examples
    --------
    >>> pairs = count_pairs(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> pairs.net.tolist(), pairs.untied_first.tolist(), pairs.untied_second.tolist(), pairs.n_untied
    ([2, 1, 1, 2], [3, 2, 2, 3], [2, 2, 2, 2], 3)
    """
    strata = np.zeros(len(first), dtype=np.int64) if stratum is None else stratum
    # Only ranks of values matter: replace values by codes.
    first_codes, second_codes = (np.unique(column, return_inverse=True)[1].ravel() for column in (first, second))
    order = np.lexsort((first_codes, strata))
    untied_first, untied_second = (_count_different(strata, column) for column in (first_codes, second_codes))
    cells = np.unique(first_codes * (second_codes.max(initial=0) + 1) + second_codes, return_inverse=True)[1].ravel()
    net = np.zeros(len(order), dtype=np.int64)
    # Radix sort by the second quantity, highest bit first: each pair is compared once, at its first differing bit.
    for bit in reversed(range(int(second_codes.max(initial=0)).bit_length())):
        is_upper = (second_codes[order] >> bit & 1).astype(np.bool_)
        group_starts = _group_starts(strata[order], second_codes[order] >> (bit + 1))
        net[order] += _net_order(is_upper, group_starts, group_starts | _group_starts(first_codes[order]))
        order = order[np.argsort(2 * np.cumsum(group_starts) + is_upper, kind="stable")]
    # Pairs that differ in both = differ in first + differ in second - differ in at least one.
    return PairCounts(net, untied_first, untied_second, untied_first + untied_second - _count_different(strata, cells))


def _count_different(strata: Ints, codes: Ints) -> Ints:
    """Count the pages of the same stratum with another code, by page."""
    _, codes_of_stratum = np.unique(strata, return_inverse=True)
    codes_of_stratum = codes_of_stratum.ravel()
    _, cells = np.unique(codes_of_stratum * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    cells = cells.ravel()
    return np.bincount(codes_of_stratum)[codes_of_stratum] - np.bincount(cells)[cells]


def _group_starts(*columns: Ints) -> Bools:
    """Return which rows start a group: any column differs from the previous row."""
    is_start = np.ones(len(columns[0]), dtype=np.bool_)
    is_start[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return is_start


def _net_order(is_upper: Bools, group_starts: Bools, run_starts: Bools) -> Ints:
    """Count concordant minus discordant pairs of each row with the other half of its group.

    Parameters
    ----------
    is_upper
        (N,), whether the row is in the half with higher second quantity.
    group_starts, run_starts
        (N,), whether the row starts a group, and a run of equal first quantity within it.
    """
    balance = []
    for is_in_half in (~is_upper, is_upper):
        cumulative = np.concatenate([[0], np.cumsum(is_in_half)])
        (low, high), (begin, end) = _group_bounds(group_starts), _group_bounds(run_starts)
        # Rows of the other half with a lower first quantity, minus rows with a higher one.
        balance.append((cumulative[begin] - cumulative[low]) - (cumulative[high] - cumulative[end]))
    return np.where(is_upper, balance[0], -balance[1])


def _group_bounds(is_start: Bools) -> tuple[Ints, Ints]:
    """Return the first row and the end of the group of each row."""
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], len(is_start))
    sizes = ends - starts
    return np.repeat(starts, sizes), np.repeat(ends, sizes)


def concordance_probability(pairs: PairCounts) -> float:
    """Return the probability that the page with the higher second quantity has the higher first quantity.

    Pairs that are tied in the first quantity count half; pairs that are tied in the second do not count. For a binary
    second quantity this is the area under the ROC curve (Hanley and McNeil 1982), otherwise Harrell's c (1982). NaN if
    no pair is untied in both.

    Examples
    --------
    Three of four pairs are concordant, one is tied:

    >>> concordance_probability(count_pairs(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])))
    0.875
    """
    # (1 + net / untied) / 2, from sums in which each pair counts twice.
    return 0.5 + int(pairs.net.sum()) / int(pairs.untied_second.sum()) / 2 if pairs.n_untied else np.nan


def tau_b(pairs: PairCounts) -> float:
    """Return Kendall's tau_b; NaN if all pages are tied in one quantity."""
    # (C - D) / sqrt((pairs untied in x) (pairs untied in y)); all sums count each pair twice.
    product = float(pairs.untied_first.sum()) * float(pairs.untied_second.sum())
    return float(pairs.net.sum()) / float(np.sqrt(product)) if product else np.nan


_MIN_TOPICS = 5  # a rank correlation of fewer topics has almost no information


@dataclass(frozen=True, eq=False)
class ScoredPages:
    """Scores by one measure and values of one outcome on N pages.

    Parameters
    ----------
    measure, outcome
        Names.
    score, value
        (N,) each.
    signs
        Signs of the score and the value: 1 if higher is better, -1 if lower is better.
    unit, topic, slice
        (N,), codes.
    share
        Whether each value is between 0 and 1.
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

    def select(self, is_selected: Bools) -> ScoredPages:
        """Return the selected pages, with new unit codes."""
        _, unit = np.unique(self.unit[is_selected], return_inverse=True)
        columns = {name: getattr(self, name)[is_selected] for name in ("score", "value", "topic", "slice")}
        return replace(self, unit=unit.ravel(), **columns)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.unit.max(initial=-1)) + 1


def outcome_relation(pages: ScoredPages, slice: str | None, level: float) -> OutcomeRelation:
    """Estimate the relation of a measure and an outcome."""
    score, value = pages.score * pages.signs[0], pages.value * pages.signs[1]
    all_pairs, topic_pairs = count_pairs(score, value), count_pairs(score, value, pages.topic)
    mean = float(pages.value.mean()) if len(score) else np.nan
    return OutcomeRelation(
        pages.measure, pages.outcome, slice, len(score), pages.n_units, len(np.unique(pages.topic)), mean,
        estimate_probability(all_pairs, pages.unit, level), all_pairs.n_untied,
        estimate_probability(topic_pairs, pages.unit, level), topic_pairs.n_untied,
        estimate_tau_b(all_pairs, pages.unit, level), estimate_slope(pages, level),
    )  # fmt: skip


def estimate_probability(pairs: PairCounts, unit: Ints, level: float) -> IntervalEstimate:
    """Estimate the concordance probability, ``(1 + net / untied_second) / 2``, with its interval.

    A unit influences a sum over pairs twice: as the first and as the second page. For a binary outcome, the influences
    are sums of the placement values of DeLong, DeLong and Clarke-Pearson (1988).
    """
    value = concordance_probability(pairs)
    net, second = unit_sums(unit, pairs.net), unit_sums(unit, pairs.untied_second)
    if np.isnan(value):
        return IntervalEstimate(value, np.nan, np.nan)
    # Derivative of (1 + net / second) / 2; the factor 2 of pair sums cancels the 1 / 2.
    influence = (net - (2 * value - 1) * second) / second.sum()
    return influence_estimate(value, influence, _pair_weights(pairs, unit), level, share=True)


def estimate_tau_b(pairs: PairCounts, unit: Ints, level: float) -> IntervalEstimate:
    """Estimate tau_b with an interval on Fisher's z scale."""
    value = tau_b(pairs)
    columns = pairs.net, pairs.untied_first, pairs.untied_second
    net, first, second = (unit_sums(unit, column) for column in columns)
    if np.isnan(value):
        return IntervalEstimate(value, np.nan, np.nan)
    # Derivative of net / sqrt(first * second) by the weight of a unit, which counts twice in each sum.
    influence = 2 * net / np.sqrt(first.sum() * second.sum()) - value * (first / first.sum() + second / second.sum())
    # logit((1 + tau_b) / 2) is twice Fisher's z of tau_b.
    half_scale = influence_estimate((1 + value) / 2, influence / 2, _pair_weights(pairs, unit), level, share=True)
    return IntervalEstimate(value, 2 * half_scale.low - 1, 2 * half_scale.high - 1)


def _pair_weights(pairs: PairCounts, unit: Ints) -> Floats:
    """Return the sizes of units for the effective number of units, (U,).

    The variance of the influence of a page grows with the square of its untied pairs. If few pages have a click, these
    pages determine the estimate.
    """
    return unit_sums(unit, pairs.untied_second.astype(np.float64) ** 2)


def estimate_slope(pages: ScoredPages, level: float) -> IntervalEstimate:
    """Estimate the least-squares slope as a ratio of sums over units."""
    if not len(pages.score):
        return IntervalEstimate(np.nan, np.nan, np.nan)
    # Centering by the total mean does not change the derivative of the slope.
    x, y = pages.score - pages.score.mean(), pages.value - pages.value.mean()
    if not float(x @ x) > 1e-12 * float(pages.score @ pages.score):
        return IntervalEstimate(np.nan, np.nan, np.nan)
    xy, xx = unit_sums(pages.unit, x * y), unit_sums(pages.unit, x * x)
    value = float(xy.sum() / xx.sum())
    return influence_estimate(value, (xy - value * xx) / xx.sum(), unit_sums(pages.unit, (x * y) ** 2), level)


def calibration_bins(pages: ScoredPages, bins: int, level: float) -> list[CalibrationBin]:
    """Return the mean outcome in quantile bins of the score. Equal scores share a bin."""
    if not len(pages.score):
        return []
    # Inverted-CDF quantiles are observed scores, so that ties never straddle an edge.
    edges = np.unique(np.quantile(pages.score, np.arange(1, bins) / bins, method="inverted_cdf"))
    bin_index = np.searchsorted(edges, pages.score, side="left")  # edges are inclusive upper limits
    rows: list[CalibrationBin] = []
    for i in np.unique(bin_index).tolist():
        in_bin = pages.select(bin_index == i)
        ends, mean = (float(in_bin.score.min()), float(in_bin.score.max())), float(in_bin.score.mean())
        sums, counts = unit_sums(in_bin.unit, in_bin.value), unit_sums(in_bin.unit, np.ones(len(in_bin.unit)))
        outcome = ratio_estimate(sums, counts, level, share=in_bin.share)
        names, n_pages = (pages.measure, pages.outcome), len(in_bin.score)
        rows.append(CalibrationBin(*names, *ends, n_pages, in_bin.n_units, mean, outcome))
    return rows


def topic_relation(pages: ScoredPages, min_pages: int, level: float) -> TopicRelation | None:
    """Correlate means of topics with at least `min_pages` pages. Return None for fewer than 5 topics."""
    is_frequent = np.bincount(pages.topic, minlength=1)[pages.topic] >= min_pages
    topics, index = np.unique(pages.topic[is_frequent], return_inverse=True)
    if len(topics) < _MIN_TOPICS:
        return None
    index = index.ravel()
    page_counts = np.bincount(index)
    score, value = (
        np.round(
            np.bincount(index, column[is_frequent] * sign) / page_counts, 12
        )  # rounding restores ties of equal means
        for column, sign in zip((pages.score, pages.value), pages.signs, strict=True)
    )
    rho = spearman(score, value).value
    estimate = _spearman_estimate(rho, len(topics), level)
    return TopicRelation(pages.measure, pages.outcome, len(topics), len(index), estimate)


def _spearman_estimate(rho: float, n_topics: int, level: float) -> IntervalEstimate:
    """Return Spearman's rho with the interval of Bonett and Wright (Psychometrika 2000), over a sample of topics.

    Influences of units are useless here, because small changes do not change the ranks of means.
    """
    if not abs(rho) < 1:
        return IntervalEstimate(rho, np.nan, np.nan)
    from statistics import NormalDist  # imported here because it loads fractions and decimal

    # Standard error of atanh(rho): sqrt((1 + rho**2 / 2) / (n - 3)).
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt((1 + rho**2 / 2) / (n_topics - 3))
    return IntervalEstimate(rho, float(np.tanh(np.arctanh(rho) - half)), float(np.tanh(np.arctanh(rho) + half)))
