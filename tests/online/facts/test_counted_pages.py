"""Facts that depend on other pages of the session, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from judged.online import FactSettings, online_metrics
from judged.online.dwell import dwell_times
from judged.online.facts.pages import page_facts
from judged.online.facts.reformulation import click_facts
from typed_logs import typed_log


def pages_of(*sessions: str) -> list[dict[str, Any]]:
    """Parse sessions such as "0 lamp, 5 lamp 2, 9 hat filtered none": second, text, page, filtered, no results."""
    pages: list[dict[str, Any]] = []
    for session, text in enumerate(sessions):
        for page in text.split(", "):
            seconds, query, *options = page.split()
            number, is_empty = int(next((option for option in options if option.isdigit()), 1)), "none" in options
            keys = {"serp": len(pages), "session": session, "user": session, "time_ms": int(seconds) * 1000}
            results = {"page": number, "first_rank": 10 * number - 9, "n_shown": 0 if is_empty else 10}
            filtered = {"filtered": "filtered" in options, "zero_results": is_empty}
            pages.append({**keys, "query": query, **results, **filtered})
    return pages


def counted(pages: list[dict[str, Any]], events: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    scores = online_metrics(typed_log(pages, events), names)
    return {str(estimate.metric): (estimate.numerator, estimate.denominator) for estimate in scores.estimates}


def test_a_filter_does_not_take_a_query_without_results_away() -> None:
    pages = pages_of(
        "0 lamp none, 5 lamp filtered none",  # asked once without a filter, in vain
        "0 hat, 5 hat filtered none, 9 hat, 12 hat",  # once
        "0 tie none, 5 tie filtered none, 9 tiebar",  # twice, the first in vain
        "0 rug none, 5 rug filtered none, 9 rug none",  # once, in vain
    )
    names = ("ZeroResults", "ZeroResultQueries", "FilteredZeroResults", "QueriesPerSession")
    assert counted(pages, [], *names) == {
        "ZeroResults": (1 + 0 + 1 + 2, 1 + 3 + 2 + 2),
        "ZeroResultQueries": (1 + 0 + 1 + 1, 1 + 1 + 2 + 1),
        "FilteredZeroResults": (4, 4),
        "QueriesPerSession": (1 + 1 + 2 + 1, 4),
    }


def test_a_page_behind_the_first_is_reformulated_as_it_is() -> None:
    """The last page of each session has a success, so that no page is bad only because of what follows."""
    pages = pages_of(
        "0 sofa, 20 sofa 2, 30 sofa 3, 40 sofas",  # three pages of a query that was worded anew
        "0 desk, 20 desk 2, 40 desk",  # asked again: not known why
        "0 rugs, 290 rugs 2, 310 rug",  # more than 300 seconds after the first page, soon after the second
        "0 cupboard, 20 cupboard 2, 40 television",  # another topic
    )
    last_pages = [3, 6, 9, 12]
    clicks = [
        {"serp": serp, **{key: pages[serp][key] for key in ("session", "user")}, "action": "click", "rank": 1}
        | {"time_ms": pages[serp]["time_ms"] + 1000}
        for serp in last_pages
    ]
    names = ("Abandonment", "BadAbandonment", "UnknownAbandonment", "Reformulation")
    assert counted(pages, clicks, *names) == {
        "Abandonment": (9, 13),
        "BadAbandonment": (3 + 0 + 1 + 0, 13),
        "UnknownAbandonment": (0 + 2 + 1 + 2, 13),
        "Reformulation": (1, 7),  # of sofa; desk is asked once
    }


@pytest.mark.parametrize("turned", [False, True])
def test_of_pages_at_one_time_a_cart_falls_to_the_one_logged_last(turned: bool) -> None:
    pages = pages_of("3 lamp, 5 hat, 5 tie, 5 rug, 12 sofa", "5 desk")
    cart = {"session": 0, "user": 0, "action": "add_to_cart"}
    events = [{**cart, "time_ms": time_ms} for time_ms in (2_999, 4_000, 5_000, 11_999)]
    log = typed_log(pages[::-1] if turned else pages, events)
    facts = page_facts(log, ["carts"], FactSettings()).select(["carts"])
    carts = {row["serp"]: row["carts"] for row in facts.to_arrow().to_pylist() if row["carts"]}
    assert carts == {0: 1, 3: 2}  # the first came before any page


@pytest.mark.parametrize(("object_id", "ended"), [(None, 290_000), ("a", 80)])
def test_a_visit_ends_where_the_user_is_back_and_not_where_the_page_is_left(object_id: str | None, ended: int) -> None:
    """A browser logs that the user leaves the result page when a result opens in the same tab."""
    pages = [
        {
            "serp": 2 * session + is_second,
            "session": session,
            "user": session,
            "time_ms": 300_000 * is_second,
            "query": "lamp",
            "n_shown": 3,
        }
        for session in range(40)
        for is_second in (0, 1)
    ]
    events = [
        {
            "serp": 2 * session,
            "session": session,
            "user": session,
            "action": action,
            "time_ms": 10_000 + delay,
            "object_id": event_object,
        }
        for session in range(40)
        for action, delay, event_object in (("click", 0, "a"), ("page_exit", 80, object_id))
    ]
    log = typed_log(pages, events)
    assert {(row["dwell_ms"], row["ended"]) for row in click_facts(log).to_arrow().to_pylist()} == {(ended, 1)}
    satisfied = online_metrics(log, ["SatisfiedClicks", "DissatisfiedClicks"])
    long = ended > 30_000
    assert (satisfied.value("SatisfiedClicks"), satisfied.value("DissatisfiedClicks")) == (float(long), float(not long))


def test_a_rank_before_1970_is_no_time() -> None:
    pages = [{"serp": 0, "session": 0, "user": 0, "time_ms": -5_000, "query": "lamp", "n_shown": 3}]
    click = {"serp": 0, "session": 0, "user": 0, "action": "click", "time_ms": -4_000, "rank": 2, "object_id": "a"}
    assert online_metrics(typed_log(pages, [click]), "FirstClickRR").value("FirstClickRR") == 0.5


def test_what_the_page_does_not_show_is_not_opened_of_it() -> None:
    """Two of three pages list ten results. One has clicks on other objects, and one has no list."""
    page = {"session": 0, "user": 0, "time_ms": 0, "query": "lamp", "n_shown": 10}
    pages = [{**page, "serp": 0, "n_returned": 10}, {**page, "serp": 1, "n_returned": 10}, {**page, "serp": 2}]
    click = {"session": 0, "user": 0, "action": "click", "time_ms": 1}
    events = [{**click, "serp": 0, "rank": 3, "object_id": "a"}, {**click, "serp": 1, "object_id": "elsewhere"}]
    events += [{**click, "serp": 1, "rank": 14, "object_id": "below"}, {**click, "serp": 2, "object_id": "somewhere"}]
    scores = online_metrics(typed_log(pages, events), ["ImpressionCTR", "ClicksPerPage"])
    assert (scores.of("ImpressionCTR").numerator, scores.of("ImpressionCTR").denominator) == (2, 30)
    assert scores.of("ClicksPerPage").numerator == 4


def test_seconds_need_not_be_whole() -> None:
    pages = [{"serp": 0, "session": 0, "user": 0, "time_ms": 0, "query": "lamp", "n_shown": 3}]
    click = {"serp": 0, "session": 0, "user": 0, "action": "click", "object_id": "a", "rank": 1}
    log = typed_log(pages, [{**click, "time_ms": 1_000, "dwell_ms": 2_400}])
    names = ("SatisfiedClicks(t=2.4)", "SatisfiedClicks(t=2.5)", "DissatisfiedClicks(t=2.5)", "SessionSuccess(t=0.5)")
    scores = online_metrics(log, names, settings=FactSettings(success=2.5))
    assert [scores.value(name) for name in names] == [1, 0, 1, 1]


def test_a_list_with_gaps_shows_what_stands_in_it() -> None:
    """Results are at ranks 1 and 5, and rank 5 was opened: only the result at rank 1 is above it."""
    pages = [{"serp": 0, "session": 0, "user": 0, "time_ms": 0, "query": "lamp", "n_shown": 2, "ranks": [1, 5]}]
    click = {"serp": 0, "session": 0, "user": 0, "action": "click", "time_ms": 1, "object_id": "e", "rank": 5}
    expected = {
        "CTRAtRank(r=2)": (0, 0), "CTRAtRank(r=5)": (1, 1), "ImpressionCTR@4": (0, 1), "ImpressionCTR@5": (1, 2),
        "SkipRate": (1, 1),
    }  # fmt: skip
    assert counted(pages, [click], *expected) == expected


def test_a_call_leaves_nothing_in_the_database() -> None:
    pages = pages_of("0 lamp, 5 lamps, 9 hat")
    click = {"serp": 0, "session": 0, "user": 0, "action": "click", "time_ms": 1, "object_id": "a", "rank": 1}
    log = typed_log(pages, [click])

    def held() -> list[dict[str, Any]]:
        return log.engine.rows("SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()")

    before = held()
    online_metrics(log, by="traffic")
    dwell_times(log)
    assert sorted(map(str, held())) == sorted(map(str, before))
