"""The judged lists of a topic: where each document stands in them, how it moved, and what it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer import Table, columns_of
from judged.diagnosis.diff import diff
from judged.errors import JudgedError
from judged.judging.dense import all_tied
from judged.web.topics.one import state_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.diagnosis.diff import TopicDiff
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace

_SNIPPET = 180  # characters of a text


def difference(workspace: Workspace, lists: Sequence[Judged], measure: Measure, depth: int) -> TopicDiff | None:
    """Put two runs side by side on one topic; None where `diff` has nothing to say of them."""
    ready = len(lists) == 2 and all(judged.ranked and judged.present[0] for judged in lists)
    if not ready or not measure.properties.topics_apart:
        return None
    try:
        if any(len(measure(judged)) != 1 for judged in lists):
            return None
    except JudgedError:
        return None
    query_id = lists[0].query_ids[0]
    qrels, (first, second) = workspace.one_topic(query_id, [judged.run.name for judged in lists])
    return diff(qrels, first, second, topic=query_id, measure=measure, depth=depth).topics[0]


def documents(
    workspace: Workspace,
    lists: Sequence[Judged],
    grades: Mapping[str, float],
    level: float,
    depth: int,
    compared: TopicDiff | None,
) -> Table:
    """Lay out the first documents of the lists, then the relevant ones that no list shows, best grades first."""
    orders = {judged.run.name: _order(judged) for judged in lists}
    ranked = {judged.run.name: judged.ranked for judged in lists}
    shown = dict.fromkeys(doc for order in orders.values() for doc in list(order)[:depth])
    relevant = [doc for doc in grades if state_of(grades[doc], level) == "relevant"]
    moved = {} if compared is None else {row.doc_id: row for row in compared.rows}
    rows: list[dict[str, Any]] = []
    for doc in dict.fromkeys([*shown, *sorted(relevant, key=lambda doc: (-grades[doc], doc))]):
        grade = grades.get(doc)
        row = {"key": len(rows), "doc_id": doc, "grade": grade, "state": state_of(grade, level), "shown": doc in shown}
        for run, order in orders.items():
            place, tied = order.get(doc, (None, False))
            row |= {f"place:{run}": place, f"rank:{run}": place if ranked[run] else None}  # a set has no ranks
            row |= {f"tied:{run}": tied and ranked[run]}
        change = moved.get(doc)
        row |= {"moved": change.movement if change else "", "change": change and change.changes[0]}
        rows.append(row | _text(workspace, doc))
    return Table("documents", columns_of(rows, *(rows[0] if rows else ())), only="data")


def _order(judged: Judged) -> dict[str, tuple[int, bool]]:
    """Give the place of every returned document, and whether its score is that of others, in the order of the list."""
    every, first, last = all_tied(judged.run, judged.query_ids, judged.ranking)
    tied: list[bool] = np.not_equal(first, last).tolist()
    return dict(zip(every.doc.to_pylist(), zip(every.rank.tolist(), tied, strict=True), strict=True))


def _text(workspace: Workspace, doc: str) -> dict[str, Any]:
    """Give title and snippet of a document, and whether its text is known."""
    texts = workspace.texts
    if texts is None or doc not in texts:
        return {"title": "", "snippet": "", "has_text": False}
    title = " ".join(texts.title(doc)[:1000].split())[:_SNIPPET]
    return {"title": title, "snippet": texts.snippet(doc, _SNIPPET), "has_text": True}
