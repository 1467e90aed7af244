"""Where a topic's score was lost, and how far it could move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.stages import stages
from judged.errors import JudgedError
from judged.results import NUMBER, TEXT, Column, Table, columns_of, counted
from judged.results.notes import Note
from judged.scoring.uncertainty.ties import tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range
from judged.web.topics.judged_topic import check_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.range import Range
    from judged.web.workspace import Workspace

CANDIDATES = 100
"""So many documents of a run are its candidates, from which a reranker could choose."""


def losses(
    workspace: Workspace, lists: Sequence[Judged], measure: Measure, rel: float
) -> tuple[Table, tuple[Note, ...]]:
    """Split what each run lost on a topic into what is not among its candidates, and what is ranked badly.

    ``rel`` is the least grade that is counted as relevant.
    """
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    names = ("score", "attainable_candidates", "best", "lost_candidates", "lost_ranking", "found", "relevant")
    for judged in lists:
        run, query_id = judged.run.name, judged.query_ids[0]
        said = f"{run} has nothing for this topic: everything is lost."
        row: dict[str, Any] = {"run": run, **dict.fromkeys(names), "verdict": "", "sentence": said}
        rows.append(row)
        if not judged.present[0]:
            continue
        try:
            qrels, (alone,) = workspace.one_topic(query_id, [run])
            split = stages(qrels, alone, measure=measure, cutoff=CANDIDATES)
            counts = judged.sum(judged.relevant(rel) & (judged.rank <= CANDIDATES)), judged.num_relevant(rel)
            held, relevant = (count.astype(np.int64) for count in counts)
            split = replace(split, trace=replace(split.trace, found=held, relevant=relevant))
        except JudgedError as error:
            row["sentence"] = str(error)
            continue
        row |= {**split.topics_table().records()[0], "sentence": split.topic(query_id).sentences[0]}
        notes += [note for note in split.notes if note not in split.provenance.notes]
    found = [f"{row['found'] or 0} of {row['relevant'] or 0}" for row in rows]
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("score", NUMBER, "Score"),
        ("attainable_candidates", NUMBER, "Could reach"),
        ("best", NUMBER, "Best"),
        ("lost_candidates", NUMBER, "Lost by candidates"),
        ("lost_ranking", NUMBER, "Lost by ranking"),
        *("found", "relevant", "verdict", "sentence"),
    )
    of = Column("of", found, title="Relevant found", only="people")
    return Table("losses", (*columns, of), "Where it was lost"), tuple(notes)


def reaches(lists: Sequence[Judged], scores: Sequence[float], measure: Measure) -> Table:
    """Find how far ties, and documents without a judgment, could move each score."""
    rows: list[dict[str, Any]] = []
    for judged, score in zip(lists, scores, strict=True):
        if not judged.present[0]:
            continue
        kept = {"low": score, "high": score}  # where it cannot move
        ties = {**kept, "kind": "", "sentence": "The run is a set: it has no order."}
        if judged.ranked:
            ties = _reach(tie_range, judged, measure, score, "order of documents with equal scores")
        grades = {**kept, "kind": "exact", "sentence": "Every document that it returned is judged."}
        if unjudged := int(judged.returned[0]) - len(judged.rank):
            of = f"grades of its {counted(unjudged, 'unjudged document')}"
            grades = _reach(unjudged_range, judged, measure, score, of)
        for reason, by, reach in (("ties", "order of ties", ties), ("unjudged", "unjudged documents", grades)):
            rows.append({"run": judged.run.name, "reason": reason, "by": by, "score": score, **reach})
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("by", TEXT, "By"),
        ("low", NUMBER, "Least"),
        ("score", NUMBER, "Score"),
        ("high", NUMBER, "Greatest"),
        *("reason", "kind", "sentence"),  # the kind is empty where it is not known
    )
    return Table("reaches", columns, "What could still change the score", labels=2)


def _reach(
    find: Callable[[Judged, Measure], Range], judged: Judged, measure: Measure, score: float, by: str
) -> dict[str, Any]:
    try:
        check_apart(measure)
        reach = find(judged, measure)
    except JudgedError as error:
        return {"low": None, "high": None, "kind": "", "sentence": str(error)}
    ends = {"low": float(reach.low[0]), "high": float(reach.high[0]), "kind": str(reach.kind[0])}
    return {**ends, "sentence": reach.sentence(0, score, by)}
