"""Scores by information need, if several queries word the same need: means, worst wordings, and consistency."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.comparison import Choices
from judged.comparison.compare import compare_scores
from judged.data.attributes import Attributes
from judged.data.compute import int_array
from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.changes import mean_of
from judged.diagnosis.needs.answer import Needs, NeedsSummary
from judged.errors import InputError
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.scoring.evaluation import Scores, dialect_of, runs_of
from judged.scoring.evaluation.dialects import without_self
from judged.scoring.evaluation.evaluate import build_run_function, select_measures
from judged.scoring.judging.align import rank_all
from judged.scoring.judging.ranking import RankingRules, segment_starts
from judged.stats.inputs import ROUNDING, check_count, spread
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.rank_biased_overlap import overlap_at, rbo
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.run import Run
    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Precision, TiePolicy


def needs_of_scores(
    scores: Scores,
    needs: Any,
    *,
    column: str | None = None,
    cutoff: int = 10,
    rbo_p: float = 0.9,
    baseline: str | None = None,
    limit: int = 10,
    level: float = 0.95,
    seed: int = 0,
    queries: Any = None,
    runs: Any = None,
) -> Needs:
    """Aggregate scores by information need, if several queries word the same need.

    Each need has the same weight, however many wordings it has. Intervals and tests are over needs, because wordings of
    one need are not independent topics.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    needs
        Need of each query id: ``{query_id: need}``, `Attributes`, `Topics`, or a file with a column for it.
    column
        Column of `needs` with the need, if it is not ``need`` or ``topic_id``.
    cutoff, rbo_p
        Depth at which rankings are compared, and the persistence of RBO.
    baseline
        Run that the others are compared with. None: all pairs.
    limit
        Number of needs to list, those with the largest range of scores.
    level, seed
        Level of the intervals, and seed of intervals and tests.
    queries
        Texts of the wordings: `Topics`, a path, or ``{query_id: text}``.
    runs
        Runs of the scores, to compare the rankings of wordings.

    Raises
    ------
    InputError
        If no topic has a need, or the input cannot be read.

    Examples
    --------
    >>> from judged import evaluate
    >>> variants = {"7-1": "7", "7-2": "7", "8-1": "8", "8-2": "8"}
    >>> run = {"7-1": {"a": 1.0}, "7-2": {"x": 2.0, "a": 1.0}, "8-1": {"a": 1.0}, "8-2": {"x": 1.0}}
    >>> scores = evaluate({query: {"a": 1} for query in variants}, {"mine": run}, "RR")
    >>> result = scores.needs(variants)
    >>> result.mean.tolist(), result.worst.tolist()  # one run, one measure, two needs
    ([[[0.75, 0.5]]], [[[0.5, 0.0]]])
    """
    check_count("limit", limit)
    need_of = needs_of(needs, column)
    table, notes = _mean_measures(scores)
    members: dict[str, list[int]] = {}
    for row, query in enumerate(table.query_ids):
        if query in need_of:
            members.setdefault(need_of[query], []).append(row)
    if not members:
        first_topic, first_query = table.query_ids[0], next(iter(need_of), "")
        problem = (
            f"no topic has an information need: the first topic is {first_topic!r}, and the first query id with a"
            f" need is {first_query!r}"
        )
        raise InputError(problem, fix="check that the scores and the needs use the same query ids")
    need_names = tuple(sorted(members))
    groups = [np.array(members[name], dtype=np.int64) for name in need_names]
    signs = [-1 if measure.properties.higher_is_better is False else 1 for measure in table.measures]
    statistics = [[_need_statistics(*row, groups) for row in zip(rows, signs, strict=True)] for rows in table.values]
    mean, worst, best, deviation, variants = np.moveaxis(np.array(statistics), 2, 0).copy()
    query_ids = tuple(tuple(table.query_ids[row] for row in group.tolist()) for group in groups)
    similarity = _ranking_similarity(table, query_ids, runs, {"cutoff": cutoff, "rbo_p": rbo_p})
    has_score = ~np.isnan(mean).all(axis=1)
    by_need = replace(table, query_ids=need_names, values=mean.copy(), counted=has_score, ranges=(), notes=())
    choices = Choices(alpha=round(1 - level, 12), seed=seed, baseline=baseline)
    texts = None if queries is None else Topics.of(queries)
    wordings = {} if texts is None else {query: texts.text(query) for group in query_ids for query in group}
    return Needs(
        scores=table,
        needs=need_names,
        query_ids=query_ids,
        mean=mean,
        worst=worst,
        best=best,
        deviation=deviation,
        variants=variants.astype(np.int64),
        overlap=similarity[0],
        rbo=similarity[1],
        summaries=_summaries(table, groups, (mean, worst, best, deviation), similarity, IntervalMethod(level=level)),
        comparison=compare_scores(by_need, choices, "none") if len(table.runs) > 1 else None,
        cutoff=cutoff,
        rbo_p=rbo_p,
        limit=limit,
        queries=wordings,
        notes=(*notes, *_notes(table, need_of, groups), *table.notes),
    )


def _prepare_qrels(qrels: Qrels, call: dict[str, Any]) -> tuple[Qrels, tuple[Note, ...]]:
    """Expand judgments of needs to all wordings."""
    judged, message = expand_to_variants(qrels, needs_of(call["needs"], call["column"]))
    return judged, (Note("judgments-of-needs", message),) if message else ()


needs = build_run_function(
    needs_of_scores,
    "needs",
    prepare=_prepare_qrels,
    examples="""
    The query ids of judgments may be query ids or needs:

    >>> from judged import needs
    >>> variants = {"7-1": "7", "7-2": "7", "8-1": "8", "8-2": "8"}
    >>> run = {"7-1": {"a": 1.0}, "7-2": {"x": 2.0, "a": 1.0}, "8-1": {"a": 1.0}, "8-2": {"x": 1.0}}
    >>> result = needs({"7": {"a": 1}, "8": {"a": 1}}, {"mine": run}, variants, "RR")
    >>> result.summaries[0].mean, result.summaries[0].worst
    (0.625, 0.25)
    """,
)


def _mean_measures(scores: Scores) -> tuple[Scores, list[Note]]:
    """Select the measures whose aggregate is a mean."""
    notes: list[Note] = []
    table = scores
    means = [measure for measure in table.measures if measure.entry.aggregate == "mean"]
    dropped = ", ".join(str(measure) for measure in table.measures if measure not in means)
    if not means:
        raise InputError(f"{dropped} is not a mean over topics", fix="use a measure such as nDCG@10")
    if dropped:
        notes.append(Note("no-mean", f"excluded because they are not means over topics: {dropped}"))
        table = select_measures(table, means)
    return table, notes


def _need_statistics(values: Floats, sign: int, groups: Sequence[Ints]) -> Floats:
    """Return mean, worst, best, standard deviation and number of scores of each need, (5, N); NaN without scores."""
    statistics = np.full((5, len(groups)), np.nan)
    for need, group in enumerate(groups):
        scores = values[group]
        scores = scores[~np.isnan(scores)]
        if len(scores):
            low, high = scores.min(), scores.max()
            statistics[:3, need] = scores.mean(), low if sign > 0 else high, high if sign > 0 else low
        statistics[3:, need] = spread(scores), len(scores)
    return statistics


def _summaries(
    table: Scores,
    groups: Sequence[Ints],
    statistics: tuple[Floats, Floats, Floats, Floats],
    similarity: tuple[Floats, Floats],
    method: IntervalMethod,
) -> tuple[NeedsSummary, ...]:
    topics = np.concatenate(groups)
    need = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    bounds = np.array([measure.properties.bounds for _ in table.runs for measure in table.measures])
    limits = [mean_intervals(values.reshape(-1, len(groups)), method, bounds) for values in statistics[:2]]
    rows: list[NeedsSummary] = []
    for row, (run, measure) in enumerate((r, m) for r in table.run_names for m in table.measure_names):
        r, m = divmod(row, len(table.measures))
        mean, worst, best, deviation = (mean_of(values[r, m]) for values in statistics)
        mean_ci, worst_ci = (None if np.isnan(ci[row]).any() else (*ci[row].tolist(),) for ci in limits)
        share = consistency(table.values[r, m, topics], need, level=method.level)
        overlap, rbo = (mean_of(values[r]) for values in similarity)
        rows.append(NeedsSummary(run, measure, mean, mean_ci, worst, worst_ci, best, deviation, share, overlap, rbo))
    return tuple(rows)


def _ranking_similarity(
    table: Scores, query_ids: Sequence[Sequence[str]], runs: Any, options: dict[str, Any]
) -> tuple[Floats, Floats]:
    overlap, rbo = (np.full((len(table.runs), len(query_ids)), np.nan) for _ in range(2))
    if runs is None or all(len(group) < 2 for group in query_ids):
        return overlap, rbo
    dialect, policies = dialect_of(table.policies.dialect), table.policies
    ties: Any = dialect.ties if policies.ties in {"expected", "bounds"} else policies.ties
    runs_by_name = {run.name: run for run in runs_of(runs)}
    options = {"precision": policies.precision, **options}
    for row, name in enumerate(table.run_names):
        run = runs_by_name.get(name)
        if run is not None and run.has_scores:
            ranked = without_self(run) if policies.exclude_self else run
            overlap[row], rbo[row] = ranking_similarity(ranked, query_ids, ties=ties, **options)
    return overlap, rbo


def _notes(table: Scores, need_of: dict[str, str], groups: Sequence[Ints]) -> list[Note]:
    notes: list[Note] = []
    if unknown := [query for query in table.query_ids if query not in need_of]:
        share = f"{len(unknown)} of {counted(len(table.query_ids), 'topic')}"
        notes.append(
            Note("need-unknown", f"excluded because their information need is unknown: {share}: {first_few(unknown)}")
        )
    if num_single := sum(len(group) == 1 for group in groups):
        verb, pronoun = ("has", "its") if num_single == 1 else ("have", "their")
        share = f"{num_single} of {counted(len(groups), 'need')}"
        notes.append(Note("one-wording", f"{share} {verb} only one wording: {pronoun} variation is unknown"))
    return notes


_COLUMNS = ("need", "need_id", "topic_id", "topic")


def needs_of(mapping: Any, column: str | None = None) -> dict[str, str]:
    """Return the need of each query id.

    >>> needs_of({"q1": {"topic_id": 7, "words": 3}, "q2": {"topic_id": 7}, "q3": {"words": 2}})
    {'q1': '7', 'q2': '7'}
    """
    # `mapping`: `{query_id: need}`, `Attributes`, `Topics`, a file of attributes (CSV, TSV, JSONL, Parquet) or a data
    # frame. `column`: attribute with the need. None: the first of _COLUMNS, or the only attribute.
    if isinstance(mapping, Mapping):
        pairs = cast("Mapping[Any, Any]", mapping)
        if not any(isinstance(docs, Mapping) for docs in pairs.values()):
            return {id_text(query, "query id"): id_text(need, "need") for query, need in pairs.items()}
    if isinstance(mapping, Topics):
        need_column = _need_column(mapping.attributes, column, mapping.where)
        ids, values = mapping.table["query_id"].to_pylist(), mapping.table[need_column].to_pylist()
    else:
        attributes = Attributes.of(mapping)
        source = str(mapping) if isinstance(mapping, (str, Path)) else attributes.where
        need_column = _need_column(attributes.names, column, source)
        ids, values = attributes.query_ids, [_need_id(value) for value in attributes.column(need_column).to_pylist()]
    return {query: need for query, need in zip(ids, values, strict=True) if need}


def _need_column(names: Sequence[str], column: str | None, where: str) -> str:
    if column is None:
        column = next((name for name in _COLUMNS if name in names), names[0] if len(names) == 1 else None)
    if column not in names:
        problem = f"no attribute {column!r}" if column else "it is unclear which column contains the information needs"
        fix = f"set column= (--column) to one of {', '.join(names) or 'none'}"
        raise InputError(problem, fix=fix, path=where)
    return cast("str", column)


def _need_id(value: Any) -> str | None:
    """Convert a need to its id. Attributes store integers as floats."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def expand_qrels(qrels: Any, needs: Any, *, column: str | None = None) -> Qrels:
    """Expand judgments of needs to judgments of query ids: each wording gets the judgments of its need.

    Parameters
    ----------
    qrels
        Judgments whose query ids are needs, as for `Qrels.of`. Needs without a wording are skipped.
    needs, column
        Need of each query id, and the column with it, as for `needs`.

    Raises
    ------
    InputError
        If no need of the mapping is judged.

    Examples
    --------
    >>> expand_qrels({"7": {"a": 1, "b": 0}, "8": {"c": 1}}, {"7-1": "7", "7-2": "7"}).table.to_pydict()["query_id"]
    ['7-1', '7-1', '7-2', '7-2']
    """
    import pyarrow as pa

    judged = Qrels.of(qrels)
    rows_of: dict[str, list[int]] = {}
    for row, need in enumerate(judged.table["query_id"].to_pylist()):
        rows_of.setdefault(need, []).append(row)
    rows_by_query = [(query, rows_of[need]) for query, need in needs_of(needs, column).items() if need in rows_of]
    if not rows_by_query:
        problem = f"no information need in the file has judgments: the first topic of the qrels is {judged.topics[0]!r}"
        raise InputError(
            problem, fix="check that the ids of the needs are the query ids of the qrels", path=judged.where
        )
    rows = np.concatenate([np.array(need_rows, dtype=np.int64) for _, need_rows in rows_by_query])
    query_ids = [query for query, need_rows in rows_by_query for _ in need_rows]
    table = judged.table.take(int_array(rows))
    table = table.set_column(table.column_names.index("query_id"), "query_id", pa.array(query_ids, pa.string()))
    return Qrels(table, judged.name, judged.where, judged.sha256, origin=judged.origin)


