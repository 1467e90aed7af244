"""Two runs compared: the page, and its twin in the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.errors import InputError
from judged.evaluation import measures_of
from judged.measures.grammar import listed
from judged.slicing import slice_topics
from judged.web.answers import page
from judged.web.compare.answer import MEASURE, MEASURES, MOST, AskedComparison, ComparePage, figures
from judged.web.desk import Opened
from judged.web.filters import blocks
from judged.web.pagination import RefusedError, concerning
from judged.web.problems import PROBLEMS
from judged.web.workspace import RESAMPLES

if TYPE_CHECKING:
    from judged.comparison import Comparison
    from judged.measures.base import Measure
    from judged.slicing import SliceComparison
    from judged.web.workspace import Workspace

HOW: dict[str, Any] = {"family": "all", "ci": "none", "resamples": RESAMPLES}
"""How `compare` is called: the p-values of all measures of the table are corrected together."""


def compared(workspace: Workspace, asked: AskedComparison) -> ComparePage:
    """Choose the runs, the measures and the topics, and test the difference."""
    with concerning("measure"):
        measure = asked.read(asked.measure or MEASURE)
    with concerning("measures"):
        family = tuple(dict.fromkeys((*measures_of(listed(asked.measures) or (measure,), rel=asked.rel), measure)))
        if len(family) > MOST + 1:
            raise InputError(f"{len(family)} measures are too many for one table", fix=f"name at most {MOST}")
    first, second = _runs(workspace, asked, measure)
    with concerning("measure"):
        workspace.scores((measure,), (first, second))
    with concerning("where"):
        workspace.mask(asked.where, first)
    with concerning("measures"):
        comparison = workspace.comparison(family, first, (first, second), asked.where, **HOW)
    by_slice = _by_slice(workspace, asked, comparison, measure) if asked.by else None
    asked = asked.model_copy(update={"first": first, "second": second})
    notes = workspace.notes_over(len(comparison.scores.query_ids), comparison.notes)
    return ComparePage(workspace, asked, measure, comparison, by_slice, notes)


def _runs(workspace: Workspace, asked: AskedComparison, measure: Measure) -> tuple[str, str]:
    """Choose the two runs: what was asked for, else the baseline, and the best of the others."""
    names = workspace.run_names
    for field in ("first", "second"):
        if given := getattr(asked, field):
            with concerning(field):
                workspace.judged(given)
    with concerning("second"):
        if len(names) < 2:
            is_open = f"only {names[0]} is open" if names else "no run is open"
            raise InputError(f"two runs are needed to compare, and {is_open}", fix="open another run")
        if asked.first and asked.first == asked.second:
            problem = f"{asked.first} is compared with itself: there is no difference"
            raise InputError(problem, fix="choose another run")
    return workspace.usual_pair(measure, asked.first, asked.second)


def _by_slice(
    workspace: Workspace, asked: AskedComparison, comparison: Comparison, measure: Measure
) -> SliceComparison:
    """Compare the two on each slice of an attribute."""
    scores, (first, _) = comparison.scores, comparison.scores.run_names

    def make() -> SliceComparison:
        slicing = slice_topics(workspace.known((asked.by,), first), asked.by, query_ids=scores.query_ids)
        return scores.compare_slices(slicing, first, measures=(measure,), correction="holm", resamples=RESAMPLES)

    with concerning("by"):
        return workspace.remember(("compare by", scores.run_names, measure, asked.where, asked.by), make)


router = APIRouter()


@router.get("/compare", include_in_schema=False)
def comparison_page(request: Request, workspace: Opened, asked: Annotated[AskedComparison, Query()]) -> Response:
    """Show two runs side by side."""
    values: dict[str, Any] = {"answer": None, "problem": None, "asked": asked}
    if len(workspace.run_names) > 1:
        try:
            answer = compared(workspace, asked)
        except RefusedError as error:
            values["problem"] = error
        else:
            shown = {"answer": answer, "facts": answer.facts(), "asked": answer.asked}
            values |= shown | {
                "figures": blocks(figures(answer), ["drawn"]),
                "keys": {column.name: column.name for column in answer.listed[0].shown},
            }
    status = HTTPStatus.BAD_REQUEST if values["problem"] else HTTPStatus.OK
    values["usual"] = {"measure": MEASURE, "measures": MEASURES}
    return page(request, "compare.html", status=status, title="Compare", **values)


@router.get("/api/v1/compare", tags=["runs"], summary="Two runs compared", responses=PROBLEMS)
def comparison(workspace: Opened, asked: Annotated[AskedComparison, Query()]) -> dict[str, Any]:
    """Compare two runs: the verdict, every measure, what rests on single topics, and the topics, a page at a time."""
    return compared(workspace, asked).to_dict()
