"""`needs`: several wordings of one need: how good, how bad at worst, and how consistent a system is over them."""

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
from judged.scoring.evaluation.evaluate import chosen_measures, of_runs
from judged.scoring.judging.align import all_returned
from judged.scoring.judging.ranking import Ranking, segment_starts
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
    """Look at systems by need, where several queries word the same one.

    Each need counts once, however many wordings it has, and intervals and tests are over needs: wordings of one need
    are not independent topics.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    needs
        The need of each query id: ``{query_id: need}``, `Attributes`, `Topics`, or a file with a column for it.
    column
        The column of `needs` that names the need, if it is not called ``need`` or ``topic_id``.
    cutoff, rbo_p
        How many documents of each ranking are looked at for how alike rankings are, and the persistence of RBO.
    baseline
        The run that others are compared with; None: every pair.
    limit
        How many of the needs people see whose wordings differ most.
    level, seed
        Of the intervals and of the tests.
    queries
        Texts of the wordings: `Topics`, a path, or ``{query_id: text}``.
    runs
        What the scores are of, to see how alike the rankings of wordings are.

    Returns
    -------
    Needs

    Raises
    ------
    InputError
        If no topic has a need, or something cannot be read.

    Examples
    --------
    >>> from judged import evaluate
    >>> variants = {"7-1": "7", "7-2": "7", "8-1": "8", "8-2": "8"}
    >>> run = {"7-1": {"a": 1.0}, "7-2": {"x": 2.0, "a": 1.0}, "8-1": {"a": 1.0}, "8-2": {"x": 1.0}}
    >>> scores = evaluate({query: {"a": 1} for query in variants}, {"mine": run}, "RR")
    >>> found = scores.needs(variants)
    >>> found.mean.tolist(), found.worst.tolist()  # a run, a measure, two needs
    ([[[0.75, 0.5]]], [[[0.5, 0.0]]])
    """
    check_count("limit", limit)
    need_of = needs_of(needs, column)
    table, notes = _means(scores)
    members: dict[str, list[int]] = {}
    for at, query in enumerate(table.query_ids):
        if query in need_of:
            members.setdefault(need_of[query], []).append(at)
    if not members:
        first, other = table.query_ids[0], next(iter(need_of), "")
        problem = f"no topic has a need: the first topic is {first!r}, that of the needs {other!r}"
        raise InputError(problem, fix="check that both use the same query ids")
    names = tuple(sorted(members))
    groups = [np.array(members[name], dtype=np.int64) for name in names]
    less = [measure.properties.higher_is_better is False for measure in table.measures]
    parts = [[_of_needs(row, groups, less=less[m]) for m, row in enumerate(rows)] for rows in table.values]
    mean, worst, best, deviation, variants = np.moveaxis(np.array(parts), 2, 0).copy()
    query_ids = tuple(tuple(table.query_ids[at] for at in group.tolist()) for group in groups)
    likeness = _alike(table, query_ids, runs, {"cutoff": cutoff, "rbo_p": rbo_p})
    counted_needs = ~np.isnan(mean).all(axis=1)
    by_need = replace(table, query_ids=names, values=mean.copy(), counted=counted_needs, ranges=(), notes=())
    choices = Choices(alpha=round(1 - level, 12), seed=seed, baseline=baseline)
    texts = None if queries is None else Topics.of(queries)
    return Needs(
        scores=table,
        needs=names,
        query_ids=query_ids,
        mean=mean,
        worst=worst,
        best=best,
        deviation=deviation,
        variants=variants.astype(np.int64),
        overlap=likeness[0],
        rbo=likeness[1],
        summaries=_summaries(table, groups, (mean, worst, best, deviation), likeness, IntervalMethod(level=level)),
        comparison=compare_scores(by_need, choices, "none") if len(table.runs) > 1 else None,
        cutoff=cutoff,
        rbo_p=rbo_p,
        limit=limit,
        queries={} if texts is None else {query: texts.text(query) for group in query_ids for query in group},
        notes=(*notes, *_notes(table, need_of, groups), *table.notes),
    )


def _by_variant(qrels: Qrels, asked: dict[str, Any]) -> tuple[Qrels, tuple[Note, ...]]:
    """Take judgments by need for every wording of it."""
    judged, said = by_variant(qrels, needs_of(asked["needs"], asked["column"]))
    return judged, (Note("judgments-of-needs", said),) if said else ()


needs = of_runs(
    needs_of_scores,
    "needs",
    prepare=_by_variant,
    examples="""
    Judgments may be of query ids, or of needs:

    >>> from judged import needs
    >>> variants = {"7-1": "7", "7-2": "7", "8-1": "8", "8-2": "8"}
    >>> run = {"7-1": {"a": 1.0}, "7-2": {"x": 2.0, "a": 1.0}, "8-1": {"a": 1.0}, "8-2": {"x": 1.0}}
    >>> found = needs({"7": {"a": 1}, "8": {"a": 1}}, {"mine": run}, variants, "RR")
    >>> found.summaries[0].mean, found.summaries[0].worst
    (0.625, 0.25)
    """,
)


