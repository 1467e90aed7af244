"""Counterfactual evaluation of runs with inverse propensity scoring (IPS) of logged clicks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.online.clicks.examination import (
    MAX_GROUPS,
    check_curve_length,
    match_own_estimate,
    read_propensities,
    split_by_column,
)
from judged.online.clicks.examination import propensities as estimate_propensities
from judged.online.clicks.impression_counts import (
    count_page_patterns,
    replace_queries_by_topics,
    topic_column_and_texts,
)
from judged.online.log import FieldAnswer, validate
from judged.online.offline.concordance import IntervalEstimate, influence_estimate, ratio_estimate
from judged.results import CHANGE, NUMBER, TEXT, Column, Sentences, Table, columns_of, counted
from judged.results.blocks import Note
from judged.scoring.evaluation.inputs import measures_of, runs_of
from judged.scoring.judging import judge, judge_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.run import Run
    from judged.online.clicks.examination import Replicates
    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.scoring.measures.base import Measure

_MIN_EFFECTIVE_SHARE = 0.1  # of the clicks; below it, intervals are unreliable
_Interval = tuple[float, float] | None


class IpsEstimate(NamedTuple):
    """IPS estimates of a run by a measure."""

    run: str
    measure: str
    value: float  # per page: the measure with grade 1 for documents that attract the user of the page
    ci: _Interval
    normalized: float  # SNIPS: weighted mean gain of a click, relative to rank 1
    normalized_ci: _Interval
    difference: float  # of the value from the first run
    difference_ci: _Interval


@dataclass(frozen=True, eq=False, repr=False)
class IpsScores(FieldAnswer):
    """Result of `ips`."""

    kind: ClassVar[str] = "ips"
    title_format: ClassVar[str] = "IPS scores of runs: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = (
        "log", "level", "clip", "pages", "pages_without_topic", "clicks", "clipped", "effective_clicks", "units",
        "propensities_estimated",
    )  # fmt: skip

    log: str
    level: float
    clip: float | None
    pages: int
    pages_without_topic: int  # pages without a topic of the runs
    clicks: int
    clipped: int
    effective_clicks: float  # effective number of clicks (Kish)
    units: int
    propensities_estimated: bool  # whether propensities are from the same log; intervals then include their error
    rows: tuple[IpsEstimate, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Data and source of the propensities."""
        clipped = counted(self.clipped, "click")
        clipping = "" if self.clip is None else f"; the weights of {clipped} are clipped to {self.clip:g}"
        counts = f"{counted(self.clicks, 'click')} of {counted(self.units, 'user')} on {counted(self.pages, 'page')}"
        if self.propensities_estimated:
            source = "Propensities were estimated from the same log. CIs include the error of the propensities."
        else:
            source = (
                "Propensities are not from this log and are treated as known. CIs do not include the error of the"
                " propensities."
            )
        return f"{counts}{clipping}. Effective number of clicks: {self.effective_clicks:.0f}.", source

    def blocks(self) -> tuple[Block, ...]:
        """Return the estimates of each run and measure."""
        rows, difference_title = self.rows, f"difference from {self.rows[0].run}"
        normalized, differences = [row.normalized_ci for row in rows], [row.difference_ci for row in rows]
        table = (
            *columns_of(rows, ("run", TEXT), ("measure", TEXT), ("value", NUMBER, "IPS")),
            Column("normalized", [row.normalized for row in rows], NUMBER, "self-normalized", normalized),
            Column("difference", [row.difference for row in rows], CHANGE, difference_title, differences),
        )
        return Sentences(self.sentences), Table("runs", table, labels=2)


