"""Do ten tasks of new users in the browser, and count what each costs: clicks, fields, keys, seconds, screens down.

Each way is the shortest that a new user was seen to find on the pages as they are; a page that changes changes its way
here. The seconds are those of the pages, from the first action until the answer is in sight: nobody thinks or reads.
``web_tasks.py [ADDRESS]`` takes a workbench with the sample that is open already.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from browser import chromium, served

from judged.interface.pages.workspace import open_sample
from judged.web.app import make_app

HEIGHT = 900


@dataclass(frozen=True)
class Task:
    """What somebody wants to know: what is done for it from the first page on, and where the answer stands."""

    who: str
    wants: str
    steps: tuple[tuple[str, ...], ...]  # click PLACE, fill PLACE TEXT, choose PLACE TEXT, keys KEY..., or wait PLACE
    answer: str  # the place of the answer, as Playwright finds it


def menu(page: str) -> tuple[str, str]:
    """Choose a page in the header."""
    return "click", f"header nav >> text={page}"


def paste(text: str) -> tuple[tuple[str, ...], ...]:
    """Paste a list into the evaluator."""
    return ("click", "#paste"), ("fill", "#pasted", text), ("click", "#paste-form button.primary")


TASKS = (
    Task(
        "engineer",
        "Which run is best, and is it sure?",
        (menu("Leaderboard"),),
        ".lead:has-text('not shown to differ')",
    ),
    Task(
        "engineer",
        "Show a topic that fusing bm25 with tfidf_char broke.",
        (("click", ".conclusion a >> text=but bm25 is better"), ("click", "table.topics tbody tr >> nth=0 >> a")),
        "#lists",
    ),
    Task(
        "engineer",
        "On which kind of topics is tfidf worse than bm25?",
        (
            menu("Slices"),
            ("choose", "select[name=run]", "tfidf"),
            ("choose", "select[name=baseline]", "bm25"),
            ("click", "form.controls button.primary"),
        ),
        ".lead >> text=/bm25 is better than tfidf in nDCG@10 on/",
    ),
    Task(
        "engineer",
        "If only grade 2 and above is relevant, is the order of the runs by AP another?",
        (
            menu("Leaderboard"),
            ("fill", "input[name=rel]", "2"),
            ("click", "form.choose button.primary"),
            ("click", "thead >> text=AP(rel=2)"),
        ),
        "th[aria-sort]:has-text('AP(rel=2)')",
    ),
    Task(
        "engineer",
        "The table of the runs for a paper, in LaTeX.",
        (
            menu("Leaderboard"),
            ("click", "[data-table=board] + details summary"),
            ("click", "[data-table=board] + details a:has-text('LaTeX')"),
        ),
        "[data-table=board] + details a:has-text('LaTeX')",
    ),
    Task(
        "teacher",
        "Two lists from a book, 3 2 0 1 and 2 3 1 0: which is better, and why?",
        (menu("Evaluator"), *paste("3 2 0 1\n\n2 3 1 0")),
        "#working .apart",
    ),
    Task(
        "teacher",
        "Show how AP of R N R N R comes about, one relevant document being missed.",
        (
            menu("Evaluator"),
            *paste("R N R N R"),
            ("fill", "#relevant", "4"),
            ("click", "#pinned .measure[data-name=AP] .name"),
        ),
        "#working .lines :text-matches('0.5667')",
    ),
    Task(
        "student",
        "What is MRR, does it look at grades, and what is it for my list 0 0 1 0?",
        (
            ("keys", "/", "m", "r", "r"),
            ("wait", "#places [aria-selected=true] >> text=RR"),
            ("keys", "Enter"),
            ("wait", ".typed"),
            ("click", ".typed .row >> nth=0 >> [data-grade='0']"),
            ("click", ".typed .row >> nth=2 >> [data-grade='1']"),
        ),
        ".typed .score .value",
    ),
    Task(
        "student",
        "Precision and recall at 1, 2, 3, 4 and 5 of a list, to draw a curve.",
        (
            menu("Evaluator"),
            ("click", "#pinned .measure[data-name='P@10'] .name, #pinned .measure[data-name='P@5'] .name"),
        ),
        "#working .curve circle",
    ),
    Task(
        "judge",
        "Grade five documents of a topic, and say what that changes.",
        (
            menu("Topics"),
            ("click", "table.topics tbody tr >> nth=0 >> a"),
            ("click", "text=open in the evaluator"),
            ("click", "#list li >> nth=0 >> [data-grade='1']"),
            ("keys", *["1", "ArrowDown", "2", "ArrowDown", "0", "ArrowDown", "3", "ArrowDown", "1"]),
        ),
        "#pinned .moved[data-tone]",
    ),
    Task(
        "judge",
        "Grade five documents, and keep the grades.",
        (
            menu("Judging"),
            ("click", "text=Try judging"),
            ("fill", "input[name=judge]", "ann"),
            ("click", "text=Begin"),
            ("wait", ".judging[data-ready]"),
            ("keys", *"12031"),
        ),
        "#done:text-is('5')",
    ),
)


def done(page: Any, address: str, task: Task) -> list[str]:
    """Do a task, and give its row."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    for what, *given in task.steps:
        counts[what] += len(given) if what == "keys" else 1
        place = page.locator(given[0]).first
        match what:
            case "wait":
                place.wait_for(state="visible")
            case "click":
                place.click()
                page.wait_for_load_state()
                if page.locator("#evaluator").count():
                    page.wait_for_selector("html[data-ready]")  # a button before that does nothing
            case "fill":
                place.fill(given[1])
            case "choose":
                place.select_option(label=given[1])
            case _:
                for key in given:
                    page.keyboard.press(key)
    answer = page.locator(task.answer).first
    answer.wait_for(state="visible")
    seconds = time.perf_counter() - began
    # the top of the answer on the page, in heights of the window; a dialog or a fold above it is already open
    down = (answer.bounding_box()["y"] + page.evaluate("scrollY")) / HEIGHT
    clicks = str(counts["click"] + counts["choose"])
    return [task.who, task.wants, clicks, str(counts["fill"]), str(counts["keys"]), f"{seconds:.1f}", f"{down:.1f}"]


def main() -> None:
    """Print a table of all tasks; a task that cannot be done on these pages says where it stopped."""
    with chromium() as browser, served(make_app(open_sample())) as address:
        tried(browser, *sys.argv[1:2] or [address])


def tried(browser: Any, address: str) -> None:
    """Do all tasks, each in a window of its own, and print their rows."""
    print("| who | wants to know | clicks | fields | keys | seconds | screens down |\n|---|---|---|---|---|---|---|")
    for task in TASKS:
        context = browser.new_context(viewport={"width": 1280, "height": HEIGHT})
        context.set_default_timeout(120_000)
        try:
            row = done(context.new_page(), address, task)
        except Exception as error:  # noqa: BLE001  whatever stopped it is the result
            row = [task.who, task.wants, re.sub(r"\s+", " ", str(error))[:200]]
        print(f"| {' | '.join(row)} |", flush=True)
        context.close()


if __name__ == "__main__":
    main()
