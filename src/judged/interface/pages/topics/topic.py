"""Page of one topic as an answer: lists, scores, losses, score ranges, and explanations."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.diagnosis.changes import regraded_runs_table
from judged.diagnosis.diff.answer import ScorePair
from judged.diagnosis.stages import stages
from judged.errors import InputError, JudgedError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.topics.judged_topic import (
    check_topic,
    check_topics_independent,
    documents,
    explain_score,
    grades_of,
    judged_topic,
    judgments_with_all_grades,
    score,
    state_name,
    tools,
    topic_diff,
)
from judged.interface.pages.topics.topic_list import TopicQuery, measure_facts, ordered_topics, rel_of, run_scores
from judged.interface.pages.workspace import Workspace, cached_in_workspace, set_error_field
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Axis, Column, Headline, Show, Table, columns_of, counted
from judged.results.blocks import Note
from judged.results.table import significant
from judged.scoring.evaluation.inputs import DEFAULT_MEASURES
from judged.scoring.judging import Judged, judge
from judged.scoring.uncertainty.ties import tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from judged.diagnosis.diff import TopicDiff
    from judged.scoring.explanation import Explanation
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import ScoreRange


CANDIDATE_CUTOFF = 100
"""Number of documents of a run that count as its candidates, which a reranker could reorder."""


def losses(
    workspace: Workspace, lists: Sequence[Judged], measure: Measure, rel: float
) -> tuple[Table, tuple[Note, ...]]:
    """Split the loss of each run on a topic into relevant documents missing from its candidates, and bad ranking.

    ``rel`` is the lowest relevant grade.
    """
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    names = ("score", "attainable_candidates", "best", "lost_candidates", "lost_ranking", "retrieved", "relevant")
    for judged in lists:
        run, query_id = judged.run.name, judged.query_ids[0]
        sentence = f"{run} returned nothing for this topic, so the whole score is lost."
        row: dict[str, Any] = {"run": run, **dict.fromkeys(names), "verdict": "", "sentence": sentence}
        rows.append(row)
        if not judged.present[0]:
            continue
        try:
            qrels, (topic_run,) = workspace.topic_data(query_id, [run])
            stage_losses = stages(qrels, topic_run, measure=measure, cutoff=CANDIDATE_CUTOFF)
            counts = judged.sum(judged.relevant(rel) & (judged.rank <= CANDIDATE_CUTOFF)), judged.num_relevant(rel)
            n_found, relevant = (count.astype(np.int64) for count in counts)
            trace = replace(stage_losses.trace, num_retrieved=n_found, relevant=relevant)
            stage_losses = replace(stage_losses, trace=trace)
        except JudgedError as error:
            row["sentence"] = str(error)
            continue
        row |= {**stage_losses.topics_table().records()[0], "sentence": stage_losses.topic(query_id).sentences[0]}
        notes += [note for note in stage_losses.notes if note not in stage_losses.provenance.notes]
    found_texts = [f"{row['retrieved'] or 0} of {row['relevant'] or 0}" for row in rows]
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("score", NUMBER, "Score"),
        ("attainable_candidates", NUMBER, "Attainable"),
        ("lost_candidates", NUMBER, "Candidate loss"),
        ("lost_ranking", NUMBER, "Ranking loss"),
        *("best", "retrieved", "relevant", "verdict", "sentence"),
    )
    found_column = Column("of", found_texts, title="Relevant returned", only="people")
    return Table("losses", (*columns, found_column), "Losses by stage"), tuple(notes)


def score_ranges(lists: Sequence[Judged], scores: Sequence[float], measure: Measure) -> Table:
    """Return the ranges in which the order of ties, or missing judgments, could move each score."""
    rows: list[dict[str, Any]] = []
    for judged, value in zip(lists, scores, strict=True):
        if not judged.present[0]:
            continue
        unchanged = {"low": value, "high": value}  # for a score that cannot change
        ties = {**unchanged, "kind": "", "sentence": "The run is an unranked set."}
        if judged.ranked:
            ties = _score_range(tie_range, judged, measure, value, "order of documents with equal scores")
        grades = {**unchanged, "kind": "exact", "sentence": "All returned documents are judged."}
        if unjudged := int(judged.returned[0]) - len(judged.rank):
            description = f"grades of its {counted(unjudged, 'unjudged document')}"
            grades = _score_range(unjudged_range, judged, measure, value, description)
        for reason, by, range_of_score in (("ties", "order of ties", ties), ("unjudged", "unjudged documents", grades)):
            rows.append({"run": judged.run.name, "reason": reason, "by": by, "score": value, **range_of_score})
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("by", TEXT, "Source"),
        ("low", NUMBER, "Minimum"),
        ("score", NUMBER, "Score"),
        ("high", NUMBER, "Maximum"),
        *("reason", "kind", "sentence"),  # `kind` is empty if the range is unknown
    )
    return Table("score_ranges", columns, "Possible range of the score", labels=2)


def _score_range(
    compute_range: Callable[[Judged, Measure], ScoreRange],
    judged: Judged,
    measure: Measure,
    score: float,
    description: str,
) -> dict[str, Any]:
    try:
        check_topics_independent(measure)
        score_range = compute_range(judged, measure)
    except JudgedError as error:
        return {"low": None, "high": None, "kind": "", "sentence": str(error)}
    bounds = {"low": float(score_range.low[0]), "high": float(score_range.high[0]), "kind": str(score_range.kind[0])}
    return {**bounds, "sentence": score_range.sentence(0, score, description)}


def labels_with_topic(workspace: Workspace, query_id: str) -> Any:
    """Return the open labels if they contain this topic. A topic with the same id but other text is not it."""
    store = workspace.labels
    text = "" if store is None else store.topic(query_id)["text"]
    return store if text and text == (workspace.query(query_id) or text) else None


def saved_grades(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Return the grades that people saved as labels, where they differ from the judgments."""
    store, judgments = labels_with_topic(workspace, query_id), grades_of(workspace, query_id)
    labels = {} if store is None else store.grades(query_id)
    return {doc: grade for doc, grade in labels.items() if grade != judgments.get(doc)}


