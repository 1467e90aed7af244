"""Scores of agents by measures of trajectories, answers, and rankings; accuracy and effort; effects of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.data.files import FileHash
from judged.data.qrels import Qrels
from judged.diagnosis.tradeoff.tradeoff import tradeoff_of_scores
from judged.errors import InputError
from judged.pipelines.traces.steps import sufficient_intervals
from judged.pipelines.trajectories.judging import judge_system, seen_lists
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results import COUNT, TEXT, Answer, Sentences, Table, columns_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, decimal, p_text
from judged.results.spelling import with_parameter_hints
from judged.results.table import CHANGE, p_value
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges, versions
from judged.scoring.evaluation.inputs import apply_conditions, measures_of, select_topics
from judged.scoring.evaluation.notes import few_topics_note
from judged.scoring.evaluation.scores import Scores
from judged.scoring.judging import judge
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import AnswerMeasure, TrajectoryMeasure
from judged.scoring.uncertainty.unjudged import unjudged_range
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.diagnosis.tradeoff import Tradeoff
    from judged.pipelines.trajectories.judging import JudgedSystem
    from judged.results import Block
    from judged.results.table import IntervalLimits
    from judged.results.types import Floats, Ints
    from judged.scoring.judging.trajectories import JudgedTrajectories
    from judged.scoring.measures.base import Measure
    from judged.stats.results import Difference


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
    is_outer = [measure.properties.monotone or not isinstance(measure, TrajectoryMeasure) for measure in plain]
    kind = np.broadcast_to(np.where(is_outer, "outer", "sampled")[:, np.newaxis], shape)
    scores = Scores(
        runs=tuple(_run_facts(system, selected.where) for system in systems),
        measures=plain,
        query_ids=selected.query_ids,
        values=values,
        counted=np.array([_trial_counts(system) > 0 for system in systems]),
        policies=Policies(),
        qrels=_qrels_facts(judgments, selected, where or ""),
        notes=(*selected.notes, *notes, *_notes(systems, plain, values)),
        versions=versions(),
        ranges=(TopicRanges("unjudged", low, high, kind, shares),) if unjudged else (),
    )
    return apply_conditions(scores, requested, attributes)


def default_measures(systems: Sequence[JudgedSystem]) -> list[str]:
    """Return the names of the measures that the data allow."""
    data = list(map(_values_by_measure, systems))
    names = [name for name in data[0] if any(np.isfinite(values[name]).any() for values in data)]
    return names or ["NumSearches"]


def _values_by_measure(system: JudgedSystem) -> dict[str, Any]:
    """Return the values that each default measure requires; a measure without a number has no scores."""
    judged = system.trajectories
    cited_labels = judged.label_grade if system.answers.cited.any() else np.zeros(0)
    return {
        "AnswerAccuracy": judged.right,
        **dict.fromkeys(("SeenR", "SeenP"), judged.label_grade),
        "HopRecall": judged.hop_search,
        **dict.fromkeys(("CitationPrecision", "CitationRecall"), cited_labels),
        **dict.fromkeys(("NumSearches", "RepeatedSearches"), judged.search_trial),
        "ConfidenceBrier": judged.confidence - judged.right,
        "Effort": judged.tokens,
        "Effort(of=cost)": judged.cost,
    }


def _scored(
    measure: Measure, system: JudgedSystem, qrels: Qrels | None, where: str
) -> tuple[Floats, Floats, Floats, float]:
    """Return the scores of questions with their bounds, and the share of judged documents."""
    judged = system.trajectories
    if isinstance(measure, TrajectoryMeasure):
        is_judged = judged.is_judged[judged.is_new] if measure.properties.depends_on_relevance else np.zeros(0)
        return measure(judged), *measure.score_bounds(judged), float(is_judged.mean()) if len(is_judged) else np.nan
    if isinstance(measure, AnswerMeasure):
        scores, (low, high) = measure(system.answers), measure.score_bounds(system.answers)
        share = measure.decided_share(system.answers)
    elif qrels is None:
        raise InputError(f"{measure} requires judgments of documents", fix="pass qrels", path=where)
    else:
        lists = judge(*seen_lists(system))
        scores, low, high = (np.full(judged.n_trials, np.nan) for _ in range(3))
        rows, bounds = np.array(lists.query_ids, dtype=np.int64), unjudged_range(lists, measure)
        scores[rows], low[rows], high[rows] = measure(lists), bounds.low, bounds.high
        share = float(divide(len(lists.topic), int(lists.returned.sum()), np.nan))
    return judged.by_question(scores), judged.by_question(low), judged.by_question(high), share


def mean_interval(values: Floats, level: float, bounds: tuple[float, float]) -> tuple[float, IntervalLimits]:
    """Return the mean of the values that are not NaN, and its confidence interval; None with too little data.

    >>> mean_interval(np.array([0.5, 0.5, np.nan]), 0.95, (0.0, 1.0))
    (0.5, None)
    """
    valid = values[~np.isnan(values)]
    low, high = sufficient_intervals(valid[np.newaxis], IntervalMethod("adjusted", level), bounds)[0].tolist()
    return float(valid.mean()) if len(valid) else np.nan, None if np.isnan(low) else (low, high)


def mean_difference(first: Floats, second: Floats, **options: Any) -> tuple[Difference, IntervalLimits, float]:
    """Test second minus first by pairs; the interval is None, and the p-value NaN, with too little data for a verdict.

    >>> mean_difference(np.array([0.1, 0.2]), np.array([0.2, 0.4]))[1:]
    (None, nan)
    """
    tested = paired_test(first, second, resamples=10_000, **options)
    if insufficiency(tested.n, "verdict") is not None:
        return tested, None, np.nan
    return tested, tested.interval, tested.p


def _trial_counts(system: JudgedSystem) -> Ints:
    return np.bincount(system.trajectories.question, minlength=len(system.trajectories))


def _missing(system: JudgedSystem) -> list[str]:
    """Return the questions without a trial."""
    return np.array(system.trajectories.query_ids, dtype=object)[_trial_counts(system) == 0].tolist()


def _run_facts(system: JudgedSystem, path: str) -> RunFacts:
    judged, missing = system.trajectories, _missing(system)
    # Effort needs no verdict, so that its trials count.
    verdicts = int((~np.isnan(judged.right)).sum() + judged.is_judged.sum()) or judged.n_trials
    return RunFacts(judged.name, path, FileHash(), len(judged) - len(missing), tuple(missing), 0, verdicts)


def _qrels_facts(qrels: Qrels | None, trajectories: Trajectories, where: str) -> QrelsFacts:
    n = len(trajectories.query_ids)
    if qrels is None:
        judgments = trajectories["references"].num_rows + trajectories["correctness"].num_rows
        return QrelsFacts(trajectories.name, trajectories.where, None, n, judgments, (), where)
    grades = tuple(sorted(set(qrels.grades.tolist())))
    return QrelsFacts(qrels.name, trajectories.where, qrels.sha256, n, qrels.table.num_rows, grades, where)


def verdict_notes(judged: JudgedTrajectories) -> Iterator[Note]:
    """Yield a note about answers without a verdict, if others have one."""
    unknown = int(np.isnan(judged.right).sum())
    if 0 < unknown < judged.n_trials:
        text = f"no verdict on {unknown} of {counted(judged.n_trials, 'answer')}, which are left out"
        yield Note("unjudged", text, judged.name)


def _notes(systems: Sequence[JudgedSystem], measures: Sequence[Measure], values: Floats) -> Iterator[Note]:
    n = len(systems[0].trajectories)
    if few := few_topics_note(n):
        yield Note("few-topics", few)
    for system, by_measure in zip(systems, values, strict=True):
        judged = system.trajectories
        if missing := _missing(system):
            text = f"no trial of {len(missing)} of {counted(n, 'question')}, which are left out: {first_few(missing)}"
            yield Note("missing-topics", text, judged.name)
        if unrecorded := int((~judged.recorded & ~judged.failed).sum()):
            text = f"the documents of {counted(unrecorded, 'search', 'searches')} are not recorded"
            yield Note("unrecorded-searches", f"{text}; the documents that they returned are unknown", judged.name)
        yield from verdict_notes(judged)
        left_out = [str(measure) for measure, row in zip(measures, by_measure, strict=True) if np.isnan(row).all()]
        if left_out:
            yield Note("topics-left-out", f"nothing to score for {', '.join(left_out)}", judged.name)


def compare_effort(scores: Scores, **options: Any) -> Tradeoff:
    """Compare the first measure of agents with the others as efforts: systems that no other one dominates.

    Parameters
    ----------
    scores
        Result of `judged.pipelines.trajectories.evaluate` with two or more measures: accuracy, then efforts.
    options
        As for `Scores.tradeoff`.

    Examples
    --------
    >>> from judged.pipelines.trajectories import evaluate
    >>> trials = [{"query_id": q, "run_id": run, "answer": "7", "correct": run == "b",
    ...            "steps": [{"kind": "search", "documents": []}] * count}
    ...           for q in ("q1", "q2") for run, count in (("a", 1), ("b", 4))]
    >>> tradeoff = compare_effort(evaluate(trials, ["AnswerAccuracy", "NumSearches"]))
    >>> [(point.run, point.costs["NumSearches"]) for point in tradeoff.rows]
    [('a', 1.0), ('b', 4.0)]
    """
    measure = scores.measures[0]
    costs: dict[str, dict[str, float]] = {run: {} for run in scores.run_names}
    intervals: dict[str, dict[str, tuple[float, float]]] = {run: {} for run in scores.run_names}
    for estimate in scores.estimates():
        if estimate.measure != str(measure) and not np.isnan(estimate.value):
            costs[estimate.run][estimate.measure] = estimate.value
            intervals[estimate.run] |= {estimate.measure: estimate.ci} if estimate.ci else {}
    return tradeoff_of_scores(scores, costs, measure=measure, cost_intervals=intervals, **options)


class AgentEffect(NamedTuple):
    """Mean change of a measure if one part of the system is replaced and all other parts stay the same."""

    measure: str
    factor: str
    level: str
    other: str
    pairs: int  # pairs of systems that differ in this factor only
    questions: int
    change: float
    change_ci: tuple[float, float] | None
    p: float  # Holm-corrected over all effects of the measure; NaN if not tested


@dataclass(frozen=True, eq=False, repr=False)
class AgentEffects(Answer):
    """Effects of the parts of systems, such as the agent, the model, and the retriever."""

    kind: ClassVar[str] = "agent-effects"

    effects: tuple[AgentEffect, ...]
    alpha: float

    def facts(self) -> Mapping[str, Any]:
        """Return the significance level."""
        return {"alpha": self.alpha}

    def blocks(self) -> tuple[Block, ...]:
        """Return the effects."""
        sentences = [
            f"{effect.factor}: {effect.other} instead of {effect.level} changes {effect.measure} by"
            f" {decimal(effect.change, 4, '+')} (p {p_text(effect.p, self.alpha)})."
            for effect in self.effects
            if effect.p <= self.alpha
        ]
        fields = (
            ("measure", TEXT), ("factor", TEXT), ("level", TEXT, "instead of"), ("other", TEXT, "level"),
            ("pairs", COUNT, "pairs of systems"), ("questions", COUNT), ("change", CHANGE), ("p", p_value(self.alpha)),
        )  # fmt: skip
        note = (
            "Change: mean over questions of the mean difference over all pairs of systems that differ in this factor"
            " only. p: paired randomization test over questions, Holm-corrected over the effects of a measure."
        )
        table = Table("effects", columns_of(self.effects, *fields, intervals=True), "Effects of parts", note, labels=4)
        return (Sentences(tuple(sentences) or ("No effect is significant.",)), table)


def factor_effects(
    scores: Scores, factors: Mapping[str, Mapping[str, str]], *, alpha: float = 0.05, seed: int = 0
) -> AgentEffects:
    """Estimate the effect of replacing one part of a system, such as the retriever under the same agents.

    Parameters
    ----------
    scores
        Result of `judged.pipelines.trajectories.evaluate`.
    factors
        Level of each factor, by system: ``{"a": {"agent": "small", "retriever": "bm25"}, ...}``.
    alpha
        Significance level.
    seed
        Seed of the randomization tests.

    Raises
    ------
    InputError
        If a system has no levels, or no two systems differ in one factor only.

    Examples
    --------
    >>> from judged.pipelines.trajectories import evaluate
    >>> trials = [{"query_id": f"q{i}", "run_id": run, "answer": "7", "correct": run[-1] == "2" or i > 5}
    ...           for i in range(12) for run in ("a1", "a2", "b1", "b2")]
    >>> factors = {run: {"agent": run[0], "retriever": run[1]} for run in ("a1", "a2", "b1", "b2")}
    >>> effects = factor_effects(evaluate(trials, "AnswerAccuracy"), factors).effects
    >>> [(effect.factor, effect.pairs, effect.change) for effect in effects]
    [('agent', 2, 0.0), ('retriever', 2, 0.5)]
    """
    if missing := [run for run in scores.run_names if run not in factors]:
        raise InputError(f"system {missing[0]!r} has no levels of factors", fix="add it to the table of factors")
    names = list(factors[scores.run_names[0]])
    pairs: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for i, j in combinations(range(len(scores.run_names)), 2):
        first, second = (factors[scores.run_names[row]] for row in (i, j))
        differing = [name for name in names if first.get(name) != second.get(name)]
        if len(differing) == 1:
            factor = differing[0]
            (level, low), (other, high) = sorted([(str(first[factor]), i), (str(second[factor]), j)])
            pairs.setdefault((factor, level, other), []).append((low, high))
    if not pairs:
        fix = "compare systems that share all other parts"
        raise InputError("no two systems differ in one factor only", fix=fix)
    effects = list[AgentEffect]()
    for measure, values in zip(scores.measure_names, scores.values.transpose(1, 0, 2), strict=True):
        of_measure = list[AgentEffect]()
        for key, rows in sorted(pairs.items()):
            changes = np.mean([values[high] - values[low] for low, high in rows], axis=0)
            tested, ci, p = mean_difference(np.zeros(len(changes)), changes, seed=seed)
            of_measure.append(AgentEffect(measure, *key, len(rows), tested.n, tested.difference, ci, p))
        adjusted = adjust([effect.p for effect in of_measure], "holm").tolist()
        effects += [effect._replace(p=p) for effect, p in zip(of_measure, adjusted, strict=True)]
    return AgentEffects(tuple(effects), alpha)
