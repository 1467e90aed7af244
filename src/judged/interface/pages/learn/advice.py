"""The chooser: `advise` as a short set of questions, on what is open or on judgments as somebody describes them.

For these, judgments and a run are made up from the answers, so that the rules of advice can look at them. Only what was
asked is true of them. A rule that rests on anything else must not be believed: see `FACTS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import Field

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.interface.pages.evaluator.lists import read_list, read_missing, write_grade
from judged.interface.pages.evaluator.state import USUAL, unavailable
from judged.interface.pages.problems import Parameters
from judged.scoring.advice import RULES, Advice, advise
from judged.scoring.advice.rules import TASKS, fact_text
from judged.scoring.explanation import explain_list
from judged.scoring.judging import judge_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.interface.pages.workspace import Workspace
    from judged.scoring.explanation import Explanation
    from judged.scoring.judging.join import Grades
    from judged.scoring.measures.base import Entry, Measure


_GIVEN: dict[str, Any] = USUAL | {"cutoff": 5, "max": 3, "n": 1000, "L": 1000}
"""What the example takes for parameters that must be given."""
_USUAL: dict[str, dict[str, Any]] = {
    name: {"cutoff": 5} for name in ("nDCG", "DCG", "IdealDCG", "CG", "Judged", "Unjudged")
}
"""Other parameters, where the well-known example has them."""

_TYPED: dict[str, tuple[str, str]] = {
    "binary": ("1,0,1,0,1", "1"),
    "graded": ("3,0,2,1,0", "2"),
    "user model": ("0,2,3,0,1", ""),
    "incomplete judgments": ("1,-,0,1,-", "1,0"),
    "RR": ("0,1,0,1,1", ""),
}
"""Lists that readers may edit: in rank order, and what was not returned."""
_LISTS: dict[str, Grades] = {
    "diversity": ((1, 0), (0, 0), (1, 1)),
    "preferences and assessors": ((1, 0), (0, 0), (1, 1)),
    "facts about documents": (1.0, 0.0, 1.0),
}
"""Lists that need more than a grade for each document."""
_FACTS: dict[str, dict[str, list[Any]]] = {
    "TBG": {"length": [600, 300, 900]},
    "UMeasure": {"length": [200, 100, 300]},
    "AWRF": {"group": ["a", "a", "b"]},
}


@dataclass(frozen=True)
class Example:
    """A measure on a small list, worked out."""

    explanation: Explanation
    # one a returned document: `rank`, `doc`; `grade` as it is shown, a dash without a judgment, several where subtopics
    # or assessors differ; `facts` about it; whether it is `relevant`, None without a judgment
    rows: list[dict[str, Any]]
    # typed, missing: as the evaluator takes them; empty where the example cannot be typed
    typed: str = ""
    missing: str = ""
    gone: tuple[str, ...] = ()  # the grades of judged documents that were not returned
    fixed: str = ""  # why the example cannot be edited; empty where it can

    @property
    def measure(self) -> str:
        """The canonical name, with the parameters of the example."""
        return str(self.explanation.measure)

    @property
    def score(self) -> float:
        """What the measure makes of the list."""
        return self.explanation.score

    def to_dict(self) -> dict[str, Any]:
        """Give it for JSON, with every step of the calculation."""
        own = {name: value for name, value in vars(self).items() if name != "explanation"}
        return {"measure": self.measure, "score": self.score, **own, "explanation": self.explanation.to_dict()}


def example_of(entry: Entry) -> Example | None:
    """Make the worked example of a measure; None for one that reads answers, or needs what is not known here."""
    required = {parameter.name: _GIVEN.get(parameter.name) for parameter in entry.all_parameters if parameter.required}
    if None in required.values() or entry.properties.reads_answers:
        return None
    measure = entry.cls(**required, **_USUAL.get(entry.name, {}))
    fixed = unavailable().get(entry.name, "")
    if entry.family not in _LISTS:
        kind = entry.family if entry.properties.graded or entry.family == "incomplete judgments" else "binary"
        typed, missing = _TYPED.get(entry.name) or _TYPED.get(kind) or _TYPED["graded"]
        return typed_example(measure, typed, missing, fixed=fixed)
    grades, facts = _LISTS[entry.family], _FACTS.get(entry.name, {})
    rows: list[dict[str, Any]] = []
    for rank, grade in enumerate(grades, 1):
        text = ", ".join(f"{part:g}" for part in (grade if isinstance(grade, tuple) else (grade,)))
        known = [f"{name} {values[rank - 1]}" for name, values in facts.items()]
        relevant = bool(text.strip("0, "))
        rows.append({"rank": rank, "doc": f"d{rank}", "grade": text, "facts": known, "relevant": relevant})
    explanation = explain_list(judge_list(grades, facts=facts or None), measure)
    return Example(explanation, rows, fixed=fixed or "it needs more than grades")


def typed_example(measure: Measure, typed: str, missing: str = "", *, fixed: str = "") -> Example:
    """Work a measure out on a list as the evaluator takes it.

    >>> from judged.scoring.measures import parse
    >>> round(typed_example(parse("AP"), "1,0,1,0,1", "1").score, 3)
    0.567
    """
    items, gone = read_list(typed, "list"), read_missing(missing)
    rows: list[dict[str, Any]] = []
    for rank, item in enumerate(items, 1):
        relevant = None if item.grade is None or item.grade < 0 else item.grade > 0
        text = "–" if item.grade is None else write_grade(item.grade)
        rows.append({"rank": rank, "doc": item.doc, "grade": text, "facts": (), "relevant": relevant})
    explanation = explain_list(judge_list([item.grade for item in items], missing=gone), measure)
    return Example(explanation, rows, typed, missing, tuple(map(write_grade, gone)), fixed)


FACTS = frozenset({
    "grades", "rel", "single", "relevant", "judged", "under_10", "over_10", "over_100", "not_relevant", "labels",
    "runs", "scores", "lengths", "judged_10", "judged_100", "judged_depth",
})  # fmt: skip
"""The facts that the answers settle, by their names in `judged.scoring.advice.rules.FACTS`."""

GRADES = {"binary": (1.0,), "three": (1.0, 2.0), "four": (2.0, 3.0), "fine": (0.2, 0.4, 0.6, 0.8)}
RELEVANT = {"one": 1, "few": 4, "many": 30, "hundreds": 150}

_FOUND = ("n", "grades", "rel", "relevant", "judged", "single", "not_relevant", "labels")
_FOUND_OF_RUNS = ("runs", "lengths", "judged_10", "ties", "missing")
_TOPICS = 12  # so that every grade of a scale occurs where a topic has one relevant document
_DEEP, _TOP = 120, 20  # documents that are judged not relevant, or judged at all
_LABELS = {"diversity": ("1", "2"), "assessors": ("anna", "ben"), "preferences": ("anna 1", "ben 1")}

ANSWERS = {
    "grades": {"binary": "relevant or not", "three": "grades 0 to 2", "four": "grades 0 to 3", "fine": "finer grades"},
    "relevant": {"one": "one", "few": "a few (2 to 9)", "many": "tens", "hundreds": "more than a hundred"},
    "judged": {
        "deep": "nearly all of the first hundred",
        "top": "the first ten or so of each system",
        "holes": "not even all of the first ten",
        "positives": "only the relevant ones are known",
    },
    "length": {"10": "10", "100": "100", "1000": "1000 or more"},
}
"""The answers in words to what `AskedAdvice` asks about judgments that are described."""


class AskedAdvice(Parameters):
    """What the chooser is asked."""

    task: Literal["", *TASKS] = Field("", description="What the system is for; what the data show without it.")  # type: ignore[valid-type]
    about: Literal["open", "described"] = Field(
        "open", description="Advice on what is open, or on judgments as the answers below describe them."
    )
    grades: Literal["binary", "three", "four", "fine"] = Field("binary", description="How is relevance judged?")
    relevant: Literal["one", "few", "many", "hundreds"] = Field(
        "few", description="How many documents are relevant to a query?"
    )
    judged: Literal["deep", "top", "holes", "positives"] = Field("top", description="What was judged?")
    length: Literal["10", "100", "1000"] = Field("100", description="How long are the ranked lists?")


def advice_on(workspace: Workspace, asked: AskedAdvice) -> Advice:
    """Give advice on what is open, or on judgments that are described."""
    if asked.about == "described":
        return workspace.remember(("described", tuple(asked.model_dump().values())), lambda: on_described(asked))
    runs = list(workspace.lists.values())
    advice: Advice = workspace.remember(("advice",), lambda: advise(workspace.qrels, runs))
    return replace(advice.for_task(asked.task) if asked.task else advice, inputs=("QRELS", "RUN"))


def on_described(asked: AskedAdvice) -> Advice:
    """Give the advice on described judgments, without what rests on facts that nobody asked for.

    They have no numbers, only the conditions of rules that hold.
    """
    qrels, run = described(asked)
    advice = advise(qrels, run, asked.task or None)
    rules = {rule.id: rule for rule in RULES if {name for one in rule.when for name in one.facts} <= FACTS}
    entries = tuple(
        replace(entry, evidence="", facts=tuple(condition.name for condition in rule.when))
        for entry in advice.recommendations
        if (rule := rules.get(entry.rule))
    )
    return replace(advice, recommendations=entries, inputs=("QRELS", "RUN"))


def choices(workspace: Workspace, asked: AskedAdvice, advice: Advice) -> dict[str, Any]:
    """Say what else may be chosen, and what was found in the data that are open."""
    known = AskedAdvice.model_fields
    is_open, has_runs = asked.about == "open", bool(workspace.run_names)
    possible = {advice.task.name, *(other.name for other in advice.other_tasks)}
    return {
        "about": asked.about,
        "title": workspace.title,  # what is open
        "tasks": [
            {"name": task.name, "what": task.description, "fits": task.name in possible or not is_open}
            for task in TASKS.values()
        ],
        "questions": [
            {"name": name, "text": known[name].description, "answers": answers, "answer": getattr(asked, name)}
            for name, answers in ANSWERS.items()
        ],
        "found": [fact_text(name, advice.profile) for name in (*_FOUND, *has_runs * _FOUND_OF_RUNS)] if is_open else [],
        # the measures of the leaderboard; none where there is no run, or other data are described
        "leaderboard": ",".join(map(str, advice.measures)) if is_open and has_runs else "",
    }


def described(asked: AskedAdvice) -> tuple[Qrels, Run]:
    """Make judgments and a run of which the answers are true.

    >>> qrels, run = described(AskedAdvice(relevant="one"))
    >>> len(qrels), len(run.table)
    (240, 1200)
    """
    rows = [
        {"query_id": str(topic), "doc_id": doc, "iteration": name, "relevance": grade}
        for topic in range(_TOPICS)
        for doc, grade in _judgments(asked, topic)
        for name in _LABELS.get(asked.task, ("0",))
    ]
    qrels = Qrels(pa.Table.from_pylist(rows))
    returned = {str(topic): _returned(asked, topic) for topic in range(_TOPICS)}
    if asked.task == "set":
        return qrels, Run.of({topic: set(docs) for topic, docs in returned.items()})
    scored = {topic: {doc: -float(rank) for rank, doc in enumerate(docs, 1)} for topic, docs in returned.items()}
    return qrels, Run.of(scored)


def _judgments(asked: AskedAdvice, topic: int) -> Iterator[tuple[str, float]]:
    grades, relevant = GRADES[asked.grades], RELEVANT[asked.relevant]
    for at in range(relevant):
        yield f"r{at}", grades[(at + topic) % len(grades)]
    if asked.grades == "four":
        yield "w0", 1.0  # below the level that counts on this scale
    others = {"deep": _DEEP, "positives": 0}.get(asked.judged, max(_TOP - relevant - (asked.grades == "four"), 1))
    for at in range(others):
        yield f"n{at}", 0.0


def _returned(asked: AskedAdvice, topic: int) -> list[str]:
    """Rank what is judged first, as far as it is judged; then what nobody judged."""
    length = int(asked.length)
    judged = [doc for doc, _ in _judgments(asked, topic)]
    if asked.judged == "holes":
        judged = [doc for at, known in enumerate(judged) for doc in ([known, f"u{at}"] if at % 2 else [known])]
    docs = judged[: _TOP if asked.judged in {"top", "holes"} else length]
    return [*docs, *(f"x{at}" for at in range(length))][:length]