def ips(
    log: InteractionLog,
    runs: Any,
    propensities: Any = None,
    measures: Any = ("DCG@10", "P@10"),
    *,
    clip: float | None = None,
    topics: Any = None,
    stratum: str | None = None,
    where: str | None = None,
    depth: int = 10,
    level: float = 0.95,
) -> IpsScores:
    """Score runs by logged clicks, weighted by the inverse examination propensity of their ranks (IPS).

    Parameters
    ----------
    log
        Interaction log.
    runs
        Runs, as in `evaluate`.
    propensities
        Examination propensities of ranks, as in `read_propensities`. None: estimated from this log by `propensities`.
    measures
        Additive measures of the ranks of clicked documents: DCG, P, RBP.
    clip
        The largest weight of a click. None: no clipping; values are unbiased if the propensities are correct.
    topics
        Mapping of pages to topics, as in `judged.online.against_qrels`.
    stratum
        Column with separate propensities for each value. A user with two values counts as two users.
    where, depth
        As in `count_impressions`.
    level
        Confidence level of the intervals, over users.

    Raises
    ------
    InputError
        If a rank has no propensity, no page has a topic of the runs, or propensities cannot be estimated.
    MeasureError
        If a measure is not additive over clicked documents.

    Notes
    -----
    A value is the mean over pages of ``sum over clicks of gain(rank in the run) / propensity(logged rank)``. It
    estimates the measure with grade 1 for documents that attract the user of the page (Joachims, Swaminathan and
    Schnabel, WSDM 2017). It is a lower bound, because documents that were never shown have no clicks. The
    self-normalized value (SNIPS: Swaminathan and Joachims, NIPS 2015) is divided by the weight of all clicks: less
    variance, and a vanishing bias.

    Propensities from the same log (recognized by their values) depend on the same clicks. A jackknife over at most 50
    groups of users then includes their error; with fewer than 10 users there is no interval. Other propensities are
    treated as known.
    """
    validate(log=log, level=level)
    if propensities is None:
        propensities = estimate_propensities(log, stratum=stratum, where=where, depth=depth)
    curves, selected_runs = read_propensities(propensities), runs_of(runs)
    topic_column, topic_by_text = topic_column_and_texts(log, topics)
    logs = {"": log} if stratum is None else split_by_column(log, stratum)
    if missing_strata := [name for name in logs if name not in curves]:
        fix = (
            "use stratum= (--stratum) with the column whose values are the strata of the propensities"
            if "" in missing_strata
            else f"estimate propensities with stratum={stratum!r}"
        )
        subject = f"the stratum {missing_strata[0]!r}" if missing_strata[0] else "pages without a stratum"
        raise InputError(f"there are no propensities for {subject}", fix=fix)
    count = partial(count_page_patterns, by=topic_column, where=where, depth=depth)
    pages = {name: count(stratum_log) for name, stratum_log in logs.items()}
    n_groups = min(MAX_GROUPS, *(patterns.n_units for patterns in pages.values()))
    strata: list[IpsStratum] = []
    for name, patterns in pages.items():
        own_estimate = match_own_estimate(logs[name], curves[name], where=where, n_groups=n_groups)
        topic_patterns = replace(patterns, pairs=replace_queries_by_topics(patterns.pairs, topic_by_text))
        replicates, unit_groups = (None, None) if own_estimate is None else _page_replicates(patterns, *own_estimate)
        strata.append(IpsStratum(topic_patterns, curves[name], replicates, unit_groups))
    return compute_ips(strata, selected_runs, measures_of(measures), clip=clip, log=log.name, level=level)


class IpsStratum(NamedTuple):
    """Pages of a stratum, with propensities and their jackknife replicates."""

    patterns: PagePatterns
    curve: Floats
    replicates: Floats | None = None  # (G, K)
    unit_groups: Ints | None = None  # (U,)


def _page_replicates(patterns: PagePatterns, replicates: Replicates, source: PagePatterns) -> tuple[Floats, Ints]:
    """Return jackknife replicates of propensities, and the group of each unit of the pages."""
    source_index = pc.fill_null(pc.index_in(patterns.keys, value_set=source.keys), -1).to_numpy(zero_copy_only=False)
    # Units that did not contribute to the propensities get any group.
    default_groups = np.arange(patterns.n_units) % max(len(replicates.leave_one_out), 1)
    return np.exp(replicates.leave_one_out), np.where(source_index >= 0, replicates.group[source_index], default_groups)


