"""Position bias without a click model: examination propensities of ranks by intervention harvesting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.data import files
from judged.data.json_rows import load_json
from judged.data.records import records_of
from judged.errors import InputError
from judged.online.clicks.impression_counts import count_page_patterns
from judged.online.engine import identifier, literal
from judged.online.layout import clip, percent
from judged.online.log import FieldAnswer, check_column, validate
from judged.results import COUNT, TEXT, Axis, Chart, Headline, Sentences, Table, columns_of, counted, listed, number
from judged.results.blocks import Note
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints

MAX_GROUPS = 50  # of users, for the jackknife
_MIN_GROUPS = 10  # of users, for an interval


class RankPropensities(NamedTuple):
    """Estimated examination propensities of K ranks."""

    log_propensity: Floats  # (K,): relative to the first rank with impressions; NaN: not connected to it
    clicks: Floats  # (K, K): weighted clicks at the first rank, on documents that were shown at both


def estimate_all_pairs(impressions: Floats, clicks: Floats) -> RankPropensities:
    """Estimate examination propensities from all pairs of ranks (intervention harvesting: Agarwal et al., WSDM 2019).

    Parameters
    ----------
    impressions, clicks
        (P, K), counts of each pair of query and document at each rank.

    Returns
    -------
    RankPropensities
        NaN for ranks that no chain of documents connects to the first rank with impressions.

    Notes
    -----
    Each two ranks are compared by the click-through rates of documents that were shown at both, weighted by
    ``n m / (n + m)`` for n and m impressions. The logarithms of all ratios are fitted by weighted least squares (the
    all-pairs estimator of Agarwal et al. maximizes a likelihood instead). The estimate assumes that impressions of a
    document for a query differ only in their rank.

    Examples
    --------
    >>> impressions, clicks = np.array([[100, 100], [50, 0.0]]), np.array([[40, 20], [25, 0.0]])
    >>> estimate_all_pairs(impressions, clicks).log_propensity.round(3).tolist()
    [0.0, -0.693]
    """
    n_ranks = impressions.shape[1]
    pair_clicks, variances = np.zeros((n_ranks, n_ranks)), np.full((n_ranks, n_ranks), np.inf)
    for rank in range(n_ranks):
        with np.errstate(invalid="ignore", divide="ignore"):
            # Weight n m / (n + m) of a document with n and m impressions at both ranks, divided by n.
            other_share = np.nan_to_num(impressions / (impressions + impressions[:, [rank]]))
        pair_clicks[rank] = clicks[:, rank] @ other_share
        weighted_clicks = clicks[:, rank] @ other_share**2
        np.divide(weighted_clicks, pair_clicks[rank] ** 2, out=variances[rank], where=pair_clicks[rank] > 0)
    # Inverse variance of the log ratio, from Poisson variances of the weighted clicks.
    weights = 1 / (variances + variances.T)
    np.fill_diagonal(weights, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.where(weights > 0, np.log(pair_clicks) - np.log(pair_clicks.T), 0.0)
    is_connected = _connected(weights > 0, int(np.argmax(impressions.sum(axis=0) > 0)))
    log_propensity = np.full(n_ranks, np.nan)
    free_ranks = np.flatnonzero(is_connected)[1:]
    log_propensity[is_connected] = 0.0
    # Weighted least squares of log ratios: normal equations of the graph of ranks, with the first rank at 0.
    laplacian = np.diag(weights.sum(axis=1)) - weights
    sums = (weights * log_ratios).sum(axis=1)
    log_propensity[free_ranks] = np.linalg.solve(laplacian[np.ix_(free_ranks, free_ranks)], sums[free_ranks])
    return RankPropensities(log_propensity, pair_clicks)


def _connected(edges: np.ndarray[Any, Any], start: int) -> np.ndarray[Any, Any]:
    is_reached = np.arange(len(edges)) == start
    while (extended := is_reached | edges[is_reached].any(axis=0)).sum() > is_reached.sum():
        is_reached = extended
    return is_reached


class Propensity(NamedTuple):
    """Examination propensity of a rank."""

    stratum: str
    rank: int
    value: float  # relative to rank 1
    ci: tuple[float, float] | None
    shown: int
    naive: float  # click-through rate relative to rank 1, confounded by relevance


class RankLink(NamedTuple):
    """Two ranks with documents that were shown at both."""

    stratum: str
    upper: int
    lower: int
    documents: int
    clicks: float  # the smaller weighted number of clicks of either


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(FieldAnswer):
    """Result of `propensities`. `read_propensities` reads its CSV or JSON."""

    kind: ClassVar[str] = "propensities"
    title_format: ClassVar[str] = "Examination propensities of ranks: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("log", "randomized", "stratum", "level")

    log: str
    randomized: bool  # whether only randomized results count
    stratum: str | None
    level: float
    ranks: tuple[Propensity, ...]
    links: tuple[RankLink, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Propensity of the last rank, and its source."""
        last_rank = self.ranks[-1]
        level, ci = percent(self.level), last_rank.ci
        interval = "" if ci is None else f", {level} CI [{ci[0]:.3f}, {ci[1]:.3f}]"
        source = "that were randomly shown" if self.randomized else "that were shown"
        stratum = f" ({self.stratum}: {last_rank.stratum})" if self.stratum else ""
        return (
            (
                f"Examination probability of rank {last_rank.rank} relative to rank 1{stratum}:"
                f" {last_rank.value:.3f}{interval}."
            ),
            (
                f"The click-through rate at rank {last_rank.rank} is {last_rank.naive:.3f} times the rate at rank 1,"
                f" but click-through rates also depend on relevance."
            ),
            f"The estimate uses documents {source} at several ranks.",
        )

    @property
    def headline(self) -> Headline:
        """Examination of the last rank relative to rank 1."""
        last = self.ranks[-1]
        label = f"examination of rank {last.rank} relative to rank 1"
        label += f", {self.stratum}: {clip(last.stratum)}" if self.stratum else ""
        if last.ci is None:
            sentence = f"There are not enough clicks for a confidence interval at rank {last.rank}."
            return Headline("unknown", "not enough data", sentence, label, last.value, number(3))
        sentence = f"A document gets {last.value:.2g} times as many clicks at rank {last.rank} as at rank 1."
        return Headline("info", "estimate", sentence, label, last.value, number(3), last.ci, self.level, reference=1.0)

    def of(self, stratum: str = "") -> Floats:
        """Return the propensities of a stratum from rank 1 on, (K,)."""
        return np.array([row.value for row in self.ranks if row.stratum == stratum])

    def blocks(self) -> tuple[Block, ...]:
        """Return the propensities, their chart, and the compared ranks."""
        stratum_column = ("stratum", TEXT) if self.stratum else "stratum"
        n_labels = 2 if self.stratum else 1
        three = number(3)
        rank_columns = columns_of(
            self.ranks, stratum_column, ("rank", COUNT), ("value", three, "propensity"),
            ("shown", COUNT, "impressions"), ("naive", three, "CTR ratio"),
        )  # fmt: skip
        ranks = Table("ranks", rank_columns, "Examination by rank", labels=n_labels)
        values, intervals = [row.value for row in self.ranks], [row.ci for row in self.ranks]
        ranks = ranks.changed("value", axis=Axis.over(values, intervals, f"{percent(self.level)} CI", 1.0))
        counts = (
            ("upper", COUNT, "upper rank"), ("lower", COUNT, "lower rank"), ("documents", COUNT), ("clicks", number(1)),
        )  # fmt: skip
        link_columns = columns_of(self.links, stratum_column, *counts)
        links = Table("links", link_columns, "Compared ranks", labels=n_labels + 1, folded=True)
        chart = Chart(
            "examination", "Examination by rank", ranks, self.sentences[0], "lines", x="rank", y="value",
            color="stratum" if self.stratum else "", spread="cutoff",
        )  # fmt: skip
        return Sentences(self.sentences), ranks, chart, links


