"""Other grades of a topic's documents, kept as labels or tried, and what they change in every run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.answer import CHANGE, COUNT, NUMBER, TEXT, Table, columns_of, counted, listed
from judged.answer.table import order_of
from judged.data.compute import pc
from judged.decimals import decimal
from judged.judging import judge
from judged.measures.aggregates import aggregate
from judged.web.topics.judged_topic import grades_of, judged_topic, scale_of, score
from judged.web.topics.topic_list import run_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.judging import Judged
    from judged.labels.store import LabelStore
    from judged.measures.base import Measure
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
    columns = columns_of(rows, ("measure", TEXT, "Measure"), ("run", TEXT, "Run"), *scores)
    shown = Table("regraded", columns)
    chosen = asked.read(asked.measure)
    return (shown, _every_run(workspace, before, after, chosen)) if chosen in apart else (shown,)


def _with_grades(workspace: Workspace, query_id: str, run: str, grades: Mapping[str, float]) -> Judged:
    """Judge one topic of a run as it would be if documents had other grades."""
    qrels = scale_of(workspace, query_id)
    same = pc.and_(pc.equal(qrels.table["query_id"], query_id), pc.is_in(qrels.table["doc_id"], pa.array(grades)))
    table = qrels.table.select(["query_id", "doc_id", "relevance"]).filter(pc.invert(same))
    rows = pa.table([[query_id] * len(grades), [*grades], [*grades.values()]], schema=table.schema)
    _, (alone,) = workspace.one_topic(query_id, [run])
    return judge(replace(qrels, table=pa.concat_tables([table, rows])), alone).only(query_id)


def _every_run(
    workspace: Workspace, before: Mapping[str, Judged], after: Mapping[str, Judged], measure: Measure
) -> Table:
    """Lay out what becomes of each run over all topics, and of the order of the runs."""
    rows: list[dict[str, Any]] = []
    for run, judged in before.items():
        scores = run_scores(workspace, measure, run)[0].copy()
        at = workspace.qrels.index.codes[judged.query_ids[0]]
        row: dict[str, Any] = {"run": run, "topic": float(scores[at])}
        for name in ("before", "after"):
            row[name] = aggregate(measure.entry.aggregate, scores[~np.isnan(scores)])
            scores[at] = score(workspace, after[run], measure)[0]
        rows.append(row | {"topic_after": float(scores[at]), "difference": row["after"] - row["before"]})
    falling = measure.properties.higher_is_better is not False
    for name, place in (("before", "place"), ("after", "place_after")):
        for number, at in enumerate(order_of([row[name] for row in rows], lower_is_better=not falling), start=1):
            rows[at][place] = number
    rows.sort(key=lambda row: row["place_after"])
    moved = [row for row in rows if abs(row["difference"]) > 0]  # NaN is none
    columns = columns_of(
        moved,
        ("run", TEXT, "Run"),
        ("topic", NUMBER, "Topic before"),
        ("topic_after", NUMBER, "Topic after"),
        ("before", NUMBER, "All before"),
        ("after", NUMBER, "All after"),
        ("difference", CHANGE, "Difference"),
        ("place", COUNT, "Place before"),
        ("place_after", COUNT, "Place after"),
    )
    return Table("regraded_runs", columns, f"Every run that moves in {measure}", _told(workspace, rows, moved, measure))


def _told(
    workspace: Workspace, rows: Sequence[Mapping[str, Any]], moved: Sequence[Mapping[str, Any]], measure: Measure
) -> str:
    """Say what becomes of the runs."""
    many = f"Over all {counted(len(workspace.query_ids), 'topic')} {len(moved)} of {counted(len(rows), 'run')} move"
    if not moved:
        return f"{many} in {measure}."
    most = max(moved, key=lambda row: abs(row["difference"]))
    by = f"{most['run']} most, from {decimal(most['before'])} to {decimal(most['after'])}"
    rising = [row for row in moved if row["place"] > row["place_after"]]
    passed = [f"{row['run']} from place {row['place']} to {row['place_after']}" for row in rising]
    order = f"Up in the order of the runs: {listed(passed[:3])}." if passed else "The order of the runs stays."
    return f"{many} in {measure}, {by}. {order}"
