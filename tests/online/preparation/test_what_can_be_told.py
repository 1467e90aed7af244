"""Capabilities of a log: only logged data count, not values that would be 0 or 1 because data are missing."""

from __future__ import annotations

from typing import Any

import pytest

from judged.online import online_metrics
from judged.online.check import check_log
from judged.online.metrics import lacking_data, online_metric
from made_log import excluded, findings_by_rule, prepared_log, rows
from raw_made import event, query


def lacking(log: Any, name: str) -> str:
    return lacking_data(online_metric(name), log.has | {"clock"})


def clicked_pages(pages: int, *, abandoned: int = 0, hits: tuple[str, ...] | None = ("a",)) -> Any:
    queries = [query(str(i), i * 60, hits) for i in range(pages)]
    clicks = [event(str(i), "click", i * 60 + 5, "a", position=1) for i in range(pages - abandoned)]
    return prepared_log(queries, clicks)


OF_PAGES = (
    "PageCTR",
    "Abandonment",
    "FirstClickRR",
    "SessionCTR",
    "SatisfiedPageCTR",
    "SessionSuccess",
    "ClicksPerPage",
)


@pytest.mark.parametrize("name", OF_PAGES)
def test_a_log_of_clicked_pages_does_not_support_shares_of_clicked_pages(name: str) -> None:
    assert "every page of the log has a click" in lacking(clicked_pages(20), name)
    assert not lacking(clicked_pages(20, abandoned=1), name)
    assert not lacking(clicked_pages(19), name)


def test_a_log_of_clicked_results_does_not_contain_shown_results() -> None:
    assert "shown" not in clicked_pages(20).has
    assert "shown" in clicked_pages(20, hits=("a", "b")).has
    assert {"SkipRate", "DeepestClickRank"} <= {
        name for name in ("SkipRate", "DeepestClickRank") if not lacking(clicked_pages(20), name)
    }


def test_dwell_times_require_clicks_with_their_own_time() -> None:
    """Two pages, a minute apart; if all clicks have the time of their page, only a logged dwell time counts."""
    pages = [query("1"), query("2", 60)]

    def log_of(seconds: int, **columns: float) -> Any:
        clicks = [event("1", "click", seconds, "a", **columns), event("2", "click", 60, "a")]
        return prepared_log(pages, clicks)

    assert "all clicks have the time of their page" in lacking(log_of(0), "SatisfiedClicks")
    assert not lacking(log_of(5), "SatisfiedClicks")
    assert not lacking(log_of(0, dwell_ms=9000), "SatisfiedClicks")


def test_rank_metrics_require_a_click_with_a_rank() -> None:
    without_rank = prepared_log([query("1", hits=None)], [event("1", "click", 1, "a")])
    for name in ("FirstClickRR", "TopmostClickRR", "MeanRR", "DeepestClickRank", "PageCTR@3"):
        assert "ranks of clicked results" in lacking(without_rank, name)
    assert not lacking(without_rank, "PageCTR")
    assert not lacking(prepared_log([query("1")], [event("1", "click", 1, "a")]), "PageCTR@3")


@pytest.mark.parametrize("action", ["copy", "hover", "page_scroll"])
def test_good_abandonment_requires_reading_actions(action: str) -> None:
    pages = [query("1"), query("2", 60)]
    assert "copy, hover, or scroll" in lacking(prepared_log(pages, [event("1", "click", 1, "a")]), "GoodAbandonment")
    log = prepared_log(pages, [event("1", "click", 1, "a"), event("2", action, 61)])
    assert not lacking(log, "GoodAbandonment")


def test_feedback_filters_suggestions_and_later_pages_must_be_logged() -> None:
    names = ("PositiveFeedback", "MeanRating", "FilterUse", "SuggestionUse", "SecondPageRate")
    plain = prepared_log([query("1"), query("2", 60)], [event("1", "click", 1, "a"), event("1", "rating", 2)])
    assert [bool(lacking(plain, name)) for name in names] == [True] * 5
    pages = [query("1", suggested=False), query("2", 60, filtered=True), query("3", 70, page=2)]
    events = [event("1", "thumbs_down", 1), event("2", "star_rating", 61, value=3.0)]
    log = prepared_log(pages, events)
    assert not any(lacking(log, name) for name in names)
    scores = online_metrics(log, names)
    assert [scores.value(name) for name in names] == [0, 3, 1 / 3, 0, 1 / 2]