def propensities(
    log: InteractionLog,
    *,
    stratum: str | None = None,
    randomized: bool | None = None,
    by: str | None = None,
    where: str | None = None,
    depth: int = 10,
    level: float = 0.95,
) -> Propensities:
    """Estimate examination propensities of ranks, relative to rank 1, without a click model.

    Parameters
    ----------
    log
        Interaction log.
    stratum
        Column of `log.serp` with separate propensities for each value, such as the device.
    randomized
        Whether to use only results with a logged propensity between 0 and 1. None: if there are any.
    by, where, depth
        As in `count_impressions`.
    level
        Confidence level of the intervals (jackknife over groups of users).

    Raises
    ------
    InputError
        If no chain of clicked documents connects all ranks.

    Notes
    -----
    Uses documents that were shown at several ranks, by several rankers or over time (`estimate_all_pairs`). If the rank
    of a document depends on its current relevance (as with a ranker that learns from clicks), the estimates are biased
    without randomization.
    """
    validate(log=log, level=level)
    selected_log, randomized = _randomized_results(log, randomized)
    strata = {"": selected_log} if stratum is None else split_by_column(selected_log, stratum)
    ranks: list[Propensity] = []
    links: list[RankLink] = []
    notes: list[Note] = []
    for value, stratum_log in strata.items():
        patterns = count_page_patterns(stratum_log, by=by, where=where, depth=depth)
        rank_rows, rank_links, stratum_notes = estimate_ranks(patterns, value, level)
        ranks += rank_rows
        links += rank_links
        notes += stratum_notes
    return Propensities(log.name, randomized, stratum, level, tuple(ranks), tuple(links), tuple(notes))


