"""A condition on pages gives the same numbers as the corresponding slice."""

from __future__ import annotations

from judged.online import InteractionLog, difference, funnel, online_metrics, overview, queries
from typed_logs import typed_log

_DAY = 86_400_000
MOBILE = "device == 'mobile'"


def two_weeks() -> InteractionLog:
    """Build a log of two weeks with clicks on two of seven mobile pages, and on all desktop pages."""
    pages = [
        {"serp": i, "session": i, "user": i % 40, "time_ms": 14 * _DAY * i // 240, "query": f"lamp {i % 3}",
         "device": ("mobile", "desk")[i % 2], "n_shown": 3, "zero_results": False}
        for i in range(240)
    ]  # fmt: skip
    clicks = [
        {**{key: page[key] for key in ("serp", "session", "user", "time_ms")}, "action": "click", "rank": 1}
        for page in pages
        if page["serp"] // 2 % 7 % 3 == 2 or page["device"] == "desk"
    ]
    return typed_log(pages, clicks)


def test_the_funnel_of_a_condition_equals_that_of_the_slice() -> None:
    log = two_weeks()
    filtered, sliced = funnel(log, where=MOBILE), funnel(log, by="device")
    assert [(step.reached, step.of_all.low) for step in filtered.steps] == [
        (step.reached, step.of_all.low) for step in sliced.steps if step.slice == "mobile"
    ]
    assert filtered.steps[0].reached == 120
    assert dict(filtered.policies)["where"] == f"{MOBILE}: 120 of 240 pages"


def test_differences_and_overview_of_a_condition() -> None:
    log = two_weeks()
    (metric_difference,) = difference(log, "PageCTR", where=MOBILE).differences
    (metric_change,) = overview(log, "PageCTR", where=MOBILE).changes
    assert (metric_difference.baseline.numerator, metric_difference.other.numerator) == (17.0, 17.0)
    assert metric_change.change == metric_difference
    estimate = online_metrics(log, "PageCTR", where=MOBILE).of("PageCTR")
    assert metric_difference.baseline.denominator + metric_difference.other.denominator == estimate.denominator == 120


def test_lists_of_a_condition() -> None:
    log = two_weeks()
    lists = {where: queries(log, ["abandoned", "reformulated"], where=where, fdr=0.5) for where in (None, MOBILE)}
    assert "where" not in dict(lists[None].policies)
    assert f"Pages are filtered by {MOBILE}: 120 of 240 pages." in lists[MOBILE].text()
