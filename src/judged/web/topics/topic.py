"""The page of one topic: everything that is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.diff import TopicDiff
from judged.diagnosis.diff.rows import ScorePair
from judged.errors import InputError, MeasureError
from judged.evaluation.inputs import DEFAULT_MEASURES
from judged.measures import parse
from judged.web.topics.causes import CANDIDATES, Loss, Reach, loss, reaches
from judged.web.topics.explained import Explained, Tools, explained, tools
from judged.web.topics.listing import facts_of, level_of, ordered, run_scores
from judged.web.topics.lists import (
    JudgedList,
    MissedDocument,
    can_be_compared,
    difference,
    missed,
    side_by_side,
    state_of,
)  # fmt: skip
from judged.web.topics.one import check_topic, judged_topic, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.topics.asked import AskedTopic
    from judged.web.workspace import Workspace


@dataclass(frozen=True)
class GradeCount:
    """How many documents of the topic have a grade."""

    grade: float
    state: str
    documents: int


@dataclass(frozen=True)
class MeasureScores:
    """The scores of the runs by one measure."""

    measure: str
    scores: tuple[float | None, ...]  # one a run
    difference: float | None  # the second less the first
    better: str  # the run with the better score; empty where there is none
    problem: str  # why there is no score


@dataclass(frozen=True)
class RunScore:
    """The score of one of all runs on this topic."""

    run: str
    score: float | None
    returned: int
    shown: str


@dataclass(frozen=True)
class TopicView:
    """Everything that the page of a topic shows."""

    query_id: str
    query: str
    attributes: dict[str, Any]  # what is known of it beside its text
    # measure, family: the chosen measure, and the name under which it is described
    measure: str
    family: str
    lower_is_better: bool
    relevant_from: float | None  # the least relevant grade; None: any above 0
    judged: int
    relevant: int
    grades: tuple[GradeCount, ...]  # falling
    # depth, candidates: how many documents of a list are shown; and how many are candidates for the loss
    depth: int
    candidates: int
    # place, of: its place in the list that the reader came from, from 1 (0: not there), and how long that is
    place: int
    of: int
    previous: str | None  # its neighbours in that list
    next: str | None  # its neighbours in that list
    runs: tuple[str, ...]  # those that are shown: none, one or two
    lists: tuple[JudgedList, ...]
    sentence: str  # what changed from the first list to the second
    missed: tuple[MissedDocument, ...]  # relevant documents that no list shows
    scores: tuple[MeasureScores, ...]
    all_runs: tuple[RunScore, ...]  # best first
    losses: tuple[Loss, ...]
    reaches: tuple[Reach, ...]
    explained: tuple[Explained, ...]  # one a list
    tools: tuple[Tools, ...]  # one a list, where it was asked for
    notes: tuple[str, ...]


def topic(workspace: Workspace, asked: AskedTopic) -> TopicView:
    """Give everything that is known of one topic."""
    check_topic(workspace, asked.id)
    key = ("topic", *((name, str(value)) for name, value in asked.model_dump().items()))
    return workspace.remember(key, lambda: _topic(workspace, asked))


def _topic(workspace: Workspace, asked: AskedTopic) -> TopicView:
    measure, explained_measure = parse(asked.measure), parse(asked.explain or asked.measure)
    level, runs = level_of(measure), _runs(workspace, asked)
    ones = [judged_topic(workspace, asked.id, run) for run in runs]
    found: TopicDiff | None = None
    if can_be_compared(ones, measure):
        found = difference(workspace, asked.id, runs, measure, asked.depth)
    grades, scores = _grades(workspace, asked.id), _scores(workspace, ones, measure)
    place, of, before, after = _neighbours(workspace, asked)
    scored = list(zip(ones, scores[0].scores, strict=True))
    return TopicView(
        query_id=asked.id,
        query=workspace.query(asked.id),
        attributes=_attributes(workspace, asked.id),
        measure=str(measure),
        family=measure.entry.name,
        lower_is_better=_lower(measure),
        relevant_from=facts_of(measure)["relevant_from"],
        judged=len(grades),
        relevant=sum(state_of(grade, level) == "relevant" for grade in grades.values()),
        grades=_grade_counts(grades, level),
        depth=asked.depth,
        candidates=CANDIDATES,
        place=place,
        of=of,
        previous=before,
        next=after,
        runs=tuple(runs),
        lists=side_by_side(workspace, scored, level, asked.depth, found),
        sentence="" if found is None else found.sentence,
        missed=missed(workspace, grades, ones, level, asked.depth),
        scores=scores,
        all_runs=_all_runs(workspace, asked.id, measure, runs),
        losses=tuple(loss(workspace, one, measure) for one in ones),
        reaches=tuple(reach for one, score in scored if one.present[0] for reach in reaches(one, measure, score)),
        explained=tuple(explained(one, explained_measure) for one in ones),
        tools=tuple(tools(workspace, asked.id, run, measure) for run in runs) if asked.tools else (),
        notes=_notes(workspace, ones),
    )


def _lower(measure: Measure) -> bool:
    return measure.properties.higher_is_better is False


def _runs(workspace: Workspace, asked: AskedTopic) -> list[str]:
    """Choose the runs that are shown: those that are asked for, or the first two."""
    names = workspace.run_names
    first = asked.first or (names[0] if names else "")
    second = asked.second
    if second is None and not asked.first:
        second = next((name for name in names if name != first), "")
    chosen = list(dict.fromkeys(name for name in (first, second) if name))
    if chosen and not names:
        raise InputError(f"no run {chosen[0]!r} is open", fix="open runs too: judged serve QRELS RUN")
    for name in chosen:
        workspace.judged(name)
    return chosen


def _scores(workspace: Workspace, ones: Sequence[Judged], measure: Measure) -> tuple[MeasureScores, ...]:
    """Score the runs by the chosen measure, and by some that are usual."""
    wanted = dict.fromkeys([measure, *map(parse, DEFAULT_MEASURES)])
    return tuple(_by_measure(workspace, ones, one) for one in wanted)


def _by_measure(workspace: Workspace, ones: Sequence[Judged], measure: Measure) -> MeasureScores:
    values: list[float] = []
    problem = ""
    for one in ones:
        try:
            values.append(_score(workspace, one, measure))
        except (MeasureError, InputError) as error:
            values.append(np.nan)
            problem = problem or str(error)
    gap, better = None, ""
    if len(values) == 2:
        pair = ScorePair(str(measure), values[0], values[1], _lower(measure))
        gap = number(pair.difference)
        better = "" if not pair.side else ones[pair.side > 0].run.name
    return MeasureScores(str(measure), tuple(map(number, values)), gap, better, problem)


def _score(workspace: Workspace, one: Judged, measure: Measure) -> float:
    if measure.properties.topics_apart:
        return float(measure(one)[0])
    every, _ = run_scores(workspace, measure, one.run.name)
    return float(every[workspace.qrels.index.codes[one.query_ids[0]]])


def _all_runs(workspace: Workspace, query_id: str, measure: Measure, shown: Sequence[str]) -> tuple[RunScore, ...]:
    at = workspace.qrels.index.codes[query_id]
    sides = dict(zip(shown, ("left", "right"), strict=False))
    made = [
        RunScore(
            run,
            number(float(run_scores(workspace, measure, run)[0][at])),
            int(workspace.judged(run).returned[at]),
            sides.get(run, ""),
        )
        for run in workspace.run_names
    ]
    sign = 1 if _lower(measure) else -1
    return tuple(sorted(made, key=lambda one: (one.score is None, sign * (one.score or 0.0))))


def _neighbours(workspace: Workspace, asked: AskedTopic) -> tuple[int, int, str | None, str | None]:
    order = ordered(workspace, asked).tolist()
    ids, here = workspace.query_ids, workspace.qrels.index.codes[asked.id]
    if here not in order:
        return 0, len(order), None, None
    at = order.index(here)
    before = ids[order[at - 1]] if at else None
    after = ids[order[at + 1]] if at + 1 < len(order) else None
    return at + 1, len(order), before, after


def _grades(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Give the grade of each judged document, the highest where there are several."""
    index, code = workspace.qrels.index, workspace.qrels.index.codes[query_id]
    first, last = np.searchsorted(index.topic, [code, code + 1]).tolist()
    return {index.row_names[row]: float(index.grade[row]) for row in range(first, last)}


def _grade_counts(grades: dict[str, float], level: float) -> tuple[GradeCount, ...]:
    known, counts = np.unique(np.array(list(grades.values())), return_counts=True)
    return tuple(
        GradeCount(grade, state_of(grade, level), count)
        for grade, count in reversed(list(zip(known.tolist(), counts.tolist(), strict=True)))
    )


def _attributes(workspace: Workspace, query_id: str) -> dict[str, Any]:
    if workspace.attributes is None and workspace.topics is None:
        return {}
    found = workspace.known().over([query_id])
    values = {name: found.column(name).to_pylist()[0] for name in found.names}
    return {name: value for name, value in values.items() if value is not None}


def _notes(workspace: Workspace, ones: Sequence[Judged]) -> tuple[str, ...]:
    made = [
        f"{one.run.name} has nothing for this topic: it counts as an empty list." for one in ones if not one.present[0]
    ]
    made += [
        f"{one.run.name} has no scores: its documents are a set, and no order is shown."
        for one in ones
        if not one.ranked
    ]
    if ones and workspace.texts is None:
        made.append("No texts of documents are open: only their ids are shown. Open a collection to read them.")
    return tuple(made)
