"""Trace funnel: the loss of a measure at each stage of a pipeline."""

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
    lost_documents,
    recorded,
    relevant_in,
    restrict_to_corpus,
    sets_after_steps,
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
    """Split the loss of each topic into the stages of its pipeline.

    Let U(S) be the measure of the best order of the documents S, and S the documents that all branches hold after a
    step. The part of a step is U before it minus U after it; the first U is that of all judged documents, and the last
    part is U of the final list minus its score. The parts of a topic sum to ``best - score``. A part is negative if a
    step adds documents. Stages at the same distance from the query are one step; their own losses are listed as well.

    If a stage is not recorded for a topic, the topic is left out of means and counted. Bounds over all topics assume
    for an unknown set at worst its recorded documents and at best all judged ones, and for an unknown list at worst an
    empty one and at best the ideal ranking. A step that is recorded for no topic is joined with the next one.

    Parameters
    ----------
    qrels
        As for `judged.evaluate`.
    traces
        Traces of one system.
    measure
        Measure whose best order is by grade, and which does not decrease when documents are added: nDCG, DCG, AP, RR,
        R, RBP, ERR, P.
    final
        Stage whose list is scored. Default: `Traces.final`.
    corpus
        Ids of all documents, to distinguish relevant documents outside the corpus from those that were not found.
    slicing
        Slices of topics; parts are also estimated in each.
    attributes, where
        Selection of topics, as for `judged.evaluate`.
    level
        Confidence level of the intervals.

    Raises
    ------
    InputError
        If an input is invalid, or no traced query is judged.
    MeasureError
        If the best order for the measure is unknown.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> traces = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> result = funnel({"q": {"a": 1, "b": 1, "c": 1}}, traces, "R@2")
    >>> {name: part.round(4).tolist() for name, part in result.parts.items()}
    {'bm25': [0.0], 'rerank': [0.3333], 'order': [0.0]}
    >>> result.lost
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
    """Build the funnel; without `join`, a step that is recorded for no topic stays separate."""
    parsed = single_measure(measure)
    check_measure(parsed)
    if parsed.properties.judged_better_first and not getattr(parsed, "judged_only", False):
        problem = f"{parsed} depends on which documents are judged not relevant"
        raise MeasureError(f"{problem}: its loss cannot be split into stages. Fix: use nDCG@10, AP, or R@100")
    judgments, filter_notes = filter_topics(Qrels.of(qrels), where, attributes)
    last = traces.stage(final) if final is not None else traces.final
    path = stages_to(traces, last)
    lists = {stage.name: judge(judgments, traces.run_or_empty(stage.name)) for stage in path}
    ranked = lists[last.name]
    if set(traces.query_ids).isdisjoint(ranked.query_ids):
        fix = "use the same query ids in the traces and the qrels"
        raise InputError("no traced query is judged", fix=fix, path=traces.name)
    sets = list(sets_after_steps(traces, path, judgments, lists, join=join))
    if corpus is not None:
        all_topics = np.ones(len(ranked.query_ids), dtype=np.bool_)
        sets.insert(0, StepSet(CORPUS, judge(judgments, restrict_to_corpus(judgments, corpus)), all_topics))
    parts, limits, best, score = _parts(parsed, sets, ranked)
    rel = float(getattr(parsed, "rel", POSITIVE))
    losses = tuple(_stage_loss(traces, stage, lists, judgments, parsed, best, rel) for stage in path)
    recorded_rows = {loss.stage.name: np.flatnonzero(loss.recorded) for loss in losses if loss.recorded.any()}
    recorded_lists = [repeat_topics(lists[name], rows) for name, rows in recorded_rows.items()]
    provenance = provenance_of_lists(recorded_lists or [ranked], [parsed])
    return TraceFunnel(
        traces=traces,
        measure=parsed,
        query_ids=ranked.query_ids,
        best=best,
        score=score,
        parts=parts,
        limits=limits,
        losses=losses,
        relevant=ranked.num_relevant(rel).astype(np.int64),
        listed=tuple(relevant_in(ranked, rel)),
        lost=tuple(lost_documents(ranked, sets, rel)),
        level=level,
        provenance=provenance,
        slicing=None if slicing is None else as_slicing(slicing).over(ranked.query_ids),
        notes=(*traces.notes, *filter_notes, *provenance.notes, *_unrecorded(losses)),
    )


def _parts(
    measure: Measure, sets: Sequence[StepSet], ranked: Judged
) -> tuple[dict[str, Floats], dict[str, Floats], Floats, Floats]:
    """Split the loss into parts, NaN if unknown, with limits; also return the best score and the score."""
    documents = {step_set.name: step_set.documents for step_set in sets}
    best, attainable, score, recorded_parts = split_loss(measure, documents, ranked)
    parts = dict(recorded_parts)
    is_recorded = {step_set.name: step_set.is_recorded for step_set in sets} | {ORDER: sets[-1].is_recorded}
    # Recorded documents are a subset of the unknown set, and the measure does not decrease when documents are added:
    # the score of the subset is the lowest possible, and `best` the highest. An empty list scores lowest.
    # `previous`: both limits of the attainable score before the step.
    previous, is_previous_recorded = (best, best), np.ones(len(best), dtype=np.bool_)
    limits = {SCORE: np.stack([score, np.where(sets[-1].is_recorded, score, best)])}
    for name, values in {**attainable, ORDER: score}.items():
        high = np.where(is_recorded[name], values, best)
        low = previous[0] - high
        if name == ORDER:  # no list is better than the best order of its documents
            low = np.maximum(low, 0.0)
        is_certain = is_recorded[name] & is_previous_recorded
        limits[name] = np.where(is_certain, parts[name], np.stack([low, previous[1] - values]))
        parts[name] = np.where(is_certain, parts[name], np.nan)
        previous, is_previous_recorded = (values, high), is_recorded[name]
    return parts, limits, best, np.where(sets[-1].is_recorded, score, np.nan)


def _unrecorded(losses: Sequence[StageLoss]) -> Iterator[Note]:
    for loss in losses:
        if missing := int((~loss.recorded).sum()):
            topics = counted(len(loss.recorded), "topic")
            text = (
                f"not recorded for {missing} of {topics}; means exclude topics without a record, and bounds cover all"
                " topics"
            )
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
    """Compare a stage with the judgments and with its input."""
    ranked = lists[stage.name]
    is_recorded = recorded(traces, [stage.name], ranked.query_ids)
    has_input = recorded(traces, stage.parents, ranked.query_ids)
    relevant = ranked.num_relevant(rel)
    n_relevant = ranked.sum(ranked.relevant(rel))
    latencies = [span.latency_ms for span in traces.spans if span.stage == stage.name and span.latency_ms is not None]
    input_attainable, n_kept, n_input_relevant = best, n_relevant, relevant
    if stage.parents:
        is_merged = len(stage.parents) > 1
        inputs = judge(judgments, traces.union(stage.parents)) if is_merged else lists[stage.parents[0]]
        input_attainable = measure(best_order(inputs))
        n_input_relevant = inputs.sum(inputs.relevant(rel))
        n_kept = ranked.sum(ranked.relevant(rel) & np.isin(ranked.row, inputs.row))
    return StageLoss(
        stage=stage,
        recorded=is_recorded,
        score=np.where(is_recorded, measure(ranked), np.nan),
        attainable=np.where(is_recorded, measure(best_order(ranked)), np.nan),
        input_attainable=np.where(has_input, input_attainable, np.nan),
        n_relevant=np.where(is_recorded, n_relevant, np.nan),
        n_kept=np.where(is_recorded & has_input, n_kept, np.nan),
        n_input_relevant=np.where(has_input, n_input_relevant, np.nan),
        latency_ms=median(latencies) if latencies else math.nan,
    )
