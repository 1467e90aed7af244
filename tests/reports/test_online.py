"""What users did, as a section of the report; and as a page, which every answer is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.reports import online
from judged.results import Chart
from online_scores_made import CTR, NAN, dwell, estimate, scores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judged.reports import Report

REASON = "60 of 1,060 query rows (5.7%) are excluded or lost, more than 5%: facet-request 60"
UNFIT = f"ubi.ndjson is not fit for metrics: {REASON}."


def test_a_report_with_a_log_has_the_section(make: Callable[..., Report]) -> None:
    answer = make(queries=None, attributes=None, texts=None, log=scores())
    names = [section.name for section in answer.sections]
    assert names.index("users") == names.index("method") - 1
    section = answer.section("users")
    assert section is not None
    assert section.title == "User behavior"
    assert answer.to_dict()["results"]["online"] == scores().to_dict()
    lead = (
        f"{UNFIT} In 1,000 pages of 40 users, share of pages with a click (PageCTR) is 38.1% (95% CI [36.9%, 39.3%])."
    )
    assert lead in answer.sentences
    assert section.sentences[0].startswith("ubi.ndjson (ubi)")
    ours = [text for text in answer.warnings if text.startswith(("ubi.ndjson", "Position bias"))]
    assert (len(ours), ours[0]) == (2, UNFIT)
    assert "PageCTR<sup>*</sup> | 38.1% [36.9%, 39.3%] | 381 | 1,000 | 40 |" in answer.markdown()
    assert not {"estimates", "metrics", "findings"} & set(answer.tables())


def test_what_the_section_holds() -> None:
    part = online.online_section(scores(), dwell().curves())
    titles = [part.title for part in part.section.blocks if part.title]
    assert titles == [
        "Shares", "Durations", "CTR by rank: position bias", "CTR by rank", "Definitions of the metrics",
        "Findings, most severe first", "Findings in the log", "Dwell time of clicked results",
        "Satisfied clicks by threshold",
    ]  # fmt: skip
    assert part.section.sentences[0] == "ubi.ndjson (ubi): 1,000 pages, 2,345 events, 120 sessions, 40 users"
    assert part.warnings[0] == UNFIT
    ranks = next(part for part in part.section.blocks if isinstance(part, Chart) and part.name == "usersRanks")
    assert ranks.sentence.startswith(
        "30.0% of the results shown at rank 1 were clicked. Results at rank 1 were clicked 3.0"
    )


def test_headline() -> None:
    assert online.headline(scores(estimates=(estimate(CTR, 0, 0, NAN),))) == ""
    alone = scores(estimates=(estimate(CTR, 1, 4, NAN, units=1),))
    assert online.headline(alone) == "In 1,000 pages of 40 users, share of pages with a click (PageCTR) is 25.0%."


def test_in_a_browser(browser: Any, tmp_path: Path) -> None:
    """It fetches nothing, complains of nothing, runs nothing of the log, and fits a telephone, in dark and light."""
    file = tmp_path / "page.html"
    file.write_text(scores(sliced=True).html(), encoding="utf-8")
    tab = browser.new_context(viewport={"width": 375, "height": 900}, color_scheme="dark").new_page()
    faults: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-charts-rendered]", timeout=60_000)
    assert tab.locator(".chart").count() == tab.locator(".chart svg").count() == 3
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    text = tab.inner_text("main")
    assert re.search(r"PageCTR\s?\*\s+38\.1% \[36\.9%, 39\.3%\]\s+40\.0%", text)
    assert "<script>alert(1)</script>" in text
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.wait_for_timeout(400)
    tab.click("#theme")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    assert (faults, requests) == ([], [file.as_uri()])
    tab.context.close()


def test_metrics_of_nothing_are_no_section() -> None:
    with pytest.raises(InputError, match=r"no metric can be computed: no add_to_cart event .*see 'judged logs check'"):
        online.online_metrics_of(scores(estimates=()))