def regraded_tables(
    workspace: Workspace,
    query: TopicQuery,
    saved_labels: Mapping[str, float],
    runs: Sequence[str],
    measures: Iterable[Measure],
) -> tuple[Table, ...]:
    """Return scores before and after a change of grades: of the visible runs by all measures, then of every run."""
    trial = {query.doc_id: query.grade} if query.doc_id and query.grade is not None else {}
    if not (grades := {**saved_labels, **trial}):
        return ()
    before = {run: judged_topic(workspace, query.topic, run) for run in workspace.lists}
    after = {run: _with_grades(workspace, query.topic, run, grades) for run in before}
    measures_by_topic = [measure for measure in dict.fromkeys(measures) if measure.properties.topics_independent]
    rows: list[dict[str, Any]] = []
    for measure in measures_by_topic:
        for run in runs:
            old, new = (score(workspace, judged[run], measure)[0] for judged in (before, after))
            rows.append({"measure": str(measure), "run": run, "before": old, "after": new, "difference": new - old})
    scores = (("before", NUMBER, "Before"), ("after", NUMBER, "After"), ("difference", CHANGE, "Difference"))
    visible_table = Table("regraded", columns_of(rows, ("measure", TEXT, "Measure"), ("run", TEXT, "Run"), *scores))
    selected_measure = query.read(query.measure)
    if selected_measure not in measures_by_topic:
        return (visible_table,)
    scores_before = {run: run_scores(workspace, selected_measure, run)[0] for run in before}
    scores_after = {run: score(workspace, judged, selected_measure)[0] for run, judged in after.items()}
    topic_code = workspace.qrels.index.codes[query.topic]
    return visible_table, regraded_runs_table(selected_measure, scores_before, topic_code, scores_after)


def _with_grades(workspace: Workspace, query_id: str, run: str, grades: Mapping[str, float]) -> Judged:
    """Judge one topic of a run with changed grades of some documents."""
    qrels = judgments_with_all_grades(workspace, query_id)
    has_grade = pc.is_in(qrels.table["doc_id"], pa.array(grades))
    is_regraded = pc.and_(pc.equal(qrels.table["query_id"], query_id), has_grade)
    table = qrels.table.select(["query_id", "doc_id", "relevance"]).filter(pc.invert(is_regraded))
    rows = pa.table([[query_id] * len(grades), [*grades], [*grades.values()]], schema=table.schema)
    _, (topic_run,) = workspace.topic_data(query_id, [run])
    return judge(replace(qrels, table=pa.concat_tables([table, rows])), topic_run).only(query_id)


