"""One topic of one run, made small, so that whatever is asked of it is quick; its lists, and its explanation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.diff import diff
from judged.errors import InputError, JudgedError, MeasureError
from judged.interface.pages.topics.topic_list import near_ids, run_scores
from judged.interface.pages.workspace import remembered
from judged.results import ANY, TEXT, Table, beginning, columns_of
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.scoring.explanation import compare_tools, explain_list
from judged.scoring.judging import judge
from judged.scoring.judging.align import rank_all_with_ties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.data.qrels import Qrels
    from judged.diagnosis.diff import TopicDiff
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.explanation import Explanation
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure


def check_topic(workspace: Workspace, query_id: str) -> None:
    """Refuse a topic that does not exist, and name some that are like it."""
    if query_id not in workspace.qrels.index.codes:
        written = beginning(80).write
        near = ", ".join(map(written, near_ids(workspace.query_ids, query_id)))
        raise InputError(f"no topic {written(query_id)!r} is in the judgments", fix=f"near it are {near}")


def check_apart(measure: Measure) -> None:
    """Refuse a measure whose score of one topic depends on the others: of one topic alone it says something else."""
    if not measure.properties.topics_independent:
        problem = f"{measure} of one topic depends on the other topics: it cannot be told from this one alone"
        raise MeasureError(f"{problem}. Fix: take another measure, such as nDCG@10 or AP")


@remembered
def scale_of(workspace: Workspace, query_id: str) -> Qrels:
    """Give the judgments of a topic, and of some more, so that every grade of the qrels is among them."""
    # The grades an unjudged document could have, and what other tools take for the highest grade, follow from all
    # judgments and not from those of one topic.
    return workspace.qrels.over({query_id} | _witnesses(workspace))


@remembered
def _witnesses(workspace: Workspace) -> frozenset[str]:
    index = workspace.qrels.index
    _, first = np.unique(index.grade, return_index=True)
    return frozenset(index.topics[code] for code in index.topic[first].tolist())


def judged_topic(workspace: Workspace, query_id: str, run: str) -> Judged:
    """Judge one topic of a run by itself."""
    check_topic(workspace, query_id)
    workspace.judged(run)
    _, (alone,) = workspace.one_topic(query_id, [run])
    return judge(scale_of(workspace, query_id), alone).only(query_id)


def grades_of(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Give the grade of each judged document, the highest where there are several."""
    index, code = workspace.qrels.index, workspace.qrels.index.codes[query_id]
    first, last = np.searchsorted(index.topic, [code, code + 1]).tolist()
    return {index.row_names[row]: float(index.grade[row]) for row in range(first, last)}


def state_of(grade: float | None, rel: float) -> str:
    """Say in a word what a grade means.

    >>> state_of(2.0, 1.0), state_of(0.0, 1.0), state_of(None, 1.0), state_of(-2.0, -5.0)
    ('relevant', 'not relevant', 'unjudged', 'not relevant')
    """
    if grade is None:
        return "unjudged"
    return "relevant" if grade >= rel and grade >= 0 else "not relevant"


def score(workspace: Workspace, judged: Judged, measure: Measure) -> tuple[float, str]:
    """Score the topic of a list; or NaN, and why it has none."""
    if not measure.properties.topics_independent:
        every, why = run_scores(workspace, measure, judged.run.name)
        return float(every[workspace.qrels.index.codes[judged.query_ids[0]]]), why
    try:
        return float(measure(judged)[0]), ""
    except (InputError, MeasureError) as error:
        return math.nan, str(error)


def explained(judged: Judged, measure: Measure) -> tuple[Explanation | None, str]:
    """Explain how a score comes about; or say why there is none."""
    try:
        check_apart(measure)
        return explain_list(judged, measure), ""
    except JudgedError as error:
        return None, str(error)


def tools(
    workspace: Workspace, query_id: str, scores: Mapping[str, float], measure: Measure
) -> tuple[Table, list[Note]]:
    """Ask what other tools report of runs, each with our score."""
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for run in scores:
        try:
            check_apart(measure)
            _, (alone,) = workspace.one_topic(query_id, [run])
            compared = compare_tools(scale_of(workspace, query_id), alone, query_id, measure)
        except JudgedError as error:
            notes.append(Note("other-tools", str(error), run))
            continue
        rows += [{**row, "run": run} for row in compared.table().records()[1:] if row["called"]]
    columns = columns_of(
        rows,
        *("run", "measure"),
        ("tool", TEXT, "Tool"),
        ("called", TEXT, "Its name"),
        ("printed", ANY, "It prints"),
        ("why", TEXT, "Which rule makes the difference"),
    )
    groups = [f"{measure} of {row['run']}: {decimal(scores[row['run']])}" for row in rows]
    return Table("tools", columns, "What other tools report", groups=groups), notes


_SNIPPET = 180  # characters of a text


def difference(workspace: Workspace, lists: Sequence[Judged], measure: Measure, cutoff: int) -> TopicDiff | None:
    """Put two runs side by side on one topic; None where `diff` has nothing to say of them."""
    ready = len(lists) == 2 and all(judged.ranked and judged.present[0] for judged in lists)
    if not ready or not measure.properties.topics_independent:
        return None
    try:
        if any(len(measure(judged)) != 1 for judged in lists):
            return None
    except JudgedError:
        return None
    query_id = lists[0].query_ids[0]
    qrels, (first, second) = workspace.one_topic(query_id, [judged.run.name for judged in lists])
    return diff(qrels, first, second, topic=query_id, measure=measure, cutoff=cutoff).topics[0]


def documents(
    workspace: Workspace,
    lists: Sequence[Judged],
    grades: Mapping[str, float],
    rel: float,
    cutoff: int,
    compared: TopicDiff | None,
) -> Table:
    """Lay out the first documents of the lists, then the relevant ones that no list shows, best grades first."""
    orders = {judged.run.name: _order(judged) for judged in lists}
    ranked = {judged.run.name: judged.ranked for judged in lists}
    shown = dict.fromkeys(doc for order in orders.values() for doc in list(order)[:cutoff])
    relevant = [doc for doc in grades if state_of(grades[doc], rel) == "relevant"]
    moved = {} if compared is None else {row.doc_id: row for row in compared.rows}
    rows: list[dict[str, Any]] = []
    for doc in dict.fromkeys([*shown, *sorted(relevant, key=lambda doc: (-grades[doc], doc))]):
        grade = grades.get(doc)
        row = {"key": len(rows), "doc_id": doc, "grade": grade, "state": state_of(grade, rel), "shown": doc in shown}
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
    every, first, last = rank_all_with_ties(judged.run, judged.query_ids, judged.ranking)
    tied: list[bool] = np.not_equal(first, last).tolist()
    return dict(zip(every.doc.to_pylist(), zip(every.rank.tolist(), tied, strict=True), strict=True))


def _text(workspace: Workspace, doc: str) -> dict[str, Any]:
    """Give title and snippet of a document, and whether its text is known."""
    texts = workspace.texts
    if texts is None or doc not in texts:
        return {"title": "", "snippet": "", "has_text": False}
    title = " ".join(texts.title(doc)[:1000].split())[:_SNIPPET]
    return {"title": title, "snippet": texts.snippet(doc, _SNIPPET), "has_text": True}
