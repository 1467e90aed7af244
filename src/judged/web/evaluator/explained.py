"""One measure of the evaluator: its definition, its score step by step, and what each document brings to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MeasureError
from judged.explanation import explain
from judged.explanation.formula import readable
from judged.measures import parse
from judged.measures.pages import summary
from judged.web.evaluator.contributions import contributions
from judged.web.evaluator.listed import listed
from judged.web.evaluator.scored import BEFORE, LIST, TOO_LARGE, judged_of, worlds_of
from judged.web.evaluator.state import read_state

if TYPE_CHECKING:
    from judged.explanation.explanation import Explanation
    from judged.measures import Measure
    from judged.web.evaluator.asked import MeasureAsked
    from judged.web.evaluator.scored import World
    from judged.web.evaluator.state import Options
    from judged.web.workspace import Workspace


def explained(workspace: Workspace, asked: MeasureAsked) -> dict[str, Any]:
    """Explain one measure for each list."""
    state = read_state(workspace, asked)
    measure = _listed(asked.measure, state.options)
    entry = measure.entry
    worlds = [world for world in worlds_of(state) if world.name != BEFORE]
    try:
        with np.errstate(all="ignore"):
            made = [_explained(world, measure) for world in worlds]
    except MeasureError:
        raise
    except (ValueError, ArithmeticError):
        raise MeasureError(f"{measure} {TOO_LARGE}. Fix: take lower grades or gains") from None
    return {
        "name": str(measure),
        "family": entry.name,
        "title": summary(entry).split(":")[0].rstrip("."),
        "definition": summary(entry),
        "formula": "\n".join(_formula(made[0][1])),
        "lists": [one for one, _ in made],
    }


def _listed(name: str, options: Options) -> Measure:
    by_name = {one.name: one.measure for _, measures in listed(options) for one in measures if one.measure is not None}
    asked = name if name in by_name or ".." in name else str(parse(name))  # no series: it may be a long one
    if asked in by_name:
        return by_name[asked]
    raise MeasureError(f"{name[:80]} is not among the measures of this list. Fix: name it as the evaluator lists it")


def _explained(world: World, measure: Measure) -> tuple[dict[str, Any], Explanation]:
    how = explain(judged_of(replace(world, name=LIST)), None, measure)  # the list's own name is not worth saying
    values, sentence = contributions(how, measure, world)
    bars = [
        {"rank": rank, "doc": doc, "value": value}
        for rank, (doc, value) in enumerate(zip(world.docs, values, strict=True), 1)
    ]
    told = {
        "value": how.score,
        "explanation": how.to_dict(),
        "lines": _lines(how),
        "text": how.text(),
        "contributions": bars,
        "contributions_are": sentence,
    }
    return told, how


def _lines(how: Explanation) -> list[str]:
    """Give the lines of the calculation as they are written for people, without the tables."""
    bare = tuple(replace(sheet, title="", header=(), rows=()) for sheet in how.sheets)
    _, *written = replace(how, sheets=bare).text().splitlines()
    return [line for line in dict.fromkeys(written) if line]


def _formula(how: Explanation) -> list[str]:
    """Give the formula of each number of the calculation, without the numbers."""
    named = [(name, text) for sheet in how.sheets for name, text in sheet.how.items()]
    named += [(line.name, line.how) for sheet in how.sheets for line in sheet.lines if line.how]
    return [f"{readable(name)} = {readable(text)}" for name, text in dict.fromkeys(named) if name != text]
