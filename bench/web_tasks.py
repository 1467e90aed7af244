"""Run tasks of users in a browser, and count clicks, fields, keys, seconds, and screens of scrolling.

Each task has the shortest steps from the first page; if a page changes, update its steps here. Seconds are those of the
pages, from the first action until the answer is visible, without time for thinking or reading. Downloaded tables are
read back and compared with the Python function; LaTeX is also compiled, if pdflatex is installed.
"""

from __future__ import annotations

import csv
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from browser import chromium, served

import judged
from judged.data import sample
from judged.interface.pages.workspace import open_sample
from judged.scoring.default_measures import BROWSED_MEASURES
from judged.web.app import make_app

HEIGHT = 900
MAX_CLICKS, MAX_MEDIAN = 4, 2


@dataclass(frozen=True)
class Task:
    """Question of a user, the steps from the first page to its answer, and the place of the answer.

    Steps are click PLACE, fill PLACE TEXT, choose PLACE TEXT, keys KEY..., wait PLACE, or download PLACE, which is a
    click on a link to a table.
    """

    role: str
    question: str
    steps: tuple[tuple[str, ...], ...]
    answer: str  # Playwright selector of the answer


def menu(page: str) -> tuple[str, str]:
    """Return the step that opens a page from the navigation."""
    return "click", f"#navigation a:text-is('{page}')"


