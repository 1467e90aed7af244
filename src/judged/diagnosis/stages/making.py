"""`stages`: at which stage of a system what could have been attained was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.decimals import percent
from judged.diagnosis.stages.parts import Cut
from judged.diagnosis.stages.result import Stages
from judged.diagnosis.stages.tracing import Through, Trace, both_have, check_measure, one_measure, traced
from judged.errors import InputError
from judged.evaluation import runs_of
from judged.evaluation.provenance import provenance_of_lists, refuse_foreign
from judged.judging import judge
from judged.judging.variants import copies, cut
from judged.measures import parse
from judged.slicing.slices import slicing_given
from judged.stats.pairing import topics_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools
    from judged.data import Run
    from judged.evaluation.provenance import Provenance
    from judged.judging import Judged, Precision, TiePolicy, TopicPolicy
    from judged.measures import Measure
    from judged.slicing.slices import Slicing

__all__ = ["PARTS", "Stages", "stages"]

PARTS = ("candidates", "ranking")
"""Where two stages lose: what is not among the candidates, and what is ranked badly among them."""

_JUDGED = 0.9  # of the first 10 documents: with fewer judged, unjudged ones may make the difference


def stages(
    qrels: Any,
    run: Any,
    final: Any = None,
    measure: str | Measure = "nDCG@10",
    *,
    depth: int = 100,
    recall: str | Measure | None = None,
    against: Any = None,
    slicing: Slicing | None = None,
    topics: str = "qrels",
    ties: TiePolicy = "docid",
    precision: Precision = "double",
    documents: Any = None,
    least: float = 0.1,
    share: float = 0.15,
    rate: float = 0.1,
    alpha: float = 0.05,
    resamples: int = 100_000,
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
    depth
        How many documents of each topic of the run are candidates.
    recall
        The measure of the candidates; R at the depth for None.
    against
        A second system that this one is compared with: a run, or a pair (candidates, final).
    slicing
        Slices of topics, by which everything is shown as well.
    topics
        ``qrels``: all topics of the qrels; ``both``: those that every run given has too.
    ties, precision, documents
        As for `evaluate`.
    least, share
        A part counts for the verdict on a topic where it is at least this share of the best score (a tenth), and of
        all that is lost on the topic (0.15).
    rate
        The false discovery rate of the topics that are said to have lost.
    alpha
        Up to here p is significant, after Holm's correction over slices and parts. Intervals have 1 - alpha.
    resamples, seed
        Of the paired randomisation tests, and the seed of the intervals.

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
    >>> [stage.attainable.tolist() for stage in found.trace.stages], found.trace.found.tolist()
    ([[1.0, 0.0]], [2, 0])
    """
    choices = Cut(depth, least, share, rate, alpha, resamples, seed)
    chosen, wanted = one_measure(measure), one_measure(recall or f"R@{depth}")
    check_measure(chosen)
    judgments = Qrels.of(qrels)
    how: dict[str, Any] = {"ties": ties, "precision": precision, "documents": documents}
    systems = [_system(judgments, run, final, how)]
    if against is not None:
        first, second = against if isinstance(against, tuple) else (against, None)
        systems.append(_system(judgments, first, second, how))
    every = [judged for system in systems for judged in system if judged is not None]
    kept = _counted(every, topics)
    rests_on = _provenance(every, chosen, "both" if topics == "both" else "qrels")
    traces: list[Trace] = []
    warnings: list[str] = []
    for candidates, last in systems:
        whole = copies(candidates, kept)
        ranking = cut(whole, depth) if last is None else copies(last, kept)
        steps = [Through(PARTS[0], whole, depth)]
        traces.append(traced(steps, ranking, chosen, wanted, parse("Judged@10")))
        warnings += _warnings(traces[-1], [whole] if last is None else [whole, ranking], chosen, depth)
    query_ids = tuple(every[0].query_ids[at] for at in kept.tolist())
    return Stages(
        measure=chosen,
        recall=wanted,
        query_ids=query_ids,
        trace=traces[0],
        against=traces[1] if len(traces) > 1 else None,
        names=PARTS,
        choices=choices,
        slicing=None if slicing is None else slicing_given(slicing).over(query_ids),
        provenance=rests_on,
        warnings=(*warnings, *rests_on.warnings),
    )