def _means(scores: Scores) -> tuple[Scores, list[Note]]:
    """Take the measures whose aggregate is a mean."""
    notes: list[Note] = []
    table = scores
    means = [measure for measure in table.measures if measure.entry.aggregate == "mean"]
    dropped = ", ".join(str(measure) for measure in table.measures if measure not in means)
    if not means:
        raise InputError(f"{dropped} is not a mean over topics", fix="take a measure such as nDCG@10")
    if dropped:
        notes.append(Note("no-mean", f"left out because they are not means over topics: {dropped}"))
        table = chosen_measures(table, means)
    return table, notes


def _of_needs(values: Floats, groups: Sequence[Ints], *, less: bool) -> Floats:
    """Give mean, worst, best, standard deviation and number of the scores of each need; NaN where it has none."""
    parts = np.full((5, len(groups)), np.nan)
    for at, group in enumerate(groups):
        scores = values[group]
        scores = scores[~np.isnan(scores)]
        if len(scores):
            low, high = scores.min(), scores.max()
            parts[:3, at] = scores.mean(), high if less else low, low if less else high
        parts[3:, at] = spread(scores), len(scores)
    return parts


def _summaries(
    table: Scores,
    groups: Sequence[Ints],
    parts: tuple[Floats, Floats, Floats, Floats],
    likeness: tuple[Floats, Floats],
    method: IntervalMethod,
) -> tuple[NeedsSummary, ...]:
    topics = np.concatenate(groups)
    need = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    bounds = np.array([measure.properties.bounds for _ in table.runs for measure in table.measures])
    limits = [mean_intervals(part.reshape(-1, len(groups)), method, bounds) for part in parts[:2]]
    rows: list[NeedsSummary] = []
    for at, (run, measure) in enumerate((r, m) for r in table.run_names for m in table.measure_names):
        r, m = divmod(at, len(table.measures))
        mean, worst, best, deviation = (mean_of(part[r, m]) for part in parts)
        mean_ci, worst_ci = (None if np.isnan(ends[at]).any() else (*ends[at].tolist(),) for ends in limits)
        share = consistency(table.values[r, m, topics], need, level=method.level)
        overlap, rbo = (mean_of(part[r]) for part in likeness)
        rows.append(NeedsSummary(run, measure, mean, mean_ci, worst, worst_ci, best, deviation, share, overlap, rbo))
    return tuple(rows)


def _alike(table: Scores, query_ids: Sequence[Sequence[str]], runs: Any, how: dict[str, Any]) -> tuple[Floats, Floats]:
    overlap, rbo = (np.full((len(table.runs), len(query_ids)), np.nan) for _ in range(2))
    if runs is None or all(len(group) < 2 for group in query_ids):
        return overlap, rbo
    rules, chosen = dialect_of(table.policies.dialect), table.policies
    ties: Any = rules.ties if chosen.ties in {"expected", "bounds"} else chosen.ties
    named = {run.name: run for run in runs_of(runs)}
    for row, name in enumerate(table.run_names):
        run = named.get(name)
        if run is not None and run.has_scores:
            ranked = without_self(run) if chosen.exclude_self else run
            overlap[row], rbo[row] = alike(ranked, query_ids, ties=ties, precision=chosen.precision, **how)
    return overlap, rbo


def _notes(table: Scores, need_of: dict[str, str], groups: Sequence[Ints]) -> list[Note]:
    notes: list[Note] = []
    if without := [query for query in table.query_ids if query not in need_of]:
        of = f"{len(without)} of {counted(len(table.query_ids), 'topic')}"
        notes.append(Note("need-unknown", f"left out because their need is unknown: {of}: {first_few(without)}"))
    if single := sum(len(group) == 1 for group in groups):
        has, their = ("has", "its") if single == 1 else ("have", "their")
        of = f"{single} of {counted(len(groups), 'need')}"
        notes.append(Note("one-wording", f"{of} {has} only one wording: nothing is known about {their} spread"))
    return notes


_COLUMNS = ("need", "need_id", "topic_id", "topic")


