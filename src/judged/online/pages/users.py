"""The pages of A/B tests and of the watch, and their twins in JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.workspace import Opened, remembered
from judged.online.pages.clicks import files_of_log, log_of

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.watch import Watch

router = APIRouter(tags=["users"])
_TABS = {"/users": "A/B test", "/users/watch": "Watch over production"}
_page = partial(answer_page, router, "of_log.html", label="Users", tabs=_TABS)


@_page("/users", _TABS["/users"], "What an A/B test says", files_of_log)
@remembered
def ab_test(workspace: Opened) -> ABTest:
    """Say of the arms of the open log whether the test is sound, what differs, and what follows."""
    from judged.online import abtest

    return abtest(log_of(workspace))


def _file_of_watch(workspace: Workspace, *_: Any) -> dict[str, Any]:
    return {"names": [Path(workspace.parts["watch"]).name]}


@_page("/users/watch", _TABS["/users/watch"], "What is off in production", _file_of_watch)
@remembered
def watched(workspace: Opened) -> Watch:
    """Hold the series of the open watch against their baseline."""
    from judged.online.watch import watch

    if "watch" not in workspace.parts:
        raise NotOpenError("no watch is open", "judged serve QRELS RUN --watch CONFIG")
    return watch(workspace.parts["watch"], keep=False)  # as its state remembers it; nothing is written
