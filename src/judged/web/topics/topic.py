"""The page of one topic as an answer: everything about it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.diagnosis.diff.answer import ScorePair
from judged.errors import InputError
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Show, Table, columns_of, significant
from judged.results.notes import Note
from judged.scoring.evaluation.inputs import DEFAULT_MEASURES
from judged.web.answers import PageAnswer
from judged.web.topics.causes import CANDIDATES, losses, reaches
from judged.web.topics.judged_topic import (
    check_topic,
    difference,
    documents,
    explained,
    grades_of,
    judged_topic,
    score,
    state_of,
    tools,
)
from judged.web.topics.regrading import kept_grades, regraded
from judged.web.topics.topic_list import facts_of, ordered, rel_of, run_scores
from judged.web.workspace import concerning, remembered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.diff import TopicDiff
    from judged.scoring.explanation import Explanation
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.web.topics.topic_list import AskedTopic
    from judged.web.workspace import Workspace


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
            better = lists[pair.side > 0].run.name if pair.side else None if math.isnan(pair.difference) else ""
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
