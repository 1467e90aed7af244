"""The chooser: `advise` as a short set of questions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from judged.advice import RULES, Advice, advise
from judged.advice.facts import fact
from judged.advice.sources import SOURCES
from judged.advice.tasks import TASKS
from judged.web.learning.described import FACTS, QUESTIONS, Asked, described

if TYPE_CHECKING:
    from judged.advice import Recommendation
    from judged.measures import Measure
    from judged.web.workspace import Workspace

_FOUND = ("topics", "grades", "level", "relevant", "judged", "single", "not_relevant", "labels")
_FOUND_OF_RUNS = ("runs", "lengths", "judged_10", "ties", "missing")
_RULES = {rule.id: rule for rule in RULES}


@dataclass(frozen=True)
class Named:
    """A measure, with the name of its page."""

    name: str
    family: str


@dataclass(frozen=True)
class Source:
    """A paper: as it is cited, and in full."""

    short: str
    full: str


@dataclass(frozen=True)
class Piece:
    """One piece of advice."""

    # rule, kind: the rule's id, and whether it says recommend, pair, avoid or note
    rule: str
    kind: str
    measures: tuple[Named, ...]
    why: str  # with the numbers of the data, where these are open
    facts: tuple[str, ...]  # what it rests on; nothing for one that rests on the task alone
    sources: tuple[Source, ...]
    disputed: str  # who sees it otherwise


@dataclass(frozen=True)
class TaskChoice:
    """A task that may be chosen, when it is one's own, and whether the data allow it."""

    name: str
    what: str
    fits: bool


@dataclass(frozen=True)
class Question:
    """A question about judgments that are described, with the answers in words."""

    name: str
    text: str
    answers: dict[str, str]
    answer: str


@dataclass(frozen=True)
class Choice:
    """What to measure, what not, and why."""

    about: str  # `open` or `described`
    title: str  # what is open
    tasks: tuple[TaskChoice, ...]
    task: str  # the task that the advice is for
    what: str  # the task that the advice is for
    given: bool  # whether it was chosen; else the data show it
    questions: tuple[Question, ...]  # with the answers that hold, where judgments are described
    found: tuple[str, ...]  # facts of the data
    measures: tuple[Named, ...]  # all that should be reported, each once
    report: tuple[Piece, ...]
    avoid: tuple[Piece, ...]
    know: tuple[Piece, ...]
    command: str  # the command that computes the measures
    # the address of the leaderboard with the measures; empty where there is no run, or other data are described
    leaderboard: str


def choice(workspace: Workspace, asked: Asked) -> Choice:
    """Give advice on what is open, or on judgments that are described."""
    is_open = asked.about == "open"
    advice = _on_open(workspace, asked.task) if is_open else on_described(workspace, asked)
    possible = {advice.task.name, *(other.name for other in advice.others)}
    measures = tuple(map(_named, advice.measures))
    show = is_open and bool(workspace.run_names) and bool(measures)
    return Choice(
        about=asked.about,
        title=workspace.title,
        tasks=tuple(TaskChoice(one.name, one.what, one.name in possible or not is_open) for one in TASKS.values()),
        task=advice.task.name,
        what=advice.task.what,
        given=advice.given,
        questions=tuple(
            Question(name, text, answers, getattr(asked, name)) for name, (text, answers) in QUESTIONS.items()
        ),
        found=_found(advice, has_runs=bool(workspace.run_names)) if is_open else (),
        measures=measures,
        report=_pieces(advice, "recommend", "pair", numbers=is_open),
        avoid=_pieces(advice, "avoid", numbers=is_open),
        know=_pieces(advice, "note", numbers=is_open),
        command=replace(advice, inputs=("QRELS", "RUN")).command,
        leaderboard=f"/leaderboard?{urlencode({'measures': ','.join(one.name for one in measures)})}" if show else "",
    )


def _on_open(workspace: Workspace, task: str) -> Advice:
    runs = tuple(judged.run for judged in workspace.lists.values())
    found: Advice = workspace.remember(("advice",), lambda: advise(workspace.qrels, runs))
    return found.about(task) if task else found


def on_described(workspace: Workspace, asked: Asked) -> Advice:
    """Give the advice on described judgments, without what rests on facts that nobody asked for."""

    def make() -> Advice:
        qrels, run = described(asked)
        advice = advise(qrels, run, asked.task or None)
        kept = tuple(
            entry
            for entry in advice.entries
            if {name for condition in _RULES[entry.rule].when for name in condition.facts} <= FACTS
        )
        return replace(advice, entries=kept)

    return workspace.remember(("described", tuple(asked.model_dump().values())), make)


def _found(advice: Advice, *, has_runs: bool) -> tuple[str, ...]:
    names = (*_FOUND, *(_FOUND_OF_RUNS if has_runs else ()))
    return tuple(fact(name, advice.profile) for name in names)


def _pieces(advice: Advice, *kinds: str, numbers: bool) -> tuple[Piece, ...]:
    return tuple(_piece(entry, numbers=numbers) for entry in advice.entries if entry.kind in kinds)


def _piece(entry: Recommendation, *, numbers: bool) -> Piece:
    """Write a piece of advice; of described data no numbers are known, but which conditions hold."""
    rule = _RULES[entry.rule]
    return Piece(
        rule=entry.rule,
        kind=entry.kind,
        measures=tuple(map(_named, entry.measures)),
        why=entry.reason if numbers else rule.why,
        facts=entry.facts if numbers else tuple(condition.name for condition in rule.when),
        sources=tuple(Source(one, SOURCES[one]) for one in entry.sources),
        disputed=entry.disputed,
    )


def _named(measure: Measure) -> Named:
    return Named(str(measure), measure.entry.name)
