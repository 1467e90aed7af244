"""The judging page as judges use it: by keys, two at once, with a server that dies, on a phone."""

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


def saved(page: Any, done: int) -> None:
    """Wait until so many are done and the server has them all."""
    expect(page.locator("#done")).to_have_text(f"{done:,}", timeout=30_000)
    expect(page.locator("#state")).to_have_text(re.compile("all saved"), timeout=30_000)


def press(page: Any, keys: str) -> list[str]:
    """Press keys, and give the document that each one was pressed for."""
    seen: list[str] = []
    for key in keys:
        expect(page.locator(".judging[data-ready]:not(.finished)")).to_be_visible()  # keys before that are lost
        seen.append(page.locator("#doc_id").inner_text())
        page.keyboard.press(key)
    return seen


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db", 60)


def test_by_keys_alone(serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore) -> None:
    shown = tab(serve(workspace_of(store)) + "/judging")
    page = shown.page
    order = [task.doc_id for task in store.tasks("ann")]
    log_in(page, "ann")
    seen = press(page, "0123" * 10)
    saved(page, 40)
    assert seen == order[:40]
    assert counted(store, "ann") == {doc: float(at % 4) for at, doc in enumerate(seen)}
    assert all(0 < row["seconds"] < 60 for row in Labels.of(store).last.to_pylist())
    expect(page.locator("#pace")).to_have_text(re.compile(r"[\d.]+ s a label"))
    (skipped,) = press(page, "s")
    (later,) = press(page, "l")
    page.keyboard.press("n")
    page.keyboard.type("s2: in a note keys are letters")
    page.keyboard.press("Escape")
    (noted,) = press(page, "3")
    saved(page, 42)
    last = {row["doc_id"]: row for row in Labels.of(store).last.to_pylist()}
    assert (last[skipped]["valid"], last[skipped]["grade"]) == (True, None)
    assert (last[later]["valid"], last[later]["grade"]) == (False, None)
    assert (last[noted]["note"], last[noted]["grade"]) == ("s2: in a note keys are letters", 3.0)
    page.get_by_label("Answer with single keys").uncheck()
    page.keyboard.press("2")
    expect(page.locator("#done")).to_have_text("42")
    page.get_by_label("Answer with single keys").check()
    docs = press(page, "1" * 18)
    assert docs[-1] == later
    expect(page.locator("h1")).to_have_text("Nothing is left to judge")
    saved(page, 60)
    assert store.tasks("ann") == ()
    shown.clean()