def compute_ips(
    strata: Sequence[IpsStratum],
    runs: Sequence[Run],
    measures: Sequence[Measure],
    *,
    clip: float | None = None,
    log: str = "log",
    level: float = 0.95,
) -> IpsScores:
    """Compute `ips` from page patterns and propensities by stratum."""
    if clip is not None and clip < 1:
        raise InputError(f"`clip` must be at least 1, got {clip:g}", fix="use clip=10, or no clipping")
    replicate_counts = {len(stratum.replicates) for stratum in strata if stratum.replicates is not None}
    # None: propensities are known. 0: they are from this log, but there are too few users for a jackknife.
    n_groups = None if not replicate_counts else min(replicate_counts) if len(replicate_counts) == 1 else 0
    sums_by_stratum = [_sum_gains(stratum, runs, measures, clip, n_groups or 0) for stratum in strata]
    gains = np.concatenate([sums.gains for sums in sums_by_stratum], axis=2)  # (R, M, U)
    weight = np.concatenate([sums.weight for sums in sums_by_stratum])
    pages = np.concatenate([sums.pages for sums in sums_by_stratum])
    weights = np.concatenate([sums.weights for sums in sums_by_stratum])
    if not pages.any():
        fix = "map pages to topics with topics= (--topics)"
        raise InputError("no page has a topic that is in the runs", fix=fix, path=log)
    jackknife_gains = np.sum([sums.jackknife_gains for sums in sums_by_stratum], axis=0)
    jackknife_weight = np.sum([sums.jackknife_weight for sums in sums_by_stratum], axis=0)
    jackknife_pages = np.sum([sums.jackknife_pages for sums in sums_by_stratum], axis=0)

    def estimate(sums: Floats, totals: Floats, replicates: Floats, **options: bool) -> IntervalEstimate:
        # Known propensities: a ratio over users.
        full = ratio_estimate(sums, totals, level, **options)
        if n_groups is None:
            return full
        # Jackknife pseudo-influences: (G - 1) / G times the deviation of each replicate from their mean.
        influence = (n_groups - 1) / max(n_groups, 1) * (replicates.mean() - replicates) if n_groups else replicates
        sizes, signed = pages.sum() - jackknife_pages, {"signed": not options}
        jackknifed = influence_estimate(full.value, influence, sizes, level, **signed | options)
        value = jackknifed.value
        if options or not jackknifed.has_interval or not value > 0:
            return jackknifed
        # The interval is on the log scale: the skewness correction of `ratio_interval` would treat groups as users.
        ratio = math.exp((jackknifed.high - value) / value)
        return IntervalEstimate(value, value / ratio, value * ratio)

    rows: list[IpsEstimate] = []
    for m, measure in enumerate(measures):
        # SNIPS is relative to the gain of rank 1, so that it is between 0 and 1.
        first_rank_gain = float(sums_by_stratum[0].first_rank_gains[m])
        for r, run in enumerate(runs):
            run_gains, jackknife = gains[r, m], jackknife_gains[r, m]
            ips = estimate(run_gains, pages, jackknife / jackknife_pages)
            shares, jackknife_shares = run_gains / first_rank_gain, jackknife / first_rank_gain
            snips = estimate(shares, weight, jackknife_shares / jackknife_weight, share=True)
            changes, jackknife_changes = run_gains - gains[0, m], jackknife - jackknife_gains[0, m]
            difference = estimate(changes, pages, jackknife_changes / jackknife_pages, signed=True)
            columns = ips.value, ips.interval, snips.value, snips.interval, difference.value, difference.interval
            rows.append(IpsEstimate(run.name, str(measure), *columns))
    rows.sort(key=lambda row: [run.name for run in runs].index(row.run))
    clicks, n_effective = len(weights), float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
    notes: list[Note] = []
    if clicks and n_effective < _MIN_EFFECTIVE_SHARE * clicks:
        text = (
            f"the effective number of clicks is {n_effective:.0f} of {clicks:,}, because the weights of clicks are"
            f" unequal; CIs may be too narrow"
        )
        notes.append(Note("few-effective", text))
    return IpsScores(
        log, level, clip, int(pages.sum()), sum(sums.pages_without_topic for sums in sums_by_stratum), clicks,
        sum(sums.clipped for sums in sums_by_stratum), n_effective, int((pages > 0).sum()), n_groups is not None,
        tuple(rows), tuple(notes),
    )  # fmt: skip


class _GainSums(NamedTuple):
    first_rank_gains: Floats  # (M,): gain of a click on the first document
    gains: Floats  # (R, M, U): weighted gains of the clicks of each unit
    weight: Floats  # (U,): total weight of its clicks
    pages: Floats  # (U,)
    weights: Floats  # one per click
    clipped: int
    pages_without_topic: int
    jackknife_gains: Floats  # (R, M, G): gains without each group of users, with the propensities estimated without it
    jackknife_weight: Floats  # (G,)
    jackknife_pages: Floats  # (G,)


