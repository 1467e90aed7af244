"""What users did, as a section of the report and as a page of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from browsing import chromium
from judged.answer import Chart, Table
from judged.errors import InputError
from judged.reports import online
from online_scores_made import CTR, NAN, dwell, estimate, scores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judged.reports import Report

UNFIT = "ubi.ndjson is not fit: 60 of 1,060 query rows (5.7 %) are left out, more than 5 %: facet-request 60."
browser = pytest.fixture(scope="module")(chromium)


def test_a_report_with_a_log_has_the_section(make: Callable[..., Report]) -> None:
    made = make(queries=None, attributes=None, texts=None, log=scores())
    names = [section.name for section in made.sections]
    assert names.index("users") == names.index("method") - 1
    section = made.section("users")
    assert section is not None
    assert section.title == "What users did"
    assert made.to_dict()["results"]["online"] == scores().to_dict()
    lead = f"{UNFIT} In 1,000 pages of 40 users, pages with a click (PageCTR): 38.1% (95% interval 36.9% to 39.3%)."
    assert lead in made.sentences
    assert section.sentences[0] == UNFIT
    ours = [text for text in made.warnings if text.startswith(("ubi.ndjson", "Position bias"))]
    assert (len(ours), ours[0]) == (2, UNFIT)
    assert "| \u2003PageCTR \\* | 38.1% | [36.9%, 39.3%] | 381 | 1,000 | 40 |" in made.markdown()


def test_what_the_section_holds() -> None:
    found = online.users(scores(), online.dwell_parts(dwell()))
    titles = [part.title for part in found.section.blocks if part.title]
    assert titles == [
        "Shares", "Every metric", "CTR by rank", "How long opened results are looked at",
        "Satisfied clicks by threshold", "Numbers that are missing", "What this log cannot tell",
        "What was found in the log", "What that means", "What each metric is",
    ]  # fmt: skip
    assert found.section.sentences[:2] == (
        UNFIT,
        "ubi.ndjson (ubi): 1,000 pages, 2,345 events, 120 sessions, 40 users.",
    )
    assert found.section.sentences[2].startswith("* Position bias")
    assert online.users(scores(findings=())).section.sentences[0].startswith("ubi.ndjson (ubi)")
    tables = {part.title: part.grid() for part in found.section.blocks if isinstance(part, Table)}
    assert tables["What this log cannot tell"].rows == (("no add_to_cart event is in this log", "AddToCart"),)
    assert [row[0] for row in tables["What each metric is"].rows] == [
        "PageCTR", "ZeroResults", "TimeToFirstClick", "DeepestClickRank", "AddToCart",
    ]  # fmt: skip
    ranks = next(part for part in found.section.blocks if isinstance(part, Chart) and part.name == "usersRanks")
    assert ranks.sentence.startswith(
        "At rank 1, 30.0% of what was shown was clicked. What stood at rank 1 was clicked 3.0"
    )


def test_the_page_begins_with_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judged.answer.html.library", lambda: "/* what draws */")
    for doubts, count in ((scores().doubts, 2), ((), 0)):
        made = online.online_page(scores(doubts=doubts))
        assert made.count(f"<p>{UNFIT}</p>") == count  # in the summary, and above the section
        start = made.index("Summary</h2>") + len("Summary</h2>")
        assert made[start:].lstrip().startswith(f"<p>{UNFIT}" if count else "<p>In 1,000 pages")


def test_headline() -> None:
    assert online.headline(scores(estimates=(estimate(CTR, 0, 0, NAN),))) == ""
    alone = scores(estimates=(estimate(CTR, 1, 4, NAN, units=1),))
    assert online.headline(alone) == "In 1,000 pages of 40 users, pages with a click (PageCTR): 25.0%."


def test_in_a_browser(browser: Any, tmp_path: Path) -> None:
    """It fetches nothing, complains of nothing, runs nothing of the log, and fits a telephone, in dark and light."""
    file = tmp_path / "page.html"
    made = online.online_page(
        scores(sliced=True), online.dwell_parts(dwell()), command="judged online metrics a.ndjson"
    )
    file.write_text(made, encoding="utf-8")
    tab = browser.new_context(viewport={"width": 375, "height": 900}, color_scheme="dark").new_page()
    faults: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-drawn]", timeout=60_000)
    assert tab.locator(".chart").count() == tab.locator(".chart svg").count() == 4
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    text = tab.inner_text("main")
    assert re.search(r"PageCTR \*\s+38\.1% \[36\.9%, 39\.3%\]\s+40\.0%", text)
    assert "<script>alert(1)</script>" in text
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.wait_for_timeout(400)
    tab.click("#theme")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    assert (faults, requests) == ([], [file.as_uri()])
    tab.context.close()


def test_metrics_of_nothing_are_no_section() -> None:
    with pytest.raises(InputError, match=r"no metric can be told: no add_to_cart event .*see 'judged logs check'"):
        online.measured(scores(estimates=()))
