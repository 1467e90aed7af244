"""One measure of the evaluator: definition, score step by step, and contribution of each document."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.scores import BEFORE, LIST, OVERFLOW, JudgedRanking, judge_lists, lists_of_state
from judged.interface.pages.evaluator.state import MeasureQuery, available_measures, read_state
from judged.scoring.curves import at_cutoffs
from judged.scoring.explanation import explain_list
from judged.scoring.explanation.sheets import SheetLine, formula_names
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.pages import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.pages.workspace import Workspace
    from judged.scoring.explanation.explain import Explanation
    from judged.scoring.measures.base import Measure

TERMS = (
    "Each bar is the contribution of a document to the score: its term in the sum, multiplied by the factor that"
    " scales the sum to the score. The contributions add up to the score."
)
LOSSES = (
    "Each bar is the loss of score if the document is not returned and a document of grade 0 takes its rank. The"
    " measure is not a sum over ranks, so the losses do not add up to the score."
)
_SCALED = re.compile(r"(?:\(1 - p\) \* )?([^\W\d]\w*)(?: / (.+))?")  # matches a formula that only scales a number
_TOLERANCE = 1e-9
_PLACEHOLDER = "\0"  # cannot be the name of a document


@dataclass(frozen=True, eq=False, repr=False)
class MeasureExplanation(PageAnswer):
    """Explanation of one measure for each list."""

    kind: ClassVar[str] = "calculation"

    explanations: tuple[Explanation, ...] = ()  # one per list


def explain_measure(workspace: Workspace, query: MeasureQuery) -> MeasureExplanation:
    """Explain one measure for each list."""
    state = read_state(workspace, query)
    name = query.measure
    measures = available_measures(state.options)
    by_name = {listed.name: listed.measure for listed in measures if listed.measure is not None}
    # A series such as P@1..1000 is not parsed, because it may be long.
    measure = by_name.get(name if name in by_name or ".." in name else str(parse(name)))
    if measure is None:
        raise MeasureError(
            f"the evaluator has no measure {name[:80]}. Fix: use a measure from the list of the evaluator"
        )
    try:
        with np.errstate(all="ignore"):
            rankings = [ranking for ranking in lists_of_state(state) if ranking.name != BEFORE]
            lists = [_explain(ranking, measure) for ranking in rankings]
            curve = _curve(measure, rankings)
    except MeasureError:
        raise
    except (ValueError, ArithmeticError):
        raise MeasureError(f"{measure}: {OVERFLOW}. Fix: use lower grades or gains") from None
    about = {
        "name": str(measure),
        "family": measure.entry.name,
        "definition": summary(measure.entry),
        "low": measure.properties.low,
        "cutoff": state.options.cutoff,
        "curve": curve,
        "lists": [details for details, _ in lists],
        "differences": _differences(*(details["contributions"] for details, _ in lists)) if len(lists) > 1 else [],
    }
    return MeasureExplanation(about, explanations=tuple(explanation for _, explanation in lists))


def _curve(measure: Measure, rankings: Sequence[JudgedRanking]) -> list[list[float]]:
    """Return the scores of each list at all cutoffs up to the longest list; empty for measures without a cutoff."""
    if measure.entry.cutoff is None or measure.entry.cutoff_name != "cutoff":
        return []
    longest = max(2, *(len(ranking.docs) for ranking in rankings))
    series = at_cutoffs(measure.replace(cutoff=1), range(1, longest + 1))
    return [[float(point(judged)[0]) for point in series] for judged in map(judge_lists, rankings)]


def _differences(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how much each rank adds to the second score minus the first, the largest difference first."""
    pairs = zip_longest(*([bar["value"] for bar in bars] for bars in (first, second)), fillvalue=0.0)
    rows = [{"rank": rank, "value": value - before} for rank, (before, value) in enumerate(pairs, 1)]
    return sorted((row for row in rows if abs(row["value"]) > _TOLERANCE), key=lambda row: -abs(row["value"]))


def _explain(ranking: JudgedRanking, measure: Measure) -> tuple[dict[str, Any], Explanation]:
    judged = judge_lists(replace(ranking, name=LIST))  # so that titles do not contain the name of the list
    explanation = explain_list(judged, measure)
    # If the score is a sum over ranks times a constant, the terms add up to the score. For other measures, the
    # contribution of a document is the loss of score without it.
    terms = _rank_terms(explanation, judged.title, len(ranking.docs))
    pairs = zip(ranking.docs, _losses(measure, ranking) if terms is None else terms, strict=True)
    details = {
        "value": explanation.score,
        "explanation": explanation.to_dict(),
        "lines": list(dict.fromkeys(line for _, _, lines in explanation.parts for line in lines)),
        "text": explanation.text(),
        "contributions": [{"rank": rank, "doc": doc, "value": value} for rank, (doc, value) in enumerate(pairs, 1)],
        "contributions_description": LOSSES if terms is None else TERMS,
        "adds_up": terms is not None,
    }
    return details, explanation


def _rank_terms(explanation: Explanation, ranking: str, returned: int) -> list[float] | None:
    """Return what each rank adds to the score if it is a sum over ranks times a constant; else None."""
    lines = {_formula_name(line): line for sheet in explanation.sheets for line in sheet.lines}
    sums = {
        _formula_name(line): (sheet, line)
        for sheet in explanation.sheets
        for line in sheet.lines
        if sheet.title == ranking and line.summed in sheet.header
    }
    name = _formula_name(explanation.sheets[-1].lines[-1])
    while name not in sums:
        scaled = _SCALED.fullmatch(lines.pop(name).formula) if name in lines else None
        if scaled is None or sums.keys() & set(formula_names(scaled[2] or "")):
            return None  # the divisor depends on the documents
        name = scaled[1]
    sheet, line = sums[name]
    terms, column = [0.0] * returned, sheet.header.index(line.summed)
    for row in sheet.rows:
        rank, term = row[0], row[column]
        if isinstance(rank, float) and isinstance(term, float) and rank <= returned:
            terms[int(rank) - 1] = term
    if not any(terms) and explanation.score == 0:
        return terms
    if line.value == 0 or not np.isclose(sum(terms), line.value, rtol=_TOLERANCE, atol=0):
        return None  # hidden ranks contribute too
    return [term * (explanation.score / line.value) for term in terms]


def _formula_name(line: SheetLine) -> str:
    """Return the name of a line in formulas, without parameters and cutoff: ``DCG`` for ``DCG(gain=exp2)@5``."""
    return re.split(r"[(@]", line.name, maxsplit=1)[0].replace(" ", "_")


def _losses(measure: Measure, ranking: JudgedRanking) -> list[float]:
    """Return how much the score drops if a document of grade 0 replaces each document."""
    extended = replace(ranking, grades=ranking.grades | {_PLACEHOLDER: 0.0})
    docs = ranking.docs
    positions = [i for i, doc in enumerate(docs) if ranking.grades.get(doc, 0.0) > 0]
    variants = [replace(extended, name=str(i), docs=(*docs[:i], _PLACEHOLDER, *docs[i + 1 :])) for i in positions]
    judged = judge_lists(extended, *variants)
    scores = dict(zip(judged.query_ids, measure(judged).tolist(), strict=True))
    return [scores[ranking.name] - scores.get(str(i), scores[ranking.name]) for i in range(len(docs))]
