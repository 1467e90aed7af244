"""`needs`: several wordings of one need: how good, how bad at worst, and how consistent a system is over them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.compare import compared
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.needs.answer import Needs, NeedsSummary
from judged.diagnosis.needs.likeness import alike, by_variant, consistency, needs_of
from judged.errors import InputError
from judged.results.decimals import counted
from judged.results.notes import Note, first_few
from judged.scoring.evaluation import Scores, dialect_of, runs_of
from judged.scoring.evaluation.dialects import without_self
from judged.scoring.evaluation.evaluate import chosen_measures
from judged.scoring.evaluation.of_runs import of_runs
from judged.stats.inputs import check_count, spread
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats, Ints


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
        comparison=compared(by_need, choices, "none") if len(table.runs) > 1 else None,
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
        mean, worst, best, deviation = (_mean(part[r, m]) for part in parts)
        mean_ci, worst_ci = (None if np.isnan(ends[at]).any() else (*ends[at].tolist(),) for ends in limits)
        share = consistency(table.values[r, m, topics], need, level=method.level)
        overlap, rbo = (_mean(part[r]) for part in likeness)
        rows.append(NeedsSummary(run, measure, mean, mean_ci, worst, worst_ci, best, deviation, share, overlap, rbo))
    return tuple(rows)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


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
