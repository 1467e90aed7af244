"""From what is asked to scores and tests: each wrong parameter is noted, and the rest goes on without it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.comparison.choices import MANY_TOPICS, Choices, default_test
from judged.comparison.compare import numbers_alone
from judged.comparison.slicing.topic_slices import MINIMUM
from judged.errors import InputError, JudgedError, MeasureError
from judged.results.notes import Note
from judged.scoring.curves import at_cutoffs
from judged.scoring.evaluation.inputs import with_rel
from judged.scoring.measures.grammar import listed, parse, parse_many
from judged.stats.inputs import topics_text
from judged.web.leaderboard.answer import CORRECTION, LeaderboardPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.comparison import Comparison
    from judged.scoring.measures.base import Measure
    from judged.web.leaderboard.answer import AskedLeaderboard
    from judged.web.workspace import Workspace

    Made = TypeVar("Made")

MEASURES = ("nDCG@10", "AP", "RR@10", "R@100")
"""Those of a page that was asked for none."""
ANY = "NumRet"
"""What every run has a number for."""
MOST = 24
"""Measures of a table."""
CUTOFFS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Of a curve: it looks the same as with all of them."""


def leaderboard(workspace: Workspace, asked: AskedLeaderboard) -> LeaderboardPage:
    """Read what is asked, score and test; nothing is raised, and what could not be read is among the problems."""
    problems: dict[str, JudgedError] = {}

    def tried(field: str, make: Callable[[], Made], otherwise: Made) -> Made:
        try:
            return make()
        except JudgedError as error:
            problems.setdefault(field, error)
            return otherwise

    measures: dict[Measure, str] = {}  # with the level that was asked for, and as they are called without it
    refused: list[str] = []
    typed = listed(asked.measures)
    for name in dict.fromkeys((*listed(asked.measure), *(typed or MEASURES))):
        scored = tried("measures", partial(_scored, workspace, name, MOST - len(measures), asked.rel), {})
        measures |= scored
        refused += [] if scored else [name]
    chosen = tuple(measures) or (parse(ANY),)
    usual, _ = workspace.usual_pair(chosen[0])
    baseline = asked.baseline or usual
    if workspace.lists:
        baseline = tried("baseline", lambda: workspace.judged(baseline).run.name, usual)
    topics = tried("where", lambda: int(workspace.mask(asked.where, baseline or None).sum()), 0)
    test = default_test(topics)
    how: dict[str, Any] = {
        "test": tried("test", lambda: Choices(test=asked.test or test, baseline=baseline).test, test),
        "correction": tried("correction", lambda: Choices(correction=asked.correction).correction, CORRECTION),
    }
    result: Comparison | None = None
    if workspace.lists and topics:
        if len(workspace.lists) > 1:
            tests = partial(workspace.comparison, chosen, baseline, None, asked.where, **how)
            result = tried("test", tests, None)
        if result is None:  # every number with its interval, where nothing is tested
            scores = workspace.scores(chosen, None, asked.where, baseline)
            result = workspace.remember(("untested", scores), lambda: numbers_alone(scores, Choices(baseline=baseline)))
    names = tuple(measures.values()) or tuple(map(str, chosen))
    best_first = str(chosen[0]) if chosen[0].properties.higher_is_better is False else f"-{chosen[0]}"
    return LeaderboardPage(
        workspace=workspace,
        asked=asked.model_copy(update={"measure": "", "measures": [] if names == MEASURES else [",".join(names)]}),
        measures=chosen,
        plain_names=names,
        typed=", ".join(refused) if typed else "",
        baseline=baseline if len(workspace.lists) > 1 else "",
        n=topics,
        test=how["test"],
        correction=how["correction"],
        sort=tried("sort", lambda: _sort(asked.sort, chosen), "") or best_first,
        series=tried("curve", lambda: _series(workspace, asked.curve, asked.rel), ()),
        result=result,
        problems=problems,
        notes=_notes(workspace, topics, result) if result else (),
    )


def _scored(workspace: Workspace, name: str, room: int, rel: float | None) -> dict[Measure, str]:
    """Read the name of a measure, or of a series, that can be scored here."""
    measures = {with_rel(measure, rel, written=name): str(measure) for measure in parse_many(name)}
    if len(measures) > room:
        raise MeasureError(f"{name}: a table has at most {MOST} measures. Fix: leave some out")
    if workspace.lists:
        workspace.scores(tuple(measures))
    return measures


def _series(workspace: Workspace, name: str, rel: float | None) -> tuple[Measure, ...]:
    """Give the points of a curve, to the end of the longest ranking."""
    if not name or not workspace.lists:
        return ()
    longest = max(int(np.max(judged.returned, initial=1)) for judged in workspace.lists.values())
    series = at_cutoffs(name, [k for k in CUTOFFS if k <= max(longest, 1)])
    series = tuple(with_rel(measure, rel, written=name) for measure in series)
    workspace.scores(series, workspace.run_names[:1])  # whether they can be scored here
    return series


def _sort(given: str, measures: tuple[Measure, ...]) -> str:
    """Read by what the rows are ordered; nothing, where that is a measure that is not in the table."""
    sign, name = ("-", given[1:]) if given.startswith("-") else ("", given)
    if not name or name in {"run", "judged"}:
        return given
    try:
        measure = parse(name)
    except MeasureError:
        known = ", ".join(["run", "judged", *map(str, measures)])
        raise InputError(f"no column {name!r} to sort by", fix=f"use one of {known}; - before it: falling") from None
    return f"{sign}{measure}" if measure in measures else ""


def _notes(workspace: Workspace, topics: int, result: Comparison) -> tuple[Note, ...]:
    """Say of few topics that they are few, and of many how they are tested, before the notes on runs."""
    notes: list[Note] = []
    if topics < MINIMUM < len(workspace.query_ids):
        few = f"{topics_text(topics)} are few: a mean of fewer than {MINIMUM} is not a finding"
        notes.append(Note("few-topics", few))
    if topics > MANY_TOPICS:
        text = f"with more than {MANY_TOPICS:,} topics the default test is Student's t-test"
        notes.append(Note("many-topics", text))
    return (*notes, *workspace.notes_over(topics, result.notes))
