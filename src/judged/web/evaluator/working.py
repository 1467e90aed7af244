"""One measure of the evaluator: its definition, its score step by step, and what each document brings to it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.explanation import explain
from judged.explanation.explanation import sheet_lines
from judged.explanation.formula import readable
from judged.judging.variants import copies
from judged.measures import parse
from judged.measures.pages import summary
from judged.web.answers import PageAnswer
from judged.web.evaluator.measures import listed
from judged.web.evaluator.scores import BEFORE, LIST, TOO_LARGE, judged_of, worlds_of
from judged.web.evaluator.state import read_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.explanation.explanation import Explanation
    from judged.explanation.sheets import Line, Sheet
    from judged.measures import Measure
    from judged.web.evaluator.asked import MeasureAsked
    from judged.web.evaluator.scores import World
    from judged.web.workspace import Workspace

TERMS = (
    "Each bar is the document's share of the score: what the measure adds at that rank, scaled as the whole sum is. The"
    " bars add up to the score."
)
LOSSES = (
    "Each bar is what the score would lose if a document of grade 0 stood at that rank instead and this one were not"
    " returned: the measure is no sum over ranks, so the bars need not add up to the score."
)
_TOTAL = re.compile(r"(?:\(1 - p\) \* )?([^\W\d]\w*)(?: / (.+))?")
_SUM = "sum of "
_CLOSE = 1e-9
_STAND_IN = "\0"  # no document of a list has such a name


class Working(PageAnswer):
    """One measure of the evaluator, explained for each list."""

    kind: ClassVar[str] = "working"


def explained(workspace: Workspace, asked: MeasureAsked) -> Working:
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
            lists = [_explained(world, measure) for world in worlds_of(state) if world.name != BEFORE]
    except MeasureError:
        raise
    except (ValueError, ArithmeticError):
        raise MeasureError(f"{measure} {TOO_LARGE}. Fix: take lower grades or gains") from None
    entry = measure.entry
    about = {
        "name": str(measure),
        "family": entry.name,
        "title": summary(entry).split(":")[0].rstrip("."),
        "definition": summary(entry),
        "formula": "\n".join(_formula(lists[0][1])),
        "lists": [one for one, _ in lists],
    }
    return Working(about)


def _explained(world: World, measure: Measure) -> tuple[dict[str, Any], Explanation]:
    how = explain(judged_of(replace(world, name=LIST)), None, measure)  # the list's own name is not worth saying
    # Where the explanation ends with a sum over the ranks, or one times something that is the same for all ranks, its
    # terms add up to the score; for other measures a document brings what the score would lose without it.
    terms = _terms(how, len(world.docs))
    pairs = zip(world.docs, _losses(measure, world) if terms is None else terms, strict=True)
    bars = [{"rank": rank, "doc": doc, "value": value} for rank, (doc, value) in enumerate(pairs, 1)]
    told = {
        "value": how.score,
        "explanation": how.to_dict(),
        "lines": list(dict.fromkeys(line for sheet in how.sheets for line in sheet_lines(sheet))),
        "text": how.text(),
        "contributions": bars,
        "contributions_are": LOSSES if terms is None else TERMS,
    }
    return told, how


def _formula(how: Explanation) -> list[str]:
    """Give the formula of each number of the calculation, without the numbers."""
    named = [(name, text) for sheet in how.sheets for name, text in sheet.how.items()]
    named += [(line.name, line.how) for sheet in how.sheets for line in sheet.lines if line.how]
    return [f"{readable(name)} = {readable(text)}" for name, text in dict.fromkeys(named) if name != text]


def _terms(explained: Explanation, returned: int) -> list[float] | None:
    """Find the sum over the ranking that the score follows from; None where there is none."""
    lines = [(sheet, line) for sheet in explained.sheets for line in sheet.lines]
    found = _sum_behind(lines[-1][1], lines)
    if found is None:
        return None
    sheet, line = found
    at = sheet.header.index(line.how.removeprefix(_SUM))
    cells = [0.0] * returned
    for row in sheet.rows:
        value, rank = row[at], int(_number(row[0]))
        if rank <= returned:
            cells[rank - 1] = _number(value)
    if not any(cells) and explained.score == 0:
        return cells
    if line.value == 0 or not np.isclose(sum(cells), line.value, rtol=_CLOSE, atol=0):
        return None  # ranks that are not shown add something, too
    return [cell * (explained.score / line.value) for cell in cells]


def _sum_behind(line: Line, lines: Sequence[tuple[Sheet, Line]]) -> tuple[Sheet, Line] | None:
    """Follow the score back to a sum over ranks, as long as each step only multiplies or divides by a constant."""
    for sheet, one in reversed(lines):
        if one is line and _is_sum(sheet, one):
            return sheet, one
    total = _TOTAL.fullmatch(line.how)
    if total is None:
        return None
    divided_by = {word.replace("_", " ") for word in re.findall(r"[^\W\d]\w*", total[2] or "")}
    if any(_base(one.name) in divided_by for sheet, one in lines if _is_sum(sheet, one)):
        return None  # what it is divided by changes with each document
    named = [(sheet, one) for sheet, one in lines if one is not line and _base(one.name) == total[1].replace("_", " ")]
    of_ranking = [found for found in named if _is_sum(*found)]
    if of_ranking:
        return of_ranking[-1]
    return _sum_behind(named[-1][1], lines) if named and named[-1][1].how else None


def _is_sum(sheet: Sheet, line: Line) -> bool:
    """Whether a line adds up a column of the ranking itself."""
    return sheet.title == "ranking" and line.how.startswith(_SUM) and line.how.removeprefix(_SUM) in sheet.header


def _base(name: str) -> str:
    """Leave out parameters and cutoff, as formulas do: ``DCG(gain=exp2)@5`` is ``DCG`` there."""
    return re.split(r"[(@]", name, maxsplit=1)[0].replace("_", " ")


def _number(cell: Any) -> float:
    return 0.0 if cell is None or isinstance(cell, str) else float(cell)


def _losses(measure: Measure, world: World) -> list[float]:
    """Score the list once more for each document that could lose something, with one of grade 0 in its place."""
    judged = judged_of(replace(world, grades=world.grades | {_STAND_IN: 0.0}))
    names = judged.qrels.index.row_names
    stand_in = next(at for at, row in enumerate(judged.label_row.tolist()) if names[row] == _STAND_IN)
    gaining = np.flatnonzero(judged.grade > 0)
    variants = copies(judged, np.zeros(len(gaining) + 1, dtype=np.int64))  # the first stays as it is
    number = np.arange(1, len(gaining) + 1)
    changed = number * len(judged.grade) + gaining
    grade, row = variants.grade.copy(), variants.row.copy()
    grade[changed] = 0.0
    row[changed] = number * len(judged.label_grade) + stand_in
    scores = measure(replace(variants, grade=grade, row=row))
    lost = np.zeros(len(world.docs))
    lost[judged.rank[gaining] - 1] = scores[0] - scores[1:]
    return lost.tolist()
