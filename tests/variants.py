"""Every measure with its defaults and with each of its parameters varied, and lists on which all of them work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import judged
from families import NEEDED, VARIED, WITH, lookup
from judged import Documents, Judged
from judged.scoring.judging import judge_list
from judged.scoring.measures.registry import REGISTRY
from strategies import facts

if TYPE_CHECKING:
    from judged.scoring.measures import Measure


def judge(qrels: Any, run: Any, **policies: Any) -> Judged:
    """Judge with documents of which everything is known that some measure asks for."""
    return judged.judge(qrels, run, **{"documents": facts(qrels, run), **policies})


def listed(grades: Any, missing: Any = ()) -> Judged:
    """Judge a list of grades, with documents of which everything is known."""
    return replace(judge_list(grades, missing=missing), documents=Documents.of(facts()))


def default(name: str) -> Measure:
    entry = REGISTRY[name]
    return entry.cls(**{p.name: lookup(NEEDED, name, p.name) for p in entry.all_parameters if p.required})


def variants(name: str) -> list[Measure]:
    """Return the measure with its defaults, and with other values of each parameter."""
    base = default(name)
    varied = [
        base.replace(**{p.name: value}, **WITH.get(f"{name}.{p.name}", WITH.get(p.name, {})))
        for p in base.entry.all_parameters
        for value in lookup(VARIED, name, p.name)
    ]
    return [base, *varied]


OF_RANKINGS = [name for name, entry in REGISTRY.items() if entry.properties.reads == "rankings"]
"""The others read what systems answered: tests/scoring/measures/test_answers.py."""
ALL = [measure for name in OF_RANKINGS for measure in variants(name)]
SCORED = [measure for measure in ALL if getattr(measure, "undefined", 0.0) == 0.0]
"""Those whose topics without a relevant document score 0, as the declared range has it."""

SHARES = 8
shares = st.integers(0, SHARES - 1)
"""Each generated example tests an eighth of the measures, since all measures would take an hour."""


def some(measures: list[Measure], share: int) -> list[Measure]:
    return measures[share::SHARES]
