"""A condition chooses pages: the same numbers as of the slice that it names."""

from __future__ import annotations

from judged.online import InteractionLog, difference, funnel, online_metrics, overview, queries
from typed_logs import typed_log

_DAY = 86_400_000
MOBILE = "device == 'mobile'"


def log() -> InteractionLog:
    """Make a log of two weeks, in which two of seven pages are opened on a phone, and all on a desk."""
    pages = [
        {"serp": at, "session": at, "user": at % 40, "time_ms": 14 * _DAY * at // 240, "query": f"lamp {at % 3}",
         "device": ("mobile", "desk")[at % 2], "n_shown": 3, "zero_results": False}
        for at in range(240)
    ]  # fmt: skip
    clicks = [
        {**{key: page[key] for key in ("serp", "session", "user", "time_ms")}, "action": "click", "rank": 1}
        for page in pages
        if page["serp"] // 2 % 7 % 3 == 2 or page["device"] == "desk"
    ]
    return typed_log(pages, clicks)


def test_the_funnel_of_a_condition_is_that_of_its_slice() -> None:
    made = log()
    chosen, sliced = funnel(made, where=MOBILE), funnel(made, by="device")
    assert [(one.reached, one.of_all.low) for one in chosen.steps] == [
        (one.reached, one.of_all.low) for one in sliced.steps if one.slice == "mobile"
    ]
    assert chosen.steps[0].reached == 120
    assert dict(chosen.policies)["where"] == f"{MOBILE}: 120 of 240 pages"


def test_differences_and_overview_of_a_condition() -> None:
    made = log()
    (found,) = difference(made, "PageCTR", where=MOBILE).found
    (moved,) = overview(made, "PageCTR", where=MOBILE).movements
    assert (found.baseline.numerator, found.other.numerator) == (17.0, 17.0)
    assert moved.change == found
    whole = online_metrics(made, "PageCTR", where=MOBILE).of("PageCTR")
    assert found.baseline.denominator + found.other.denominator == whole.denominator == 120


def test_lists_of_a_condition() -> None:
    made = log()
    lists = {where: queries(made, ["left", "again"], where=where, fdr=0.5) for where in (None, MOBILE)}
    assert "where" not in dict(lists[None].policies)
    assert f"Only pages with {MOBILE}: 120 of 240 pages." in lists[MOBILE].text()
