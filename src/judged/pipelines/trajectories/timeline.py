"""`explain`: the steps of the trials of one question, what each search found, and which searches were wasted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.trajectories.judging import judge_system
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.pipelines.trajectories.where import PARTS, Required, where
from judged.results import ANY, COUNT, NUMBER, SHARE, TEXT, Answer, Column, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted
from judged.results.spelling import use_one_of
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import TrajectoryMeasure
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.searches import LateSearches, RedundantSearches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.pipelines.trajectories.judging import JudgedSystem
    from judged.results import Block
    from judged.scoring.measures.base import AnswerMeasure

_MAX_DOCUMENTS = 10  # shown documents of a step
_STEPS_NOTE = (
    "Redundant: no new relevant document although some are missing. Repeated: the query or the list of an earlier"
    " search. Late: after all relevant documents. Unused: no document opened or cited."
)


class TimelineStep(NamedTuple):
    """One step of one trial; numbers of documents are None if they are not recorded."""

    run: str
    trial: int
    step: int
    kind: str
    query: str | None
    documents: tuple[str, ...] | None
    relevant: int | None
    new: int | None  # relevant documents that no earlier search of the trial returned
    recall: float  # after this step; NaN without relevant documents, and for steps that are no search
    flags: tuple[str, ...]  # failed, redundant, repeated, late, unused


class TrialOutcome(NamedTuple):
    """Answer of one trial."""

    run: str
    trial: int
    status: str
    right: bool | None
    part: str  # key of `PARTS`; empty for a right answer
    answer: str | None
    citations: tuple[str, ...]
    confidence: float


class TrialScore(NamedTuple):
    """Score of one trial."""

    measure: str
    run: str
    trial: int
    score: float


@dataclass(frozen=True, eq=False, repr=False)
class Timeline(Answer):
    """Steps and answers of the trials of one question, and values of measures."""

    kind: ClassVar[str] = "timeline"
    main: ClassVar[str] = "steps"

    query_id: str
    question: str | None
    steps: tuple[TimelineStep, ...]
    outcomes: tuple[TrialOutcome, ...]
    relevant: tuple[str, ...]  # relevant documents of the question
    scores: tuple[TrialScore, ...]

    @property
    def title(self) -> str:
        """Title of a page."""
        return f"Question {self.query_id}"

    @property
    def headline(self) -> Headline:
        """Return the number of right trials."""
        verdicts = [outcome.right for outcome in self.outcomes if outcome.right is not None]
        if not verdicts:
            return Headline("unknown", "no verdict", "No answer to this question has a verdict.")
        trials = counted(len(verdicts), "trial")
        value = sum(verdicts) / len(verdicts)
        return Headline("info", "accuracy", f"{sum(verdicts)} of {trials} right.", "right answers", value, SHARE)

    def facts(self) -> Mapping[str, Any]:
        """Return the question and its relevant documents."""
        return {"query_id": self.query_id, "question": self.question, "relevant": list(self.relevant)}

    def blocks(self) -> tuple[Block, ...]:
        """Return the answers, the steps, and the scores."""
        rows, outcomes = self.steps, self.outcomes
        several = len({outcome.run for outcome in outcomes}) > 1
        system: Any = ("run", TEXT, "system") if several else "run"
        document_texts = [_documents(row, set(self.relevant)) for row in rows]
        step_columns = (
            *columns_of(rows, system, ("trial", COUNT), ("step", COUNT), ("kind", TEXT), ("query", TEXT)),
            Column("documents", [list(row.documents or ()) for row in rows], only="json"),
            Column("shown", document_texts, TEXT, "documents (* relevant)", only="people", below=True),
            *columns_of(rows, ("relevant", COUNT), ("new", COUNT, "new relevant"), ("recall", NUMBER, "recall so far")),
            Column("flags", [", ".join(row.flags) for row in rows], TEXT, "wasted"),
        )
        groups = [f"{row.run}, trial {row.trial}" if several else f"trial {row.trial}" for row in rows]
        answer_columns = (
            *columns_of(outcomes, system, ("trial", COUNT), ("status", TEXT), ("right", ANY), "part"),
            Column("lost", [PARTS.get(row.part, "") for row in outcomes], TEXT, only="people"),
            *columns_of(outcomes, ("answer", TEXT)),
            Column("citations", [", ".join(row.citations) for row in outcomes], TEXT),
            *columns_of(outcomes, ("confidence", SHARE)),
        )
        fields = (("measure", TEXT), system, ("trial", COUNT), ("score", NUMBER))
        scores = Table("scores", columns_of(self.scores, *fields), "Scores of trials", labels=3)
        text = f"Question {self.query_id}" + (f": {self.question}" if self.question else "")
        relevant = f"{counted(len(self.relevant), 'relevant document')}: {', '.join(self.relevant[:_MAX_DOCUMENTS])}"
        return (
            Sentences((text, relevant)),
            Table("answers", answer_columns, "Answers", labels=2),
            Table("steps", step_columns, "Steps", _STEPS_NOTE, labels=4, groups=groups),
            *([scores] if self.scores else []),
        )


def _documents(row: TimelineStep, relevant: set[str]) -> str:
    if row.documents is None:
        return "not recorded" if row.kind == "search" else ""
    names = [f"{doc}*" if doc in relevant else doc for doc in row.documents[:_MAX_DOCUMENTS]]
    more = len(row.documents) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def explain(
    trajectories: Any,
    query_id: str,
    qrels: Any = None,
    measures: Any = (),
    *,
    runs: Iterable[str] | None = None,
    accuracy: str | AnswerMeasure | None = None,
    required: Required = "any",
    rel: float = 1.0,
) -> Timeline:
    """Show the trials of one question: each step with its documents, wasted searches, and the answers.

    Parameters
    ----------
    trajectories
        `Trajectories`, or any input of `Trajectories.of`.
    query_id
        The question.
    qrels
        Judgments of documents. Default: documents of hops are relevant.
    measures
        Measures of trajectories whose scores by trial are shown.
    runs
        Systems to show. Default: all.
    accuracy, required, rel
        As for `where`.

    Raises
    ------
    InputError
        If the question or a system does not exist.

    Examples
    --------
    >>> trials = [{"query_id": "q", "correct": True, "answer": "7",
    ...            "steps": [{"kind": "search", "query": "seven", "documents": ["d2", "d1"]}]}]
    >>> timeline = explain(trials, "q", {"q": {"d1": 1}}, "SeenP")
    >>> timeline.steps[0].new, timeline.steps[0].recall, timeline.scores
    (1, 1.0, (TrialScore(measure='SeenP', run='agent', trial=1, score=0.5),))
    """
    complete = Trajectories.of(trajectories)
    if query_id not in complete.query_ids:
        raise InputError(f"there is no question {query_id!r}", fix=use_one_of(complete.query_ids), path=complete.where)
    judgments = None if qrels is None else Qrels.of(qrels)
    names = [measures] if isinstance(measures, (str, TrajectoryMeasure)) else measures
    parsed: list[Any] = [parse(name) if isinstance(name, str) else name for name in names]
    if others := [measure for measure in parsed if not isinstance(measure, TrajectoryMeasure)]:
        raise InputError(f"{others[0]} is not a measure of trajectories", fix="use SeenR, for example")
    parts: dict[tuple[str, int], str] = {}
    with suppress(InputError):  # no answer has a verdict
        losses = where(complete, judgments, accuracy=accuracy, required=required, rel=rel).losses
        parts = {(loss.run, loss.trial): loss.part for loss in losses if loss.query_id == query_id}
    selected = complete.of_topics([query_id])
    steps, outcomes, scores = list[TimelineStep](), list[TrialOutcome](), list[TrialScore]()
    relevant: tuple[str, ...] = ()
    for run in runs or selected.run_names:
        system, of_run = judge_system(selected, run, judgments, accuracy=accuracy), selected.of_run(run)
        documents, trials = system.documents, system.trial_numbers.tolist()
        relevant = tuple(documents.names[documents.label_doc[documents.label_grade >= rel]].tolist())
        steps += _steps(of_run, run, system, rel)
        outcomes += _outcomes(of_run, run, system, parts)
        for measure in parsed:
            values = measure.trial_scores(system.trajectories).tolist()
            scores += (TrialScore(str(measure), run, *row) for row in zip(trials, values, strict=True))
    question = next(iter(selected["trials"]["question"].drop_null().to_pylist()), None)
    return Timeline(query_id, question, tuple(steps), tuple(outcomes), relevant, tuple(scores))


def _steps(of_run: Trajectories, run: str, system: JudgedSystem, rel: float) -> Iterator[TimelineStep]:
    judged = system.trajectories
    marks = {
        "failed": judged.failed,
        "late": LateSearches(rel=rel).wasted(judged),
        "redundant": RedundantSearches(rel=rel).wasted(judged),
        "repeated": judged.repeated,
        "unused": ~judged.used & judged.records_use,
    }
    new, so_far = judged.new_relevant(rel), judged.relevant_so_far(rel)
    relevant = np.bincount(judged.search, judged.grade >= rel, minlength=len(new))
    recall = divide(so_far, judged.num_relevant(rel)[judged.search_trial], math.nan)
    search_keys = zip(system.trial_numbers[judged.search_trial].tolist(), system.steps.tolist(), strict=True)
    search_of = {key: row for row, key in enumerate(search_keys)}
    for step in of_run["steps"].sort_by([("trial", "ascending"), ("step", "ascending")]).to_pylist():
        row, docs = search_of.get((step["trial"], step["step"])), step["documents"]
        counts = (None, None) if row is None or docs is None else (int(relevant[row]), int(new[row]))
        yield TimelineStep(
            run, step["trial"], step["step"], step["kind"], step["query"], None if docs is None else tuple(docs),
            *counts, math.nan if row is None else float(recall[row]),
            () if row is None else tuple(name for name, mark in marks.items() if mark[row]),
        )  # fmt: skip


def _outcomes(
    of_run: Trajectories, run: str, system: JudgedSystem, parts: Mapping[tuple[str, int], str]
) -> Iterator[TrialOutcome]:
    citations: dict[int, list[str]] = {}
    for row in of_run["citations"].to_pylist():
        citations.setdefault(row["trial"], []).append(row["doc_id"])
    right = dict(zip(system.trial_numbers.tolist(), system.trajectories.right.tolist(), strict=True))
    for row in of_run["trials"].sort_by("trial").to_pylist():
        trial, confidence = row["trial"], math.nan if row["confidence"] is None else row["confidence"]
        yield TrialOutcome(
            run, trial, row["status"], None if math.isnan(right[trial]) else bool(right[trial]),
            parts.get((run, trial), ""), row["answer"], tuple(citations.get(trial, ())), confidence,
        )  # fmt: skip