def _randomized_results(log: InteractionLog, randomized: bool | None = None) -> tuple[InteractionLog, bool]:
    """Return the log with only randomized results, if `randomized`. None: if the log has any."""
    randomized_shown = log.shown.where("propensity > 0 AND propensity < 1")
    if randomized is None:
        randomized = bool(log.engine.rows(f"SELECT count(*) AS n FROM {randomized_shown}")[0]["n"])
    return (replace(log, shown=randomized_shown) if randomized else log), randomized


def split_by_column(log: InteractionLog, column: str) -> dict[str, InteractionLog]:
    """Split a log by a column of its pages. The key of null is the empty string."""
    check_column(log, column)
    expression = f"coalesce(CAST({identifier(column)} AS VARCHAR), '')"
    rows = log.engine.rows(f"SELECT DISTINCT {expression} AS value FROM {log.serp} ORDER BY value")
    return {row["value"]: replace(log, serp=log.serp.where(f"{expression} = {literal(row['value'])}")) for row in rows}


class Replicates(NamedTuple):
    """Jackknife replicates of propensities over groups of users."""

    full: RankPropensities
    leave_one_out: Floats  # (G, K): log propensities; G = 0 for fewer than 10 users
    group: Ints  # (U,): group of each unit

    def standard_errors(self) -> Floats:
        """Return standard errors of the log propensities, (K,); NaN without replicates."""
        values, n = self.leave_one_out, len(self.leave_one_out)
        if not n:
            return np.nan * self.full.log_propensity
        # Jackknife: SE**2 = (G - 1) / G sum (theta_(i) - mean)**2 (Efron and Tibshirani 1993, Chapter 11).
        return np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))


def jackknife_propensities(patterns: PagePatterns, n_groups: int = MAX_GROUPS) -> Replicates:
    """Estimate propensities from all users, and without each of at most `n_groups` groups of users."""
    count_pairs = _impression_counter(patterns)
    impressions, clicks = count_pairs(None)
    repeated = (impressions > 0).sum(axis=1) > 1  # only pairs that were shown at several ranks are informative
    n_ranks = impressions.shape[1]
    unknown = RankPropensities(np.full(n_ranks, np.nan), clicks)
    # Only pairs with several ranks matter; dropping the others keeps the jackknife fast.
    full = estimate_all_pairs(impressions[repeated], clicks[repeated]) if repeated.any() else unknown
    n_groups = min(n_groups, patterns.n_units)
    group = np.arange(patterns.n_units) % n_groups
    leave_one_out = np.zeros((0, n_ranks))
    if n_groups >= _MIN_GROUPS and repeated.any():
        group_counts = (count_pairs((group == i).astype(np.float64)) for i in range(n_groups))
        remaining = (((impressions - n)[repeated], (clicks - c)[repeated]) for n, c in group_counts)
        leave_one_out = np.stack([estimate_all_pairs(*counts).log_propensity for counts in remaining])
    return Replicates(full, leave_one_out, group)


def _impression_counter(patterns: PagePatterns) -> Callable[[Floats | None], tuple[Floats, Floats]]:
    """Return a function from unit weights to impressions and clicks of each pair at each rank, (P, K)."""
    has_result = patterns.pair >= 0
    n_pairs, n_ranks = patterns.pairs.num_rows, patterns.pair.shape[1]
    pattern, rank = np.nonzero(has_result)
    cell_index, is_clicked = patterns.pair[has_result] * n_ranks + rank, patterns.clicked[has_result]

    def count_pairs(weights: Floats | None) -> tuple[Floats, Floats]:
        counts = patterns.counts(weights)[pattern]
        sums = [np.bincount(cell_index, column, n_pairs * n_ranks) for column in (counts, counts * is_clicked)]
        impressions, clicks = np.stack(sums).astype(np.float64).reshape(2, n_pairs, n_ranks)
        return impressions, clicks

    return count_pairs


