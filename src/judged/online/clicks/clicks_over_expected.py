"""Clicks over expected clicks (COEC): clicks of a document relative to the clicks expected at its ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.clicks.examination import check_curve_length, match_own_estimate, read_single_curve
from judged.online.clicks.impression_counts import count_impressions
from judged.online.log import FieldAnswer, validate
from judged.results import COUNT, TEXT, Column, Sentences, Table, columns_of, counted, number
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from judged.online.clicks.impression_counts import ImpressionCounts
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats
    from judged.results.types import Table as ArrowTable

_MIN_SHAPE, _MAX_SHAPE = 1e-3, 1e6  # search range of the shape of the gamma prior
_TWO = number(2)


class ShrunkRatios(NamedTuple):
    """Gamma(clicks + a, expected + a) posteriors of ratios, shrunk toward 1: (P,) each."""

    value: Floats
    sd: Floats
    prior: float  # a: strength in expected clicks; infinite without evidence of differences


class ClickRatios(NamedTuple):
    """Clicks over expected clicks of each pair, without shrinkage: (P,) each."""

    value: Floats
    se: Floats  # always above 0
    low: Floats
    high: Floats


def expected_clicks(
    cells: ImpressionCounts, propensities: Floats | None = None, replicates: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return clicks, expected clicks, and the relative variance of expected clicks of each pair: (P,) each.

    The expected clicks of an impression are the click-through rate of its rank and stratum; or with propensities, its
    share of all clicks in proportion to the propensity of its rank.

    Parameters
    ----------
    cells
        Impressions and clicks.
    propensities
        (K,), examination propensities of ranks.
    replicates
        (G, K), jackknife replicates of propensities, if they were estimated from these cells.

    Returns
    -------
    clicks, expected, error : arrays
        ``error`` is the relative variance that expected clicks add. It can be negative, because the clicks of the pair
        contribute to its expected clicks (negative covariance).

    Raises
    ------
    InputError
        If there are propensities for too few ranks.
    """
    n_pairs, max_rank = cells.pairs.num_rows, int(cells.rank.max(initial=0))
    clicks = np.bincount(cells.pair, cells.clicks, n_pairs).astype(np.float64)
    if propensities is not None:
        check_curve_length(propensities, max_rank)

        def shares(curve: Floats) -> Floats:
            examinations = cells.impressions * curve[cells.rank - 1]
            return np.bincount(cells.pair, examinations, n_pairs) / examinations.sum()

        total_clicks, share = float(clicks.sum()), shares(propensities)
        # The total number of clicks includes those of the pair: covariance of a multinomial share.
        error = np.full(n_pairs, -1 / max(total_clicks, 1.0))
        if replicates is not None:
            log_shares = np.log([shares(curve) for curve in replicates])
            # Jackknife variance of the log share: (G - 1) / G times the sum of squares.
            error += (len(log_shares) - 1) * log_shares.var(axis=0)
        return clicks, share * total_clicks, error
    rank_index = cells.stratum * (max_rank + 1) + cells.rank
    rank_clicks = np.bincount(rank_index, cells.clicks)[rank_index]
    rank_impressions = np.bincount(rank_index, cells.impressions)[rank_index]
    share, ctr = cells.impressions / rank_impressions, rank_clicks / rank_impressions
    # Expected clicks = sum over ranks r of impressions_r CTR_r (Zhang and Jones, WWW 2007).
    expected = np.bincount(cells.pair, share * rank_clicks, n_pairs).astype(np.float64)
    skip_rate = (cells.impressions - cells.clicks + 0.5) / (cells.impressions + 1)
    # Variance of expected clicks from rank rates, and covariance with the clicks of the pair (delta method).
    variance = np.bincount(cells.pair, share * share * rank_clicks * (1 - ctr), n_pairs)
    covariance = np.bincount(cells.pair, share * cells.clicks * skip_rate, n_pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = variance / expected**2 - 2 * covariance / (np.maximum(clicks, 0.5) * expected)
    return clicks, expected, np.where(expected > 0, error, 0.0)


def estimate_ratios(
    clicks: Floats, expected: Floats, impressions: Floats, error: Floats, level: float = 0.95
) -> ClickRatios:
    """Divide clicks by expected clicks, with intervals that are valid for few or no clicks.

    Parameters
    ----------
    clicks, expected, impressions, error
        (P,) each, from `expected_clicks`.
    level
        Confidence level of the intervals.

    Notes
    -----
    The posterior of the click-through rate is Beta(clicks + 1/2, impressions - clicks + 1/2) (Jeffreys prior). Its
    interval is divided by the expected clicks per impression. Their error is combined on the log scale for each limit:
    squared distances from the mean add up (Zou and Donner, Statistics in Medicine 2008). With 0 clicks, the standard
    error is that of half a click. With 0 expected clicks, half a click is expected.

    Examples
    --------
    >>> ratios = estimate_ratios(np.array([0.0, 4.0]), np.full(2, 2.0), np.full(2, 20.0), np.zeros(2))
    >>> [column.round(2).tolist() for column in ratios]
    [[0.0, 2.0], [0.35, 0.9], [0.0, 0.72], [1.17, 4.08]]
    """
    from scipy.special import betaincinv

    # Half a click instead of 0 keeps ratios finite.
    denominators = np.where(expected > 0, expected, 0.5)
    a, b = clicks + 0.5, np.maximum(impressions - clicks, 0) + 0.5
    mean, z = a / (a + b), NormalDist().inv_cdf((1 + level) / 2)
    limits: list[Floats] = []
    for sign in (-1, 1):
        distance = np.log(betaincinv(a, b, (1 + sign * level) / 2) / mean)
        # MOVER: distances of limits combine on the log scale. The floor guards against negative covariance terms.
        squared_distance = np.maximum(distance**2 + z**2 * error, 1e-4 * distance**2)
        limits.append(mean * np.exp(sign * np.sqrt(squared_distance)) * impressions / denominators)
    limits[0] = np.where(clicks > 0, limits[0], 0.0)  # include the estimate 0 (Brown, Cai and DasGupta, 2001)
    numerators = np.maximum(clicks, 0.5)
    variance = (1 - numerators / (impressions + 1)) / numerators + error
    se = numerators / denominators * np.sqrt(np.maximum(variance, 1e-3 / numerators))
    return ClickRatios(clicks / denominators, se, *limits)


def shrink_ratios(clicks: Floats, expected: Floats) -> ShrunkRatios:
    """Shrink ratios toward 1 with a gamma-Poisson model whose prior is fitted by maximum likelihood.

    Parameters
    ----------
    clicks, expected
        (P,) each.

    Notes
    -----
    Clicks of a pair with ratio t are Poisson(t * expected), and t is Gamma(a, a) over pairs, with mean 1 (DuMouchel,
    The American Statistician 1999, with one component). Clicks of an impression are binary, with less variance than
    Poisson counts. If rankers show better documents more often or higher, ratios correlate with expected clicks, which
    the prior ignores. The result therefore has a standard deviation but no interval; `estimate_ratios` has intervals.

    Examples
    --------
    >>> ratios = shrink_ratios(np.array([0.0, 30.0, 5.0, 2.0]), np.array([10.0, 10.0, 10.0, 1.0]))
    >>> ratios.value.round(2).tolist(), round(ratios.prior, 2)
    ([0.05, 2.9, 0.53, 1.65], 0.54)
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    has_expected = expected > 0
    c, e = clicks[has_expected], expected[has_expected]

    def negative_log_likelihood(log_a: float) -> float:
        a = math.exp(log_a)
        # Negative binomial log-likelihood of counts without constants.
        log_likelihoods = gammaln(c + a) - gammaln(a) - (c + a) * np.log1p(e / a) - c * log_a
        return -float(log_likelihoods.sum())

    bounds = (math.log(_MIN_SHAPE), math.log(_MAX_SHAPE))
    optimum: Any = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded")
    a = math.exp(optimum.x)
    if a > 0.9 * _MAX_SHAPE:  # the likelihood increases up to the limit: no differences between pairs
        return ShrunkRatios(np.ones(len(clicks)), np.zeros(len(clicks)), math.inf)
    shape, rate = clicks + a, expected + a
    return ShrunkRatios(shape / rate, np.sqrt(shape) / rate, a)


class RankRate(NamedTuple):
    """Click-through rate of a rank."""

    stratum: str
    rank: int
    shown: int
    clicks: int
    ctr: float


@dataclass(frozen=True, eq=False, repr=False)
class Coec(FieldAnswer):
    """Result of `coec`: ratios of pairs, and click-through rates of ranks."""

    kind: ClassVar[str] = "coec"
    title_format: ClassVar[str] = "Clicks over expected clicks: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("log", "counting", "level", "prior")

    log: str
    counting: str
    level: float
    prior: float
    pairs: ArrowTable  # query, doc_id
    impressions: Floats
    clicks: Floats
    expected: Floats
    ratios: ClickRatios
    shrunk: ShrunkRatios
    ranks: tuple[RankRate, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Number of pairs above and below 1, and the shrinkage."""
        n_above, n_below = int((self.ratios.low > 1).sum()), int((self.ratios.high < 1).sum())
        pairs = counted(self.pairs.num_rows, "pair")
        if math.isinf(self.prior):
            shrinkage = "There is no evidence that true ratios differ between pairs, so each shrunken ratio is 1."
        else:
            shrinkage = (
                f"True ratios have an estimated standard deviation of {self.prior**-0.5:.2f} around 1. To shrink"
                f" each ratio toward 1, {decimal(self.prior, 2)} is added to the clicks and to the expected clicks."
            )
        counts = (
            f"The {self.level:.0%} CI of the ratio of clicks to expected clicks is above 1 for {n_above} of {pairs},"
            f" and below 1 for {n_below}. These CIs are not corrected for the number of pairs."
        )
        return counts, shrinkage

    def blocks(self) -> tuple[Block, ...]:
        """Return click-through rates of ranks, and pairs by decreasing lower limit."""
        shrunk, has_strata = self.shrunk, len({row[0] for row in self.ranks}) > 1
        ranks = columns_of(
            self.ranks, ("stratum", TEXT) if has_strata else "stratum", ("rank", COUNT),
            ("shown", COUNT, "impressions"), ("clicks", COUNT), ("ctr", number(4), "CTR"),
        )  # fmt: skip
        ratios = self.ratios
        order = np.lexsort((np.arange(len(ratios.low)), -ratios.low)).tolist()
        limits = zip(ratios.low.tolist(), ratios.high.tolist(), strict=True)
        ci = [ends if expected else None for ends, expected in zip(limits, self.expected.tolist(), strict=True)]
        value = np.where(self.expected > 0, ratios.value, np.nan).tolist()
        columns = (
            Column("query", self.pairs["query"].to_pylist(), TEXT),
            Column("doc_id", self.pairs["doc_id"].to_pylist(), TEXT, "document"),
            Column("shown", self.impressions.tolist(), COUNT, "impressions"),
            Column("clicks", self.clicks.tolist(), COUNT),
            Column("expected", self.expected.tolist(), _TWO, "expected"
            " clicks"), Column("raw", value, _TWO, "COEC", ci=ci),
            Column("value", shrunk.value.tolist(), _TWO, "shrunken"
            " COEC"), Column("sd", shrunk.sd.tolist(), only="data"),
        )  # fmt: skip
        pairs = Table("pairs", columns, "Pairs", labels=2).take(order)
        return Sentences(self.sentences), Table("ranks", ranks, "Ranks", labels=2 if has_strata else 1), pairs


Counting: TypeAlias = Literal["clicks", "satisfied", "purchases"]
"""Counted events: all clicks; clicks with a long or session-ending visit; purchases on the page."""


def coec(
    log: InteractionLog,
    *,
    counting: Counting = "clicks",
    dwell: float = 30.0,
    level: float = 0.95,
    propensities: Any = None,
    **selection: Any,
) -> Coec:
    """Compute clicks over expected clicks (COEC) of each query and document.

    Parameters
    ----------
    log
        Interaction log.
    counting
        ``clicks``; ``satisfied``: clicks whose visit took at least `dwell` seconds or ended the session; ``purchases``.
    dwell
        Seconds.
    level
        Confidence level of the intervals.
    propensities
        Examination propensities of ranks, as in `read_propensities`, instead of the click-through rates of ranks.
    selection
        ``by``, ``stratum``, ``pages``, ``where``, ``depth``, as in `count_impressions`.

    Raises
    ------
    InputError
        If the log has no ranks or lacks the counted events, or an option is invalid.

    Notes
    -----
    Expected clicks are summed over impressions by rank; their total is the total number of clicks. Click-through rates
    of high ranks include the higher relevance there. COEC therefore compares documents at the same ranks fairly, and
    favors documents at low ranks (Zhang and Jones, WWW 2007; Cheng and Cantu-Paz, WSDM 2010).

    Intervals (`estimate_ratios`) include the error of expected clicks: of click-through rates, and of propensities that
    were estimated from the same log. Other propensities are treated as known.
    """
    validate(log=log, level=level, dwell=dwell)
    cells = count_impressions(select_clicks(log, counting, dwell), **selection)
    curve, replicates = read_curve_and_replicates(log, propensities, selection.get("where"))
    return compute_coec(cells, log.name, counting, level, propensities=curve, replicates=replicates)


def read_curve_and_replicates(
    log: InteractionLog, propensities: Any, where: str | None
) -> tuple[Floats | None, Floats | None]:
    """Read propensities, and jackknife replicates if they were estimated from this log."""
    if propensities is None:
        return None, None
    curve, replicates = read_single_curve(propensities), None
    own_estimate = match_own_estimate(log, curve, where=where)
    if own_estimate is not None and len(own_estimate[0].leave_one_out):
        replicates = np.exp(own_estimate[0].leave_one_out)
    return curve, replicates


def compute_coec(
    cells: ImpressionCounts,
    log: str = "log",
    counting: str = "clicks",
    level: float = 0.95,
    *,
    propensities: Floats | None = None,
    replicates: Floats | None = None,
) -> Coec:
    """Compute `coec` from cells, with `replicates` as in `expected_clicks`.

    >>> import pyarrow as pa
    >>> from judged.online.clicks import ImpressionCounts
    >>> ids = pa.table({"query": ["q", "q"], "doc_id": ["a", "b"]})
    >>> codes = {"pair": [0, 0, 1, 1], "rank": [1, 2, 1, 2], "last_click": [0] * 4, "stratum": [0] * 4}
    >>> counts = {"impressions": [90, 10, 10, 90], "clicks": [45, 2, 4, 9]}
    >>> arrays = {name: np.array(values) for name, values in {**codes, **counts}.items()}
    >>> result = compute_coec(ImpressionCounts(pairs=ids, strata=("",), by="query_norm", **arrays))
    >>> result.expected.round(2).tolist(), float(result.expected.sum())
    ([45.2, 14.8], 60.0)
    """
    check_share("level", level)
    clicks, expected, error = expected_clicks(cells, propensities, replicates)
    impressions = np.bincount(cells.pair, cells.impressions, cells.pairs.num_rows).astype(np.float64)
    shrunk = shrink_ratios(clicks, expected)
    rank_codes, rank_index = np.unique(np.stack([cells.stratum, cells.rank]), axis=1, return_inverse=True)
    rank_index = rank_index.ravel()
    rank_impressions = np.bincount(rank_index, cells.impressions).astype(int).tolist()
    rank_clicks = np.bincount(rank_index, cells.clicks).astype(int).tolist()
    rank_counts = zip(*rank_codes.tolist(), rank_impressions, rank_clicks, strict=True)
    ranks = tuple(RankRate(cells.strata[stratum], rank, n, c, c / n) for stratum, rank, n, c in rank_counts)
    notes: list[Note] = []
    if math.isinf(shrunk.prior):
        notes.append(Note("no-differences", "ratios vary no more than expected by chance, so each shrunken ratio is 1"))
    single_rank_share = _single_rank_share(cells)
    if single_rank_share > 0.5:
        text = (
            f"{single_rank_share:.0%} of impressions are of pairs that were shown at only one rank; for these, the"
            " effects of rank and document cannot be separated"
        )
        notes.append(Note("one-rank", text))
    ratios = estimate_ratios(clicks, expected, impressions, error, level)
    return Coec(
        log, counting, level, shrunk.prior, cells.pairs, impressions, clicks, expected, ratios, shrunk, ranks,
        tuple(notes),
    )  # fmt: skip


def _single_rank_share(cells: ImpressionCounts) -> float:
    """Return the share of impressions of pairs with a single rank."""
    n_pairs = cells.pairs.num_rows
    lowest, highest = np.full(n_pairs, np.iinfo(np.int64).max), np.zeros(n_pairs, dtype=np.int64)
    np.minimum.at(lowest, cells.pair, cells.rank)
    np.maximum.at(highest, cells.pair, cells.rank)
    return float(cells.impressions[(lowest == highest)[cells.pair]].sum() / cells.impressions.sum())


def select_clicks(log: InteractionLog, counting: str, dwell: float) -> InteractionLog:
    """Return the log with only the counted events, as clicks.

    Raises
    ------
    InputError
        If the log does not have them.
    """
    from judged.online.facts.reformulation import click_facts

    if counting == "clicks":
        return log
    if counting == "satisfied":
        if "dwell" not in log.has:
            raise InputError(
                f"satisfied clicks require dwell times, but {log.name} has none", fix="use counting=clicks"
            )
        # ended = 0: the visit ended the session, so that its dwell time is unknown.
        rows = f"SELECT * FROM {click_facts(log)} WHERE ended = 0 OR dwell_ms >= {1000 * dwell:.0f}"
    elif counting == "purchases":
        rows = f"SELECT * FROM {log.event} WHERE action = 'purchase' AND serp IS NOT NULL"
    else:
        problem = f"`counting` must be clicks, satisfied, or purchases, got {counting!r}"
        raise InputError(problem, fix="use counting=clicks")
    columns = "serp, session, \"user\", time_ms, 'click' AS action, object_id, rank, dwell_ms"
    event_columns = "row_number() OVER () AS event, CAST(NULL AS DOUBLE) AS value"
    return replace(log, event=log.engine.keep(f"SELECT {event_columns}, {columns} FROM ({rows})", "counting"))
