"""Twelve people take part in a study at once, with reloads, other devices and a server that dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from judged.studies.assignment import assignments, balance
from judged.studies.lists import StudyLists
from judged.web.study.routes import make_study_app
from judged.web.study.visit import Study
from study_made import DESIGN, design_in, store_of
from web.conftest import served

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from judged.studies.storage import StudyStore

SHORT = (
    DESIGN.replace(', "q3", "q4"', "")
    .replace('practice = ["q0"]\n', "")
    .replace('[[questionnaire]]\nof = "tlx"\nafter = "end"\n', "")
)


@contextmanager
def process(folder: Path, port: int) -> Generator[Any]:
    """Run the study of a folder in a process of its own, which can be killed."""
    said = [sys.executable, "-m", "judged", "study", "run", "study.toml", "--store", "store.db", "--port", str(port)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(said, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        for _ in range(3000):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/static/study.css", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield running
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()


def name_of(page: Any) -> str:
    """Tell which step is shown."""
    return page.url.partition("/s/")[2].split("/")[1].split("?")[0].split("#")[0]


def take_part(page: Any, said: dict[tuple[str, str], str], at: int) -> Iterator[bool]:
    """Go through a study as one participant, and note what was said once the next page is there."""
    while (name := name_of(page)) != "thanks":
        if name.startswith("search"):
            page.locator(".results h2 a").nth(at % 4).click()
            page.wait_for_url("**/document?**")
            yield True
            page.get_by_role("button", name="Save", exact=True).click()
            page.locator(".is-kept").wait_for()
            yield True
            page.get_by_role("button", name="Back to the results").click()
            page.locator(".results").wait_for()
            yield True
            page.locator(".keep button:not(.is-kept)").first.click()
            page.locator(".is-kept").nth(1).wait_for()
            yield True
        given: dict[str, str] = {}
        if name.startswith("search"):
            page.get_by_role("button", name="I am done").click()
        else:
            for box in page.locator("fieldset").all():
                choice = box.locator("input").nth(at % box.locator("input").count())
                choice.check()
                given[choice.get_attribute("name")] = choice.get_attribute("value")
            for box in page.locator("select").all():
                box.select_option("50")
            for box in page.locator("textarea").all():
                box.fill(f"{name} by {at}")
                given[box.get_attribute("name")] = f"{name} by {at}"
            page.locator("main form button").click()
        page.wait_for_url(lambda url, before=name: f"/{before}" not in url)
        said |= {(name, item): value for item, value in given.items()}
        yield True


def play(browser: Any, folder: Path, store: StudyStore) -> dict[str, dict[tuple[str, str], str]]:
    """Let everybody take part at once, some without scripts, and kill the server twice; give what they said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    people, rounds, playing = list(store.participants()), 0, dict[str, Iterator[bool]]()
    pages = {who: browser.new_context(java_script_enabled=at % 3 > 0).new_page() for at, who in enumerate(people)}
    for page in pages.values():
        page.set_default_timeout(120_000)
    said: dict[str, dict[tuple[str, str], str]] = {who: {} for who in people}
    for last in (6, 14, 1000):  # rounds until the server is killed
        with process(folder, port):
            for at, who in enumerate(people):
                if not rounds:
                    pages[who].goto(f"http://127.0.0.1:{port}/s/{store.token(who)}")
                    playing[who] = take_part(pages[who], said[who], at)
                elif at % 2:  # the others go on where they are
                    pages[who].reload()
            while playing and rounds < last:
                rounds += 1
                over = {who for who, one in playing.items() if next(one, False) is False}
                playing = {who: one for who, one in playing.items() if who not in over}
                pages[people[rounds % len(people)]].reload()
    for page in pages.values():
        page.context.close()
    return said


def test_twelve_at_once_with_reloads_and_a_killed_server(browser: Any, tmp_path: Path) -> None:
    design = design_in(tmp_path, SHORT)
    store = store_of(design, tmp_path / "store.db")
    said = play(browser, tmp_path, store)
    records = store.records()
    planned = assignments(design, dict.fromkeys(said, "")).drop_columns("group")
    trials, key = records["trials"], [("participant", "ascending"), ("position", "ascending")]
    assert trials.select(planned.column_names).sort_by(key).to_pylist() == planned.sort_by(key).to_pylist()
    counts = {count.what: (count.least, count.most) for count in balance(design, trials)}
    assert all(least == most > 0 for least, most in counts.values()), counts
    assert trials["ended"].null_count == 0
    done: dict[tuple[str, int], tuple[str, ...]] = {}
    for row in records["events"].to_pylist():
        place = (row["participant"], row["position"])
        done[place] = (*done.get(place, ()), row["action"])
    assert len(done) == 12 * 2
    assert set(done.values()) == {("query", "click", "save", "back", "save", "end")}
    assert records["saved"].num_rows == 12 * 2 * 2
    answers = {
        (row["participant"], row["questionnaire"], row["item"], row["text"] or f"{row['value']:g}")
        for row in records["answers"].to_pylist()
    }
    assert records["answers"].num_rows == 12 * (
        2 + 2 * 2 + 2
    )  # after two tasks, of two systems twice, twice at the end
    for who, known in said.items():
        for (name, item), value in known.items():
            if name.startswith("questions"):
                questionnaire = name.removeprefix("questions-").lstrip("0123456789-")
                assert (who, questionnaire, item, value) in answers
    preferences = records["preferences"].to_pylist()
    assert sorted(row["left"] for row in preferences) == ["alpha"] * 6 + ["beta"] * 6
    for row in preferences:
        sides = {"left": row["left"], "right": row["right"], "neither": ""}
        known = said[row["participant"]]
        assert row["preferred"] == sides[known["preference-1", "preferred"]]
        assert row["why"] == known["preference-1", "why"]
    store.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light")])
def test_pages_fit_and_are_accessible(tab: Callable[..., Any], tmp_path: Path, width: int, scheme: str) -> None:
    design = design_in(tmp_path)
    store = store_of(design, tmp_path / "store.db", 2)
    with served(make_study_app(Study(design, store, StudyLists.of(design)))) as address:
        shown = tab(f"{address}/s/{store.token('p1')}", width=width, color_scheme=scheme, reduced_motion="reduce")
        page, seen = shown.page, set[str]()
        for _ in take_part(page, {}, 1):
            kind = ".".join(part for part in page.url.split("/s/")[1].split("?")[0].split("/")[1:] if part)
            if (kind := kind.replace("1", "").replace("2", "")) not in seen and "3" not in kind:
                seen.add(kind)
                shown.accessible()
                shown.fits()
        for end in (f"/observe/{store.token('observer')}", f"/observe/{store.token('observer')}/p1", "/s/p1-no"):
            page.goto(address + end)
            shown.accessible()
            shown.fits()
        shown.faults[:] = [said for said in shown.faults if "400" not in said]  # the last one is nobody's
        shown.clean()
    store.close()
