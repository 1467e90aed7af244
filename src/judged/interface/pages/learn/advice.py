"""The chooser: `advise` as a few questions, on the open data or on judgments that the user describes.

For described judgments, qrels and a run are synthesized from the answers, as input of the rules of advice. They are
realistic only for facts in the answers. Rules that use other facts do not apply: see `DESCRIBED_FACTS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import Field

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.interface.pages.evaluator.lists import read_list, read_missing, write_grade
from judged.interface.pages.evaluator.state import EXAMPLE_PARAMETERS, unavailable
from judged.interface.pages.problems import Parameters
from judged.scoring.advice import RULES, Advice, advise
from judged.scoring.advice.rules import TASKS, fact_text
from judged.scoring.explanation import Explanation, explain_list
from judged.scoring.judging import judge_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.interface.pages.workspace import Workspace
    from judged.scoring.judging.join import Grades
    from judged.scoring.measures.base import Entry, Measure


_REQUIRED_PARAMETERS: dict[str, Any] = EXAMPLE_PARAMETERS | {"cutoff": 5, "max": 3, "n": 1000, "L": 1000}
"""Values of required parameters in examples."""
_OPTIONAL_PARAMETERS: dict[str, dict[str, Any]] = {
    name: {"cutoff": 5} for name in ("nDCG", "DCG", "IdealDCG", "CG", "Judged", "Unjudged")
}
"""Values of optional parameters in examples, as in well-known examples of the measure."""

_EDITABLE_LISTS: dict[str, tuple[str, str]] = {
    "binary": ("1,0,1,0,1", "1"),
    "graded": ("3,0,2,1,0", "2"),
    "user model": ("0,2,3,0,1", ""),
    "incomplete judgments": ("1,-,0,1,-", "1,0"),
    "RR": ("0,1,0,1,1", ""),
}
"""Editable lists: grades in rank order, and of documents that were not returned."""
_FIXED_LISTS: dict[str, Grades] = {
    "diversity": ((1, 0), (0, 0), (1, 1)),
    "preferences and assessors": ((1, 0), (0, 0), (1, 1)),
    "facts about documents": (1.0, 0.0, 1.0),
}
"""Lists with more than one grade per document; they cannot be edited."""
_DOCUMENT_FACTS: dict[str, dict[str, list[Any]]] = {
    "TBG": {"length": [600, 300, 900]},
    "UMeasure": {"length": [200, 100, 300]},
    "AWRF": {"group": ["a", "a", "b"]},
}


@dataclass(frozen=True)
class Example:
    """Worked example: a measure on a small list."""

    explanation: Explanation
    # per returned document: `rank`, `doc`; `grade` as text, a dash if unjudged, several with subtopics or assessors;
    # `facts`; `relevant`, None if unjudged
    rows: list[dict[str, Any]]
    # in the format of the evaluator; empty if the example cannot be edited
    typed: str = ""
    missing: str = ""
    missing_grades: tuple[str, ...] = ()  # grades of judged documents that were not returned
    fixed: str = ""  # why the example cannot be edited; empty if it can

    @property
    def measure(self) -> str:
        """Canonical name, with the parameters of the example."""
        return str(self.explanation.measure)

    @property
    def score(self) -> float:
        """Score of the list."""
        return self.explanation.score

    def to_dict(self) -> dict[str, Any]:
        """Return the example for JSON, with every step of the calculation."""
        values = {name: value for name, value in vars(self).items() if name != "explanation"}
        return {"measure": self.measure, "score": self.score, **values, "explanation": self.explanation.to_dict()}


def example_of(entry: Entry) -> Example | None:
    """Return the worked example of a measure; None if it reads answers or needs unknown parameters."""
    required_names = [parameter.name for parameter in entry.all_parameters if parameter.required]
    required = {name: _REQUIRED_PARAMETERS.get(name) for name in required_names}
    if None in required.values() or entry.properties.reads != "rankings":
        return None
    measure = entry.cls(**required, **_OPTIONAL_PARAMETERS.get(entry.name, {}))
    fixed = unavailable().get(entry.name, "")
    if entry.family not in _FIXED_LISTS:
        kind = entry.family if entry.properties.graded or entry.family == "incomplete judgments" else "binary"
        typed, missing = _EDITABLE_LISTS.get(entry.name) or _EDITABLE_LISTS.get(kind) or _EDITABLE_LISTS["graded"]
        return typed_example(measure, typed, missing, fixed=fixed)
    grades, facts = _FIXED_LISTS[entry.family], _DOCUMENT_FACTS.get(entry.name, {})
    rows: list[dict[str, Any]] = []
    for rank, grade in enumerate(grades, 1):
        text = ", ".join(f"{part:g}" for part in (grade if isinstance(grade, tuple) else (grade,)))
        fact_texts = [f"{name} {values[rank - 1]}" for name, values in facts.items()]
        relevant = bool(text.strip("0, "))
        rows.append({"rank": rank, "doc": f"d{rank}", "grade": text, "facts": fact_texts, "relevant": relevant})
    explanation = explain_list(judge_list(grades, facts=facts or None), measure)
    return Example(explanation, rows, fixed=fixed or "also requires data other than grades")


def typed_example(measure: Measure, typed: str, missing: str = "", *, fixed: str = "") -> Example:
    """Compute the example of a measure on a list in the format of the evaluator.

    >>> from judged.scoring.measures import parse
    >>> round(typed_example(parse("AP"), "1,0,1,0,1", "1").score, 3)
    0.567
    """
    documents, missing_grades = read_list(typed, "list"), read_missing(missing)
    rows: list[dict[str, Any]] = []
    for rank, document in enumerate(documents, 1):
        relevant = None if document.grade is None or document.grade < 0 else document.grade > 0
        text = "–" if document.grade is None else write_grade(document.grade)
        rows.append({"rank": rank, "doc": document.doc, "grade": text, "facts": (), "relevant": relevant})
    explanation = explain_list(judge_list([document.grade for document in documents], missing=missing_grades), measure)
    return Example(explanation, rows, typed, missing, tuple(map(write_grade, missing_grades)), fixed)


DESCRIBED_FACTS = frozenset({
    "grades", "rel", "single", "relevant", "judged", "under_10", "over_10", "over_100", "not_relevant", "labels",
    "runs", "scores", "lengths", "judged_10", "judged_100", "judged_depth",
})  # fmt: skip
"""Facts that the answers determine, by their names in `judged.scoring.advice.rules.FACTS`."""

GRADES = {"binary": (1.0,), "three": (1.0, 2.0), "four": (2.0, 3.0), "fine": (0.2, 0.4, 0.6, 0.8)}
RELEVANT = {"one": 1, "few": 4, "many": 30, "hundreds": 150}

_SHOWN_FACTS = ("n", "grades", "rel", "relevant", "judged", "single", "not_relevant", "labels")
_SHOWN_RUN_FACTS = ("runs", "lengths", "judged_10", "ties", "missing")
_TOPICS = 12  # enough for every grade to occur even with one relevant document per topic
_DEEP, _TOP = 120, 20  # documents judged not relevant, or judged at all
_LABELS = {"diversity": ("1", "2"), "assessors": ("anna", "ben"), "preferences": ("anna 1", "ben 1")}

ANSWERS = {
    "grades": {"binary": "relevant or not", "three": "grades 0 to 2", "four": "grades 0 to 3", "fine": "finer grades"},
    "relevant": {"one": "one", "few": "a few (2 to 9)", "many": "tens", "hundreds": "more than a hundred"},
    "judged": {
        "deep": "nearly all of the top-100 documents",
        "top": "about the top-10 documents of each system",
        "holes": "only some of the top-10 documents",
        "positives": "only relevant documents",
    },
    "length": {"10": "10", "100": "100", "1000": "1000 or more"},
}
"""Answers to the questions of `AdviceQuery` on described judgments, as text."""


class AdviceQuery(Parameters):
    """Parameters of the chooser."""

    task: Literal["", *TASKS] = Field("", description="Task of the system. Default: inferred from the data.")  # type: ignore[valid-type]
    about: Literal["open", "described"] = Field(
        "open", description="Subject of the advice: the open data, or judgments that the other parameters describe."
    )
    grades: Literal["binary", "three", "four", "fine"] = Field("binary", description="How is relevance judged?")
    relevant: Literal["one", "few", "many", "hundreds"] = Field(
        "few", description="How many documents are relevant to a query?"
    )
    judged: Literal["deep", "top", "holes", "positives"] = Field("top", description="Which documents were judged?")
    length: Literal["10", "100", "1000"] = Field("100", description="How long are the ranked lists?")


def advice_on(workspace: Workspace, query: AdviceQuery) -> Advice:
    """Return advice on the open data, or on described judgments."""
    if query.about == "described":
        return workspace.cached(("described", tuple(query.model_dump().values())), lambda: advise_on_description(query))
    runs = list(workspace.lists.values())
    advice: Advice = workspace.cached(("advice",), lambda: advise(workspace.qrels, runs))
    return replace(advice.for_task(query.task) if query.task else advice, inputs=("QRELS", "RUN"))


def advise_on_description(query: AdviceQuery) -> Advice:
    """Return advice on described judgments, without rules that use facts not asked for.

    The advice contains the conditions of rules, not numbers, which would be those of synthesized data.
    """
    qrels, run = synthesize(query)
    advice = advise(qrels, run, query.task or None)
    facts_of = {rule.id: {name for condition in rule.when for name in condition.facts} for rule in RULES}
    rules = {rule.id: rule for rule in RULES if facts_of[rule.id] <= DESCRIBED_FACTS}
    entries = tuple(
        replace(entry, evidence="", facts=tuple(condition.name for condition in rule.when))
        for entry in advice.recommendations
        if (rule := rules.get(entry.rule))
    )
    return replace(advice, recommendations=entries, inputs=("QRELS", "RUN"))


def choices(workspace: Workspace, query: AdviceQuery, advice: Advice) -> dict[str, Any]:
    """Return the options of the form, and the facts found in the open data."""
    fields = AdviceQuery.model_fields
    is_open, has_runs = query.about == "open", bool(workspace.run_names)
    fact_names = (*_SHOWN_FACTS, *has_runs * _SHOWN_RUN_FACTS)
    possible = {advice.task.name, *(other.name for other in advice.other_tasks)}
    return {
        "about": query.about,
        "title": workspace.title,  # of the open data
        "tasks": [
            {"name": task.name, "description": task.description, "fits": task.name in possible or not is_open}
            for task in TASKS.values()
        ],
        "questions": [
            {"name": name, "text": fields[name].description, "answers": answers, "answer": getattr(query, name)}
            for name, answers in ANSWERS.items()
        ],
        "data_facts": [fact_text(name, advice.profile) for name in fact_names] if is_open else [],
        # measures for the leaderboard; empty without a run or for described data
        "leaderboard": ",".join(map(str, advice.measures)) if is_open and has_runs else "",
    }


def synthesize(query: AdviceQuery) -> tuple[Qrels, Run]:
    """Create judgments and a run that match the answers.

    >>> qrels, run = synthesize(AdviceQuery(relevant="one"))
    >>> len(qrels), len(run.table)
    (240, 1200)
    """
    rows = [
        {"query_id": str(topic), "doc_id": doc, "iteration": name, "relevance": grade}
        for topic in range(_TOPICS)
        for doc, grade in _judgments(query, topic)
        for name in _LABELS.get(query.task, ("0",))
    ]
    qrels = Qrels(pa.Table.from_pylist(rows))
    returned = {str(topic): _returned(query, topic) for topic in range(_TOPICS)}
    if query.task == "set":
        return qrels, Run.of({topic: set(docs) for topic, docs in returned.items()})
    scored = {topic: {doc: -float(rank) for rank, doc in enumerate(docs, 1)} for topic, docs in returned.items()}
    return qrels, Run.of(scored)


def _judgments(query: AdviceQuery, topic: int) -> Iterator[tuple[str, float]]:
    grades, relevant = GRADES[query.grades], RELEVANT[query.relevant]
    # Grades rotate with the topic, so that every grade occurs even with one relevant document per topic.
    for i in range(relevant):
        yield f"r{i}", grades[(i + topic) % len(grades)]
    if query.grades == "four":
        yield "w0", 1.0  # below the lowest relevant grade of this scale
    n_others = {"deep": _DEEP, "positives": 0}.get(query.judged, max(_TOP - relevant - (query.grades == "four"), 1))
    for i in range(n_others):
        yield f"n{i}", 0.0


def _returned(query: AdviceQuery, topic: int) -> list[str]:
    """Rank judged documents first, up to the judged depth, then unjudged ones."""
    length = int(query.length)
    judged = [doc for doc, _ in _judgments(query, topic)]
    if query.judged == "holes":
        judged = [doc for i, name in enumerate(judged) for doc in ([name, f"u{i}"] if i % 2 else [name])]
    docs = judged[: _TOP if query.judged in {"top", "holes"} else length]
    return [*docs, *(f"x{i}" for i in range(length))][:length]