def needs_of(mapping: Any, column: str | None = None) -> dict[str, str]:
    """Give the need of each query id.

    >>> needs_of({"q1": {"topic_id": 7, "words": 3}, "q2": {"topic_id": 7}, "q3": {"words": 2}})
    {'q1': '7', 'q2': '7'}
    """
    # `mapping`: `{query_id: need}`, `Attributes`, `Topics`, a file of attributes (CSV, TSV, JSONL, Parquet) or a data
    # frame. `column`: the attribute that names the need; None for `need`, `need_id`, `topic_id` or `topic`, whichever
    # there is, or the only one there is.
    if isinstance(mapping, Mapping):
        given = cast("Mapping[Any, Any]", mapping)
        if not any(isinstance(docs, Mapping) for docs in given.values()):
            return {id_text(query, "query id"): id_text(need, "need") for query, need in given.items()}
    if isinstance(mapping, Topics):
        name = _column(mapping.attributes, column, mapping.where)
        ids, values = mapping.table["query_id"].to_pylist(), mapping.table[name].to_pylist()
    else:
        known = Attributes.of(mapping)
        where = str(mapping) if isinstance(mapping, (str, Path)) else known.where
        name = _column(known.names, column, where)
        ids, values = known.query_ids, [_text(value) for value in known.column(name).to_pylist()]
    return {query: need for query, need in zip(ids, values, strict=True) if need}


def _column(names: Sequence[str], wanted: str | None, where: str) -> str:
    if wanted is None:
        wanted = next((name for name in _COLUMNS if name in names), names[0] if len(names) == 1 else None)
    if wanted not in names:
        some = ", ".join(names) or "none"
        asked = f"no attribute {wanted!r} names" if wanted else "no attribute names"
        raise InputError(f"{asked} the need of a topic", fix=f"name one with column= (--column): {some}", path=where)
    return cast("str", wanted)


def _text(value: Any) -> str | None:
    """Write a need as its id: attributes hold whole numbers as floats."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def expand_qrels(qrels: Any, needs: Any, *, column: str | None = None) -> Qrels:
    """Make judgments of needs into judgments of query ids: each wording has the judgments of its need.

    Parameters
    ----------
    qrels
        Judgments whose query ids are needs, as `Qrels.of` takes them. A need without a wording is left out.
    needs, column
        As for `needs_of`.

    Returns
    -------
    Qrels

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
    variants = [(query, rows_of[need]) for query, need in needs_of(needs, column).items() if need in rows_of]
    if not variants:
        problem = f"no need of the mapping is judged: the first topic of the qrels is {judged.topics[0]!r}"
        raise InputError(problem, fix="check that the needs are the query ids of the qrels", path=judged.where)
    rows = np.concatenate([np.array(part, dtype=np.int64) for _, part in variants])
    names = [query for query, part in variants for _ in part]
    table = judged.table.take(int_array(rows))
    table = table.set_column(table.column_names.index("query_id"), "query_id", pa.array(names, pa.string()))
    return Qrels(table, judged.name, judged.where, judged.sha256, origin=judged.origin)


def by_variant(qrels: Qrels, needs: Mapping[str, str]) -> tuple[Qrels, str]:
    """Expand judgments where they are of needs, and say so."""
    topics = set(qrels.topics)
    judged_needs = topics & set(needs.values())
    unjudged = [query for query in needs if query not in topics]
    if not unjudged or not judged_needs:
        return qrels, ""
    clash = sorted(query for query in judged_needs if needs.get(query, query) != query)
    if clash:
        problem = f"{clash[0]!r} is a query id and also the name of a need: the qrels could be of either"
        raise InputError(problem, fix="make qrels by query id with judged.expand_qrels", path=qrels.where)
    made = expand_qrels(qrels, needs)
    return made, f"the judgments are of needs: each of {len(made.topics)} query variants has those of its need"


_MOST_PAIRS = 300  # of one need; of more, as many are taken at even distances


