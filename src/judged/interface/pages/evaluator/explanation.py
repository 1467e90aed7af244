"""One measure of the evaluator: its definition, its score step by step, and what each document brings to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.scores import BEFORE, LIST, TOO_LARGE, judged_of, worlds_of
from judged.interface.pages.evaluator.state import listed, read_state
from judged.scoring.curves import at_cutoffs
from judged.scoring.explanation import explain_list
from judged.scoring.explanation.sheets import formula_names
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.pages import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.pages.evaluator.scores import World
    from judged.interface.pages.evaluator.state import AskedMeasure
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.explanation.explain import Explanation
    from judged.scoring.explanation.sheets import SheetLine
    from judged.scoring.measures.base import Measure

TERMS = (
    "Each bar is the document's share of the score: what the measure adds at that rank, scaled as the whole sum is. The"
    " bars add up to the score."
)
LOSSES = (
    "Each bar is what the score would lose if a document of grade 0 stood at that rank instead and this one were not"
    " returned: the measure is not a sum over ranks, so the bars need not add up to the score."
)
_SCALED = re.compile(r"(?:\(1 - p\) \* )?([^\W\d]\w*)(?: / (.+))?")  # a formula that only scales a number
_CLOSE = 1e-9
_STAND_IN = "\0"  # no document of a list has such a name


@dataclass(frozen=True, eq=False, repr=False)
class Working(PageAnswer):
    """One measure of the evaluator, explained for each list."""

    kind: ClassVar[str] = "working"

    explanations: tuple[Explanation, ...] = ()  # one for each list


def explained(workspace: Workspace, asked: AskedMeasure) -> Working:
    """Explain one measure for each list."""
    state = read_state(workspace, asked)
    name = asked.measure
    by_name = {one.name: one.measure for one in listed(state.options) if one.measure is not None}
    measure = by_name.get(name if name in by_name or ".." in name else str(parse(name)))  # no series: it may be long
    if measure is None:
        raise MeasureError(
            f"{name[:80]} is not among the measures of this list. Fix: name it as the evaluator lists it"
        )
    try:
        with np.errstate(all="ignore"):
            worlds = [world for world in worlds_of(state) if world.name != BEFORE]
            lists = [_explained(world, measure) for world in worlds]
            curve = _curve(measure, worlds)
    except MeasureError:
        raise
    except (ValueError, ArithmeticError):
        raise MeasureError(f"{measure} {TOO_LARGE}. Fix: take lower grades or gains") from None
    about = {
        "name": str(measure),
        "family": measure.entry.name,
        "definition": summary(measure.entry),
        "low": measure.properties.low,
        "cutoff": state.options.cutoff,
        "curve": curve,
        "lists": [told for told, _ in lists],
        "differences": _differences(*(told["contributions"] for told, _ in lists)) if len(lists) > 1 else [],
    }
    return Working(about, explanations=tuple(how for _, how in lists))


def _curve(measure: Measure, worlds: Sequence[World]) -> list[list[float]]:
    """Score each list at the cutoffs from 1 to its end, or to that of a longer list; none where there is no cutoff."""
    if measure.entry.cutoff is None or measure.entry.cutoff_name != "cutoff":
        return []
    series = at_cutoffs(measure.replace(cutoff=1), range(1, max(2, *(len(world.docs) for world in worlds)) + 1))
    return [[float(one(judged)[0]) for one in series] for judged in map(judged_of, worlds)]


def _differences(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give how much more each rank brings in the second list than in the first, the largest first."""
    pairs = zip_longest(*([bar["value"] for bar in bars] for bars in (first, second)), fillvalue=0.0)
    rows = [{"rank": rank, "value": value - before} for rank, (before, value) in enumerate(pairs, 1)]
    return sorted((row for row in rows if abs(row["value"]) > _CLOSE), key=lambda row: -abs(row["value"]))


def _explained(world: World, measure: Measure) -> tuple[dict[str, Any], Explanation]:
    judged = judged_of(replace(world, name=LIST))  # the list's own name is not worth saying
    how = explain_list(judged, measure)
    # Where the explanation ends with a sum over the ranks, or one times something that is the same for all ranks, its
    # terms add up to the score; for other measures a document brings what the score would lose without it.
    terms = _terms(how, judged.title, len(world.docs))
    pairs = zip(world.docs, _losses(measure, world) if terms is None else terms, strict=True)
    told = {
        "value": how.score,
        "explanation": how.to_dict(),
        "lines": list(dict.fromkeys(line for _, _, lines in how.parts for line in lines)),
        "text": how.text(),
        "contributions": [{"rank": rank, "doc": doc, "value": value} for rank, (doc, value) in enumerate(pairs, 1)],
        "contributions_are": LOSSES if terms is None else TERMS,
        "adds_up": terms is not None,
    }
    return told, how


def _terms(how: Explanation, ranking: str, returned: int) -> list[float] | None:
    """Give what each rank adds to the score, where it is a sum over the ranking times what is the same for all."""
    lines = {_in_formulas(line): line for sheet in how.sheets for line in sheet.lines}
    sums = {
        _in_formulas(line): (sheet, line)
        for sheet in how.sheets
        for line in sheet.lines
        if sheet.title == ranking and line.summed in sheet.header
    }
    name = _in_formulas(how.sheets[-1].lines[-1])
    while name not in sums:
        scaled = _SCALED.fullmatch(lines.pop(name).how) if name in lines else None
        if scaled is None or sums.keys() & set(formula_names(scaled[2] or "")):
            return None  # what it is divided by changes with each document
        name = scaled[1]
    sheet, line = sums[name]
    terms, column = [0.0] * returned, sheet.header.index(line.summed)
    for row in sheet.rows:
        rank, term = row[0], row[column]
        if isinstance(rank, float) and isinstance(term, float) and rank <= returned:
            terms[int(rank) - 1] = term
    if not any(terms) and how.score == 0:
        return terms
    if line.value == 0 or not np.isclose(sum(terms), line.value, rtol=_CLOSE, atol=0):
        return None  # ranks that are not shown add something, too
    return [term * (how.score / line.value) for term in terms]


def _in_formulas(line: SheetLine) -> str:
    """Give the name of a number as formulas have it, without parameters and cutoff: ``DCG(gain=exp2)@5`` is ``DCG``."""
    return re.split(r"[(@]", line.name, maxsplit=1)[0].replace(" ", "_")


def _losses(measure: Measure, world: World) -> list[float]:
    """Score the list once more for each document that could lose something, with one of grade 0 in its place."""
    whole = replace(world, grades=world.grades | {_STAND_IN: 0.0})
    docs = world.docs
    gaining = [at for at, doc in enumerate(docs) if world.grades.get(doc, 0.0) > 0]
    without = [replace(whole, name=str(at), docs=(*docs[:at], _STAND_IN, *docs[at + 1 :])) for at in gaining]
    judged = judged_of(whole, *without)
    scores = dict(zip(judged.query_ids, measure(judged).tolist(), strict=True))
    return [scores[world.name] - scores.get(str(at), scores[world.name]) for at in range(len(docs))]
