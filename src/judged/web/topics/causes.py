"""Where a topic's score was lost, and how far it could move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.diagnosis.stages import stages
from judged.errors import JudgedError
from judged.uncertainty.ties import tie_range
from judged.uncertainty.unjudged import unjudged_range
from judged.web.topics.one import check_apart, number

if TYPE_CHECKING:
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.uncertainty.range import Range
    from judged.web.workspace import Workspace

CANDIDATES = 100
"""So many documents of a run are its candidates, from which a reranker could choose."""


@dataclass(frozen=True)
class Loss:
    """What a run lost on the topic, split into what is not among its candidates and what is ranked badly."""

    run: str
    # score, attainable, best: of the candidates as they stand, of their best order, and of the ideal ranking
    score: float | None
    attainable: float | None
    best: float | None
    # by_candidates, by_ranking: best - attainable, and attainable - score
    by_candidates: float | None
    by_ranking: float | None
    # found, relevant: relevant documents among the candidates, and all that are known
    found: int
    relevant: int
    verdict: str  # such as `not found`, `found but ranked badly`
    sentence: str  # all this in words; or why it cannot be told: then the numbers are None
    notes: tuple[str, ...] = ()  # what should be known before it is used


@dataclass(frozen=True)
class Reach:
    """The least and the greatest score that a list could have."""

    run: str
    # `ties`: over the orders of documents with equal scores. `unjudged`: over the grades that documents without a
    # judgment might have.
    reason: str
    score: float | None
    low: float | None
    high: float | None
    kind: str  # `exact`, `outer` (no score lies outside), `sampled` (found by trying); empty where it is not known
    sentence: str


def loss(workspace: Workspace, one: Judged, measure: Measure) -> Loss:
    """Split what a run lost on a topic."""
    run, query_id = one.run.name, one.query_ids[0]
    if not one.present[0]:
        return _unknown(run, f"{run} has nothing for this topic: everything is lost.")
    try:
        qrels, (alone,) = workspace.one_topic(query_id, [run])
        found = stages(qrels, alone, measure=measure, depth=CANDIDATES)
        said = found.topic(query_id).sentences[0]
    except JudgedError as error:
        return _unknown(run, str(error))
    trace = found.trace
    by_candidates, by_ranking = trace.parts[:, 0].tolist()
    return Loss(
        run,
        number(float(trace.score[0])),
        number(float(trace.stages[0].attainable[0])),
        number(float(trace.best[0])),
        number(by_candidates),
        number(by_ranking),
        int(trace.found[0]),
        int(trace.relevant[0]),
        found.verdicts[0],
        said,
        tuple(text for text in found.warnings if text not in found.provenance.warnings),
    )


def _unknown(run: str, why: str) -> Loss:
    return Loss(run, None, None, None, None, None, 0, 0, "", why)


def reaches(one: Judged, measure: Measure, score: float | None) -> tuple[Reach, Reach]:
    """Find how far ties, and documents without a judgment, could move a score."""
    return _ties(one, measure, score), _unjudged(one, measure, score)


def _ties(one: Judged, measure: Measure, score: float | None) -> Reach:
    if not one.ranked:
        return Reach(one.run.name, "ties", score, score, score, "", "The run is a set: it has no order.")
    try:
        check_apart(measure)
        found = tie_range(one, measure)
    except JudgedError as error:
        return Reach(one.run.name, "ties", score, None, None, "", str(error))
    still = "No order of documents with equal scores moves it."
    return _reach(one, "ties", score, found, still, "by the order of documents with equal scores")


def _unjudged(one: Judged, measure: Measure, score: float | None) -> Reach:
    unjudged = int(one.returned[0]) - len(one.rank)
    if not unjudged:
        said = "Every document that it returned is judged."
        return Reach(one.run.name, "unjudged", score, score, score, "exact", said)
    try:
        check_apart(measure)
        found = unjudged_range(one, measure)
    except JudgedError as error:
        return Reach(one.run.name, "unjudged", score, None, None, "", str(error))
    which = f"{unjudged:,} unjudged {'document' if unjudged == 1 else 'documents'}"
    return _reach(one, "unjudged", score, found, f"No grades of its {which} move it.", f"by the grades of its {which}")


_HOW = {
    "exact": "both ends can be reached",
    "outer": "no score lies outside, though the ends may not be reached",
    "sampled": "found by trying: the true range may be wider",
}


def _reach(one: Judged, reason: str, score: float | None, found: Range, still: str, by: str) -> Reach:
    low, high, kind = number(float(found.low[0])), number(float(found.high[0])), str(found.kind[0])
    if low is None or high is None:
        said = "The measure leaves this topic out."
    elif low == high == score:
        said = still
    else:
        said = f"Between {decimal(low)} and {decimal(high)}, {by}; {_HOW[kind]}."
    return Reach(one.run.name, reason, score, low, high, kind, said)
