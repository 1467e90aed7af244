"""Twelve people take part in a study at once, with reloads, other devices and a server that dies."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from browsing import served
from judged.studies.assignment import assignments, balance
from judged.studies.pages import Study, make_study_app
from judged.studies.records import StudyLists
from study_made import DESIGN, design_in, store_of

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
    command = [sys.executable, "-m", "judged", "study", "run", "study.toml", "--store", "store.db", "--port", str(port)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
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
    return str(page.url).partition("/s/")[2].split("/")[1].split("?")[0].split("#")[0]


def take_part(page: Any, answers: dict[tuple[str, str], str], index: int) -> Iterator[bool]:
    """Go through a study as one participant, and note what was said once the next page is there."""
    while (name := name_of(page)) != "thanks":
        if name.startswith("search"):
            page.locator(".results h2 a").nth(index % 4).click()
            page.wait_for_url("**/document?**")
            yield True
            page.get_by_role("button", name="Save", exact=True).click()
            page.locator(".is-saved").wait_for()
            yield True
            page.get_by_role("button", name="Back to the results").click()
            page.locator(".results").wait_for()
            yield True
            page.locator(".save-form button:not(.is-saved)").first.click()
            page.locator(".is-saved").nth(1).wait_for()
            yield True
        fields: dict[str, str] = {}
        if name.startswith("search"):
            page.get_by_role("button", name="I am done").click()
        else:
            for box in page.locator("fieldset").all():
                choice = box.locator("input").nth(index % box.locator("input").count())
                choice.check()
                fields[choice.get_attribute("name")] = choice.get_attribute("value")
            for box in page.locator("select").all():
                box.select_option("50")
            for box in page.locator("textarea").all():
                box.fill(f"{name} by {index}")
                fields[box.get_attribute("name")] = f"{name} by {index}"
            page.locator("main form button").click()
        page.wait_for_url(lambda url, before=name: f"/{before}" not in url)
        answers |= {(name, item): value for item, value in fields.items()}
        yield True


def take_part_by_forms(home: str, index: int, may_ask: Semaphore) -> tuple[dict[tuple[str, str], str], int]:
    """Go through a study without a browser, and ask again where no answer came.

    Gives what was said, noted once the next page is there, and how often no answer came.
    """
    answers, passed, unanswered = dict[tuple[str, str], str](), list[str](), 0

    def ask(address: str, form: dict[str, str] | None = None) -> httpx.Response:
        nonlocal unanswered
        may_ask.acquire()
        for _ in range(600):
            try:
                answer = client.get(address) if form is None else client.post(address, data=form)
                if index % 2:  # reload
                    answer = client.get(answer.url)
            except httpx.TransportError:
                unanswered += 1
                time.sleep(0.1)
            else:
                assert answer.status_code == 200, answer.text
                return answer
        raise TimeoutError(address)

    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        page = ask(home)
        while (name := name_of(page)) != "thanks":
            assert name not in passed, "what was passed comes again"
            here, form = f"{home}/{name}", dict[str, str]()
            if name.startswith("search"):
                number, doc = re.findall(r'href="[^"]+/document\?page=(\d+)&amp;id=(\w+)"', page.text)[index % 4]
                ask(f"{here}/document?page={number}&id={doc}")
                document = {"page": number, "id": doc}
                saved_page = ask(f"{here}/act", {"action": "save", "then": "document", **document})
                assert "is-saved" in saved_page.text
                page = ask(f"{here}/act", {"action": "back", "seconds": "0.5", **document})
                other = next(doc_id for doc_id in re.findall(r'name="id" value="(\w+)"', page.text) if doc_id != doc)
                page = ask(f"{here}/act", {"action": "save", "page": number, "id": other, "then": "results"})
                assert page.text.count('class="is-saved"') == 2
            else:
                radios = re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', page.text)
                choices = {item: [value for radio_name, value in radios if radio_name == item] for item, _ in radios}
                form = {item: values[index % len(values)] for item, values in choices.items()}
                form |= dict.fromkeys(
                    re.findall(r'<textarea id="[^"]+" name="([^"]+)"', page.text), f"{name} by {index}"
                )
            menus = re.findall(r'<select id="[^"]+" name="([^"]+)"', page.text)
            page = ask(here, form | dict.fromkeys(menus, "50"))
            passed.append(name)
            answers |= {(name, item): value for item, value in form.items()}
    return answers, unanswered


def play(browser: Any, folder: Path, store: StudyStore) -> dict[str, dict[tuple[str, str], str]]:
    """Let everybody take part at once, and kill the server twice; give what they said.

    Two sit before browsers, one of them without scripts; the others ask as fast as they are allowed to.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    people = {
        person: (f"http://127.0.0.1:{port}/s/{store.token(person)}", i) for i, person in enumerate(store.participants())
    }
    pages = {
        person: browser.new_context(java_script_enabled=i % 3 > 0).new_page()
        for person, (_, i) in people.items()
        if i % 7 == 0
    }
    answers: dict[str, dict[tuple[str, str], str]] = {person: {} for person in people}
    playing, may_ask, rounds = dict[str, Iterator[bool]](), Semaphore(0), 0
    with ThreadPoolExecutor(len(people)) as pool:
        others = {
            person: pool.submit(take_part_by_forms, *row, may_ask)
            for person, row in people.items()
            if person not in pages
        }
        try:
            for last, requests in ((6, 150), (14, 150), (1000, 10_000)):  # until the server is killed
                with process(folder, port):
                    may_ask.release(requests)
                    for person, page in pages.items():
                        if not rounds:
                            page.set_default_timeout(120_000)
                            page.goto(people[person][0])
                            playing[person] = take_part(page, answers[person], people[person][1])
                        elif people[person][1] % 2:  # the others go on where they are
                            page.reload()
                    while playing and rounds < last:
                        rounds += 1
                        over = {person for person, row in playing.items() if next(row, False) is False}
                        playing = {person: row for person, row in playing.items() if person not in over}
                        list(pages.values())[rounds % len(pages)].reload()
                    if playing:
                        may_ask.release(50)  # for these the server dies
                    else:
                        wait(others.values())
        finally:
            may_ask.release(10_000)
    for page in pages.values():
        page.context.close()
    results = {person: row.result() for person, row in others.items()}
    assert sum(unanswered for _, unanswered in results.values()) >= 2
    return answers | {person: person_answers for person, (person_answers, _) in results.items()}