def _system(qrels: Qrels, run: Any, final: Any, how: dict[str, Any]) -> tuple[Judged, Judged | None]:
    first = judge(qrels, _one(run), **how)
    return first, None if final is None else judge(qrels, _one(final), **how)


def _one(given: Any) -> Run:
    runs = runs_of(given)
    if len(runs) != 1:
        raise InputError(f"{len(runs)} runs stand where one is asked for", fix="give one run", path=runs[0].where)
    return runs[0]


def _counted(lists: Sequence[Judged], topics: str) -> Any:
    """Give the positions of the topics that count."""
    if topics not in {"qrels", "both"}:
        raise InputError(f"no topic policy {topics!r} here", fix="one of qrels, both")
    present = both_have(lists)
    for one in lists:
        refuse_foreign(one)
    kept: Bools = present if topics == "both" else np.ones(len(present), dtype=np.bool_)
    if not kept.any():
        raise InputError("the runs have no judged topic in common", fix="check that they are of one collection")
    return np.flatnonzero(kept)


def _shown_foreign(trace: Trace, measure: Measure, depth: int) -> int:
    """Count the relevant documents that the measure sees in the final ranking and that are no candidates."""
    documents, cutoff = trace.documents, getattr(measure, "cutoff", None)
    shown = (documents.final > 0) & (documents.final <= (cutoff or np.iinfo(np.int64).max))
    return int(np.count_nonzero(shown & ((documents.candidate == 0) | (documents.candidate > depth))))


def _warnings(trace: Trace, lists: Sequence[Judged], measure: Measure, depth: int) -> list[str]:
    """Say what should be known of one system, of which these are the rankings: the candidates, and the final one."""
    said: list[str] = []
    if len(lists) == 1 and not np.array_equal(measure(lists[0]), trace.score, equal_nan=True):
        said.append(
            f"{trace.name}: {measure} looks below rank {depth}: what is scored here are the first {depth} documents."
            " A greater depth takes in more"
        )
    if trace.foreign.any():
        count, topics = int(trace.foreign.sum()), int(np.count_nonzero(trace.foreign))
        said.append(
            f"{trace.name}: {count} of its documents, on {topics_text(topics)}, are not among the first {depth} of"
            f" {trace.candidates}; {_shown_foreign(trace, measure, depth)} of them are relevant and on the page. The"
            " loss by ranking may be negative there; a greater depth may be the true one"
        )
    share = trace.judged[~np.isnan(trace.judged)]
    if len(share) and share.mean() < _JUDGED:
        said.append(
            f"{trace.name}: {percent(share.mean())} of its first 10 documents are judged. Those without a judgment"
            " count as not relevant: losses, and what a reranker could gain, hold by these judgments alone"
        )
    return said


def _provenance(lists: Sequence[Judged], measure: Measure, topics: TopicPolicy) -> Provenance:
    """Tell what the lists rest on, each run once and by a name of its own."""
    known: dict[int, Judged] = {id(one.run): one for one in reversed(lists)}
    found = provenance_of_lists(list(reversed(known.values())), [measure], topics=topics)
    names: list[str] = []
    for run in found.runs:
        again = names.count(run.name)
        names.append(run.name)
        names[-1] += f" ({again + 1})" if again else ""
    runs = tuple(run.renamed(name) for run, name in zip(found.runs, names, strict=True))
    notes = tuple(note for note in found.notes if note.rule != "unjudged")  # said of each system, from fewer on
    return replace(found, runs=runs, notes=notes)
