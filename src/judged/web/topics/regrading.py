"""Other grades of a topic's documents, kept as labels or tried, and what they change in every run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.compute import pc
from judged.diagnosis.regrading import every_run_regraded
from judged.results import CHANGE, NUMBER, TEXT, Table, columns_of
from judged.scoring.judging import judge
from judged.web.topics.judged_topic import grades_of, judged_topic, scale_of, score
from judged.web.topics.topic_list import run_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.labels.store import LabelStore
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.web.topics.topic_list import AskedTopic
    from judged.web.workspace import Workspace


def labels_of(workspace: Workspace, query_id: str) -> LabelStore | None:
    """Give the open labels, where the topic of this id is theirs; it may be another one, as beside the sample."""
    store = workspace.labels
    known = "" if store is None else store.topic(query_id)["text"]
    return store if known and known == (workspace.query(query_id) or known) else None


def kept_grades(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Give the grades that people kept as labels, where they differ from the judgments."""
    store, known = labels_of(workspace, query_id), grades_of(workspace, query_id)
    kept = {} if store is None else store.grades(query_id)
    return {doc: grade for doc, grade in kept.items() if grade != known.get(doc)}


def regraded(
    workspace: Workspace, asked: AskedTopic, kept: Mapping[str, float], runs: Sequence[str], measures: Iterable[Measure]
) -> tuple[Table, ...]:
    """Set scores beside those with the other grades: of the runs that are shown by all measures, then of every run."""
    tried = {asked.doc_id: asked.grade} if asked.doc_id and asked.grade is not None else {}
    if not (grades := {**kept, **tried}):
        return ()
    before = {run: judged_topic(workspace, asked.topic, run) for run in workspace.lists}
    after = {run: _with_grades(workspace, asked.topic, run, grades) for run in before}
    apart = [one for one in dict.fromkeys(measures) if one.properties.topics_apart]
    rows: list[dict[str, Any]] = []
    for measure in apart:
        for run in runs:
            old, new = (score(workspace, judged[run], measure)[0] for judged in (before, after))
            rows.append({"measure": str(measure), "run": run, "before": old, "after": new, "difference": new - old})
    scores = (("before", NUMBER, "Before"), ("after", NUMBER, "After"), ("difference", CHANGE, "Difference"))
    shown = Table("regraded", columns_of(rows, ("measure", TEXT, "Measure"), ("run", TEXT, "Run"), *scores))
    chosen = asked.read(asked.measure)
    if chosen not in apart:
        return (shown,)
    scores_of = {run: run_scores(workspace, chosen, run)[0] for run in before}
    changed = {run: score(workspace, judged, chosen)[0] for run, judged in after.items()}
    return shown, every_run_regraded(chosen, scores_of, workspace.qrels.index.codes[asked.topic], changed)


def _with_grades(workspace: Workspace, query_id: str, run: str, grades: Mapping[str, float]) -> Judged:
    """Judge one topic of a run as it would be if documents had other grades."""
    qrels = scale_of(workspace, query_id)
    same = pc.and_(pc.equal(qrels.table["query_id"], query_id), pc.is_in(qrels.table["doc_id"], pa.array(grades)))
    table = qrels.table.select(["query_id", "doc_id", "relevance"]).filter(pc.invert(same))
    rows = pa.table([[query_id] * len(grades), [*grades], [*grades.values()]], schema=table.schema)
    _, (alone,) = workspace.one_topic(query_id, [run])
    return judge(replace(qrels, table=pa.concat_tables([table, rows])), alone).only(query_id)
