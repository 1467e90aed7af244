"""Pages of a history, and their JSON versions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.history.history import ChangeLocation, ScoreHistory, bisect, show
from judged.interface.pages.answer_pages import NotOpenError, answer_page, with_links
from judged.interface.pages.filters import query_string
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace

if TYPE_CHECKING:
    from judged.history.store import HistoryStore
    from judged.interface.pages.workspace import Workspace

router = APIRouter(tags=["history"])
_TABS = {"/history": "Over time", "/history/change": "One change"}
_page = partial(answer_page, router, "history.html", label="History", tabs=_TABS)


class HistoryQuery(Parameters):
    """System and measures."""

    system: str = text_field("Name of the system. Default: that of the last evaluation.", limit=200)
    measures: str = text_field("Measures, separated by commas. Default: those of the last evaluation.", limit=500)


class ScoreChangeQuery(Parameters):
    """System, measure, and change."""

    system: str = text_field("Name of the system. Default: that of the last evaluation.", limit=200)
    measure: str = text_field("Measure. Default: the first one of the last evaluation.", limit=200)
    evaluation: str = text_field("Evaluation with which the change began. Default: the last change.", limit=100)


def _link_changes(_: Workspace, params: HistoryQuery, answer: ScoreHistory | None) -> dict[str, Any]:
    """Link each change to its page."""
    if answer is None:
        return {}

    def change_url(row: Any) -> str:
        query = {"system": params.system, "measure": row["measure"], "evaluation": f"#{row['number']}"}
        return f"/history/change{query_string(query)}"

    return {"block_changes": {"changes": lambda table: with_links(table, "number", change_url)}}


@_page("/history", "History", "Scores over time, and their changes", _link_changes)
def scores_over_time(workspace: CurrentWorkspace, params: Annotated[HistoryQuery, Query()]) -> ScoreHistory:
    """Show the scores of a system over time, and its changes."""
    measures = tuple(name.strip() for name in params.measures.split(",") if name.strip())
    return _show(workspace, params.system, measures, _last_number(workspace))


@_page("/history/change", "One change", "Where a change began")
def one_change(workspace: CurrentWorkspace, params: Annotated[ScoreChangeQuery, Query()]) -> ChangeLocation:
    """Show the evaluation with which a change began, and its topics."""
    return bisect(_store(workspace), params.system, params.measure or None, evaluation=params.evaluation)


@cached_in_workspace
def _show(workspace: Workspace, system: str, measures: tuple[str, ...], _last: int) -> ScoreHistory:
    return show(_store(workspace), system, list(measures) or None)


def _last_number(workspace: Workspace) -> int:
    """Return the highest number, so that answers are computed again after another evaluation was added."""
    return max((row.number for row in _store(workspace).evaluations()), default=0)


def _store(workspace: Workspace) -> HistoryStore:
    if "history" not in workspace.parts:
        hint = "Open a store of evaluations, together with judgments and runs:"
        raise NotOpenError("no history is open", "judged serve QRELS RUN --history STORE", hint)
    return workspace.parts["history"]()
