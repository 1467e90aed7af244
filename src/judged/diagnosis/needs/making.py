"""`needs`: several wordings of one need: how good, how bad at worst, and how consistent a system is over them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.comparing import compared
from judged.data import Qrels
from judged.decimals import counted
from judged.diagnosis.needs.alike import alike
from judged.diagnosis.needs.consistency import consistency
from judged.diagnosis.needs.result import Needs
from judged.diagnosis.needs.rows import NeedsSummary
from judged.diagnosis.needs.variants import by_variant, needs_of
from judged.errors import InputError
from judged.evaluation import Scores, dialect_of, runs_of
from judged.evaluation.given import TESTED_MEASURES, chosen_measures, scores_of
from judged.stats import IntervalMethod, mean_intervals
from judged.stats.pairing import spread, topics_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints

_SHOWN = 5


def needs(
    scores: Any,
    mapping: Any,
    runs: Any = None,
    measures: Any = None,
    *,
    column: str | None = None,
    depth: int = 10,
    p: float = 0.9,
    baseline: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    queries: Any = None,
    **policies: Any,
) -> Needs:
    """Look at systems by need, where several queries word the same one.

    Each need counts once, however many wordings it has, and intervals and tests are over needs: wordings of one need
    are no independent topics.

    Parameters
    ----------
    scores
        Qrels, and then `runs` follow, as `evaluate` takes them; or what `evaluate` returned. Qrels may be by query id
        or by need.
    mapping
        The need of each query id: ``{query_id: need}``, `Attributes`, `Topics`, or a file with a column for it.
    runs
        With given scores: the same runs, for how alike their rankings are.
    measures
        As `evaluate` takes them; nDCG@10 and AP if they are left out.
    column
        The column of `mapping` that names the need, if it is not called ``need`` or ``topic_id``.
    depth, p
        How many documents of each ranking are looked at for how alike rankings are, and the persistence of RBO.
    baseline
        The run that others are compared with; None: every pair.
    level, seed
        Of the intervals and of the tests.
    queries
        Texts of the wordings: `Topics`, a path, or ``{query_id: text}``.
    policies
        Of `evaluate`, where qrels and runs are given: dialect, topics, ties, precision, documents.

    Returns
    -------
    Needs

    Raises
    ------
    InputError
        If no topic has a need, or something cannot be read.

    Examples
    --------
    >>> qrels = {"7": {"a": 1}, "8": {"a": 1}}
    >>> run = {"7-1": {"a": 1.0}, "7-2": {"x": 2.0, "a": 1.0}, "8-1": {"a": 1.0}, "8-2": {"x": 1.0}}
    >>> found = needs(qrels, {"7-1": "7", "7-2": "7", "8-1": "8", "8-2": "8"}, {"mine": run}, "RR")
    >>> found.mean.tolist(), found.worst.tolist()  # a run, a measure, two needs
    ([[[0.75, 0.5]]], [[[0.5, 0.0]]])
    >>> found.summaries[0].mean, found.summaries[0].worst
    (0.625, 0.25)
    """
    known = needs_of(mapping, column)
    table, notes = _scores(scores, runs, measures, known, policies)
    names, members = _groups(table, known)
    sizes = np.array([len(group) for group in members], dtype=np.int64)
    mean, worst, best, deviation, counts = _spread(table, members)
    groups = tuple(tuple(table.query_ids[at] for at in group.tolist()) for group in members)
    likeness = _alike(table, groups, runs, {"depth": depth, "p": p}, policies)
    by_need = _by_need(table, names, mean)
    method = IntervalMethod(level=level)
    choices = Choices(alpha=round(1 - level, 12), seed=seed, baseline=baseline)
    return Needs(
        scores=table,
        by_need=by_need,
        needs=names,
        query_ids=groups,
        mean=mean,
        worst=worst,
        best=best,
        deviation=deviation,
        variants=counts.astype(np.int64),
        overlap=likeness[0],
        rbo=likeness[1],
        summaries=_summaries(table, members, (mean, worst, best, deviation), likeness, method),
        comparison=compared(by_need, choices, "none") if len(table.runs) > 1 else None,
        depth=depth,
        p=p,
        queries=_texts(queries, groups),
        warnings=(*notes, *_notes(table, known, sizes), *table.warnings),
    )


def _scores(
    given: Any, runs: Any, measures: Any, known: dict[str, str], policies: dict[str, Any]
) -> tuple[Scores, list[str]]:
    """Evaluate, or take scores as they are; of measures whose aggregate is a mean."""
    notes: list[str] = []
    if runs is not None and not isinstance(given, Scores):
        judged, note = by_variant(Qrels.of(given), known)
        notes += [note] if note else []
        table = scores_of(judged, runs, TESTED_MEASURES if measures is None else measures, policies)
    else:
        table = scores_of(given, None, measures, policies)
    rows = [at for at, one in enumerate(table.measures) if one.entry.aggregate == "mean"]
    dropped = [name for at, name in enumerate(table.measure_names) if at not in rows]
    if not rows:
        raise InputError(f"{', '.join(dropped)} is no mean over topics", fix="take a measure such as nDCG@10")
    if dropped:
        notes.append(f"left out, as no means over topics: {', '.join(dropped)}")
        table = chosen_measures(table, [table.measures[at] for at in rows])
    return table, notes


def _groups(table: Scores, known: dict[str, str]) -> tuple[tuple[str, ...], list[Ints]]:
    """Gather the topics of each need, needs in byte order."""
    found: dict[str, list[int]] = {}
    for at, query in enumerate(table.query_ids):
        if query in known:
            found.setdefault(known[query], []).append(at)
    if not found:
        raise InputError(
            f"no topic has a need: the first topic is {table.query_ids[0]!r}, that of the mapping"
            f" {next(iter(known), '')!r}",
            fix="check that both use the same query ids",
        )
    names = tuple(sorted(found))
    return names, [np.array(found[name], dtype=np.int64) for name in names]


def _spread(table: Scores, members: Sequence[Ints]) -> tuple[Floats, ...]:
    """Give mean, worst, best, standard deviation and number over the wordings of each need: (R, M, N) each."""
    less = [measure.properties.higher_is_better is False for measure in table.measures]
    made = [[_of_needs(one, members, less=less[m]) for m, one in enumerate(row)] for row in table.values]
    return tuple(np.moveaxis(np.array(made), 2, 0).copy())


def _summaries(
    table: Scores,
    members: Sequence[Ints],
    parts: tuple[Floats, Floats, Floats, Floats],
    likeness: tuple[Floats, Floats],
    method: IntervalMethod,
) -> tuple[NeedsSummary, ...]:
    mean, worst, best, deviation = parts
    topics = np.concatenate(members)
    code = np.repeat(np.arange(len(members)), [len(group) for group in members])
    bounds = np.array([m.properties.bounds for _ in table.runs for m in table.measures])
    limits = [mean_intervals(part.reshape(-1, len(members)), method, bounds) for part in (mean, worst)]
    made: list[NeedsSummary] = []
    for at, (run, measure) in enumerate((r, m) for r in table.run_names for m in table.measure_names):
        r, m = divmod(at, len(table.measures))
        scores = table.values[r, m, topics]
        made.append(
            NeedsSummary(
                run=run,
                measure=measure,
                mean=_mean(mean[r, m]),
                mean_ci=_interval(limits[0][at]),
                worst=_mean(worst[r, m]),
                worst_ci=_interval(limits[1][at]),
                best=_mean(best[r, m]),
                deviation=_mean(deviation[r, m]),
                consistency=consistency(scores, code, level=method.level),
                overlap=_mean(likeness[0][r]),
                rbo=_mean(likeness[1][r]),
            )
        )
    return tuple(made)


def _of_needs(values: Floats, members: Sequence[Ints], *, less: bool) -> tuple[Floats, ...]:
    """Give mean, worst, best, standard deviation and number of the scores of each need; NaN where it has none."""
    made = np.full((5, len(members)), np.nan)
    for at, group in enumerate(members):
        scores = values[group]
        scores = scores[~np.isnan(scores)]
        made[4, at] = len(scores)
        if len(scores):
            low, high = float(scores.min()), float(scores.max())
            made[:3, at] = scores.mean(), high if less else low, low if less else high
        made[3, at] = spread(scores)
    return tuple(made)


def _by_need(table: Scores, names: tuple[str, ...], mean: Floats) -> Scores:
    """Make scores whose topics are the needs."""
    from dataclasses import replace

    counted = ~np.isnan(mean).all(axis=1)
    return replace(table, query_ids=names, values=mean.copy(), counted=counted, ranges=(), notes=())


def _alike(
    table: Scores, groups: Sequence[Sequence[str]], runs: Any, how: dict[str, Any], policies: dict[str, Any]
) -> tuple[Floats, Floats]:
    nothing = np.full((len(table.runs), len(groups)), np.nan)
    if runs is None or all(len(group) < 2 for group in groups):
        return nothing, nothing.copy()
    rules = dialect_of(policies.get("dialect"))
    chosen = table.policies
    order: dict[str, Any] = {
        "ties": rules.ties if chosen.ties in {"expected", "bounds"} else chosen.ties,
        "precision": chosen.precision,
    }
    named = {run.name: run for run in runs_of(runs)}
    made = nothing, nothing.copy()
    for row, name in enumerate(table.run_names):
        run = named.get(name)
        if run is not None and run.has_scores:
            found = alike(rules.prepare_run(run), groups, **order, **how)
            made[0][row], made[1][row] = found
    return made


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _interval(limits: Floats) -> tuple[float, float] | None:
    return None if np.isnan(limits).any() else (float(limits[0]), float(limits[1]))


def _texts(queries: Any, groups: Sequence[Sequence[str]]) -> dict[str, str]:
    if queries is None:
        return {}
    from judged.data.topics import Topics

    texts = Topics.of(queries)
    return {query: texts.text(query) for group in groups for query in group}


def _notes(table: Scores, known: dict[str, str], sizes: Ints) -> list[str]:
    made: list[str] = []
    without = [query for query in table.query_ids if query not in known]
    if without:
        some = ", ".join(without[:_SHOWN]) + (", ..." if len(without) > _SHOWN else "")
        of = topics_text(len(table.query_ids))
        made.append(f"left out, as their need is not known: {len(without)} of {of}: {some}")
    single = int(np.count_nonzero(sizes == 1))
    if single:
        has, their = ("has", "its") if single == 1 else ("have", "their")
        of = counted(len(sizes), "need")
        made.append(f"{single} of {of} {has} one wording only: nothing is known of {their} spread")
    return made
