"""Split the loss of a system into its stages: candidates and ranking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.choices import default_resamples
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.expression import select_query_ids
from judged.data.qrels import Qrels
from judged.data.run import Run, single_run
from judged.diagnosis.changes import mean_of
from judged.diagnosis.stages.answer import Stages
from judged.diagnosis.stages.trace import StageOptions, Trace, check_measure, single_measure, trace_system
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note
from judged.results.decimals import percent
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.facts import check_common_topics, provenance_of_lists
from judged.scoring.evaluation.inputs import filter_topics
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import repeat_topics, truncate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.judging import Judged, Precision, TiePolicy, TopicPolicy
    from judged.scoring.measures.base import Measure

_MIN_JUDGED_SHARE = 0.9  # of the top 10 documents; below this share, unjudged documents may explain the loss


@with_parameter_hints
def stages(
    qrels: Any,
    run: Any,
    final: Any = None,
    measure: str | Measure = "nDCG@10",
    *,
    cutoff: int = 100,
    recall: str | Measure | None = None,
    baseline: Any = None,
    slicing: Slicing | None = None,
    attributes: Any = None,
    where: str | None = None,
    topics: str = "qrels",
    ties: TiePolicy = "docid",
    precision: Precision = "double",
    documents: Any = None,
    min_loss: float = 0.1,
    min_share: float = 0.15,
    fdr: float = 0.1,
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
) -> Stages:
    """Split the loss of each topic into relevant documents that are not candidates, and candidates ranked badly.

    With U the score of the best order of the candidates: best - score = (best - U) + (U - score).

    Parameters
    ----------
    qrels
        As for `evaluate`.
    run
        Deep run whose top documents are the candidates.
    final
        Final ranking of the candidates, for example by a reranker. None: the order of the candidates in `run`.
    measure
        Measure that is highest if documents are sorted by grade, such as nDCG, AP, RR, P, R, ERR or RBP.
    cutoff
        Number of candidates per topic.
    recall
        Measure of the candidates. None: R@`cutoff`.
    baseline
        Second system to compare with: a run, or a pair (candidates, final).
    slicing
        Slices of topics, for which all results are also shown.
    attributes, where
        Topic filter and attributes of topics, as for `evaluate`.
    topics
        ``qrels``: all topics of the qrels; ``both``: those that are also in every run.
    ties, precision, documents
        As for `evaluate`.
    min_loss, min_share
        A part of a loss is large if it is at least this share of the best score of the topic, and of its loss.
    fdr
        False discovery rate of the topics reported as lost.
    alpha
        Significance level after Holm's correction over slices and parts. Intervals have the level 1 - alpha.
    resamples, seed
        Settings of the paired randomization tests; the seed is also that of the intervals. None: as for `compare`.

    Returns
    -------
    Stages

    Raises
    ------
    InputError
        If the input cannot be read or an option is invalid.
    MeasureError
        If the best order of documents is unknown for the measure.

    Examples
    --------
    >>> qrels = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1}}
    >>> first, second = {"q1": ["x", "a", "b"], "q2": ["x", "y"]}, {"q1": ["b", "a", "x"], "q2": ["y", "x"]}
    >>> result = stages(qrels, first, second)
    >>> result.trace.attainable.tolist(), result.trace.num_retrieved.tolist()
    ([1.0, 0.0], [2, 0])
    """
    options = StageOptions(cutoff, min_loss, min_share, fdr, alpha, resamples or default_resamples(1), seed)
    scored_measure, recall_measure = single_measure(measure), single_measure(recall or f"R@{cutoff}")
    check_measure(scored_measure)
    if topics not in ("qrels", "both"):
        fix = f'use "qrels" or "both"; to select topics, use where="{select_query_ids(topics)}"'
        raise InputError(f"`topics` must be 'qrels' or 'both', got {topics!r}", fix=fix)
    judgments, filter_notes = filter_topics(Qrels.of(qrels), where, attributes)
    inputs = [(run, final)]
    if baseline is not None:
        inputs.append(baseline if isinstance(baseline, tuple) else (baseline, None))
    policies: dict[str, Any] = {"ties": ties, "precision": precision, "documents": documents}
    systems = [
        [judge(judgments, single_run(runs_of(source), "a stage"), **policies) for source in pair if source is not None]
        for pair in inputs
    ]
    rankings = [judged for system in systems for judged in system]
    in_all_runs = np.logical_and.reduce([judged.present for judged in rankings])
    for judged in rankings:
        check_common_topics(judged)
    topic_indices = np.flatnonzero(in_all_runs) if topics == "both" else np.arange(len(in_all_runs))
    if not len(topic_indices):
        raise InputError(
            "the runs have no judged topic in common", fix="check that the runs are of the same collection"
        )
    provenance = _provenance(rankings, scored_measure, "both" if topics == "both" else "qrels")
    traces: list[Trace] = []
    notes: list[Note] = []
    for system in systems:
        selected = [repeat_topics(judged, topic_indices) for judged in system]
        ranking = selected[1] if len(selected) > 1 else truncate(selected[0], cutoff)
        trace = trace_system(selected[0], cutoff, ranking, scored_measure, recall_measure)
        is_duplicate = trace.name in [other.name for other in traces]
        traces.append(replace(trace, name=f"{trace.name} (other)") if is_duplicate else trace)
        notes += _notes(traces[-1], selected, scored_measure, cutoff)
    query_ids = tuple(rankings[0].query_ids[i] for i in topic_indices.tolist())
    return Stages(
        measure=scored_measure,
        recall=recall_measure,
        query_ids=query_ids,
        trace=traces[0],
        baseline=traces[1] if len(traces) > 1 else None,
        choices=options if resamples else replace(options, resamples=default_resamples(len(query_ids))),
        slicing=None if slicing is None else as_slicing(slicing).over(query_ids),
        provenance=provenance,
        notes=(*filter_notes, *notes, *provenance.notes),
    )


def _notes(trace: Trace, rankings: Sequence[Judged], measure: Measure, cutoff: int) -> Iterator[Note]:
    """Yield notes on one system, whose rankings are the candidates and, optionally, the final ranking."""
    if len(rankings) == 1 and not np.array_equal(measure(rankings[0]), trace.score, equal_nan=True):
        text = f"{measure} uses ranks deeper than {cutoff}, but only the top {cutoff} documents are scored here"
        yield Note("below-cutoff", f"{text}. To include more documents, set --cutoff (cutoff= in Python)", trace.name)
    if trace.non_candidates.any():
        documents, measure_cutoff = trace.documents, getattr(measure, "cutoff", None)
        on_page = (documents.final > 0) & (documents.final <= (measure_cutoff or np.iinfo(np.int64).max))
        on_page &= (documents.candidate == 0) | (documents.candidate > cutoff)
        topics = counted(int(np.count_nonzero(trace.non_candidates)), "topic")
        text = (
            f"returned documents that are not in the top {cutoff} of {trace.candidates}:"
            f" {trace.non_candidates.sum()}, on {topics}; {np.count_nonzero(on_page)} of these documents are relevant"
            f" and within the cutoff of the measure. On topics with such documents, the final ranking may score higher"
            " than the best order of the candidates, so the ranking loss may be negative. If the system used more"
            " candidates, set the number of candidates with --cutoff (cutoff= in Python)"
        )
        yield Note("not-candidates", text, trace.name, trace.non_candidate_share)
    share = mean_of(trace.judged)
    if share < _MIN_JUDGED_SHARE:
        text = (
            f"{percent(share)} of the top 10 documents are judged. Unjudged documents count as not relevant, so the"
            " losses and the possible gain of a reranker depend on missing judgments"
        )
        yield Note("few-judged", text, trace.name, 1 - share)


def _provenance(rankings: Sequence[Judged], measure: Measure, topics: TopicPolicy) -> Provenance:
    """Return the provenance of the rankings, with each run once and under a unique name."""
    distinct: list[Judged] = []
    names: list[str] = []
    for judged in {id(judged.run): judged for judged in rankings}.values():
        count = names.count(judged.run.name)
        names.append(judged.run.name)
        run = Run(judged.run.rows, f"{judged.run.name} ({count + 1})") if count else judged.run
        distinct.append(replace(judged, run=run))
    provenance = provenance_of_lists(distinct, [measure], topics=topics)
    notes = tuple(
        note for note in provenance.notes if note.rule != "unjudged"
    )  # replaced by the note few-judged of each system
    return replace(provenance, notes=notes)