def test_reformulation_requires_a_session_with_two_pages() -> None:
    single_pages = [query(str(i), i, session_id=f"s{i}") for i in range(3)]
    for name in ("Reformulation", "SpellingReformulation"):
        assert "second page" in lacking(prepared_log(single_pages), name)
        assert not lacking(prepared_log([*single_pages, query("9", 20, session_id="s1")]), name)


def test_zero_results_require_logged_empty_lists() -> None:
    assert "zero_results" not in prepared_log([query("1")], logs_empty_pages=False).has
    assert "zero_results" in prepared_log([query("1", n_total=3)], logs_empty_pages=False).has


def test_a_session_is_not_a_user() -> None:
    log = prepared_log([query(str(i), i, user_id=None, session_id=f"s{i}") for i in range(4)])
    assert "users" not in log.has
    assert findings_by_rule(log)["query", "no-user"] == (4, 4, "kept")
    scores = online_metrics(log, ["QueriesPerSession", "SessionsPerUser"])
    assert [str(metric) for metric, _ in scores.refused] == ["SessionsPerUser"]
    assert ("users", "the log has no user IDs: each session counts as a user") in scores.policies


@pytest.mark.parametrize(("without_user", "supported"), [(1, True), (2, False)])
def test_user_metrics_require_a_user_id_on_nearly_all_pages(without_user: int, supported: bool) -> None:
    queries = [query(str(i), i, user_id=None if i < without_user else "ann", session_id=f"s{i}") for i in range(20)]
    assert ("users" in prepared_log(queries).has) is supported


def test_simultaneous_purchases_are_duplicates_only_if_the_records_are_equal() -> None:
    def purchase(record: int | None) -> dict[str, Any]:
        return event("1", "purchase", 5, "a", value=9.0, record=record)

    assert not excluded(prepared_log([query("1")], [purchase(1), purchase(2)]), "event")
    assert excluded(prepared_log([query("1")], [purchase(1), purchase(2), purchase(1)]), "event") == {
        "duplicate-event": 1
    }
    log = prepared_log([query("1")], [purchase(None), purchase(None)])
    assert excluded(log, "event") == {"duplicate-event": 1}
    assert findings_by_rule(log)["event", "duplicate-event"] == (1, 2, "excluded")
    assert len(rows(log.event)) == 1


def test_intervals_are_over_sessions_without_user_ids() -> None:
    log = prepared_log([query(str(i), i, user_id=None, session_id=f"s{i}") for i in range(4)])
    scores = online_metrics(log, ["ZeroResults"])
    assert scores.over == scores.facts()["unit"] == "session"
    assert "users" not in dict(check_log(log).counts)
    assert "users" in dict(check_log(prepared_log([query("1")])).counts)


def test_sessions_without_a_user_id_are_counted_separately() -> None:
    """Ann has two sessions, three sessions have no user ID: one user with an ID."""
    sessions = [("s1", "ann"), ("s2", "ann"), ("s3", None), ("s4", None), ("s5", None)]
    pages = [
        query(str(i), 60 * i, ("a",), session_id=session, user_id=user) for i, (session, user) in enumerate(sessions)
    ]
    counts = dict(check_log(prepared_log(pages, [])).counts)
    assert (counts["sessions"], counts["users"], counts["users without an ID"]) == (5, 1, 3)
    ann_only = dict(check_log(prepared_log([query("1", 0, ("a",), session_id="s", user_id="ann")], [])).counts)
    assert (ann_only["users"], "users without an ID" in ann_only) == (1, False)
    without_user = [query(str(i), 60 * i, ("a",), session_id=f"s{i}", user_id=None) for i in range(2)]
    assert "users" not in dict(check_log(prepared_log(without_user, [])).counts)
