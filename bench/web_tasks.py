"""Run tasks of new users in a browser, and count clicks, fields, keys, seconds, and screens of scrolling.

Each task has the shortest steps that new users found; if a page changes, update its steps here. Seconds are those of
the pages, from the first action until the answer is visible, without time for thinking or reading. ``web_tasks.py
[ADDRESS]`` uses a running workbench with the sample.
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
    """Question of a user, the steps from the first page to its answer, and the place of the answer."""

    role: str
    question: str
    steps: tuple[tuple[str, ...], ...]  # click PLACE, fill PLACE TEXT, choose PLACE TEXT, keys KEY..., or wait PLACE
    answer: str  # Playwright selector of the answer


def menu(page: str) -> tuple[str, str]:
    """Return the step that opens a page from the header."""
    return "click", f"#navigation >> text='{page}'"


def paste(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the steps that paste a list into the evaluator."""
    return ("click", "#paste"), ("fill", "#pasted", text), ("click", "#paste-form button.primary")


TASKS = (
    Task(
        "engineer",
        "Which run is best, and is the difference significant?",
        (menu("Leaderboard"),),
        ".lead:has-text('not significantly different')",
    ),
    Task(
        "engineer",
        "Show a topic on which the fusion of bm25 and tfidf_char is worse.",
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
        "If only grades from 2 are relevant, does the order of the runs by AP change?",
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
        "Export the table of the runs in LaTeX for a paper.",
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
        "#calculation .list-difference",
    ),
    Task(
        "teacher",
        "Show the computation of AP of R N R N R, with one missed relevant document.",
        (
            menu("Evaluator"),
            *paste("R N R N R"),
            ("fill", "#relevant", "4"),
            ("click", "#pinned .measure[data-name=AP] .name"),
        ),
        "#calculation .lines :text-matches('0.5667')",
    ),
    Task(
        "student",
        "Find the definition of MRR, whether it uses grades, and its value for the list 0 0 1 0.",
        (
            ("keys", "/", "m", "r", "r"),
            ("wait", "#search-results [aria-selected=true] >> text=RR"),
            ("keys", "Enter"),
            ("wait", ".typed"),
            ("click", ".typed .row >> nth=0 >> [data-grade='0']"),
            ("click", ".typed .row >> nth=2 >> [data-grade='1']"),
        ),
        ".typed .score .value",
    ),
    Task(
        "student",
        "Find precision and recall at ranks 1 to 5 of a list, for a curve.",
        (
            menu("Evaluator"),
            ("click", "#pinned .measure[data-name='P@10'] .name, #pinned .measure[data-name='P@5'] .name"),
        ),
        "#calculation .curve circle",
    ),
    Task(
        "judge",
        "Grade five documents of a topic, and find the effect on the scores.",
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
        "Grade five documents, and save the grades.",
        (
            menu("Judging"),
            ("click", "button:has-text('Try judging')"),
            ("fill", "input[name=judge]", "ann"),
            ("click", "text=Begin"),
            ("wait", ".judging[data-ready]"),
            ("keys", *"12031"),
        ),
        "#done:text-is('5')",
    ),
)


def run_task(page: Any, address: str, task: Task) -> list[str]:
    """Run a task, and return its row."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for action, *arguments in task.steps:
        counts[action] += len(arguments) if action == "keys" else 1
        element = page.locator(arguments[0]).first
        match action:
            case "wait":
                element.wait_for(state="visible")
            case "click":
                element.click()
                page.wait_for_load_state()
                if page.locator("#evaluator").count():
                    page.wait_for_selector("html[data-ready]")  # buttons do not work before
            case "fill":
                element.fill(arguments[1])
            case "choose":
                element.select_option(label=arguments[1])
            case _:
                for key in arguments:
                    page.keyboard.press(key)
    answer = page.locator(task.answer).first
    answer.wait_for(state="visible")
    seconds = time.perf_counter() - start
    # Position of the answer in window heights; dialogs and folds above it are already open.
    screens = (answer.bounding_box()["y"] + page.evaluate("scrollY")) / HEIGHT
    clicks = str(counts["click"] + counts["choose"])
    return [
        task.role,
        task.question,
        clicks,
        str(counts["fill"]),
        str(counts["keys"]),
        f"{seconds:.1f}",
        f"{screens:.1f}",
    ]


def main() -> None:
    """Print a table of all tasks; a failed task prints its error."""
    with chromium() as browser, served(make_app(open_sample())) as address:
        print_tasks(browser, *sys.argv[1:2] or [address])


def print_tasks(browser: Any, address: str) -> None:
    """Run each task in a new browser context, and print its row."""
    print("| role | question | clicks | fields | keys | seconds | screens down |\n|---|---|---|---|---|---|---|")
    for task in TASKS:
        context = browser.new_context(viewport={"width": 1280, "height": HEIGHT})
        context.set_default_timeout(120_000)
        try:
            row = run_task(context.new_page(), address, task)
        except Exception as error:  # noqa: BLE001 - any error is a result
            row = [task.role, task.question, re.sub(r"\s+", " ", str(error))[:200]]
        print(f"| {' | '.join(row)} |", flush=True)
        context.close()


if __name__ == "__main__":
    main()
