"""The page of one topic as an answer: everything about it."""

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
    check_apart,
    check_topic,
    difference,
    documents,
    explained,
    grades_of,
    judged_topic,
    scale_of,
    score,
    state_of,
    tools,
)
from judged.interface.pages.topics.topic_list import facts_of, ordered, rel_of, run_scores
from judged.interface.pages.workspace import concerning, remembered
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Column, Show, Table, columns_of, counted, significant
from judged.results.blocks import Note
from judged.scoring.evaluation.inputs import DEFAULT_MEASURES
from judged.scoring.judging import judge
from judged.scoring.uncertainty.ties import tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from judged.diagnosis.diff import TopicDiff
    from judged.interface.pages.topics.topic_list import AskedTopic
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.explanation import Explanation
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import ScoreRange


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
            split = replace(split, trace=replace(split.trace, num_found=held, relevant=relevant))
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
    for judged, value in zip(lists, scores, strict=True):
        if not judged.present[0]:
            continue
        kept = {"low": value, "high": value}  # where it cannot move
        ties = {**kept, "kind": "", "sentence": "The run is a set: it has no order."}
        if judged.ranked:
            ties = _reach(tie_range, judged, measure, value, "order of documents with equal scores")
        grades = {**kept, "kind": "exact", "sentence": "Every document that it returned is judged."}
        if unjudged := int(judged.returned[0]) - len(judged.rank):
            of = f"grades of its {counted(unjudged, 'unjudged document')}"
            grades = _reach(unjudged_range, judged, measure, value, of)
        for reason, by, reach in (("ties", "order of ties", ties), ("unjudged", "unjudged documents", grades)):
            rows.append({"run": judged.run.name, "reason": reason, "by": by, "score": value, **reach})
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
    find: Callable[[Judged, Measure], ScoreRange], judged: Judged, measure: Measure, score: float, by: str
) -> dict[str, Any]:
    try:
        check_apart(measure)
        reach = find(judged, measure)
    except JudgedError as error:
        return {"low": None, "high": None, "kind": "", "sentence": str(error)}
    ends = {"low": float(reach.low[0]), "high": float(reach.high[0]), "kind": str(reach.kind[0])}
    return {**ends, "sentence": reach.sentence(0, score, by)}


def labels_of(workspace: Workspace, query_id: str) -> Any:
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
    apart = [one for one in dict.fromkeys(measures) if one.properties.topics_independent]
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
    return shown, regraded_runs_table(chosen, scores_of, workspace.qrels.index.codes[asked.topic], changed)


def _with_grades(workspace: Workspace, query_id: str, run: str, grades: Mapping[str, float]) -> Judged:
    """Judge one topic of a run as it would be if documents had other grades."""
    qrels = scale_of(workspace, query_id)
    same = pc.and_(pc.equal(qrels.table["query_id"], query_id), pc.is_in(qrels.table["doc_id"], pa.array(grades)))
    table = qrels.table.select(["query_id", "doc_id", "relevance"]).filter(pc.invert(same))
    rows = pa.table([[query_id] * len(grades), [*grades], [*grades.values()]], schema=table.schema)
    _, (alone,) = workspace.one_topic(query_id, [run])
    return judge(replace(qrels, table=pa.concat_tables([table, rows])), alone).only(query_id)


@dataclass(frozen=True, eq=False, repr=False)
class TopicPage(PageAnswer):
    """What the page of a topic shows."""

    kind: ClassVar[str] = "topic"

    compared: TopicDiff | None = None  # what changed from the first list to the second, where that can be said
    explanations: tuple[Explanation | None, ...] = ()  # one a list

    @property
    def sentences(self) -> tuple[str, ...]:
        """What changed from the first list to the second."""
        return (self.compared.sentence,) if self.compared else ()


def topic(workspace: Workspace, asked: AskedTopic) -> TopicPage:
    """Give everything about one topic."""
    check_topic(workspace, asked.topic)
    return _topic(workspace, asked, tuple(kept_grades(workspace, asked.topic).items()))


@remembered
def _topic(workspace: Workspace, asked: AskedTopic, kept: tuple[tuple[str, float], ...]) -> TopicPage:
    with concerning("measure"):
        measure = asked.read(asked.measure)
    with concerning("explain"):
        explained_measure = asked.read(asked.explain or asked.measure)
    rel, runs = rel_of(measure, asked.rel), _runs(workspace, asked)
    measures = [measure, *map(asked.read, DEFAULT_MEASURES)]
    lists = [judged_topic(workspace, asked.topic, run) for run in runs]
    compared = difference(workspace, lists, measure, asked.cutoff)
    grades, scores = grades_of(workspace, asked.topic), _scores(workspace, lists, measures)
    values = [scores.column(f"run:{run}").values[0] for run in runs]
    lost, notes = losses(workspace, lists, measure, rel)
    states = [state_of(grade, rel) for grade in grades.values()]
    explanations = [explained(judged, explained_measure) for judged in lists]
    about = {
        "query_id": asked.topic,
        "query": workspace.query(asked.topic),
        "attributes": _attributes(workspace, asked.topic),
        **facts_of(measure, asked.rel),
        "judged": len(grades),
        "relevant": states.count("relevant"),
        "cutoff": asked.cutoff,
        "candidates": CANDIDATES,
        **_place(workspace, asked),
        "runs": tuple(runs),
        "kept_grades": dict(kept),
        "explained": [
            {"run": run, "measure": str(explained_measure), "score": None, "problem": problem}
            | (explanation.to_dict() if explanation else {})
            for run, (explanation, problem) in zip(runs, explanations, strict=True)
        ],
    }
    by_grade = [
        {"grade": grade, "state": state_of(grade, rel), "documents": count}
        for grade, count in sorted(Counter(grades.values()).items(), reverse=True)
    ]
    parts = (
        Table("grades", columns_of(by_grade, ("grade", significant(), "Grade"), "state", "documents")),
        documents(workspace, lists, grades, rel, asked.cutoff, compared),
        scores,
        _all_runs(workspace, asked.topic, measure, runs),
        lost,
        reaches(lists, values, measure),
    )
    parts = (*parts, *regraded(workspace, asked, dict(kept), runs, measures))
    if asked.tools:
        reported, more = tools(workspace, asked.topic, dict(zip(runs, values, strict=True)), measure)
        parts, notes = (*parts, reported), (*notes, *more)
    told = tuple(explanation for explanation, _ in explanations)
    return TopicPage(about, parts, (*_notes(workspace, lists), *notes), compared, told)


