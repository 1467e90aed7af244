"""One topic of a run, judged separately, which is fast: its lists, scores, and explanations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.diff import TopicDiff, diff
from judged.errors import InputError, JudgedError, MeasureError
from judged.interface.pages.topics.topic_list import run_scores, similar_ids
from judged.interface.pages.workspace import Workspace, cached_in_workspace
from judged.results import ANY, TEXT, Table, columns_of, truncated
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.scoring.explanation import Explanation, compare_tools, explain_list
from judged.scoring.judging import Judged, judge
from judged.scoring.judging.align import rank_all_with_ties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.data.qrels import Qrels
    from judged.scoring.measures.base import Measure


def check_topic(workspace: Workspace, query_id: str) -> None:
    """Raise an error that suggests similar topics if a topic does not exist."""
    if query_id not in workspace.qrels.index.codes:
        shorten = truncated(80).write
        suggestions = ", ".join(map(shorten, similar_ids(workspace.query_ids, query_id)))
        problem = f"the judgments have no topic {shorten(query_id)!r}"
        raise InputError(problem, fix=f"use a similar topic: {suggestions}")


def check_topics_independent(measure: Measure) -> None:
    """Raise an error if the score of a topic depends on other topics, so that one topic has no score alone."""
    if not measure.properties.topics_independent:
        problem = f"{measure} cannot be computed for a single topic, because it depends on the other topics"
        raise MeasureError(f"{problem}. Fix: use another measure, such as nDCG@10 or AP")


@cached_in_workspace
def judgments_with_all_grades(workspace: Workspace, query_id: str) -> Qrels:
    """Return the judgments of a topic, and of enough other topics to include every grade of the qrels."""
    # Grades that an unjudged document could have, and the highest grade that other tools use, depend on all judgments,
    # not only on those of one topic.
    return workspace.qrels.over({query_id} | _topics_with_all_grades(workspace))


@cached_in_workspace
def _topics_with_all_grades(workspace: Workspace) -> frozenset[str]:
    index = workspace.qrels.index
    _, first = np.unique(index.grade, return_index=True)
    return frozenset(index.topics[code] for code in index.topic[first].tolist())


def judged_topic(workspace: Workspace, query_id: str, run: str) -> Judged:
    """Judge one topic of a run separately."""
    check_topic(workspace, query_id)
    workspace.judged(run)
    _, (topic_run,) = workspace.topic_data(query_id, [run])
    return judge(judgments_with_all_grades(workspace, query_id), topic_run).only(query_id)


def grades_of(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Return the grade of each judged document; the highest if it has several."""
    index, code = workspace.qrels.index, workspace.qrels.index.codes[query_id]
    first, last = np.searchsorted(index.topic, [code, code + 1]).tolist()
    return {index.row_names[row]: float(index.grade[row]) for row in range(first, last)}


def state_name(grade: float | None, rel: float) -> str:
    """Return whether a grade is relevant, not relevant, or unjudged.

    >>> state_name(2.0, 1.0), state_name(0.0, 1.0), state_name(None, 1.0), state_name(-2.0, -5.0)
    ('relevant', 'not relevant', 'unjudged', 'not relevant')
    """
    if grade is None:
        return "unjudged"
    return "relevant" if grade >= rel and grade >= 0 else "not relevant"


def score(workspace: Workspace, judged: Judged, measure: Measure) -> tuple[float, str]:
    """Score the topic of a list; or return NaN and the reason."""
    if not measure.properties.topics_independent:
        all_scores, reason = run_scores(workspace, measure, judged.run.name)
        return float(all_scores[workspace.qrels.index.codes[judged.query_ids[0]]]), reason
    try:
        return float(measure(judged)[0]), ""
    except (InputError, MeasureError) as error:
        return math.nan, str(error)


def explain_score(judged: Judged, measure: Measure) -> tuple[Explanation | None, str]:
    """Explain a score; or return None and the reason."""
    try:
        check_topics_independent(measure)
        return explain_list(judged, measure), ""
    except JudgedError as error:
        return None, str(error)


