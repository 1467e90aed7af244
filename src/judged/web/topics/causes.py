"""Where a topic's score was lost, and how far it could move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.answer import NUMBER, TEXT, Column, Table, columns_of, counted
from judged.decimals import decimal
from judged.diagnosis.stages import stages
from judged.errors import JudgedError
from judged.notes import Note
from judged.uncertainty.ties import tie_range
from judged.uncertainty.unjudged import unjudged_range
from judged.web.topics.one import check_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.judging import Judged
    from judged.measures import Measure
    from judged.uncertainty.range import Range
    from judged.web.workspace import Workspace

CANDIDATES = 100
"""So many documents of a run are its candidates, from which a reranker could choose."""
_HOW = {
    "exact": "both ends can be reached",
    "outer": "no score lies outside, though the ends may not be reached",
    "sampled": "found by trying: the true range may be wider",
}
_UNKNOWN = {**dict.fromkeys(("score", "attainable", "best", "by_candidates", "by_ranking")), "found": 0, "relevant": 0}


def losses(workspace: Workspace, lists: Sequence[Judged], measure: Measure) -> tuple[Table, tuple[Note, ...]]:
    """Split what each run lost on a topic into what is not among its candidates, and what is ranked badly."""
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for judged in lists:
        run, query_id = judged.run.name, judged.query_ids[0]
        row: dict[str, Any] = {"run": run, **_UNKNOWN, "verdict": ""}
        if not judged.present[0]:
            rows.append({**row, "sentence": f"{run} has nothing for this topic: everything is lost."})
            continue
        try:
            qrels, (alone,) = workspace.one_topic(query_id, [run])
            split = stages(qrels, alone, measure=measure, depth=CANDIDATES)
        except JudgedError as error:
            rows.append({**row, "sentence": str(error)})
            continue
        trace, (by_candidates, by_ranking) = split.trace, split.trace.parts[:, 0].tolist()
        rows.append({
            **row,
            "score": float(trace.score[0]),
            "attainable": float(trace.attainable[0]),  # by the best order of the candidates
            "best": float(trace.best[0]),  # of the ideal ranking
            "by_candidates": by_candidates,
            "by_ranking": by_ranking,
            "found": int(trace.found[0]),  # relevant documents among the candidates
            "relevant": int(trace.relevant[0]),  # all that are known
            "verdict": split.verdicts[0],
            "sentence": split.topic(query_id).sentences[0],
        })  # fmt: skip
        notes += [note for note in split.notes if note not in split.provenance.notes]
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("score", NUMBER, "Score"),
        ("attainable", NUMBER, "Could reach"),
        ("best", NUMBER, "Best"),
        ("by_candidates", NUMBER, "Lost by candidates"),
        ("by_ranking", NUMBER, "Lost by ranking"),
        *("found", "relevant", "verdict", "sentence"),
    )
    of = Column("of", [f"{row['found']} of {row['relevant']}" for row in rows], title="Relevant found", only="people")
    return Table("losses", (*columns, of), "Where it was lost"), tuple(notes)


def reaches(lists: Sequence[Judged], scores: Sequence[float], measure: Measure) -> Table:
    """Find how far ties, and documents without a judgment, could move each score."""
    rows: list[dict[str, Any]] = []
    for judged, score in zip(lists, scores, strict=True):
        if not judged.present[0]:
            continue
        run, unjudged = judged.run.name, int(judged.returned[0]) - len(judged.rank)
        kept = {"score": score, "low": score, "high": score}  # where it cannot move
        by_ties: dict[str, Any] = {**kept, "kind": "", "sentence": "The run is a set: it has no order."}
        if judged.ranked:
            ties = "the order of documents with equal scores"
            still = "No order of documents with equal scores moves it."
            by_ties = _reach(tie_range, judged, measure, score, ties, still)
        by_grades = {**kept, "kind": "exact", "sentence": "Every document that it returned is judged."}
        if unjudged:
            grades = f"grades of its {unjudged:,} {counted(unjudged, 'unjudged document').partition(' ')[2]}"
            still = f"No {grades} move it."
            by_grades = _reach(unjudged_range, judged, measure, score, f"the {grades}", still)
        rows.append({"run": run, "reason": "ties", "by": "order of ties", **by_ties})
        rows.append({"run": run, "reason": "unjudged", "by": "unjudged documents", **by_grades})
    run, by, *columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("by", TEXT, "By"),
        ("low", NUMBER, "Least"),
        ("score", NUMBER, "Score"),
        ("high", NUMBER, "Greatest"),
        *("reason", "kind", "sentence"),  # the kind is empty where it is not known
    )
    return Table("reaches", (run, by, *columns), "How far the score could move", labels=2)


def _reach(
    find: Callable[[Judged, Measure], Range], judged: Judged, measure: Measure, score: float, by: str, still: str
) -> dict[str, Any]:
    try:
        check_apart(measure)
        found = find(judged, measure)
    except JudgedError as error:
        return {"score": score, "low": None, "high": None, "kind": "", "sentence": str(error)}
    low, high, kind = float(found.low[0]), float(found.high[0]), str(found.kind[0])
    if low != low or high != high:  # noqa: PLR0124  NaN
        said = "The measure leaves this topic out."
    elif low == high == score:
        said = still
    else:
        said = f"Between {decimal(low)} and {decimal(high)}, by {by}; {_HOW[kind]}."
    return {"score": score, "low": low, "high": high, "kind": kind, "sentence": said}
