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
from judged.reports.pages import ChangeQuery


def test_what_is_made_of_itself_is_refused_and_can_be_made_later():
    cache = ResultCache()

    def itself() -> int:
        return cache.get("a", itself)

    with pytest.raises(RecursionError):
        itself()
    assert cache.get("a", lambda: cache.get("b", lambda: 2) + 1) == 3


def test_what_cannot_be_made_does_not_push_out_what_was():
    cache = ResultCache(max_size=2)
    assert cache.get("a", lambda: 1) == 1
    for i in range(5):
        with pytest.raises(ZeroDivisionError):
            cache.get(i, lambda: 1 / 0)
    assert cache.get("a", lambda: 2) == 1


def test_what_fails_while_somebody_else_asks_for_it_is_made_by_them():
    cache, begun, fails = ResultCache(), Event(), Event()

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
            cache.get("a", make)

    first = Thread(target=ask)
    first.start()
    assert begun.wait(10)
    assert cache.get(Key(), lambda: 2) == 2
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
    calls: list[tuple[str, ChangeQuery]] = []

    @cached_in_workspace
    def title(workspace: Workspace, parameters: ChangeQuery) -> str:
        calls.append((workspace.title, parameters))
        return workspace.title

    first = open_workspace({"q1": {"d1": 1}}, {}, title="one")
    second = replace(first, title="two")
    a, b = ChangeQuery(first="a", second=""), ChangeQuery(first="b", second="")
    titles = [title(first, a), title(parameters=a, workspace=first), title(first, b), title(second, a)]
    assert titles == ["one", "one", "one", "two"]
    assert calls == [("one", a), ("one", b), ("two", a)]


def test_what_is_refused_names_the_innermost_field():
    @set_error_field("outer")
    def refused() -> None:
        with set_error_field("inner"):
            raise InputError("it is wrong")

    with pytest.raises(InputError) as error:
        refused()
    assert error.value.field == "inner"