def match_own_estimate(
    log: InteractionLog, curve: Floats, *, where: str | None = None, n_groups: int = MAX_GROUPS
) -> tuple[Replicates, PagePatterns] | None:
    """Compute jackknife replicates of propensities that were estimated from this log.

    Intervals that treat such propensities as known are too narrow, because both depend on the same clicks.

    Returns
    -------
    tuple or None
        Replicates and their pages; None if the propensities are not from this log.
    """
    # The curve may have been estimated with the same condition, or from the whole log.
    for condition in dict.fromkeys([where, None]):
        with suppress(InputError):
            patterns = count_page_patterns(_randomized_results(log)[0], where=condition, depth=len(curve))
            impressions, clicks = _impression_counter(patterns)(None)
            own_curve = np.exp(estimate_all_pairs(impressions, clicks).log_propensity)
            if np.allclose(own_curve, curve[: len(own_curve)], rtol=1e-6, atol=0):
                return jackknife_propensities(patterns, n_groups), patterns
    return None


def estimate_ranks(
    patterns: PagePatterns, stratum: str = "", level: float = 0.95
) -> tuple[list[Propensity], list[RankLink], list[Note]]:
    """Estimate the propensities of one stratum, with the compared ranks and notes.

    Raises
    ------
    InputError
        If ranks are not connected.
    """
    impressions, clicks = _impression_counter(patterns)(None)
    repeated = (impressions > 0).sum(axis=1) > 1
    n, c = impressions.sum(axis=0), clicks.sum(axis=0)
    replicates = jackknife_propensities(patterns)
    full, errors, n_groups = replicates.full, replicates.standard_errors(), len(replicates.leave_one_out)
    _check_connected(full, impressions, repeated, stratum)
    notes: list[Note] = []
    if not n_groups:
        text = f"propensities have no CIs: at least {_MIN_GROUPS} users are required, got {patterns.n_units}"
        notes.append(Note("few-users", text, stratum))
    half_width = errors * student_quantile((1 + level) / 2, max(n_groups - 1, 1))
    # Intervals on the log scale, with Student's t of the number of groups.
    limits = np.exp(np.stack([full.log_propensity - half_width, full.log_propensity + half_width], axis=1)).tolist()
    ctr = np.divide(c, n, out=np.full(len(n), np.nan), where=n > 0)
    rank_rows: list[Propensity] = []
    for row in np.flatnonzero(n > 0).tolist():
        ci = None if row == 0 or math.isnan(half_width[row]) else (limits[row][0], limits[row][1])
        naive = float(ctr[row] / ctr[0]) if ctr[0] else math.nan
        rank_rows.append(Propensity(stratum, row + 1, math.exp(full.log_propensity[row]), ci, int(n[row]), naive))
    is_shown = (impressions > 0).astype(np.float64)
    n_documents, min_clicks = is_shown.T @ is_shown, np.minimum(full.clicks, full.clicks.T)
    links = [
        RankLink(stratum, upper + 1, lower + 1, int(n_documents[upper, lower]), float(min_clicks[upper, lower]))
        for upper, lower in np.argwhere(np.triu(n_documents > 0, 1)).tolist()
    ]
    return rank_rows, links, notes


def _ranks_text(ranks: list[str]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks)}"


def _check_connected(full: RankPropensities, impressions: Floats, repeated: np.ndarray[Any, Any], stratum: str) -> None:
    has_impressions = impressions.sum(axis=0) > 0
    where = f" of {stratum}" if stratum else ""
    if has_impressions.sum() == 1:
        rank = int(np.argmax(has_impressions)) + 1
        problem = f"propensities require results at two or more ranks, but all results{where} are at rank {rank}"
        raise InputError(problem, fix="use pages with more results")
    is_unconnected = has_impressions & np.isnan(full.log_propensity)
    if not is_unconnected.any():
        return
    connected = [str(row + 1) for row in np.flatnonzero(has_impressions & ~is_unconnected).tolist()] or ["1"]
    unconnected = [str(row + 1) for row in np.flatnonzero(is_unconnected).tolist() if str(row + 1) not in connected]
    document_count = f"{counted(int(repeated.sum()), 'document')} were shown at several ranks"
    depth = next((row for row in range(len(has_impressions)) if is_unconnected[row]), 0)
    fix = "randomize some lists, for example by swapping two results on some pages"
    raise InputError(
        f"{_ranks_text(unconnected)}{where} cannot be compared with {_ranks_text(connected)}: no chain of clicked"
        f" documents connects them ({document_count})",
        fix=f"{fix}; or use depth={depth} (--depth {depth})" if depth > 1 else fix,
    )