def test_twelve_at_once_with_reloads_and_a_killed_server(browser: Any, tmp_path: Path) -> None:
    design = design_in(tmp_path, SHORT)
    store = store_of(design, tmp_path / "store.db")
    all_answers = play(browser, tmp_path, store)
    records = store.records()
    planned = assignments(design, dict.fromkeys(all_answers, "")).drop_columns("group")
    trials, key = records["trials"], [("participant", "ascending"), ("position", "ascending")]
    assert trials.select(planned.column_names).sort_by(key).to_pylist() == planned.sort_by(key).to_pylist()
    counts = {count.kind: (count.min_count, count.max_count) for count in balance(design, trials)}
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
    for participant, person_answers in all_answers.items():
        for (name, item), value in person_answers.items():
            if name.startswith("questions"):
                questionnaire = name.removeprefix("questions-").lstrip("0123456789-")
                assert (participant, questionnaire, item, value) in answers
    preferences = records["preferences"].to_pylist()
    assert sorted(row["left"] for row in preferences) == ["alpha"] * 6 + ["beta"] * 6
    for row in preferences:
        sides = {"left": row["left"], "right": row["right"], "neither": ""}
        person_answers = all_answers[row["participant"]]
        assert row["preferred"] == sides[person_answers["preference-1", "preferred"]]
        assert row["reason"] == person_answers["preference-1", "reason"]
    store.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light")])
def test_pages_fit_and_are_accessible(tab: Callable[..., Any], tmp_path: Path, width: int, scheme: str) -> None:
    design = design_in(tmp_path)
    store = store_of(design, tmp_path / "store.db", 2)
    with served(make_study_app(Study(design, store, StudyLists.of(design)))) as address:
        view = tab(f"{address}/s/{store.token('p1')}", width=width, color_scheme=scheme, reduced_motion="reduce")
        page, page_kinds = view.page, set[str]()
        for _ in take_part(page, {}, 1):
            kind = ".".join(part for part in page.url.split("/s/")[1].split("?")[0].split("/")[1:] if part)
            if (kind := kind.replace("1", "").replace("2", "")) not in page_kinds and "3" not in kind:
                page_kinds.add(kind)
                view.accessible()
                view.fits()
        for end in (f"/observe/{store.token('observer')}", f"/observe/{store.token('observer')}/p1", "/s/p1-no"):
            page.goto(address + end)
            view.accessible()
            view.fits()
        view.faults[:] = [fault for fault in view.faults if "400" not in fault]  # the last one is nobody's
        view.clean()
    store.close()