def _sum_gains(
    stratum: IpsStratum, runs: Sequence[Run], measures: Sequence[Measure], clip: float | None, n_groups: int
) -> _GainSums:
    patterns, curve = stratum.patterns, stratum.curve
    n_ranks = patterns.pair.shape[1]
    check_curve_length(curve, n_ranks)
    n_pairs = patterns.pairs.num_rows
    columns = {"query_id": patterns.pairs["query"], "doc_id": patterns.pairs["doc_id"]}
    # The grade of each pair is its row, so that hits map the ranks of a run to pairs.
    pair_qrels = Qrels(pa.table({**columns, "relevance": pa.array(np.arange(n_pairs), pa.float64())}))
    run_ranks, has_run = np.zeros((len(runs), n_pairs), dtype=np.int64), np.zeros(n_pairs, dtype=np.bool_)
    for r, run in enumerate(runs):
        hits = judge(pair_qrels, run)
        run_ranks[r, hits.grade.astype(np.int64)] = hits.rank
        run_topics = pa.array(list(compress(hits.query_ids, hits.present)), pa.string())
        has_run |= np.asarray(pc.is_in(columns["query_id"], value_set=run_topics))
    any_pair = patterns.pair.max(axis=1)
    # Pages of topics that no run has are excluded.
    is_counted = has_run[any_pair][patterns.pattern]  # all results of a page have the same topic
    clicked = patterns.clicked & (patterns.pair >= 0) & has_run[any_pair][:, None]
    page, rank = np.nonzero(clicked[patterns.pattern])
    pair, unit = patterns.pair[patterns.pattern[page], rank], patterns.unit[page]
    max_rank = max(int(run_ranks.max()), 1)
    rank_gains = np.stack([np.concatenate([[0.0], _rank_gains(measure, max_rank)]) for measure in measures])
    click_gains = rank_gains[:, run_ranks[:, pair]].swapaxes(0, 1)  # (R, M, clicks)

    def clipped_weights(curves: Floats) -> Floats:
        return np.minimum(1 / curves[..., :n_ranks], np.inf if clip is None else clip)

    def grouped_sums(cell_index: Ints, n_cells: int, values: Floats) -> Floats:
        rows = values.reshape(math.prod(values.shape[:-1]), values.shape[-1])
        sums = np.stack([np.bincount(cell_index, row, n_cells) for row in rows]).astype(np.float64)
        return sums.reshape(*values.shape[:-1], n_cells)

    click_weights = clipped_weights(curve)[rank]
    groups, curves = stratum.unit_groups, stratum.replicates
    groups = np.arange(patterns.n_units) % max(n_groups, 1) if groups is None else groups
    curves = np.broadcast_to(curve, (n_groups, len(curve))) if curves is None else curves[:n_groups]
    group_weights, cell_index, n_cells = clipped_weights(curves), groups[unit] * n_ranks + rank, n_groups * n_ranks

    def leave_one_out_sums(values: Floats) -> Floats:
        if not n_groups:
            return np.zeros((*values.shape[:-1], 0))
        # Replicates differ only in the weight of each rank: sums by group and rank suffice.
        cell_sums = grouped_sums(cell_index, n_cells, values).reshape(*values.shape[:-1], n_groups, n_ranks)
        return ((cell_sums.sum(axis=-2, keepdims=True) - cell_sums) * group_weights).sum(axis=-1)

    pages = np.bincount(patterns.unit, is_counted, patterns.n_units).astype(np.float64)
    n_clipped, n_other = int((1 / curve[rank] > click_weights).sum()), int((~is_counted).sum())
    return _GainSums(
        rank_gains[:, 1], grouped_sums(unit, patterns.n_units, click_gains * click_weights),
        grouped_sums(unit, patterns.n_units, click_weights), pages, click_weights, n_clipped, n_other,
        leave_one_out_sums(click_gains), leave_one_out_sums(np.ones(len(rank))),
        pages.sum() - np.bincount(groups, pages, n_groups)[:n_groups],
    )  # fmt: skip


def _rank_gains(measure: Measure, max_rank: int) -> Floats:
    """Return the gain of a document of grade 1 at each rank: the score of a list with only this relevant document.

    Raises
    ------
    MeasureError
        If the measure is not a sum of these gains.
    """
    lists = ([1], []), ([None, 1], []), ([1, 1], []), ([1], [1])
    scores = [float(measure(judge_list(grades, missing=missing))[0]) for grades, missing in lists]
    rank_1, rank_2, ranks_1_2, with_unretrieved = scores
    # Additive: the gain of a rank does not depend on other results or on unretrieved documents.
    if not measure.properties.additive or rank_1 != with_unretrieved or abs(rank_1 + rank_2 - ranks_1_2) > 1e-12:
        raise MeasureError(
            f"{measure} is not a sum over clicked documents, as IPS requires. Fix: use DCG@10, P@10, or RBP"
        )
    depth = min(max_rank, getattr(measure, "cutoff", None) or max_rank)
    doc_ids = [f"{row:07}" for row in range(depth)]
    qrels = Qrels(pa.table({"query_id": doc_ids, "doc_id": doc_ids, "relevance": np.ones(depth)}))
    run = {doc_id: [*(f"x{rank}" for rank in range(row)), doc_id] for row, doc_id in enumerate(doc_ids)}
    return np.concatenate([measure(judge(qrels, run)), np.zeros(max_rank - depth)])
