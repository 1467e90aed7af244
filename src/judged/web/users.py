"""The pages of A/B tests and of the watch, and their twins in JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from judged.web.answer_pages import NotOpenError, answer_page
from judged.web.clicks import files_of_log, log_of
from judged.web.workspace import Opened, remembered

if TYPE_CHECKING:
    from judged.online.abtest.abtest import ABTest
    from judged.online.watch import Watch
    from judged.web.workspace import Workspace

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
    return {"names": [Path(workspace.watch).name]}


@_page("/users/watch", _TABS["/users/watch"], "What is off in production", _file_of_watch)
@remembered
def watched(workspace: Opened) -> Watch:
    """Hold the series of the open watch against their baseline."""
    from judged.online.watch import watch

    if not workspace.watch:
        raise NotOpenError("no watch is open", "judged serve QRELS RUN --watch CONFIG")
    return watch(workspace.watch, keep=False)  # as its state remembers it; nothing is written