@dataclass(frozen=True, eq=False, repr=False)
class TopicPage(PageAnswer):
    """Page of a topic."""

    kind: ClassVar[str] = "topic"

    diff: TopicDiff | None = None  # changes from the first list to the second; None if they cannot be compared
    explanations: tuple[Explanation | None, ...] = ()  # one per list

    @property
    def sentences(self) -> tuple[str, ...]:
        """Changes from the first list to the second."""
        return (self.diff.sentence,) if self.diff else ()


def topic(workspace: Workspace, query: TopicQuery) -> TopicPage:
    """Return the page of a topic."""
    check_topic(workspace, query.topic)
    return _topic(workspace, query, tuple(saved_grades(workspace, query.topic).items()))


@cached_in_workspace
def _topic(workspace: Workspace, query: TopicQuery, saved_labels: tuple[tuple[str, float], ...]) -> TopicPage:
    with set_error_field("measure"):
        measure = query.read(query.measure)
    with set_error_field("explain"):
        explained_measure = query.read(query.explain or query.measure)
    rel, runs = rel_of(measure, query.rel), _selected_runs(workspace, query)
    measures = [measure, *map(query.read, DEFAULT_MEASURES)]
    lists = [judged_topic(workspace, query.topic, run) for run in runs]
    diff = topic_diff(workspace, lists, measure, query.cutoff)
    grades, scores = grades_of(workspace, query.topic), _scores(workspace, lists, measures)
    values = [scores.column(f"run:{run}").values[0] for run in runs]
    loss_table, notes = losses(workspace, lists, measure, rel)
    state_names = [state_name(grade, rel) for grade in grades.values()]
    explanations = [explain_score(judged, explained_measure) for judged in lists]
    about = {
        "query_id": query.topic,
        "query": workspace.query(query.topic),
        "attributes": _attributes(workspace, query.topic),
        **measure_facts(measure, query.rel),
        "judged": len(grades),
        "relevant": state_names.count("relevant"),
        "cutoff": query.cutoff,
        "candidates": CANDIDATE_CUTOFF,
        **_position(workspace, query),
        "runs": tuple(runs),
        "saved_grades": dict(saved_labels),
        "explanations": [
            {"run": run, "measure": str(explained_measure), "score": None, "problem": problem}
            | (explanation.to_dict() if explanation else {})
            for run, (explanation, problem) in zip(runs, explanations, strict=True)
        ],
    }
    by_grade = [
        {"grade": grade, "state": state_name(grade, rel), "documents": count}
        for grade, count in sorted(Counter(grades.values()).items(), reverse=True)
    ]
    parts = (
        Table("grades", columns_of(by_grade, ("grade", significant(), "Grade"), "state", "documents")),
        documents(workspace, lists, grades, rel, query.cutoff, diff),
        scores,
        _all_runs(workspace, query.topic, measure, runs),
        loss_table,
        score_ranges(lists, values, measure),
    )
    parts = (*parts, *regraded_tables(workspace, query, dict(saved_labels), runs, measures))
    if query.tools:
        reported, tool_notes = tools(workspace, query.topic, dict(zip(runs, values, strict=True)), measure)
        parts, notes = (*parts, reported), (*notes, *tool_notes)
    explanations_by_list = tuple(explanation for explanation, _ in explanations)
    verdict = _headline(measure, runs, values)
    return TopicPage(about, parts, (*_notes(workspace, lists), *notes), verdict, diff, explanations_by_list)


def _headline(measure: Measure, runs: Sequence[str], values: Sequence[float]) -> Headline | None:
    """Return the difference of two runs on a topic, or the score of a single run."""
    if not runs:
        return None
    pair = ScorePair(str(measure), values[0], values[-1], measure_facts(measure)["lower_is_better"])
    if len(runs) == 2 or math.isnan(values[0]):
        return pair.headline(runs[0], runs[-1])
    return Headline("info", "score", "One topic is not tested.", f"{measure} of {runs[0]}", values[0])


def _selected_runs(workspace: Workspace, query: TopicQuery) -> list[str]:
    """Return the runs of the page: the requested ones, or the baseline and the best other run."""
    requested = [*dict.fromkeys(filter(None, (query.first, query.second)))]
    if requested and not workspace.lists:
        raise InputError(f"no run {requested[0]!r} is open", fix="open runs: judged serve QRELS RUN")
    for name in requested:
        workspace.judged(name)
    if query.first:
        return requested
    first, second = workspace.default_pair(query.read(query.measure), run=query.second or "")
    return [name for name in (first, second if query.second is None else query.second) if name]


