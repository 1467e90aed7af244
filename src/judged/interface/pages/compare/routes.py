"""Two runs compared: the page, and its twin in the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.comparison.slicing import slice_topics
from judged.errors import InputError
from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.compare.answer import MEASURE, MEASURES, MOST, AskedComparison, ComparePage, figures
from judged.interface.pages.filters import blocks
from judged.interface.pages.workspace import Opened, concerning, remembered
from judged.scoring.evaluation import measures_of
from judged.scoring.measures.grammar import listed

if TYPE_CHECKING:
    from judged.comparison.slicing import SliceComparison
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

router = APIRouter(tags=["runs"])


def compared(workspace: Workspace, asked: AskedComparison) -> ComparePage:
    """Choose the runs, the measures and the topics, and test the difference."""
    if len(workspace.run_names) < 2:
        beside = "".join(f" Open a second one beside {name}." for name in workspace.run_names)
        is_open = "only one run is open" if beside else "no run is open"
        raise NotOpenError(is_open, about=f"A comparison needs two runs over the same topics.{beside}")
    with concerning("measure"):
        measure = asked.read(asked.measure or MEASURE)
    with concerning("measures"):
        family = tuple(dict.fromkeys((*measures_of(listed(asked.measures) or (measure,), rel=asked.rel), measure)))
        if len(family) > MOST + 1:
            raise InputError(f"{len(family)} measures are too many for one table", fix=f"name at most {MOST}")
    with concerning("first"):
        first = asked.first and workspace.judged(asked.first).run.name
    with concerning("second"):
        first, second = workspace.usual_pair(measure, first, asked.second)
    with concerning("measure"):
        workspace.scores((measure,), (first, second))
    with concerning("measures"):
        comparison = workspace.pair_comparison(family, first, second, asked.where)
    by_slice = _by_slice(workspace, comparison.scores, measure, asked.by) if asked.by else None
    asked = asked.model_copy(update={"first": first, "second": second})
    notes = workspace.notes_over(len(comparison.scores.query_ids), comparison.notes)
    scores = workspace.scores(family, None, asked.where, first)
    return ComparePage(workspace, asked, measure, comparison, scores, by_slice, notes)


@concerning("by")
@remembered
def _by_slice(workspace: Workspace, scores: Scores, measure: Measure, by: str) -> SliceComparison:
    """Compare the two on each slice of an attribute."""
    first, _ = scores.run_names
    slicing = slice_topics(workspace.known((by,), first), by, query_ids=scores.query_ids)
    return scores.compare_slices(slicing, first, measures=(measure,), correction="holm")


def _shown(workspace: Workspace, _asked: AskedComparison, answer: ComparePage | None) -> dict[str, Any]:
    """Show two runs side by side."""
    values: dict[str, Any] = {"usual": {"measure": MEASURE, "measures": MEASURES}, "figures": ""}
    if answer is not None:
        key = ("figures of two runs", answer.comparison, answer.measure, answer.by_slice)
        charts = workspace.remember(key, lambda: blocks(figures(answer), ["drawn"]))
        values |= {"facts": answer.facts(), "asked": answer.asked, "figures": charts}
        values["keys"] = {column.name: column.name for column in answer.listed[0].shown}
    return values


@answer_page(router, "compare.html", "/compare", "Compare", "Two runs compared", _shown)
def comparison(workspace: Opened, asked: Annotated[AskedComparison, Query()]) -> ComparePage:
    """Compare two runs: the verdict, every measure, what rests on single topics, and the topics, a page at a time."""
    return compared(workspace, asked)