def expand_to_variants(qrels: Qrels, needs: Mapping[str, str]) -> tuple[Qrels, str]:
    """Expand judgments of needs, if they are judgments of needs, and return a message about it."""
    topics = set(qrels.topics)
    judged_needs = topics & set(needs.values())
    unjudged = [query for query in needs if query not in topics]
    if not unjudged or not judged_needs:
        return qrels, ""
    ambiguous = sorted(query for query in judged_needs if needs.get(query, query) != query)
    if ambiguous:
        problem = f"{ambiguous[0]!r} is both a query id and the name of a need, so the qrels are ambiguous"
        raise InputError(problem, fix="expand the qrels to query ids with judged.expand_qrels", path=qrels.where)
    expanded = expand_qrels(qrels, needs)
    return expanded, (
        f"the judgments are for information needs: each of {len(expanded.topics)} query variants gets the"
        " judgments of its need"
    )


_MAX_PAIRS = 300  # compared per need; of more pairs, an evenly spaced sample is used


def ranking_similarity(
    run: Run,
    groups: Sequence[Sequence[str]],
    *,
    cutoff: int = 10,
    rbo_p: float = 0.9,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> tuple[Floats, Floats]:
    """Compute the mean overlap and rank-biased overlap of the rankings of all pairs of wordings of a need.

    >>> from judged.data import Run
    >>> run = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"b": 2.0, "a": 1.0}, "3": {"a": 2.0, "c": 1.0}})
    >>> overlap, _ = ranking_similarity(run, [["1", "2", "3"]], cutoff=2)
    >>> round(float(overlap[0]), 3)  # 1 and 2 share both documents, the other pairs one of two
    0.667
    """
    # Returns overlap and RBO, (N,) each; NaN for a need with fewer than two wordings that returned documents.
    query_ids = tuple(sorted({query for group in groups for query in group}))
    rows = {query: i for i, query in enumerate(query_ids)}
    returned = rank_all(run, query_ids, RankingRules(ties, cutoff, precision))
    docs = returned.doc.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    starts = segment_starts(returned.topic, len(query_ids))
    lists = [docs[starts[i] : starts[i + 1]] for i in range(len(query_ids))]
    similarity = np.full((2, len(groups)), np.nan)
    for need, group in enumerate(groups):
        nonempty = [lists[rows[query]] for query in group if len(lists[rows[query]])]
        first, second = np.triu_indices(len(nonempty), 1)
        if len(first):
            sample = np.linspace(0, len(first) - 1, min(len(first), _MAX_PAIRS)).round().astype(np.int64)
            pairs = [
                _pair_similarity(nonempty[first[i]], nonempty[second[i]], cutoff, rbo_p)
                for i in np.unique(sample).tolist()
            ]
            similarity[:, need] = [np.mean(column) for column in zip(*pairs, strict=True)]
    return similarity[0], similarity[1]


def _pair_similarity(first: Ints, second: Ints, cutoff: int, rbo_p: float) -> tuple[float, float]:
    union = np.unique(np.concatenate((first, second)))
    ranks = np.zeros((2, len(union)), dtype=np.int64)
    for row, docs in enumerate((first, second)):
        ranks[row, np.searchsorted(union, docs)] = np.arange(1, len(docs) + 1)
    return overlap_at(ranks[0], ranks[1], cutoff), rbo(ranks[0], ranks[1], rbo_p).value


@dataclass(frozen=True)
class Consistency:
    """Share of the variance of scores between needs."""

    # 0: wordings of one need differ as much as needs; 1: all wordings of a need have the same score. NaN with fewer
    # than two needs, without a need with two wordings, or if scores do not vary.
    value: float
    interval: tuple[float, float] | None  # confidence interval over needs
    needs: int
    variants: int


def consistency(scores: Floats, need: Ints, *, level: float = 0.95) -> Consistency:
    """Estimate the share of the variance of scores between needs.

    Parameters
    ----------
    scores
        (T,): scores of the topics.
    need
        (T,): index of the need of each topic.
    level
        Confidence level.

    Examples
    --------
    >>> result = consistency(np.array([0.1, 0.3, 0.5, 0.7]), np.array([0, 0, 1, 1]))
    >>> round(result.value, 3)  # mean squares 0.16 and 0.02: between (0.16 - 0.02) / 2 = 0.07
    0.778
    """
    # Intraclass correlation ICC(1) of a one-way random-effects analysis of variance (Shrout and Fleiss 1979,
    # Psychological Bulletin 86, 420-428), for groups of unequal size:
    # between / (between + within). A negative estimate of the variance between needs is set to 0. The interval is a
    # jackknife over needs, as wordings of one need are not independent, of the logarithm of the ratio of mean squares.
    # In simulations with 15 to 100 needs its coverage was 93 to 96%; that of bootstrap percentiles was 89 to 94%.
    # `scores`: (T,), one per wording; NaN is skipped. `need`: (T,), index of the need of each wording.
    defined = ~np.isnan(scores)
    values, codes = scores[defined], need[defined]
    _, groups = np.unique(codes, return_inverse=True)
    sizes = np.bincount(groups).astype(np.float64)
    needs = len(sizes)
    if not len(values) or np.ptp(values) <= ROUNDING * np.abs(values).max():
        return Consistency(math.nan, None, needs, len(values))
    centered = values - values.mean()
    sums = np.bincount(groups, weights=centered).astype(np.float64)
    squares = (centered - (sums / sizes)[groups]) ** 2
    within = np.bincount(groups, weights=np.where(squares <= ROUNDING**2, 0.0, squares)).astype(np.float64)
    full = _mean_squares(np.ones((1, needs)), sizes, sums, within)
    between_ms, within_ms, typical_size = (float(statistic[0]) for statistic in full)
    if math.isnan(between_ms) or math.isnan(within_ms) or between_ms + within_ms <= 0:
        return Consistency(math.nan, None, needs, len(values))
    share = 1.0 if within_ms == 0 else _variance_share(between_ms / within_ms, typical_size)
    interval = None
    if between_ms > 0 and within_ms > 0:
        jackknife = _mean_squares(np.ones((needs, needs)) - np.eye(needs), sizes, sums, within)
        interval = _jackknife_interval(between_ms / within_ms, jackknife[0], jackknife[1], typical_size, level)
    return Consistency(share, interval, needs, len(values))


def _mean_squares(weights: Floats, sizes: Floats, sums: Floats, within: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean squares between and within needs, and the typical size, for each row of weights of needs."""
    # Each row of `weights` selects needs: ones for all needs, and a 0 for the need that the jackknife leaves out.
    needs, variants, grand_sum = weights.sum(axis=1), weights @ sizes, weights @ sums
    with np.errstate(divide="ignore", invalid="ignore"):
        between_ms = (weights @ (sums**2 / sizes) - grand_sum**2 / variants) / (needs - 1)
        within_ms = (weights @ within) / (variants - needs)
        typical_size = (variants - (weights @ sizes**2) / variants) / (needs - 1)
    return between_ms, within_ms, typical_size


def _variance_share(ratio: float, typical_size: float) -> float:
    """Convert a ratio of mean squares to the share of the variance between needs."""
    return max(0.0, (ratio - 1) / (ratio - 1 + typical_size))


def _jackknife_interval(
    ratio: float, between: Floats, within: Floats, typical_size: float, level: float
) -> tuple[float, float] | None:
    """Compute the interval from the mean squares without each need."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(between / within)
    if not np.isfinite(log_ratios).all():
        return None
    needs = len(log_ratios)
    error = math.sqrt((needs - 1) / needs * float(((log_ratios - log_ratios.mean()) ** 2).sum()))
    half_width = student_quantile((1 + level) / 2, needs - 1) * error
    # The share is a monotonic function of the ratio, so its limits follow from those of the ratio.
    low, high = (_variance_share(ratio * math.exp(sign * half_width), typical_size) for sign in (-1, 1))
    return low, high
