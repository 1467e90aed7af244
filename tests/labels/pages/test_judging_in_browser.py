"""The judging page in a browser: keyboard, concurrent judges, a killed server, and small screens."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from judged.labels.labels import Labels
from judged.labels.store import LabelStore
from label_stores import counted, store_of, workspace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path


def log_in(page: Any, judge: str) -> None:
    page.get_by_label("Your name").fill(judge)
    page.keyboard.press("Enter")
    expect(page.locator("#judging")).to_be_visible()


def wait_until_saved(page: Any, done: int) -> None:
    """Wait until `done` tasks are done and the server has all labels."""
    expect(page.locator("#done")).to_have_text(f"{done:,}", timeout=30_000)
    expect(page.locator("#state")).to_have_text(re.compile("all labels saved"), timeout=30_000)


def press(page: Any, keys: str) -> list[str]:
    """Press keys, and return the document that each key graded."""
    docs: list[str] = []
    for key in keys:
        expect(page.locator(".judging[data-ready]:not(.finished)")).to_be_visible()  # earlier keys are lost
        docs.append(page.locator("#doc_id").inner_text())
        page.keyboard.press(key)
    return docs


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db", 60)


def test_judging_with_the_keyboard(serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore) -> None:
    view = tab(serve(workspace_of(store)) + "/judging")
    page = view.page
    order = [task.doc_id for task in store.tasks("ann")]
    log_in(page, "ann")
    docs = press(page, "0123" * 10)
    wait_until_saved(page, 40)
    assert docs == order[:40]
    assert counted(store, "ann") == {doc: float(i % 4) for i, doc in enumerate(docs)}
    assert all(0 < row["seconds"] < 60 for row in Labels.of(store).last.to_pylist())
    expect(page.locator("#pace")).to_have_text(re.compile(r"[\d.]+ s per label"))
    (skipped,) = press(page, "s")
    (later,) = press(page, "l")
    page.keyboard.press("n")
    page.keyboard.type("s2: in a note keys are letters")
    page.keyboard.press("Escape")
    (noted,) = press(page, "3")
    wait_until_saved(page, 42)
    last = {row["doc_id"]: row for row in Labels.of(store).last.to_pylist()}
    assert (last[skipped]["valid"], last[skipped]["grade"]) == (True, None)
    assert (last[later]["valid"], last[later]["grade"]) == (False, None)
    assert (last[noted]["note"], last[noted]["grade"]) == ("s2: in a note keys are letters", 3.0)
    page.get_by_label("Grade with keyboard shortcuts").uncheck()
    page.keyboard.press("2")
    expect(page.locator("#done")).to_have_text("42")
    page.get_by_label("Grade with keyboard shortcuts").check()
    docs = press(page, "1" * 18)
    assert docs[-1] == later
    expect(page.locator("h1")).to_have_text("All tasks are done")
    wait_until_saved(page, 60)
    assert store.tasks("ann") == ()
    view.clean()


def test_undone_labels_can_be_given_again(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    view = tab(serve(workspace_of(store)) + "/judging")
    page = view.page
    log_in(page, "ann")
    first, second, third = press(page, "012")
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(third)
    expect(page.locator("[data-previous]")).to_have_text(re.compile("Relevant"))
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(second)
    assert press(page, "33") == [second, third]
    wait_until_saved(page, 3)
    assert counted(store, "ann") == {first: 0.0, second: 3.0, third: 3.0}
    current = page.locator("#doc_id").inner_text()
    page.reload()
    expect(page.locator("#doc_id")).to_have_text(current)
    expect(page.locator("[data-ready]")).to_be_visible()
    page.keyboard.press("u")  # a label from before the reload
    expect(page.locator("#doc_id")).to_have_text(third)
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(second)
    assert press(page, "112") == [second, third, current]
    wait_until_saved(page, 4)
    assert counted(store, "ann") == {first: 0.0, second: 1.0, third: 1.0, current: 2.0}
    view.clean()


def test_concurrent_judges(serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore) -> None:
    address = serve(workspace_of(store)) + "/judging"
    pages = {judge: tab(address).page for judge in ("ann", "bob")}
    docs_of_judge: dict[str, list[str]] = {judge: [] for judge in pages}
    for judge, page in pages.items():
        log_in(page, judge)
    for _ in range(15):
        for judge, page in pages.items():
            docs_of_judge[judge] += press(page, "21")
    for page in pages.values():
        wait_until_saved(page, 30)
    for judge, docs in docs_of_judge.items():
        assert counted(store, judge) == {doc: 2.0 - i % 2 for i, doc in enumerate(docs)}
    assert docs_of_judge["ann"] != docs_of_judge["bob"]  # different orders


def test_a_hidden_page_does_not_count_time(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    page = tab(serve(workspace_of(store)) + "/judging").page
    log_in(page, "ann")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    dispatch = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(hide % "true" + dispatch)
    page.wait_for_timeout(700)
    page.evaluate(hide % "false" + dispatch)
    press(page, "1")
    wait_until_saved(page, 1)
    assert Labels.of(store).table["seconds"][0].as_py() < 0.6


@contextmanager
def serve_in_process(store: LabelStore, port: int) -> Generator[Any]:
    """Serve a store in another process, which can be killed."""
    command = [sys.executable, "-m", "judged", "serve", "--labels", store.where, "--port", str(port)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/judging", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield server
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def test_judging_continues_while_the_server_is_down(tab: Callable[..., Any], store: LabelStore) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serve_in_process(store, port) as server:
        page = tab(f"http://127.0.0.1:{port}/judging").page
        log_in(page, "ann")
        docs = press(page, "01230")
        server.send_signal(signal.SIGKILL)  # possibly before it has all labels
        server.wait()
        docs += press(page, "1230123")
        expect(page.locator("#state")).to_have_text(re.compile(r"\d+ labels? not saved yet"), timeout=10_000)
        page.keyboard.press("u")
        docs[-1:] = press(page, "2")
    with serve_in_process(store, port) as server:
        wait_until_saved(page, 12)
        docs += press(page, "3")
        wait_until_saved(page, 13)
        grades = [float(i % 4) for i in range(13)]
        grades[11], grades[12] = 2.0, 3.0
        assert counted(store, "ann") == dict(zip(docs, grades, strict=True))
        # Labels that the server never received survive the end of the page.
        server.send_signal(signal.SIGKILL)
        server.wait()
        docs += press(page, "1")
        expect(page.locator("#state")).to_have_text(re.compile("1 label not saved yet"), timeout=10_000)
    context = page.context
    page.close()
    with serve_in_process(store, port):
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/judging")
        wait_until_saved(page, 14)
        assert counted(store, "ann")[docs[-1]] == 1.0
    assert len(docs) == len(set(docs)) == len(counted(store, "ann"))


def test_without_scripts_the_page_is_a_form(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    page = tab(serve(workspace_of(store)) + "/judging", java_script_enabled=False).page
    log_in(page, "ann")
    first = page.locator("#doc_id").inner_text()
    page.get_by_label("Note").fill("by hand")
    page.get_by_role("button", name="Highly relevant").click()
    expect(page.locator("#done")).to_have_text("1")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#doc_id")).to_have_text(first)
    page.get_by_role("button", name="Skip").click()
    expect(page.locator("#done")).to_have_text("1")
    assert counted(store, "ann") == {first: None}


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_pages_fit_and_are_accessible(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore, width: int, scheme: str
) -> None:
    for judge, grade in (("bob", 0.0), ("eve", 3.0)):
        store.add(judge, "q1", "d1", grade, note="x" * 300)
    address = serve(workspace_of(store))
    view = tab(address + "/judging", width=width, color_scheme=scheme, reduced_motion="reduce")
    view.accessible()
    view.fits()
    log_in(view.page, "ann")
    press(view.page, "1")
    wait_until_saved(view.page, 1)
    view.accessible()
    view.fits()
    for button in view.page.locator("#answer button:visible").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
    view.page.goto(address + "/judging/disagreements")
    view.accessible()
    view.fits()
    view.page.goto(address + "/topic?topic=q1&doc_id=d2&grade=3")
    view.accessible()
    view.fits()
    view.clean()


def test_settling_a_disagreement_and_grading_on_the_topic_page(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    for judge, grade in (("bob", 0.0), ("eve", 3.0)):
        store.add(judge, "q1", "d1", grade)
    view = tab(serve(workspace_of(store)) + "/judging/disagreements")
    page = view.page
    page.get_by_label("Reason").fill("eve is right")
    page.get_by_role("button", name="3").click()
    expect(page.locator(".final")).to_contain_text("3")
    assert counted(store, "adjudicator") == {"d1": 3.0}
    page.goto(page.url.replace("/judging/disagreements", "/topic?topic=q1"))
    page.locator(".document", has_text="d2").first.focus()
    page.keyboard.press("3")
    expect(page.locator("#graded")).to_have_text("Scores if d2 had grade 3, with 1 saved grade")
    page.get_by_label("Judge", exact=True).fill("cleo")
    page.locator("#graded").focus()
    page.keyboard.press("s")
    expect(page.get_by_text("Saved as a label")).to_be_visible()
    assert counted(store, "cleo") == {"d2": 3.0}
    view.clean()