def tools(
    workspace: Workspace, query_id: str, scores: Mapping[str, float], measure: Measure
) -> tuple[Table, list[Note]]:
    """Return what other tools report for runs, each with our score."""
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for run in scores:
        try:
            check_topics_independent(measure)
            _, (topic_run,) = workspace.topic_data(query_id, [run])
            comparison = compare_tools(judgments_with_all_grades(workspace, query_id), topic_run, query_id, measure)
        except JudgedError as error:
            notes.append(Note("other-tools", str(error), run))
            continue
        rows += [{**row, "run": run} for row in comparison.table().records()[1:] if row["tool_measure"]]
    columns = columns_of(
        rows,
        *("run", "measure"),
        ("tool", TEXT, "Tool"),
        ("tool_measure", TEXT, "Name in the tool"),
        ("printed", ANY, "Reported score"),
        ("reason", TEXT, "Rule that causes the difference"),
    )
    groups = [f"{measure} of {row['run']}: {decimal(scores[row['run']])}" for row in rows]
    return Table("tools", columns, "Scores of other tools", groups=groups), notes


_SNIPPET = 180  # characters


def topic_diff(workspace: Workspace, lists: Sequence[Judged], measure: Measure, cutoff: int) -> TopicDiff | None:
    """Compare two runs on one topic; None if `diff` cannot compare them."""
    is_comparable = len(lists) == 2 and all(judged.ranked and judged.present[0] for judged in lists)
    if not is_comparable or not measure.properties.topics_independent:
        return None
    try:
        if any(len(measure(judged)) != 1 for judged in lists):
            return None
    except JudgedError:
        return None
    query_id = lists[0].query_ids[0]
    qrels, (first, second) = workspace.topic_data(query_id, [judged.run.name for judged in lists])
    return diff(qrels, first, second, topic=query_id, measure=measure, cutoff=cutoff).topics[0]


def documents(
    workspace: Workspace,
    lists: Sequence[Judged],
    grades: Mapping[str, float],
    rel: float,
    cutoff: int,
    comparison: TopicDiff | None,
) -> Table:
    """Return the first documents of the lists, then relevant documents that no list shows, best grades first."""
    positions_by_run = {judged.run.name: _positions(judged) for judged in lists}
    is_ranked = {judged.run.name: judged.ranked for judged in lists}
    visible_docs = dict.fromkeys(doc for positions in positions_by_run.values() for doc in list(positions)[:cutoff])
    relevant = [doc for doc in grades if state_name(grades[doc], rel) == "relevant"]
    changes_by_doc = {} if comparison is None else {row.doc_id: row for row in comparison.rows}
    rows: list[dict[str, Any]] = []
    for doc in dict.fromkeys([*visible_docs, *sorted(relevant, key=lambda doc: (-grades[doc], doc))]):
        grade = grades.get(doc)
        row = {"key": len(rows), "doc_id": doc, "grade": grade, "state": state_name(grade, rel)}
        row["shown"] = doc in visible_docs
        for run, positions in positions_by_run.items():
            position, tied = positions.get(doc, (None, False))
            rank = position if is_ranked[run] else None  # a set has no ranks
            row |= {f"position:{run}": position, f"rank:{run}": rank, f"tied:{run}": tied and is_ranked[run]}
        change = changes_by_doc.get(doc)
        row |= {"moved": change.movement if change else "", "change": change and change.changes[0]}
        rows.append(row | _text(workspace, doc))
    return Table("documents", columns_of(rows, *(rows[0] if rows else ())), only="data")


def _positions(judged: Judged) -> dict[str, tuple[int, bool]]:
    """Return the position of every returned document and whether its score is tied, in list order."""
    all_documents, first, last = rank_all_with_ties(judged.run, judged.query_ids, judged.ranking)
    is_tied: list[bool] = np.not_equal(first, last).tolist()
    return dict(zip(all_documents.doc.to_pylist(), zip(all_documents.rank.tolist(), is_tied, strict=True), strict=True))


def _text(workspace: Workspace, doc: str) -> dict[str, Any]:
    """Return title and snippet of a document, and whether its text is known."""
    texts = workspace.texts
    if texts is None or doc not in texts:
        return {"title": "", "snippet": "", "has_text": False}
    title = " ".join(texts.title(doc)[:1000].split())[:_SNIPPET]
    return {"title": title, "snippet": texts.snippet(doc, _SNIPPET), "has_text": True}
