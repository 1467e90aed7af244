"""What a log can tell is what was logged, and not what would be 0 or 1 since nobody logged the rest."""

from __future__ import annotations

from typing import Any

import pytest

from judged.online import online_metrics
from judged.online.check import check_log
from judged.online.metrics import missing, online_metric
from made_log import excluded, found, made, rows
from raw_made import event, query


def lacking(log: Any, name: str) -> str:
    return missing(online_metric(name), log.has | {"clock"})


def clicked_pages(pages: int, *, left: int = 0, hits: tuple[str, ...] | None = ("a",)) -> Any:
    queries = [query(str(at), at * 60, hits) for at in range(pages)]
    return made(queries, [event(str(at), "click", at * 60 + 5, "a", position=1) for at in range(pages - left)])


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
def test_of_a_log_of_clicks_alone_no_share_of_clicked_pages_is_told(name: str) -> None:
    assert "every page of the log has a click" in lacking(clicked_pages(20), name)
    assert not lacking(clicked_pages(20, left=1), name)
    assert not lacking(clicked_pages(19), name)


def test_of_a_log_of_clicked_results_nothing_was_shown() -> None:
    assert "shown" not in clicked_pages(20).has
    assert "shown" in clicked_pages(20, hits=("a", "b")).has
    assert {"SkipRate", "DeepestClickRank"} <= {
        name for name in ("SkipRate", "DeepestClickRank") if not lacking(clicked_pages(20), name)
    }


def test_ranks_of_clicks_are_told_where_a_click_has_one() -> None:
    nowhere = made([query("1", hits=None)], [event("1", "click", 1, "a")])
    for name in ("FirstClickRR", "TopmostClickRR", "MeanRR", "DeepestClickRank", "PageCTR@3"):
        assert "at which rank" in lacking(nowhere, name)
    assert not lacking(nowhere, "PageCTR")
    assert not lacking(made([query("1")], [event("1", "click", 1, "a")]), "PageCTR@3")


@pytest.mark.parametrize("action", ["copy", "hover", "page_scroll"])
def test_an_answer_without_a_click_is_told_by_what_shows_that_it_is_read(action: str) -> None:
    pages = [query("1"), query("2", 60)]
    assert "copies" in lacking(made(pages, [event("1", "click", 1, "a")]), "GoodAbandonment")
    read = made(pages, [event("1", "click", 1, "a"), event("2", action, 61)])
    assert not lacking(read, "GoodAbandonment")


def test_feedback_filters_suggestions_and_further_pages_are_told_where_they_are_logged() -> None:
    names = ("PositiveFeedback", "MeanRating", "FilterUse", "SuggestionUse", "SecondPageRate")
    plain = made([query("1"), query("2", 60)], [event("1", "click", 1, "a"), event("1", "rating", 2)])
    assert [bool(lacking(plain, name)) for name in names] == [True] * 5
    pages = [query("1", suggested=False), query("2", 60, filtered=True), query("3", 70, page=2)]
    done = [event("1", "thumbs_down", 1), event("2", "star_rating", 61, value=3.0)]
    log = made(pages, done)
    assert not any(lacking(log, name) for name in names)
    scores = online_metrics(log, names)
    assert [scores.value(name) for name in names] == [0, 3, 1 / 3, 0, 1 / 2]


def test_where_no_session_has_a_second_page_nothing_is_worded_anew() -> None:
    apart = [query(str(at), at, session_id=f"s{at}") for at in range(3)]
    for name in ("Reformulation", "SpellingReformulation"):
        assert "second page" in lacking(made(apart), name)
        assert not lacking(made([*apart, query("9", 20, session_id="s1")]), name)


def test_pages_without_results_that_cannot_be_in_a_log_are_not_counted() -> None:
    assert "zero_results" not in made([query("1")], logs_empty_pages=False).has
    assert "zero_results" in made([query("1", n_total=3)], logs_empty_pages=False).has


def test_a_session_is_no_user() -> None:
    nobodys = made([query(str(at), at, user_id=None, session_id=f"s{at}") for at in range(4)])
    assert "users" not in nobodys.has
    assert found(nobodys)["query", "no-user"] == (4, 4, "kept")
    scores = online_metrics(nobodys, ["QueriesPerSession", "SessionsPerUser"])
    assert [str(one) for one, _ in scores.refused] == ["SessionsPerUser"]
    assert ("users", "none is logged, so each session counts as one") in scores.policies


@pytest.mark.parametrize(("nobodies", "told"), [(1, True), (2, False)])
def test_users_are_told_where_nearly_every_page_has_one(nobodies: int, told: bool) -> None:
    queries = [query(str(at), at, user_id=None if at < nobodies else "ann", session_id=f"s{at}") for at in range(20)]
    assert ("users" in made(queries).has) is told


def test_two_purchases_of_one_second_are_two_unless_the_records_are_equal() -> None:
    def bought(record: int | None) -> dict[str, Any]:
        return event("1", "purchase", 5, "a", value=9.0, record=record)

    assert not excluded(made([query("1")], [bought(1), bought(2)]), "event")
    assert excluded(made([query("1")], [bought(1), bought(2), bought(1)]), "event") == {"duplicate-event": 1}
    log = made([query("1")], [bought(None), bought(None)])
    assert excluded(log, "event") == {"duplicate-event": 1}
    assert found(log)["event", "duplicate-event"] == (1, 2, "excluded")
    assert len(rows(log.event)) == 1


def test_where_nobody_is_named_intervals_are_over_sessions_and_say_so() -> None:
    nobodys = made([query(str(at), at, user_id=None, session_id=f"s{at}") for at in range(4)])
    scores = online_metrics(nobodys, ["ZeroResults"])
    assert scores.over == scores.facts()["unit"] == "session"
    assert "users" not in dict(check_log(nobodys).counts)
    assert "users" in dict(check_log(made([query("1")])).counts)


def test_sessions_without_a_user_are_not_counted_as_named_users() -> None:
    """Ann has two sessions, three sessions have no user: one named user."""
    who = [("s1", "ann"), ("s2", "ann"), ("s3", None), ("s4", None), ("s5", None)]
    pages = [
        query(str(at), 60 * at, ("a",), session_id=session, user_id=user) for at, (session, user) in enumerate(who)
    ]
    counts = dict(check_log(made(pages, [])).counts)
    assert (counts["sessions"], counts["users"], counts["users without a name"]) == (5, 1, 3)
    named = dict(check_log(made([query("1", 0, ("a",), session_id="s", user_id="ann")], [])).counts)
    assert (named["users"], "users without a name" in named) == (1, False)
    nobody = [query(str(at), 60 * at, ("a",), session_id=f"s{at}", user_id=None) for at in range(2)]
    assert "users" not in dict(check_log(made(nobody, [])).counts)