def test_what_was_taken_back_can_be_given_anew(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    shown = tab(serve(workspace_of(store)) + "/judging")
    page = shown.page
    log_in(page, "ann")
    first, second, third = press(page, "012")
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(third)
    expect(page.locator("[data-before]")).to_have_text(re.compile("Relevant"))
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(second)
    assert press(page, "33") == [second, third]
    saved(page, 3)
    assert counted(store, "ann") == {first: 0.0, second: 3.0, third: 3.0}
    current = page.locator("#doc_id").inner_text()
    page.reload()
    expect(page.locator("#doc_id")).to_have_text(current)
    expect(page.locator("[data-ready]")).to_be_visible()
    page.keyboard.press("u")  # what was done before the page was loaded
    expect(page.locator("#doc_id")).to_have_text(third)
    page.keyboard.press("u")
    expect(page.locator("#doc_id")).to_have_text(second)
    assert press(page, "112") == [second, third, current]
    saved(page, 4)
    assert counted(store, "ann") == {first: 0.0, second: 1.0, third: 1.0, current: 2.0}
    shown.clean()


def test_two_judges_at_once(serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore) -> None:
    address = serve(workspace_of(store)) + "/judging"
    pages = {judge: tab(address).page for judge in ("ann", "bob")}
    seen: dict[str, list[str]] = {judge: [] for judge in pages}
    for judge, page in pages.items():
        log_in(page, judge)
    for _ in range(15):
        for judge, page in pages.items():
            seen[judge] += press(page, "21")
    for page in pages.values():
        saved(page, 30)
    for judge, docs in seen.items():
        assert counted(store, judge) == {doc: 2.0 - at % 2 for at, doc in enumerate(docs)}
    assert seen["ann"] != seen["bob"]  # each has an order of their own


def test_a_hidden_page_does_not_count_time(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    page = tab(serve(workspace_of(store)) + "/judging").page
    log_in(page, "ann")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    told = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(hide % "true" + told)
    page.wait_for_timeout(700)
    page.evaluate(hide % "false" + told)
    press(page, "1")
    saved(page, 1)
    assert Labels.of(store).table["seconds"][0].as_py() < 0.6


@contextmanager
def process(store: LabelStore, port: int) -> Generator[Any]:
    """Serve a store in a process of its own, which can be killed."""
    said = [sys.executable, "-m", "judged", "serve", "--labels", store.where, "--port", str(port)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(said, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/judging", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield running
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()


def test_a_judge_goes_on_while_the_server_is_killed(tab: Callable[..., Any], store: LabelStore) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(store, port) as running:
        page = tab(f"http://127.0.0.1:{port}/judging").page
        log_in(page, "ann")
        seen = press(page, "01230")
        running.send_signal(signal.SIGKILL)  # perhaps before it has them all
        running.wait()
        seen += press(page, "1230123")
        expect(page.locator("#state")).to_have_text(re.compile(r"\d+ not yet saved"), timeout=10_000)
        page.keyboard.press("u")
        seen[-1:] = press(page, "2")
    with process(store, port) as running:
        saved(page, 12)
        seen += press(page, "3")
        saved(page, 13)
        grades = [float(at % 4) for at in range(13)]
        grades[11], grades[12] = 2.0, 3.0
        assert counted(store, "ann") == dict(zip(seen, grades, strict=True))
        # What the server never had outlives the page as well.
        running.send_signal(signal.SIGKILL)
        running.wait()
        seen += press(page, "1")
        expect(page.locator("#state")).to_have_text(re.compile("1 not yet saved"), timeout=10_000)
    context = page.context
    page.close()
    with process(store, port):
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/judging")
        saved(page, 14)
        assert counted(store, "ann")[seen[-1]] == 1.0
    assert len(seen) == len(set(seen)) == len(counted(store, "ann"))


def test_without_scripts_it_is_a_form(serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore) -> None:
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
    shown = tab(address + "/judging", width=width, color_scheme=scheme, reduced_motion="reduce")
    shown.accessible()
    shown.fits()
    log_in(shown.page, "ann")
    press(shown.page, "1")
    saved(shown.page, 1)
    shown.accessible()
    shown.fits()
    for button in shown.page.locator("#answer button:visible").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
    shown.page.goto(address + "/judging/disagreements")
    shown.accessible()
    shown.fits()
    shown.page.goto(address + "/topic?topic=q1&doc_id=d2&grade=3")
    shown.accessible()
    shown.fits()
    shown.clean()


def test_a_disagreement_is_settled_and_a_grade_is_given_in_place(
    serve: Callable[..., str], tab: Callable[..., Any], store: LabelStore
) -> None:
    for judge, grade in (("bob", 0.0), ("eve", 3.0)):
        store.add(judge, "q1", "d1", grade)
    shown = tab(serve(workspace_of(store)) + "/judging/disagreements")
    page = shown.page
    page.get_by_label("Why").fill("eve is right")
    page.get_by_role("button", name="3").click()
    expect(page.locator(".final")).to_contain_text("3")
    assert counted(store, "adjudicator") == {"d1": 3.0}
    page.goto(page.url.replace("/judging/disagreements", "/topic?topic=q1"))
    page.locator(".document", has_text="d2").first.focus()
    page.keyboard.press("3")
    expect(page.locator("#graded")).to_have_text("If d2 had grade 3, beside 1 saved grade")
    page.get_by_label("Judge", exact=True).fill("cleo")
    page.locator("#graded").focus()
    page.keyboard.press("s")
    expect(page.get_by_text("Saved as a label")).to_be_visible()
    assert counted(store, "cleo") == {"d2": 3.0}
    shown.clean()