def paste(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the steps that paste a list into the evaluator."""
    return ("click", "#paste"), ("fill", "#pasted", text), ("click", "#paste-form button.primary")


def judge(name: str, grades: str) -> tuple[tuple[str, ...], ...]:
    """Return the steps that enter a name and grade documents by keyboard."""
    return ("fill", "input[name=judge]", name), ("keys", "Enter"), ("wait", ".judging[data-ready]"), ("keys", *grades)


BOARD = "[data-table=board] + details"  # menu of downloads of the leaderboard
LATEX, CSV = f"{BOARD} a:has-text('LaTeX')", f"{BOARD} a:has-text('CSV')"


TASKS = (
    Task(
        "engineer",
        "Which run is best, and is the difference significant?",
        (),
        ".headline .sentence:has-text('significantly worse')",
    ),
    Task(
        "engineer",
        "Show a topic on which the fusion of bm25 and tfidf_char is worse.",
        (
            ("click", ".suggestions a:has-text('but bm25 is better')"),
            ("click", "[data-table=listed] tbody a >> nth=0"),
        ),
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
        ".headline .sentence:has-text('known-item: tfidf is worse than bm25')",
    ),
    Task(
        "engineer",
        "If only grades from 2 are relevant, does the order of the runs by AP change?",
        (
            menu("Leaderboard"),
            ("fill", "input[name=rel]", "2"),
            ("keys", "Enter"),
            ("click", "thead a:has-text('AP(rel=2)')"),
        ),
        "th[aria-sort]:has-text('AP(rel=2)')",
    ),
    Task(
        "engineer",
        "What is the worst topic of the best run, and why?",
        (
            ("click", "[data-table=runs] tbody a:has(bdi:text-is('rrf'))"),
            ("click", "[data-table=hardest] tbody tr >> nth=0 >> a"),
        ),
        "#losses + * tbody tr",
    ),
    Task(
        "engineer",
        "Which relevant documents did the reranker drop?",
        (menu("Traces"), ("click", "[data-table=topics] tbody tr >> nth=0 >> a")),
        "tr:has-text('removed by shown')",
    ),
    Task(
        "engineer",
        "Is the difference of bm25_nostem and the best run significant?",
        (("click", "[data-table=runs] tr:has(bdi:text-is('bm25_nostem')) .chip"),),
        ".headline .sentence:has-text('No significant difference between bm25_nostem and rrf')",
    ),
    Task(
        "engineer",
        "For which queries is tfidf worse than the best run?",
        (
            ("click", "[data-table=runs] tr:has(bdi:text-is('tfidf')) .chip"),
            ("click", "main a:has-text('tfidf worse')"),
        ),
        "[data-table=listed] tbody tr:has-text('t12')",
    ),
    Task(
        "engineer",
        "Show the click-through rate of the log by rank.",
        (menu("Metrics"),),
        "main >> text=Results at rank 1 were clicked",
    ),
    Task(
        "engineer",
        "Send an own query to the search engine.",
        (
            menu("Experiment"),
            ("click", "main a:has-text('Try a query') >> nth=0"),
            ("fill", "main input[name=query]", "remove a key from a dictionary"),
            ("keys", "Enter"),
        ),
        "main li:has-text('dict.pop')",
    ),
    Task(
        "researcher",
        "Export the table of the runs in LaTeX for a paper.",
        (menu("Leaderboard"), ("click", f"{BOARD} summary"), ("download", LATEX)),
        LATEX,
    ),
    Task(
        "researcher",
        "Save the leaderboard as LaTeX and as CSV.",
        (menu("Leaderboard"), ("click", f"{BOARD} summary"), ("download", LATEX), ("download", CSV)),
        CSV,
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
            ("wait", "#pinned .measure[data-name=AP]:has-text('0.7556')"),
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
        "Find the definition of AP.",
        (menu("Learn"), ("click", "main a:has(bdi:text-is('AP'))")),
        "h1:has-text('AP')",
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
            ("click", "[data-table=hardest] tbody tr >> nth=0 >> a"),
            ("click", "text=open in the evaluator"),
            ("click", "#list li >> nth=0 >> [data-grade='1']"),
            ("keys", *["1", "ArrowDown", "2", "ArrowDown", "0", "ArrowDown", "3", "ArrowDown", "1"]),
        ),
        "#pinned .moved[data-tone]",
    ),
    Task(
        "judge",
        "Grade five documents, and save the grades.",
        (menu("Judging"), ("click", "button:has-text('Try judging')"), *judge("ann", "12031")),
        "#done:text-is('5')",
    ),
    Task(
        "judge",
        "Grade ten results, and save the grades.",
        (menu("Judging"), ("click", "button:has-text('Try judging')"), *judge("ann", "1203120312")),
        "#done:text-is('10')",
    ),
    Task(
        "judge",
        "Do two judges of five documents agree?",
        (
            menu("Judging"),
            ("click", "button:has-text('Try judging')"),
            *judge("ann", "12031"),
            ("wait", "#done:text-is('5')"),
            ("click", "text=change name"),
            *judge("bob", "11031"),
            ("wait", "#done:text-is('5')"),
            menu("Agreement"),
        ),
        ".headline :text-matches('2 judges graded 5 shared documents')",
    ),
)


def run_task(page: Any, address: str, task: Task, folder: Path) -> tuple[int, list[str]]:
    """Run a task, and return its clicks and its row."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for action, *arguments in task.steps:
        counts[action] += len(arguments) if action == "keys" else 1
        element: Any = page.locator(arguments[0]).first if action != "keys" else None
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
            case "download":
                with page.expect_download() as download:
                    element.click()
                path = folder / download.value.suggested_filename
                download.value.save_as(path)
                check_board(path)
            case _:
                for key in arguments:
                    page.keyboard.press(key)
                    page.wait_for_load_state()
    answer = page.locator(task.answer).first
    answer.wait_for(state="visible")
    seconds = time.perf_counter() - start
    # Position of the answer in window heights; dialogs and folds above it are already open.
    screens = (answer.bounding_box()["y"] + page.evaluate("scrollY")) / HEIGHT
    clicks = counts["click"] + counts["choose"] + counts["download"]
    numbers = [clicks, counts["fill"], counts["keys"], f"{seconds:.1f}", f"{screens:.1f}"]
    return clicks, [task.role, task.question, *map(str, numbers)]


def check_board(path: Path) -> None:
    """Check that a downloaded leaderboard contains the scores of all runs, and that LaTeX can be compiled."""
    text = path.read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = judged.evaluate(sample.qrels(), sample.runs(), BROWSED_MEASURES).aggregate()
    if path.suffix == ".csv":
        rows = {row["run"]: row for row in csv.DictReader(text.splitlines())}
        values = {run: [float(row[measure]) for measure in BROWSED_MEASURES] for run, row in rows.items()}
        expected = {run: [values[measure] for measure in BROWSED_MEASURES] for run, values in scores.items()}
        is_equal = values.keys() == expected.keys() and all(
            abs(a - b) < 1e-9 for run in values for a, b in zip(values[run], expected[run], strict=True)
        )
    else:
        rows = {re.sub(r"\\", "", line.split("&")[0]).strip(): line for line in text.splitlines() if "&" in line}
        is_equal = all(f"{values[BROWSED_MEASURES[0]]:.4f}" in rows[run] for run, values in scores.items())
        is_equal &= "toprule" in text
        if shutil.which("pdflatex"):
            document = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{text}\\end{{document}}"
            path.write_text(document, encoding="utf-8")
            command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", path.name]
            subprocess.run(command, cwd=path.parent, check=True, capture_output=True)
    if not is_equal:
        raise AssertionError(f"{path.name} has other numbers than judged.evaluate")


def main() -> None:
    """Print a table of all tasks and the median of the clicks; exit code 1 if a task fails or needs too many clicks."""
    print("| role | question | clicks | fields | keys | seconds | screens down |\n|---|---|---|---|---|---|---|")
    workspace, counts = open_sample(), list[int]()
    with chromium() as browser:
        for task in TASKS:
            with served(make_app(workspace)) as address, tempfile.TemporaryDirectory() as folder:
                context = browser.new_context(viewport={"width": 1280, "height": HEIGHT})
                context.set_default_timeout(60_000)
                try:
                    clicks, row = run_task(context.new_page(), address, task, Path(folder))
                    counts.append(clicks)
                except Exception as error:  # noqa: BLE001 - any error is a result
                    row = [task.role, task.question, re.sub(r"\s+", " ", str(error))[:200]]
                print(f"| {' | '.join(row)} |", flush=True)
                context.close()
    median, most = statistics.median(counts), max(counts)
    print(f"{len(counts)} of {len(TASKS)} tasks done; clicks: median {median:g}, at most {most}")
    sys.exit(len(counts) < len(TASKS) or median > MAX_MEDIAN or most > MAX_CLICKS)


if __name__ == "__main__":
    main()