def read_propensities(source: Any) -> dict[str, Floats]:
    """Read examination propensities by stratum, from rank 1 on.

    Parameters
    ----------
    source
        `Propensities`; numbers from rank 1 on; ``{stratum: numbers}``; or a table with ``rank``, ``value``, and
        optionally ``stratum``: a list of dicts, a data frame, or a file (CSV or JSON of `Propensities.save`).

    Raises
    ------
    InputError
        If a rank is missing, or a value is not a number above 0.

    >>> read_propensities([1, 0.5])
    {'': array([1. , 0.5])}
    >>> read_propensities([{"rank": 2, "value": 0.5}, {"rank": 1, "value": 1}])
    {'': array([1. , 0.5])}
    """
    where = str(source) if isinstance(source, (str, Path)) else "<propensities>"
    fix = "provide rank and value for each rank from 1 on, with values above 0"
    if isinstance(source, Propensities):
        strata = {row.stratum: list[float]() for row in source.ranks}
        curves = {stratum: source.of(stratum) for stratum in strata}
    elif isinstance(source, (str, Path)) or _is_table(source):
        rows_by_stratum: dict[str, dict[int, float]] = {}
        for line, row in _read_rows(source, where, fix):
            try:
                rows_by_stratum.setdefault(str(row.get("stratum") or ""), {})[int(row["rank"])] = float(row["value"])
            except (KeyError, TypeError, ValueError, OverflowError):
                raise InputError("rank and value must be numbers", fix=fix, path=where, line=line) from None
        curves = {
            # A missing rank becomes NaN, which the check below rejects.
            stratum: np.array([values.get(row + 1, math.nan) for row in range(min(max(values), len(values)))])
            for stratum, values in rows_by_stratum.items()
        }
    else:
        strata = source if isinstance(source, Mapping) else {"": source}
        try:
            curves = {str(name): np.asarray(values, dtype=np.float64) for name, values in strata.items()}
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"propensities must be numbers by rank, got {source!r:.60}", fix=fix, path=where) from None
    if not curves or not all(curve.ndim == 1 and len(curve) and (curve > 0).all() for curve in curves.values()):
        raise InputError("each propensity must be a number above 0", fix=fix, path=where)
    return curves


def read_single_curve(source: Any) -> Floats:
    """Read examination propensities without strata, (K,).

    Raises
    ------
    InputError
        As in `read_propensities`, or if there are several strata.
    """
    curves = read_propensities(source)
    if len(curves) > 1:
        problem = f"the propensities must have a single stratum, got {len(curves)}"
        raise InputError(
            problem, fix="select the pages of one stratum with where, and pass the propensities of that stratum"
        )
    return next(iter(curves.values()))


def check_curve_length(curve: Floats, max_rank: int) -> None:
    """Raise InputError if results have ranks without a propensity."""
    if len(curve) < max_rank:
        problem = f"results down to rank {max_rank} require {max_rank} propensities, got {len(curve)}"
        raise InputError(problem, fix="use a smaller depth, or estimate propensities of more ranks")


def _is_table(source: Any) -> bool:
    is_row_list = isinstance(source, list) and bool(source) and isinstance(source[0], Mapping)
    return is_row_list or hasattr(source, "column_names") or hasattr(source, "columns")


def _read_rows(source: Any, where: str, fix: str) -> Iterable[tuple[int | None, dict[str, Any]]]:
    if not isinstance(source, (str, Path)) or Path(source).suffix != ".json":
        return records_of(source, where, "propensities", fix)
    document = load_json(files.local(source), where)
    ranks: Any = document.get("ranks") if isinstance(document, dict) else document
    if not isinstance(ranks, list):
        raise InputError("the JSON file has no list `ranks`", fix=fix, path=where)
    return records_of(ranks, where, "propensities", fix)
