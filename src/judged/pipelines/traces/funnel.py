"""The funnel: what each stage held of what is relevant, what it lost, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.diagnosis.stages.trace import ORDER, POSITIVE, best_order, check_measure, single_measure, split_loss
from judged.errors import InputError, MeasureError
from judged.pipelines.traces.funnel_answer import SCORE, StageLoss, TraceFunnel
from judged.pipelines.traces.steps import (
    CORPUS,
    StepSet,
    held_behind,
    inside,
    lost_of,
    recorded,
    relevant_in,
    stages_to,
)
from judged.results import counted
from judged.results.blocks import Note
from judged.scoring.evaluation.facts import provenance_of_lists
from judged.scoring.evaluation.inputs import filter_topics
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import repeat_topics

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure


def funnel(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    level: float = 0.95,
) -> TraceFunnel:
    """Split what each topic lost into the stages of its pipeline.

    With U(S) the measure of the best order of the documents S, and S the documents that all branches still hold behind
    a step, a step's part is U before it less U behind it; the first U is that of all judged documents, and the last
    part is U of the last list less its score. The parts of a topic add up to ``best - score``. A part is negative
    where a step adds documents. Stages that are equally far from the query are one step; what each of them lost stands
    beside.

    Where a stage is not recorded, what it passed on is unknown. Its topics are left out of means and counted; bounds
    over all topics say what they could change. For the bounds, an unknown set is at worst what is recorded of it, and
    at best holds all judged documents; an unknown list is at worst empty, and at best the best order of all. A step
    that is recorded for no topic is joined with the next one.

    Parameters
    ----------
    qrels
        As `judged.evaluate` takes them.
    traces
        What was traced.
    measure
        One whose best order is that of falling grades, and which does not fall when documents are added: nDCG, DCG, AP,
        RR, R, RBP, ERR, P.
    final
        The stage whose list is scored; None: see `Traces.final`.
    corpus
        Ids of all documents that there are: relevant ones outside are told apart from those that were not found.
    slicing
        Slices of topics, by which parts are shown too.
    attributes, where
        Which topics count, as for `judged.evaluate`.
    level
        Of the intervals.

    Raises
    ------
    InputError
        If something cannot be read, or no traced query is judged.
    MeasureError
        If the best order is not known for the measure.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> found = funnel({"q": {"a": 1, "b": 1, "c": 1}}, made, "R@2")
    >>> {name: part.round(4).tolist() for name, part in found.parts.items()}
    {'bm25': [0.0], 'rerank': [0.3333], 'order': [0.0]}
    >>> found.lost
    (('q', 'b', 'rerank', 1.0), ('q', 'c', 'bm25', 1.0))
    """
    return build_funnel(qrels, traces, measure, final, corpus, slicing, attributes, where, level)


def build_funnel(
    qrels: Any,
    traces: Traces,
    measure: str | Measure,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    level: float = 0.95,
    *,
    join: bool = True,
) -> TraceFunnel:
    """Build the funnel; without `join`, a step that is recorded for no topic is not joined with the next one."""
    chosen = single_measure(measure)
    check_measure(chosen)
    if chosen.properties.judged_better_first and not getattr(chosen, "judged_only", False):
        problem = f"{chosen} depends on which documents are judged not relevant"
        raise MeasureError(f"{problem}: its loss cannot be split into stages. Fix: take one such as nDCG@10, AP, R@100")
    judgments, lacking = filter_topics(Qrels.of(qrels), where, attributes)
    last = traces.stage(final) if final is not None else traces.final
    path = stages_to(traces, last)
    lists = {stage.name: judge(judgments, traces.run_or_empty(stage.name)) for stage in path}
    shown = lists[last.name]
    if set(traces.query_ids).isdisjoint(shown.query_ids):
        problem = "no traced query is judged"
        raise InputError(problem, fix="check that ids of queries are those of the qrels", path=traces.name)
    sets = list(held_behind(traces, path, judgments, lists, join=join))
    if corpus is not None:
        everything = np.ones(len(shown.query_ids), dtype=np.bool_)
        sets.insert(0, StepSet(CORPUS, judge(judgments, inside(judgments, corpus)), everything))
    parts, limits, best, score = _parts(chosen, sets, shown)
    rel = float(getattr(chosen, "rel", POSITIVE))
    losses = tuple(_stage_loss(traces, stage, lists, judgments, chosen, best, rel) for stage in path)
    known = [
        repeat_topics(lists[loss.stage.name], np.flatnonzero(loss.recorded)) for loss in losses if loss.recorded.any()
    ]
    provenance = provenance_of_lists(known or [shown], [chosen])
    return TraceFunnel(
        traces=traces,
        measure=chosen,
        query_ids=shown.query_ids,
        best=best,
        score=score,
        parts=parts,
        limits=limits,
        losses=losses,
        relevant=shown.num_relevant(rel).astype(np.int64),
        listed=tuple(relevant_in(shown, rel)),
        lost=tuple(lost_of(shown, sets, rel)),
        level=level,
        provenance=provenance,
        slicing=None if slicing is None else as_slicing(slicing).over(shown.query_ids),
        notes=(*traces.notes, *lacking, *provenance.notes, *_unrecorded(losses)),
    )


def _parts(
    measure: Measure, sets: Sequence[StepSet], shown: Judged
) -> tuple[dict[str, Floats], dict[str, Floats], Floats, Floats]:
    """Split what was lost into parts, NaN where they are unknown, with limits; and the best score and the score."""
    best, attainable, score, known_parts = split_loss(measure, {one.name: one.documents for one in sets}, shown)
    parts = dict(known_parts)
    known = {one.name: one.known for one in sets} | {ORDER: sets[-1].known}
    # What is recorded of a set is a part of it, and the measure does not fall when documents are added: the score of
    # that part is the lowest one, and `best` the highest. An empty list scores lowest.
    before, certain = (best, best), np.ones(len(best), dtype=np.bool_)
    limits = {SCORE: np.stack([score, np.where(sets[-1].known, score, best)])}
    for name, values in {**attainable, ORDER: score}.items():
        high = np.where(known[name], values, best)
        low = before[0] - high
        if name == ORDER:  # a list is never better than the best order of its documents
            low = np.maximum(low, 0.0)
        both = known[name] & certain
        limits[name] = np.where(both, parts[name], np.stack([low, before[1] - values]))
        parts[name] = np.where(both, parts[name], np.nan)
        before, certain = (values, high), known[name]
    return parts, limits, best, np.where(sets[-1].known, score, np.nan)


def _unrecorded(losses: Sequence[StageLoss]) -> Iterator[Note]:
    """Count the topics for which stages are not recorded."""
    for loss in losses:
        if missing := int((~loss.recorded).sum()):
            topics = counted(len(loss.recorded), "topic")
            text = f"not recorded for {missing} of {topics}, which are left out of means; see the bounds"
            yield Note("unrecorded-stages", text, loss.stage.name, missing, of="stages")


def _stage_loss(
    traces: Traces,
    stage: Stage,
    lists: Mapping[str, Judged],
    judgments: Qrels,
    measure: Measure,
    best: Floats,
    rel: float,
) -> StageLoss:
    """Hold a stage against the judgments, and against what it was given."""
    own = lists[stage.name]
    known = recorded(traces, [stage.name], own.query_ids)
    fed = recorded(traces, stage.parents, own.query_ids)
    relevant = own.num_relevant(rel)
    held = own.sum(own.relevant(rel))
    took = [span.latency_ms for span in traces.spans if span.stage == stage.name and span.latency_ms is not None]
    given, kept, offered = best, held, relevant
    if stage.parents:
        several = len(stage.parents) > 1
        before = judge(judgments, traces.union(stage.parents)) if several else lists[stage.parents[0]]
        given = measure(best_order(before))
        offered = before.sum(before.relevant(rel))
        kept = own.sum(own.relevant(rel) & np.isin(own.row, before.row))
    latency = median(took) if took else math.nan
    values = (measure(own), measure(best_order(own)), given, held, kept, offered)
    masks = (known, known, fed, known, known & fed, fed)
    score, attainable, given, held, kept, offered = (
        np.where(mask, value, np.nan) for value, mask in zip(values, masks, strict=True)
    )
    return StageLoss(stage, known, score, attainable, given, held, kept, offered, latency)
