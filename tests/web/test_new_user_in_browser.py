"""A new user with own files: every entry of the navigation shows content or takes what it needs; links keep a view."""

from __future__ import annotations

import csv
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browsing import served
from judged.interface.pages.workspace import open_sample
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPICS = [f"search{i:02}" for i in range(1, 16)]
PRODUCTS = [f"sku-{i}" for i in range(30)]
UPLOADED = {"/users": "clicks.ndjson", "/traces": "traces.jsonl", "/rag": "answers.jsonl"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with made-up files: judgments, two runs, clicks, traces, and answers."""
    folder, random = tmp_path_factory.mktemp("own"), Random(1)  # noqa: S311 - no secret
    grades = {(topic, product): random.choice((0, 0, 1, 2)) for topic in TOPICS for product in PRODUCTS[:15]}
    lists = {
        (run, topic): sorted(
            PRODUCTS, key=lambda product, topic=topic: -grades.get((topic, product), 0) - random.gauss(0, noise)
        )[:10]
        for run, noise in (("old", 1.5), ("new", 0.7))
        for topic in TOPICS
    }
    rows = [f"{topic} 0 {product} {grade}" for (topic, product), grade in grades.items()]
    (folder / "ratings.txt").write_text("\n".join(rows))
    ranks = [(topic, rank, product) for topic in TOPICS for rank, product in enumerate(lists["old", topic], 1)]
    (folder / "old.run").write_text("".join(f"{topic} Q0 {doc} {rank} {20 - rank} old\n" for topic, rank, doc in ranks))
    with (folder / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["search_term", "product_sku", "position"])
        writer.writerows(
            (topic, product, rank) for topic in TOPICS for rank, product in enumerate(lists["new", topic], 1)
        )
    log: list[dict[str, Any]] = []
    for i in range(300):
        topic, run = random.choice(TOPICS), ("old", "new")[i % 2]
        user = {"query_id": f"p{i}", "client_id": f"u{i % 50}", "session_id": f"s{i % 50}-{i // 100}"}
        day = f"2026-10-{1 + i // 40:02}T{8 + i % 12:02}:{i % 60:02}"
        log.append(user | {"user_query": topic, "timestamp": f"{day}:00Z", "query_response_hit_ids": lists[run, topic]})
        for rank, product in enumerate(lists[run, topic], 1):
            if random.random() < (0.4 if grades.get((topic, product)) else 0.1) / rank**0.5:
                place = {"object": {"object_id": product}, "position": {"ordinal": rank}}
                time = {"timestamp": f"{day}:{10 + rank}Z", "event_attributes": place}
                log.append({"action_name": "click", **user, **time})
    traces: list[dict[str, Any]] = []
    for topic in TOPICS:
        about = {"trace_id": topic, "query_id": topic}
        documents = lists["old", topic]
        traces.append({**about, "stage": "bm25", "kind": "candidates", "documents": documents})
        traces.append(
            {**about, "stage": "rerank", "kind": "rerank", "parents": ["bm25"], "documents": documents[::-1][:5]}
        )
    answers = [
        {
            "query_id": topic,
            "question": f"What fits {topic}?",
            "answer": f"Buy {lists['new', topic][0]}.",
            "contexts": [f"{product} fits." for product in lists["new", topic][:3]],
            "context_ids": lists["new", topic][:3],
            "ground_truth": f"Buy {lists['old', topic][0]}.",
        }
        for topic in TOPICS
    ]
    for name, records in zip(UPLOADED.values(), (log, traces, answers), strict=True):
        (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return folder


@pytest.fixture
def address() -> Iterator[str]:
    """Serve the sample, as `judged serve` without files does."""
    with served(make_app(open_sample())) as url:
        yield url


def open_own_files(page: Any, address: str, files: Path, columns: str = "") -> None:
    page.goto(f"{address}/open")
    page.set_input_files("#qrels", files / "ratings.txt")
    page.set_input_files("#runs", [files / "old.run", files / "new.csv"])
    page.fill("#columns", columns)
    page.get_by_role("button", name="Open", exact=True).click()


def test_own_files_have_no_dead_end(address: str, tab: Any, files: Path) -> None:
    view = tab(f"{address}/open")
    page = view.page
    open_own_files(page, address, files)
    expect(page.locator("#error")).to_contain_text("doc_id=product_sku")  # the value for the field below
    view.faults.clear()  # the browser reports the status of this answer
    open_own_files(page, address, files, "doc_id=product_sku")
    page.wait_for_url(f"{address}/")
    expect(page.locator("[data-table=runs] tbody tr")).to_have_count(2)
    for path in page.eval_on_selector_all("#navigation a", "links => links.map((link) => link.getAttribute('href'))"):
        page.goto(f"{address}{path}")
        # content, a file to select, a button, or a command that opens what is missing
        shown = page.locator("main :is(.headline, form, .empty-state code, table)")
        assert shown.count(), path
        view.fits()
    for path, name in UPLOADED.items():
        page.goto(f"{address}{path}")
        page.set_input_files("main input[name=file]", files / name)
        page.get_by_role("button", name="Open", exact=True).click()
        expect(page.locator("main .headline .figure")).to_be_visible()
        if path == "/users":
            expect(page.locator("main")).to_contain_text(name)
    page.goto(f"{address}/users/test")
    expect(page.locator("main")).to_contain_text("two arms")  # the log is not of an A/B test
    view.faults.clear()
    pages = ("/users", "/clicks", "/clicks/ranks", "/clicks/people", "/change", "/traces")
    for path in (*pages, "/traces/failures", "/traces/topic", "/rag", "/rag/scores", "/rag/topic"):
        page.goto(f"{address}{path}")
        expect(page.locator("main .headline .chip").first).to_be_visible()
        view.fits()
    view.clean()


VIEWS = (
    "/leaderboard?measures=AP&baseline=bm25&where=length+%3E+5",
    "/compare?first=bm25&second=tfidf&outcome=losses",
    "/slices?by=length&run=tfidf&baseline=bm25",
    "/matrix?run=bm25&baseline=tfidf&quadrant=healthy",
    "/topics?runs=bm25&sort=-relevant",
)


def test_back_returns_and_a_copied_link_shows_the_same_view(serve: Any, sample: Any, browser: Any) -> None:
    address = serve(sample)
    context, other = browser.new_context(), browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, fresh = context.new_page(), other.new_page()
    page.goto(address)
    for path in VIEWS:
        before = page.url
        page.goto(f"{address}{path}")
        page.click("#share")
        expect(page.locator("#share")).to_have_text("Copied")
        fresh.goto(page.evaluate("navigator.clipboard.readText()"))
        assert fresh.locator("main").inner_text() == page.locator("main").inner_text(), path
        page.click("#navigation a >> text=Slices" if "/slices" not in path else "#navigation a >> text=Compare")
        page.go_back()
        assert page.url == f"{address}{path}"
        page.go_back()
        assert page.url == before
        page.go_forward()
    context.close()
    other.close()
