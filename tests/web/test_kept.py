"""What is kept for the next request, and which workspace a request sees."""

from __future__ import annotations

import gc
from dataclasses import replace
from threading import Event, Thread

import pytest
from fastapi import Request

from judged.errors import InputError
from judged.interface.pages.workspace import (
    LockedFolder,
    ResultCache,
    Workspace,
    WorkspaceHolder,
    cached_in_workspace,
    current_workspace,
    open_workspace,
    set_error_field,
)
from judged.reports.pages import AskedChange


def test_what_is_made_of_itself_is_refused_and_can_be_made_later():
    kept = ResultCache()

    def itself() -> int:
        return kept.get("a", itself)

    with pytest.raises(RecursionError):
        itself()
    assert kept.get("a", lambda: kept.get("b", lambda: 2) + 1) == 3


def test_what_cannot_be_made_does_not_push_out_what_was():
    kept = ResultCache(max_size=2)
    assert kept.get("a", lambda: 1) == 1
    for at in range(5):
        with pytest.raises(ZeroDivisionError):
            kept.get(at, lambda: 1 / 0)
    assert kept.get("a", lambda: 2) == 1


def test_what_fails_while_somebody_else_asks_for_it_is_made_by_them():
    kept, begun, fails = ResultCache(), Event(), Event()

    class Key:
        hashed = 0

        def __eq__(self, other: object) -> bool:
            return other == "a"

        def __hash__(self) -> int:
            self.hashed += 1
            if self.hashed == 2:  # it was found, and is now to be moved: the other thread gives it up meanwhile
                fails.set()
                first.join(0.2)
            return hash("a")

    def make() -> int:
        begun.set()
        fails.wait(10)
        return 1 // 0

    def ask() -> None:
        with pytest.raises(ZeroDivisionError):
            kept.get("a", make)

    first = Thread(target=ask)
    first.start()
    assert begun.wait(10)
    assert kept.get(Key(), lambda: 2) == 2
    first.join()


def test_a_request_sees_one_workspace_whose_files_stay_until_it_ends():
    class App:
        state = type("State", (), {})()

    qrels = {"q1": {"d1": 1}}
    desk = App.state.holder = WorkspaceHolder(open_workspace(qrels, {}))
    desk.replace(replace(open_workspace(qrels, {}), upload_folder=LockedFolder()))
    folder = desk.workspace.upload_folder.path
    scope = {"type": "http", "app": App}
    before = current_workspace(Request(scope))
    desk.replace(open_workspace(qrels, {}))
    assert current_workspace(Request(scope)) is before
    assert current_workspace(Request({"type": "http", "app": App})) is desk.workspace
    assert folder.is_dir()
    del before
    scope.clear()
    gc.collect()
    assert not folder.exists()


def test_what_is_made_of_a_workspace_is_made_once_and_not_for_another():
    made: list[tuple[str, AskedChange]] = []

    @cached_in_workspace
    def title(workspace: Workspace, asked: AskedChange) -> str:
        made.append((workspace.title, asked))
        return workspace.title

    one = open_workspace({"q1": {"d1": 1}}, {}, title="one")
    two = replace(one, title="two")
    a, b = AskedChange(first="a", second=""), AskedChange(first="b", second="")
    assert [title(one, a), title(asked=a, workspace=one), title(one, b), title(two, a)] == ["one", "one", "one", "two"]
    assert made == [("one", a), ("one", b), ("two", a)]


def test_what_is_refused_names_the_innermost_field():
    @set_error_field("outer")
    def refused() -> None:
        with set_error_field("inner"):
            raise InputError("it is wrong")

    with pytest.raises(InputError) as found:
        refused()
    assert found.value.field == "inner"
