"""`stages`: at which stage of a system what could have been attained was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.choices import default_resamples
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.expression import among
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.diagnosis.changes import mean_of
from judged.diagnosis.stages.answer import Stages
from judged.diagnosis.stages.trace import Cut, Trace, check_measure, one_measure, traced
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note
from judged.results.decimals import percent
from judged.results.spelling import hinting
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.facts import provenance_of_lists, refuse_foreign
from judged.scoring.evaluation.inputs import narrowed
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import copies, cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.judging import Judged, Precision, TiePolicy, TopicPolicy
    from judged.scoring.measures.base import Measure

_JUDGED = 0.9  # of the first 10 documents: with fewer judged, unjudged ones may make the difference


@hinting
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
    """Split each topic's loss into what was not among the candidates and what was ranked badly.

    With U the score of the best order of the candidates: best - score = (best - U) + (U - score).

    Parameters
    ----------
    qrels
        As `evaluate` takes them.
    run
        The deep run whose first documents are the candidates.
    final
        The ranking made of the candidates, by a reranker say. None: the candidates as they stand.
    measure
        One for which a better document higher is better: nDCG, AP, RR, P, R, ERR, RBP...
    cutoff
        How many documents of each topic of the run are candidates.
    recall
        The measure of the candidates; R at the cutoff for None.
    baseline
        A second system that this one is compared with: a run, or a pair (candidates, final).
    slicing
        Slices of topics, by which everything is shown as well.
    attributes, where
        Which topics of the qrels are looked at, and their attributes: as for `evaluate`.
    topics
        ``qrels``: all topics of the qrels; ``both``: those that every run given has too.
    ties, precision, documents
        As for `evaluate`.
    min_loss, min_share
        A part counts for the verdict on a topic where it is at least this share of the best score (a tenth), and of
        all that is lost on the topic (0.15).
    fdr
        The false discovery rate of the topics that are said to have lost.
    alpha
        Up to here p is significant, after Holm's correction over slices and parts. Intervals have 1 - alpha.
    resamples, seed
        Of the paired randomisation tests, and the seed of the intervals. None: as many as `compare` takes.

    Returns
    -------
    Stages

    Raises
    ------
    InputError
        If something cannot be read or an option makes no sense.
    MeasureError
        If the best order of documents is not known for the measure.

    Examples
    --------
    >>> qrels = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1}}
    >>> first, second = {"q1": ["x", "a", "b"], "q2": ["x", "y"]}, {"q1": ["b", "a", "x"], "q2": ["y", "x"]}
    >>> found = stages(qrels, first, second)
    >>> found.trace.attainable.tolist(), found.trace.found.tolist()
    ([1.0, 0.0], [2, 0])
    """
    choices = Cut(cutoff, min_loss, min_share, fdr, alpha, resamples or default_resamples(1), seed)
    chosen, wanted = one_measure(measure), one_measure(recall or f"R@{cutoff}")
    check_measure(chosen)
    if topics not in ("qrels", "both"):
        fix = f'use one of qrels, both; to use some topics, where="{among(topics)}"'
        raise InputError(f"no topic policy {topics!r} here", fix=fix)
    judgments, lacking = narrowed(Qrels.of(qrels), where, attributes)
    given = [(run, final)]
    if baseline is not None:
        given.append(baseline if isinstance(baseline, tuple) else (baseline, None))
    policies: dict[str, Any] = {"ties": ties, "precision": precision, "documents": documents}
    systems = [[judge(judgments, _run(part), **policies) for part in pair if part is not None] for pair in given]
    every = [judged for system in systems for judged in system]
    kept = np.logical_and.reduce([judged.present for judged in every])  # the topics that every run has
    for judged in every:
        refuse_foreign(judged)
    places = np.flatnonzero(kept) if topics == "both" else np.arange(len(kept))
    if not len(places):
        raise InputError("the runs have no judged topic in common", fix="check that they are from the same collection")
    rests_on = _provenance(every, chosen, "both" if topics == "both" else "qrels")
    traces: list[Trace] = []
    notes: list[Note] = []
    for system in systems:
        lists = [copies(judged, places) for judged in system]
        ranking = lists[1] if len(lists) > 1 else cut(lists[0], cutoff)
        trace = traced(lists[0], cutoff, ranking, chosen, wanted)
        traces.append(replace(trace, name=f"{trace.name} (other)") if trace.name in [t.name for t in traces] else trace)
        notes += _notes(traces[-1], lists, chosen, cutoff)
    query_ids = tuple(every[0].query_ids[at] for at in places.tolist())
    return Stages(
        measure=chosen,
        recall=wanted,
        query_ids=query_ids,
        trace=traces[0],
        baseline=traces[1] if len(traces) > 1 else None,
        choices=choices if resamples else replace(choices, resamples=default_resamples(len(query_ids))),
        slicing=None if slicing is None else as_slicing(slicing).over(query_ids),
        provenance=rests_on,
        notes=(*lacking, *notes, *rests_on.notes),
    )


def _run(given: Any) -> Run:
    runs = runs_of(given)
    if len(runs) != 1:
        raise InputError(f"{len(runs)} runs are given where one is expected", fix="give one run", path=runs[0].where)
    return runs[0]


def _notes(trace: Trace, lists: Sequence[Judged], measure: Measure, cutoff: int) -> Iterator[Note]:
    """Give the notes on one system, from its rankings: the candidates, and the final one."""
    if len(lists) == 1 and not np.array_equal(measure(lists[0]), trace.score, equal_nan=True):
        text = f"{measure} looks below rank {cutoff}: what is scored here are the first {cutoff} documents"
        yield Note("below-cutoff", f"{text}. Take in more: --cutoff N, in Python cutoff=", trace.name)
    if trace.foreign.any():
        documents, page = trace.documents, getattr(measure, "cutoff", None)
        shown = (documents.final > 0) & (documents.final <= (page or np.iinfo(np.int64).max))
        shown &= (documents.candidate == 0) | (documents.candidate > cutoff)
        topics = counted(int(np.count_nonzero(trace.foreign)), "topic")
        text = (
            f"{trace.foreign.sum()} of its documents, on {topics}, are not among the first {cutoff} of"
            f" {trace.candidates}; {np.count_nonzero(shown)} of them are relevant and on the page. The loss by ranking"
            " may be negative there; if more were candidates, say how many: --cutoff N, in Python cutoff="
        )
        yield Note("not-candidates", text, trace.name, trace.foreign_share)
    share = mean_of(trace.judged)
    if share < _JUDGED:
        text = (
            f"{percent(share)} of its first 10 documents are judged. Those without a judgment count as not relevant:"
            " losses, and what a reranker could gain, hold by these judgments alone"
        )
        yield Note("few-judged", text, trace.name, 1 - share)


def _provenance(lists: Sequence[Judged], measure: Measure, topics: TopicPolicy) -> Provenance:
    """Tell what the lists rest on, each run once and by a name of its own."""
    distinct: list[Judged] = []
    names: list[str] = []
    for judged in {id(judged.run): judged for judged in lists}.values():
        times = names.count(judged.run.name)
        names.append(judged.run.name)
        run = Run(judged.run.rows, f"{judged.run.name} ({times + 1})") if times else judged.run
        distinct.append(replace(judged, run=run))
    rests_on = provenance_of_lists(distinct, [measure], topics=topics)
    notes = tuple(note for note in rests_on.notes if note.rule != "unjudged")  # said of each system, from fewer on
    return replace(rests_on, notes=notes)