def alike(
    run: Run,
    groups: Sequence[Sequence[str]],
    *,
    cutoff: int = 10,
    rbo_p: float = 0.9,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> tuple[Floats, Floats]:
    """Give the mean overlap, and the mean rank-biased overlap, of the rankings of every two wordings of a need.

    >>> from judged.data import Run
    >>> run = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"b": 2.0, "a": 1.0}, "3": {"a": 2.0, "c": 1.0}})
    >>> overlap, _ = alike(run, [["1", "2", "3"]], cutoff=2)
    >>> round(float(overlap[0]), 3)  # 1 and 2 share both, the others one of two
    0.667
    """
    # Returns overlap, rbo: (N,): NaN for a need with fewer than two wordings that returned something.
    query_ids = tuple(sorted({query for group in groups for query in group}))
    place = {query: at for at, query in enumerate(query_ids)}
    shown = all_returned(run, query_ids, Ranking(ties, cutoff, precision))
    docs = shown.doc.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    starts = segment_starts(shown.topic, len(query_ids))
    lists = [docs[starts[at] : starts[at + 1]] for at in range(len(query_ids))]
    likeness = np.full((2, len(groups)), np.nan)
    for need, group in enumerate(groups):
        there = [lists[place[query]] for query in group if len(lists[place[query]])]
        first, second = np.triu_indices(len(there), 1)
        if len(first):
            some = np.linspace(0, len(first) - 1, min(len(first), _MOST_PAIRS)).round().astype(np.int64)
            pairs = [_two(there[first[at]], there[second[at]], cutoff, rbo_p) for at in np.unique(some).tolist()]
            likeness[:, need] = [np.mean(column) for column in zip(*pairs, strict=True)]
    return likeness[0], likeness[1]


def _two(first: Ints, second: Ints, cutoff: int, rbo_p: float) -> tuple[float, float]:
    union = np.unique(np.concatenate((first, second)))
    ranks = np.zeros((2, len(union)), dtype=np.int64)
    for row, docs in enumerate((first, second)):
        ranks[row, np.searchsorted(union, docs)] = np.arange(1, len(docs) + 1)
    return overlap_at(ranks[0], ranks[1], cutoff), rbo(ranks[0], ranks[1], rbo_p).value


@dataclass(frozen=True)
class Consistency:
    """The share of the variance of scores that lies between needs."""

    # from 0, where wordings of one need differ as much as needs do, to 1, where they all score alike. NaN where it is
    # not defined: fewer than two needs, no need with two wordings, or scores that do not vary.
    value: float
    interval: tuple[float, float] | None  # over needs
    needs: int
    variants: int


def consistency(scores: Floats, need: Ints, *, level: float = 0.95) -> Consistency:
    """Estimate the share of the variance that lies between needs.

    >>> found = consistency(np.array([0.1, 0.3, 0.5, 0.7]), np.array([0, 0, 1, 1]))
    >>> round(found.value, 3)  # mean squares 0.16 and 0.02: between (0.16 - 0.02) / 2 = 0.07
    0.778
    """
    # This is the intraclass correlation ICC(1) of a one-way random-effects analysis of variance, for groups of unequal
    # size: `between / (between + within)`. A negative estimate of the part between needs counts as 0. The interval
    # leaves out whole needs, one at a time, as wordings of one need are not independent: a jackknife of the logarithm
    # of the ratio of mean squares. (In simulations it held the true share 93 to 96 times out of 100 for 15 to 100
    # needs; percentiles of resampled needs did so 89 to 94 times.) `scores`: (T,): one a variant; NaN is left out.
    # `need`: (T,): which need each variant words.
    known = ~np.isnan(scores)
    values, codes = scores[known], need[known]
    _, group = np.unique(codes, return_inverse=True)
    size = np.bincount(group).astype(np.float64)
    needs = len(size)
    if not len(values) or np.ptp(values) <= ROUNDING * np.abs(values).max():
        return Consistency(math.nan, None, needs, len(values))
    centred = values - values.mean()
    total = np.bincount(group, weights=centred).astype(np.float64)
    inside = (centred - (total / size)[group]) ** 2
    within = np.bincount(group, weights=np.where(inside <= ROUNDING**2, 0.0, inside)).astype(np.float64)
    between, rest, usual = (float(part[0]) for part in _mean_squares(np.ones((1, needs)), size, total, within))
    if math.isnan(between) or math.isnan(rest) or between + rest <= 0:
        return Consistency(math.nan, None, needs, len(values))
    value = 1.0 if rest == 0 else _share(between / rest, usual)
    interval = None
    if between > 0 and rest > 0:
        left_out = _mean_squares(np.ones((needs, needs)) - np.eye(needs), size, total, within)
        interval = _jackknifed(between / rest, left_out[0], left_out[1], usual, level)
    return Consistency(value, interval, needs, len(values))


def _mean_squares(times: Floats, size: Floats, total: Floats, within: Floats) -> tuple[Floats, Floats, Floats]:
    """Give the mean squares between and within needs, and the usual size, for each row of weights of the needs."""
    needs, variants, grand = times.sum(axis=1), times @ size, times @ total
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (times @ (total**2 / size) - grand**2 / variants) / (needs - 1)
        rest = (times @ within) / (variants - needs)
        usual = (variants - (times @ size**2) / variants) / (needs - 1)
    return between, rest, usual


def _share(ratio: float, usual: float) -> float:
    """Give the share of the variance between needs by the ratio of the mean squares."""
    return max(0.0, (ratio - 1) / (ratio - 1 + usual))


def _jackknifed(ratio: float, between: Floats, rest: Floats, usual: float, level: float) -> tuple[float, float] | None:
    """Give the interval by the ratios that are left when each need is left out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(between / rest)
    if not np.isfinite(logs).all():
        return None
    needs = len(logs)
    error = math.sqrt((needs - 1) / needs * float(((logs - logs.mean()) ** 2).sum()))
    half = student_quantile((1 + level) / 2, needs - 1) * error
    return _share(math.exp(math.log(ratio) - half), usual), _share(math.exp(math.log(ratio) + half), usual)
