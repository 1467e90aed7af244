"""What is kept for the next request, and which workspace a request sees."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from fastapi import Request

from judged.web.desk import Desk, Folder, opened
from judged.web.workspace import Kept, open_workspace


def test_what_is_made_of_itself_is_refused_and_can_be_made_later():
    kept = Kept()

    def itself() -> int:
        return kept.get("a", itself)

    with pytest.raises(RecursionError):
        itself()
    assert kept.get("a", lambda: kept.get("b", lambda: 2) + 1) == 3


def test_a_request_sees_one_workspace_whose_files_stay_until_it_ends():
    class App:
        state = type("State", (), {})()

    qrels = {"q1": {"d1": 1}}
    desk = App.state.desk = Desk(open_workspace(qrels, {}))
    desk.replace(replace(open_workspace(qrels, {}), sent=Folder()))
    folder = desk.workspace.sent.path
    scope = {"type": "http", "app": App}
    before = opened(Request(scope))
    desk.replace(open_workspace(qrels, {}))
    assert opened(Request(scope)) is before
    assert opened(Request({"type": "http", "app": App})) is desk.workspace
    assert folder.is_dir()
    del before
    scope.clear()
    gc.collect()
    assert not folder.exists()
