"""`evaluate`: scores of agents by measures of trajectories, answers, and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.files import FileHash
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.trajectories.judging import judge_system, seen_lists
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges, versions
from judged.scoring.evaluation.inputs import apply_conditions, measures_of, select_topics
from judged.scoring.evaluation.notes import few_topics_note
from judged.scoring.evaluation.scores import Scores
from judged.scoring.judging import judge
from judged.scoring.measures.base import AnswerMeasure, TrajectoryMeasure
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.pipelines.trajectories.judging import JudgedSystem
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure


@with_parameter_hints
def evaluate(
    trajectories: Any,
    measures: Any = None,
    *,
    qrels: Any = None,
    accuracy: str | AnswerMeasure | None = None,
    unjudged: bool = True,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
) -> Scores:
    """Score agents by their searches, answers, confidence, and effort.

    The score of a question is the mean over its trials, so that all intervals and tests treat questions as
    independent, but not trials.

    Parameters
    ----------
    trajectories
        `Trajectories`, or any input of `Trajectories.of`.
    measures
        Measures or their names. A measure of rankings scores the documents of a trial in the order in which the agent
        saw them first; a measure of answers scores the answer of each trial. Default: the measures that the data allow.
    qrels
        Judgments of documents, as for `judged.evaluate`. Default: documents of hops are relevant.
    accuracy
        Measure of answers that decides which answers are right: those with a score above 0.5. Default: verdicts, or
        else an exact match with a reference.
    unjudged
        Whether to compute the scores with all unjudged documents nonrelevant, and relevant. For measures in which these
        are not the extremes, the range is only a sample.
    rel, attributes, where
        As for `judged.evaluate`.

    Returns
    -------
    Scores
        Scores of questions. Questions without a trial of a system, or with nothing to score, are left out, with a note.

    Raises
    ------
    InputError
        If an input is invalid.
    MeasureError
        If a measure does not exist, or ``Pass@k`` has fewer than k trials of a question.

    Examples
    --------
    >>> trials = [{"query_id": "q", "correct": correct, "answer": "7",
    ...            "steps": [{"kind": "search", "documents": documents}]}
    ...           for correct, documents in ((True, ["d1", "d2"]), (False, ["d3"]))]
    >>> scores = evaluate(trials, ["AnswerAccuracy", "SeenR", "RR"], qrels={"q": {"d1": 1}})
    >>> scores.aggregate()
    {'agent': {'AnswerAccuracy': 0.5, 'SeenR': 0.5, 'RR': 0.5}}
    """
    selected = Trajectories.of(trajectories)
    notes: tuple[Note, ...] = ()
    if where is not None:
        topics, notes = select_topics(selected.query_ids, where, attributes)
        selected = selected.of_topics(topics)
    judgments = None if qrels is None else Qrels.of(qrels)
    systems = [judge_system(selected, run, judgments, accuracy=accuracy) for run in selected.run_names]
    requested = measures_of(default_measures(systems) if measures is None else measures, rel=rel)
    plain = tuple(dict.fromkeys(measure.without_condition for measure in requested))
    shape = len(systems), len(plain), len(selected.query_ids)
    values, low, high = (np.full(shape, np.nan) for _ in range(3))
    shares = np.full(shape[:2], np.nan)
    for i, system in enumerate(systems):
        for j, measure in enumerate(plain):
            values[i, j], low[i, j], high[i, j], shares[i, j] = _scored(measure, system, judgments, selected.where)
    low, high = (np.where(np.isnan(values), np.nan, bound) for bound in (low, high))
    counted_topics = np.array([np.isin(np.arange(shape[2]), system.trajectories.question) for system in systems])
    notes = (*selected.notes, *notes, *_notes(systems, plain, values))
    is_outer = [getattr(measure, "monotone", True) for measure in plain]
    kind = np.broadcast_to(np.where(is_outer, "outer", "sampled")[:, np.newaxis], shape)
    scores = Scores(
        runs=tuple(_run_facts(system, selected.where) for system in systems),
        measures=plain,
        query_ids=selected.query_ids,
        values=values,
        counted=counted_topics,
        policies=Policies(),
        qrels=_qrels_facts(judgments, selected, where or ""),
        notes=notes,
        versions=versions(),
        ranges=(TopicRanges("unjudged", low, high, kind, shares),) if unjudged else (),
    )
    return apply_conditions(scores, requested, attributes)


def default_measures(systems: Sequence[JudgedSystem]) -> list[str]:
    """Return the names of the measures that the data allow."""
    judged = [system.trajectories for system in systems]
    available = {
        "right": any((~np.isnan(part.right)).any() for part in judged),
        "labels": any(len(part.label_grade) for part in judged),
        "hops": any(len(part.hop_trial) for part in judged),
        "cited": any(system.answers.cited.any() for system in systems),
        "confidence": any((~np.isnan(part.confidence) & ~np.isnan(part.right)).any() for part in judged),
        "tokens": any((~np.isnan(part.tokens)).any() for part in judged),
        "cost": any((~np.isnan(part.cost)).any() for part in judged),
        "searches": any(len(part.search_trial) for part in judged),
    }
    names = {
        "right": ["AnswerAccuracy"],
        "labels": ["SeenR", "SeenP"],
        "hops": ["HopRecall"],
        "cited": ["CitationPrecision", "CitationRecall"] if available["labels"] else [],
        "searches": ["NumSearches", "RepeatedSearches"],
        "confidence": ["ConfidenceBrier"],
        "tokens": ["Effort"],
        "cost": ["Effort(of=cost)"],
    }
    return [name for key, group in names.items() if available[key] for name in group] or ["NumSearches"]


def _scored(
    measure: Measure, system: JudgedSystem, qrels: Qrels | None, where: str
) -> tuple[Floats, Floats, Floats, float]:
    """Return the scores of questions with their bounds, and the share of judged documents."""
    judged = system.trajectories
    if isinstance(measure, TrajectoryMeasure):
        if not measure.properties.depends_on_relevance:
            values = measure(judged)
            return values, values, values, np.nan
        is_judged = judged.is_judged[judged.is_new]
        share = float(is_judged.mean()) if len(is_judged) else np.nan
        return measure(judged), *measure.score_bounds(judged), share
    if isinstance(measure, AnswerMeasure):
        scores, bounds = measure(system.answers), measure.score_bounds(system.answers)
        share = measure.decided_share(system.answers)
    else:
        if qrels is None:
            raise InputError(f"{measure} requires judgments of documents", fix="pass qrels", path=where)
        lists = judge(*seen_lists(system))
        rows = np.array([int(topic) for topic in lists.query_ids], dtype=np.int64)
        scores, low, high = (np.full(judged.n_trials, np.nan) for _ in range(3))
        of_lists = unjudged_range(lists, measure)
        scores[rows], low[rows], high[rows] = measure(lists), of_lists.low, of_lists.high
        returned = int(lists.returned.sum())
        bounds, share = (low, high), len(lists.topic) / returned if returned else np.nan
    return judged.by_question(scores), judged.by_question(bounds[0]), judged.by_question(bounds[1]), share


def _run_facts(system: JudgedSystem, path: str) -> RunFacts:
    judged = system.trajectories
    n_trials = np.bincount(judged.question, minlength=len(judged))
    missing = tuple(query_id for query_id, count in zip(judged.query_ids, n_trials, strict=True) if not count)
    # Effort needs no verdict, so that its trials count.
    verdicts = int((~np.isnan(judged.right)).sum() + judged.is_judged.sum()) or judged.n_trials
    return RunFacts(judged.name, path, FileHash(), int((n_trials > 0).sum()), missing, 0, verdicts)


def _qrels_facts(qrels: Qrels | None, trajectories: Trajectories, where: str) -> QrelsFacts:
    n = len(trajectories.query_ids)
    if qrels is None:
        judgments = trajectories["references"].num_rows + trajectories["correctness"].num_rows
        return QrelsFacts(trajectories.name, trajectories.where, None, n, judgments, (), where)
    grades = tuple(sorted(set(qrels.grades.tolist())))
    return QrelsFacts(qrels.name, trajectories.where, qrels.sha256, n, qrels.table.num_rows, grades, where)


def _notes(systems: Sequence[JudgedSystem], measures: Sequence[Measure], values: Floats) -> Iterator[Note]:
    n = len(systems[0].trajectories)
    if few := few_topics_note(n):
        yield Note("few-topics", few)
    for i, system in enumerate(systems):
        judged = system.trajectories
        n_trials = np.bincount(judged.question, minlength=n)
        if missing := [judged.query_ids[index] for index in np.flatnonzero(n_trials == 0).tolist()]:
            text = f"no trial of {len(missing)} of {counted(n, 'question')}, which are left out: {first_few(missing)}"
            yield Note("missing-topics", text, judged.name)
        if unrecorded := int((~judged.recorded & ~judged.failed).sum()):
            text = f"the documents of {counted(unrecorded, 'search', 'searches')} are not recorded"
            yield Note("unrecorded-searches", f"{text}; the documents that they returned are unknown", judged.name)
        unknown = int(np.isnan(judged.right).sum())
        if 0 < unknown < judged.n_trials:
            text = f"no verdict on {unknown} of {counted(judged.n_trials, 'answer')}, which are left out"
            yield Note("unjudged", text, judged.name)
        left_out = [str(measure) for measure, scores in zip(measures, values[i], strict=True) if np.isnan(scores).all()]
        if left_out:
            yield Note("topics-left-out", f"nothing to score for {', '.join(left_out)}", judged.name)