def _runs(workspace: Workspace, asked: AskedTopic) -> list[str]:
    """Choose the runs that are shown: those that are asked for, or the baseline and the best beside it."""
    given = [*dict.fromkeys(filter(None, (asked.first, asked.second)))]
    if given and not workspace.lists:
        raise InputError(f"no run {given[0]!r} is open", fix="open runs too: judged serve QRELS RUN")
    for name in given:
        workspace.judged(name)
    if asked.first:
        return given
    first, second = workspace.usual_pair(asked.read(asked.measure), run=asked.second or "")
    return [name for name in (first, second if asked.second is None else asked.second) if name]


def _scores(workspace: Workspace, lists: Sequence[Judged], measures: Sequence[Measure]) -> Table:
    """Score the runs by the chosen measure, and by some that are usual."""
    rows: list[dict[str, Any]] = []
    for measure in dict.fromkeys(measures):
        scores = {f"run:{judged.run.name}": score(workspace, judged, measure) for judged in lists}
        values = {name: value for name, (value, _) in scores.items()}
        problem = next((why for _, why in scores.values() if why), "")  # why there is no score
        row = {"measure": str(measure), **values, "difference": math.nan, "better": None, "problem": problem}
        if len(lists) == 2:
            first, second = values.values()
            pair = ScorePair(str(measure), first, second, facts_of(measure)["lower_is_better"])
            better = lists[pair.sign > 0].run.name if pair.sign else None if math.isnan(pair.difference) else ""
            row |= {"difference": pair.difference, "better": better}
        rows.append(row)
    which = Show(lambda run: run or "the same", "string")
    compared = (("difference", CHANGE, "Difference"), ("better", which, "Better"))
    columns = columns_of(
        rows,
        ("measure", TEXT, "Measure"),
        *((f"run:{judged.run.name}", NUMBER, judged.run.name) for judged in lists),
        *(compared if len(lists) == 2 else ("difference", "better")),
        "problem",
    )
    return Table("scores", columns, "Scores of this topic", kinds=["chosen", *[""] * (len(rows) - 1)])


def _all_runs(workspace: Workspace, query_id: str, measure: Measure, shown: Sequence[str]) -> Table:
    """Lay out the score of every run, best first."""
    at, sides = workspace.qrels.index.codes[query_id], dict(zip(shown, ("left", "right"), strict=False))
    rows: list[dict[str, Any]] = []
    for run, judged in workspace.lists.items():
        returned = int(judged.returned[at])
        rows.append(
            {
                "run": run,
                "score": float(run_scores(workspace, measure, run)[0][at]),
                "returned": returned,
                "unjudged": returned - int(judged.starts[at + 1] - judged.starts[at]),
                "ranked": judged.ranked,
                "shown": sides.get(run, ""),
            }
        )
    sign = 1 if facts_of(measure)["lower_is_better"] else -1
    rows.sort(key=lambda row: math.inf if math.isnan(row["score"]) else sign * row["score"])
    columns = columns_of(
        rows,
        ("run", TEXT, "Run"),
        ("score", NUMBER, "Score"),
        ("returned", COUNT, "Returned"),
        ("shown", TEXT, "Show it"),
        *("unjudged", "ranked"),
    )
    return Table("all_runs", columns, f"All runs by {measure}", kinds=["chosen" * bool(row["shown"]) for row in rows])


def _place(workspace: Workspace, asked: AskedTopic) -> dict[str, Any]:
    """Find the place in the list that the reader came from, 0 for none, and its neighbours."""
    order = ordered(workspace, asked.order).tolist()
    ids, here = workspace.query_ids, workspace.qrels.index.codes[asked.topic]
    place = order.index(here) if here in order else -1
    return {
        "place": place + 1,
        "of": len(order),
        "previous": ids[order[place - 1]] if place > 0 else None,
        "next": ids[order[place + 1]] if 0 <= place < len(order) - 1 else None,
    }


def _attributes(workspace: Workspace, query_id: str) -> dict[str, Any]:
    if workspace.attributes is None and workspace.topics is None:
        return {}
    known = workspace.known().over([query_id])
    values = {name: known.column(name).to_pylist()[0] for name in known.names}
    return {name: value for name, value in values.items() if value is not None}


def _notes(workspace: Workspace, lists: Sequence[Judged]) -> list[Note]:
    notes: list[Note] = []
    for judged in lists:
        run = judged.run.name
        if not judged.present[0]:
            notes.append(Note("nothing-returned", f"{run} has nothing for this topic: it counts as an empty list."))
        if not judged.ranked:
            notes.append(Note("no-scores", f"{run} has no scores: its documents are a set, and no order is shown."))
    if lists and workspace.texts is None:
        texts = "No texts of documents are open: only their ids are shown. Open a collection to read them."
        notes.append(Note("no-texts", texts))
    return notes
