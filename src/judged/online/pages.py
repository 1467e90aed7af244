"""Web pages about clicks and users, and their JSON equivalents."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace
from judged.online import clicks
from judged.results import Answer

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.log import InteractionLog
    from judged.online.watch import Watch


router = APIRouter(tags=["clicks"])
_TABS = {
    "/clicks": "Click models",
    "/clicks/ranks": "Position bias",
    "/clicks/people": "Clicks and judgments",
}


def files_of_log(workspace: Workspace, *_: Any) -> dict[str, Any]:
    """Return the file names of the open log."""
    return {"names": [Path(path).name for path in workspace.parts.get("log", ())]}


_page = partial(answer_page, router, "of_log.html", page_values=files_of_log, label="Clicks", tabs=_TABS)


@_page("/clicks", _TABS["/clicks"], "Which click model fits best")
@cached_in_workspace
def models_of_clicks(workspace: CurrentWorkspace) -> Answer:
    """Compare click models on held-out users."""
    return clicks.compare_models(log_of(workspace))


@_page("/clicks/ranks", _TABS["/clicks/ranks"], "How often users examine each rank")
@cached_in_workspace
def looks_at_ranks(workspace: CurrentWorkspace) -> Answer:
    """Estimate position bias from documents shown at several ranks."""
    return clicks.propensities(log_of(workspace))


@_page("/clicks/people", _TABS["/clicks/people"], "Agreement of clicks and judgments")
@cached_in_workspace
def clicks_against_people(workspace: CurrentWorkspace) -> Answer:
    """Compare judgments derived from clicks with the loaded judgments."""
    runs = [judged.run for judged in workspace.lists.values()]
    return clicks.against_people(clicks.judge_clicks(log_of(workspace)), workspace.qrels, runs)


def log_of(workspace: Workspace) -> InteractionLog:
    """Read the open log. Each request reads it again, because a DuckDB connection serves one thread."""
    from judged.online import read_log

    if "log" not in workspace.parts:
        raise NotOpenError("no log is open", "judged serve QRELS RUN --log LOG")
    return read_log(workspace.parts["log"])


users_router = APIRouter(tags=["users"])
_USERS_TABS = {"/users": "A/B test", "/users/watch": "Production monitoring"}
_users_page = partial(answer_page, users_router, "of_log.html", label="Users", tabs=_USERS_TABS)


@_users_page("/users", _USERS_TABS["/users"], "Results of the A/B test", files_of_log)
@cached_in_workspace
def ab_test(workspace: CurrentWorkspace) -> ABTest:
    """Analyze the A/B test in the open log."""
    from judged.online import abtest

    return abtest(log_of(workspace))


def _watch_file_name(workspace: Workspace, *_: Any) -> dict[str, Any]:
    return {"names": [Path(workspace.parts["watch"]).name]}


@_users_page("/users/watch", _USERS_TABS["/users/watch"], "Changes in production", _watch_file_name)
@cached_in_workspace
def watched(workspace: CurrentWorkspace) -> Watch:
    """Compare the time series of the open 'judged watch' configuration with the baseline of each series."""
    from judged.online.watch import watch

    if "watch" not in workspace.parts:
        raise NotOpenError("no configuration of 'judged watch' is open", "judged serve QRELS RUN --watch CONFIG")
    return watch(workspace.parts["watch"], keep=False)  # read-only: does not update the state of the watch
