"""A small worked example for each measure: which list, and how its score comes about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.scoring.explanation import explain_list
from judged.scoring.judging import judge_list
from judged.web.evaluator.lists import read_list, read_missing, write_grade
from judged.web.evaluator.measures import USUAL, unavailable

if TYPE_CHECKING:
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
