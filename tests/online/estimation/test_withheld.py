"""Metrics that the log does not support are withheld, not 0: durations without a clock, users without IDs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from judged.errors import InputError
from judged.online import online_metrics, over_time
from judged.online.findings import LogFinding
from judged.online.metrics import lacking_data, online_metric
from typed_logs import EVERYTHING, typed_log

WAIT, MEDIAN = "TimeToFirstClick", "TimeToFirstClick(q=0.5)"
SAME = "each click has the same time as its page"


def page(serp: int, **fields: Any) -> dict[str, Any]:
    times = {"time_ms": 100_000 * serp, "query": "hat", "n_shown": 10, "latency_ms": 0.0}
    return {"serp": serp, "session": serp, "user": serp, **times, **fields}


def click(serp: int, after_ms: int) -> dict[str, Any]:
    return {"serp": serp, "session": serp, "user": serp, "time_ms": 100_000 * serp + after_ms, "action": "click",
            "object_id": "hat-1", "rank": 1}  # fmt: skip


def test_clicks_at_the_time_of_their_page_tell_no_wait() -> None:
    pages = [page(i, device=f"d{i % 2}") for i in range(4)]
    log = typed_log(pages, [click(i, 0) for i in range(3)])
    scores = online_metrics(log, [WAIT, MEDIAN, "PageCTR", "Latency"], by="device")
    assert {str(metric): reason for metric, reason in scores.refused} == {
        WAIT: SAME, MEDIAN: SAME, "Latency": "the latency is 0 on every page"}  # fmt: skip
    assert [str(metric) for metric in scores.metrics] == ["PageCTR"]
    with pytest.raises(InputError, match=f"TimeToFirstClick is not supported: {SAME}"):
        over_time(log, WAIT)


def test_one_later_click_tells_waits_where_all_others_are_at_once() -> None:
    log = typed_log([page(i, device=f"d{i}") for i in range(3)], [click(0, 0), click(1, 0), click(2, 6000)])
    scores = online_metrics(log, [WAIT, MEDIAN], by="device")
    assert scores.refused == ()
    assert [scores.value(WAIT), scores.value(MEDIAN), scores.value(WAIT, "d0")] == [2.0, 0.0, 0.0]


def test_users_that_nobody_named_are_refused_and_said_to_be_sessions() -> None:
    all_unnamed = LogFinding("no-user", "query", 3, 3, "kept", "pages of nobody", "log a client_id")
    some_unnamed = LogFinding("no-user", "query", 2, 3, "kept", "pages of nobody", "log a client_id")
    pages, unnamed = [page(i) for i in range(3)], EVERYTHING - {"users"}
    scores = online_metrics(
        typed_log(pages, [], has=unnamed, findings=(all_unnamed,)), ["SessionsPerUser", "ZeroResults"]
    )
    assert [(str(metric), reason) for metric, reason in scores.refused] == [
        ("SessionsPerUser", lacking_data(online_metric("SessionsPerUser"), unnamed))
    ]
    assert dict(scores.policies)["users"] == "the log has no user IDs: each session counts as a user"
    without_sessions = typed_log(pages, [click(0, 5)], has=unnamed - {"sessions"}, findings=(all_unnamed,))
    scores = online_metrics(without_sessions, ["SessionCTR", "PageCTR"])
    assert [(str(metric), reason) for metric, reason in scores.refused] == [("SessionCTR", "the log has no sessions")]
    assert dict(scores.policies)["users"] == "the log has no user IDs: each page counts as a user"
    scores = online_metrics(typed_log(pages, [], findings=(some_unnamed,)), ["SessionsPerUser", "ZeroResults"])
    assert "users" not in dict(scores.policies)
    assert scores.value("SessionsPerUser") == 1.0


def test_a_log_is_said_in_one_line() -> None:
    log = typed_log([page(0)], [], name="shop", has=frozenset({"shown", "clicks"}), files=("a", "b"), has_time=False)
    assert repr(log) == "InteractionLog('shop': tables, 2 files, 0 findings, no timestamps; has clicks, shown)"


@pytest.mark.parametrize(("users", "has_interval"), [(2, False), (3, True)])
def test_intervals_begin_at_three_users(users: int, has_interval: bool) -> None:
    log = typed_log([page(i) for i in range(users)], [click(0, 6000)])
    scores = online_metrics(log, ["ClicksPerPage", "PageCTR", "ZeroResults"])
    assert scores.value("ClicksPerPage") == 1 / users
    assert [math.isfinite(row.low) and math.isfinite(row.high) for row in scores.estimates[:2]] == [
        has_interval,
        has_interval,
    ]
    assert {row.effective_units for row in scores.estimates} == {float(users)}


@pytest.mark.parametrize(("pages", "has_note"), [([1] * 10 + [6, 6], True), ([2] * 12, False), ([1] * 9 + [40], False)])
def test_unequally_active_users_are_noted_with_their_effective_number(pages: list[int], has_note: bool) -> None:
    """22 pages, of users with 10 * 1 + 2 * 36 squared ones: 484 / 82 = 5.9; with one of 40 there is no interval."""
    rows = [page(i, user=user) for i, user in enumerate(user for user, count in enumerate(pages) for _ in range(count))]
    scores = online_metrics(
        typed_log(rows, [click(i, 6000) for i in range(0, len(rows), 2)]), ["ClicksPerPage", "PageCTR"]
    )
    notes = [note for note in scores.notes if note.rule == "unequal-users"]
    assert len(notes) == has_note
    if has_note:
        assert scores.estimates[0].effective_units == pytest.approx(484 / 82)
        assert notes[0].weight == pytest.approx(12 * 82 / 484)