def _scores(workspace: Workspace, lists: Sequence[Judged], measures: Sequence[Measure]) -> Table:
    """Score the runs by the selected measure and the default measures."""
    rows: list[dict[str, Any]] = []
    for measure in dict.fromkeys(measures):
        scores = {f"run:{judged.run.name}": score(workspace, judged, measure) for judged in lists}
        values = {name: value for name, (value, _) in scores.items()}
        problem = next((reason for _, reason in scores.values() if reason), "")  # why there is no score
        row = {"measure": str(measure), **values, "difference": math.nan, "better": None, "problem": problem}
        if len(lists) == 2:
            first, second = values.values()
            pair = ScorePair(str(measure), first, second, measure_facts(measure)["lower_is_better"])
            better = lists[pair.sign > 0].run.name if pair.sign else None if math.isnan(pair.difference) else ""
            row |= {"difference": pair.difference, "better": better}
        rows.append(row)
    better_text = Show(lambda run: run or "equal", "string")
    difference_columns = (("difference", CHANGE, "Difference"), ("better", better_text, "Better"))
    columns = columns_of(
        rows,
        ("measure", TEXT, "Measure"),
        *((f"run:{judged.run.name}", NUMBER, judged.run.name) for judged in lists),
        *(difference_columns if len(lists) == 2 else ("difference", "better")),
        "problem",
    )
    return Table("scores", columns, "Scores of this topic", kinds=["selected", *[""] * (len(rows) - 1)])


def _all_runs(workspace: Workspace, query_id: str, measure: Measure, visible_runs: Sequence[str]) -> Table:
    """Return the table of scores of every run, best first."""
    topic_code, sides = workspace.qrels.index.codes[query_id], dict(zip(visible_runs, ("left", "right"), strict=False))
    rows: list[dict[str, Any]] = []
    for run, judged in workspace.lists.items():
        value, returned = float(run_scores(workspace, measure, run)[0][topic_code]), int(judged.returned[topic_code])
        unjudged = returned - int(judged.starts[topic_code + 1] - judged.starts[topic_code])
        row = {"run": run, "score": value, "returned": returned, "unjudged": unjudged}
        rows.append({**row, "ranked": judged.ranked, "shown": sides.get(run, "")})
    sign = 1 if measure_facts(measure)["lower_is_better"] else -1
    rows.sort(key=lambda row: math.inf if math.isnan(row["score"]) else sign * row["score"])
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("score", NUMBER, "Score"),
        ("returned", COUNT, "Returned"),
        ("shown", TEXT, "Show"),
        *("unjudged", "ranked"),
    )
    kinds = ["selected" * bool(row["shown"]) for row in rows]
    table = Table("all_runs", columns, f"All runs by {measure}", kinds=kinds)
    return table.changed("score", axis=Axis.over([row["score"] for row in rows], (), ""))


def _position(workspace: Workspace, query: TopicQuery) -> dict[str, Any]:
    """Return the position in the list that the user came from, 0 if absent, and the adjacent topics."""
    order = ordered_topics(workspace, query.order).tolist()
    ids, topic_code = workspace.query_ids, workspace.qrels.index.codes[query.topic]
    position = order.index(topic_code) if topic_code in order else -1
    return {
        "position": position + 1,
        "total": len(order),
        "previous": ids[order[position - 1]] if position > 0 else None,
        "next": ids[order[position + 1]] if 0 <= position < len(order) - 1 else None,
    }


def _attributes(workspace: Workspace, query_id: str) -> dict[str, Any]:
    if workspace.attributes is None and workspace.topics is None:
        return {}
    attributes = workspace.topic_attributes().over([query_id])
    values = {name: attributes.column(name).to_pylist()[0] for name in attributes.names}
    return {name: value for name, value in values.items() if value is not None}


def _notes(workspace: Workspace, lists: Sequence[Judged]) -> list[Note]:
    notes: list[Note] = []
    for judged in lists:
        run = judged.run.name
        if not judged.present[0]:
            text = f"{run} returned nothing for this topic, and is scored as an empty list."
            notes.append(Note("nothing-returned", text))
        if not judged.ranked:
            notes.append(Note("no-scores", f"{run} has no scores, so the documents of this run are an unranked set."))
    if lists and workspace.texts is None:
        text = "No document texts are open, so only IDs are shown. Open a collection to show texts."
        notes.append(Note("no-texts", text))
    return notes
