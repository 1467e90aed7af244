"""Small logs in which a known number of rows match each rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from judged.errors import InputError
from made_log import excluded, findings_by_rule, prepared_log, rows
from raw_made import NOW, event, query

DAY = 86_400_000


def test_rules_that_exclude_queries() -> None:
    log = prepared_log([
        query("1"), query(None), query(""), query("2", time_ms=None), query("3", time_ms=NOW + DAY),
        query("4", time_ms=NOW + DAY + 1), query("5", size=0, hits=[]), query("5", 1), query("6", hits=[]),
        query("6", 1, ["x"]), query("7", 9, ["late"]), query("7", 5, ["first"]), query("7", 7, ["x"]),
        query("8", hits=[]),
    ])  # fmt: skip
    assert excluded(log, "query") == {
        "no-query-id": 2, "odd-time": 1, "future-time": 1, "facet-request": 2, "repeated-query-id": 2,
    }  # fmt: skip
    assert rows(log.serp, "query_id", "n_returned", "zero_results") == [
        ("1", 3, False), ("3", 3, False), ("5", 3, False), ("6", 1, False), ("7", 1, False), ("8", 0, True),
    ]  # fmt: skip
    assert ("first",) in rows(log.shown, "object_id")
    assert ("late",) not in rows(log.shown, "object_id")
    (repeated,) = [finding for finding in log.findings if finding.rule == "repeated-query-id"]
    assert repeated.places == ("log.ndjson:11", "log.ndjson:13")
    assert "3 query_ids have several rows, at most 3 each" in repeated.problem
    (facets,) = [finding for finding in log.findings if finding.rule == "facet-request"]
    assert "1 with size 0, 1 with an empty list and a query_id that has results in another row" in facets.problem


def test_a_repeated_page_has_the_time_of_its_first_request_with_results() -> None:
    log = prepared_log([query("1", 3, ["b"]), query("1", 2, ["a"]), query("1", 1, size=0, hits=[])])
    assert rows(log.serp, "time_ms") == [(NOW + 2000,)]
    empty = prepared_log([query("1", 3, []), query("1", 2, [])])
    assert rows(empty.serp, "time_ms", "zero_results") == [(NOW + 2000, True)]


def test_pages_with_a_row_per_click_are_reported() -> None:
    """Only the second row repeats a page: the others have another time, list, user, query, or no user."""
    log = prepared_log([
        query("1"), query("2"), query("3", 1), query("4", hits=["z"]), query("5", user_id="v"), query("6", query="x"),
        query("7", user_id=None, session_id=None), query("8", user_id=None, session_id=None),
    ])  # fmt: skip
    assert findings_by_rule(log)["query", "repeated-page"] == (1, 8, "kept")


def test_rules_of_events() -> None:
    log = prepared_log(
        [query("1"), query("f", time_ms=NOW + 2 * DAY)],
        [
            event("1", "click", 1, "a", position=1, event_id="x"),
            event("1", "click", 2, "b", position=2, event_id="x"),  # sent twice
            event("1", "click", 3, "a", position=1), event("1", "click", 3, "a", position=1),  # equal
            event("1", "click", 4, "a", time_ms=None), event("1", "click", 4, "a", time_ms=NOW + DAY + 1),
            event("1", "click", -5, "c", position=3),  # before its page
            event("1", "click", 6, "c", position=1),  # the list has it third
            event("1", "click", 7, "z", position=9),  # not in the list, behind its end
            event("1", "click", 8, position=-4),
            event(None, "click", 9, "a"), event("?", "click", 10, "a"), event("f", "click", 11, "a"),
            event("1", "wink", 12), event("1", None, 13),
        ],
    )  # fmt: skip
    assert excluded(log, "event") == {"odd-time": 1, "future-time": 1, "duplicate-event": 2}
    assert findings_by_rule(log) == {
        ("query", "future-time"): (1, 2, "excluded"), ("event", "odd-time"): (1, 15, "excluded"),
        ("event", "future-time"): (1, 15, "excluded"), ("event", "duplicate-event"): (2, 15, "excluded"),
        ("event", "no-query-id"): (1, 11, "kept"), ("event", "unknown-query-id"): (1, 10, "kept"),
        ("event", "excluded-page"): (1, 10, "kept"), ("event", "clock-skew"): (1, 8, "kept"),
        ("event", "rank-disagrees"): (1, 6, "repaired"), ("event", "rank-beyond-list"): (1, 6, "kept"),
        ("event", "negative-rank"): (1, 6, "repaired"), ("event", "unknown-action"): (2, 15, "kept"),
        ("event", "click-without-impression"): (1, 9, "kept"),
    }  # fmt: skip
    ranks = [(row[0] - NOW, row[1]) for row in rows(log.event.where("serp IS NOT NULL"), "time_ms", "rank")]
    assert sorted(ranks) == [
        (-5000, 3), (1000, 1), (3000, 1), (6000, 3), (7000, 9), (8000, None), (12000, None), (13000, None),
    ]  # fmt: skip
    assert "(median: 5 s)" in next(finding.problem for finding in log.findings if finding.rule == "clock-skew")
    assert len(rows(log.session)) == 1  # events without a page stay in their session


def test_equal_rows_without_timestamps_or_with_unknown_actions_are_not_duplicates() -> None:
    twice = [event("1", "click", 3, "a"), event("1", "click", 3, "a")]
    assert not excluded(prepared_log([query("1")], twice, has_time=False), "event")
    assert not excluded(prepared_log([query("1")], [event("1", "wink", 3, "a")] * 2), "event")
    assert excluded(prepared_log([query("1")], twice), "event") == {"duplicate-event": 1}


@pytest.mark.parametrize(("base", "ranks"), [(None, {1, 2}), (0, {1, 2}), (1, {1})])
def test_positions_from_0_are_repaired_unless_the_rank_base_is_set(base: Any, ranks: set[int]) -> None:
    events = [event("1", "click", position, f"x{position}", position=position) for position in (0, 1)]
    log = prepared_log([query("1", hits=None)], events, base=base)
    assert {row[0] for row in rows(log.event, "rank")} - {None} == ranks
    assert (("event", "zero-based-ranks") in findings_by_rule(log)) == (base is None)


def test_the_rank_base_is_detected_by_application() -> None:
    events = [event("1", "click", i, f"x{i}", position=i, application="old") for i in range(5)]
    events += [event("1", "click", i, f"y{i}", position=i, application="new") for i in range(1, 40)]
    log = prepared_log([query("1", hits=None)], events)
    assert findings_by_rule(log)["event", "mixed-rank-base"] == (5, 44, "repaired")
    ranks = rows(log.event, "object_id", "rank")
    assert ("x0", 1) in ranks
    assert ("x4", 5) in ranks
    assert ("y1", 1) in ranks
    (mixed,) = [finding for finding in log.findings if finding.rule == "mixed-rank-base"]
    assert "old: positions start at 0 (1 of 5 are 0, 1 are 1, uncertain)" in mixed.problem


def test_a_rare_position_0_does_not_change_the_rank_base() -> None:
    events = [event("1", "click", i, f"x{i}", position=1) for i in range(20)] + [
        event("1", "click", 30, "z", position=0)
    ]
    log = prepared_log([query("1", hits=None)], events)
    assert findings_by_rule(log)["event", "negative-rank"] == (1, 21, "repaired")
    assert ("event", "zero-based-ranks") not in findings_by_rule(log)


def test_ranks_continue_over_pages() -> None:
    queries = [query("1", size=3), query("2", 9, ["d", "e"], page=2, size=3), query("3", 20, ["x"], first_rank=41)]
    events = [
        event("2", "click", 10, "e", position=2),
        event("2", "click", 11, "e", position=5),
        event("3", "click", 21, "x"),
    ]
    log = prepared_log(queries, events)
    assert rows(log.event, "rank") == [(41,), (5,), (5,)]
    assert rows(log.shown, "object_id", "rank")[3:] == [("d", 4), ("e", 5), ("x", 41)]
    assert not log.findings  # positions may count within the page or within the list


def test_all_rows_of_bots_are_excluded() -> None:
    def row_of(user: str, **fields: Any) -> dict[str, Any]:
        return {"user_id": user, "session_id": f"s-{user}", **fields}

    queries = [query("1", **row_of("ann"))]
    queries += [query("b1", **row_of("flag", bot=True)), query("b2", 5, **row_of("flag"))]
    queries += [query("c1", **row_of("agent", user_agent="Mozilla (compatible; Googlebot/2.1)"))]
    queries += [query(f"d{i}", i * 20, **row_of("fast")) for i in range(5)]  # 5 in 80 s
    queries += [query(f"e{i}", i * 3600, user_id="slow", session_id=f"{i}") for i in range(5)]
    queries += [query("g", **row_of("event-only"))]
    events = [event("1", "click", 2, "a", **row_of("ann")), event("b2", "click", 6, "a", **row_of("flag"))]
    events += [
        event("g", "click", 3, "a", **row_of("event-only", bot=True)),
        event("?", "click", 9, "a", **row_of("fast")),
    ]
    log = prepared_log(queries, events, bot_pages=4, bot_minutes=1.5)
    assert excluded(log, "query") == {"bot": 2 + 1 + 5 + 1}
    assert excluded(log, "event") == {"bot": 3}
    assert {row[0] for row in rows(log.session, "user_id")} == {"ann", "slow"}
    with_bots = prepared_log(queries, events, bot_pages=4, bot_minutes=1.5, bots="keep")
    assert findings_by_rule(with_bots)["query", "bot"] == (9, 15, "kept")
    assert not excluded(with_bots, "query") | excluded(with_bots, "event")
    one_session = prepared_log(queries[4:9], bot_pages=4, bot_minutes=0.001)
    assert excluded(one_session, "query") == {"bot": 5}  # more than 4 in one session of the log


def test_clicks_without_an_impression() -> None:
    events = [
        event("1", "impression", 1, "a"), event("1", "click", 2, "a"), event("1", "click", 3, "b"),
        event("1", "click", 4, "z"), event("?", "impression", 5, "k"), event("?", "click", 6, "k"),
        event("?", "click", 7, "l"),
    ]  # fmt: skip
    log = prepared_log([query("1")], events)
    assert findings_by_rule(log)["event", "click-without-impression"] == (
        3,
        5,
        "kept",
    )  # b, z, and l on a page that was not logged
    assert "(1 on objects outside the result list of the page, 2 on results without an impression)" in next(
        finding.problem for finding in log.findings if finding.rule == "click-without-impression"
    )
    assert rows(log.shown, "object_id", "seen") == [("a", True), ("b", False), ("c", False)]


def test_impressions_are_the_shown_results_of_pages_without_a_list() -> None:
    events = [event("1", "impression", rank, name, position=rank) for rank, name in enumerate("pqp", 1)]
    log = prepared_log([query("1", hits=None), query("2")], events)
    assert rows(log.shown, "object_id", "rank", "seen") == [
        ("a", 1, False), ("b", 2, False), ("c", 3, False), ("p", 1, True), ("q", 2, True),
    ]  # fmt: skip
    assert rows(log.serp, "query_id", "n_shown", "zero_results") == [("1", 2, None), ("2", 3, False)]


def test_teams_and_propensities_of_shown_results() -> None:
    log = prepared_log(
        [query("1", hits=["a", "b"], teams=["A", "B"], propensities=[0.5, 0.25]), query("2", hits=["c"], teams=None)]
    )
    assert rows(log.shown, "object_id", "rank", "team", "propensity") == [
        ("a", 1, "A", 0.5), ("b", 2, "B", 0.25), ("c", 1, None, None),
    ]  # fmt: skip


def test_a_dwell_time_on_all_events_is_ignored() -> None:
    events = [
        event("1", "search", 1, dwell_ms=10),
        event("1", "hover", 2, dwell_ms=20),
        event("1", "click", 3, "a", dwell_ms=30),
    ]
    log = prepared_log([query("1")], events)
    assert findings_by_rule(log)["event", "dwell-on-every-event"] == (3, 3, "repaired")
    assert {row[0] for row in rows(log.event, "dwell_ms")} == {None}
    log_of_visits = prepared_log([query("1")], [event("1", "search", 1), event("1", "click", 3, "a", dwell_ms=30)])
    assert rows(log_of_visits.event, "dwell_ms") == [(30,), (None,)]


def test_the_action_mapping_takes_precedence() -> None:
    events = [event("1", "Item-Click", 1, "a"), event("1", "view", 2, "a"), event("1", "buy", 3, "a", value=9.5)]
    log = prepared_log([query("1")], events, actions={"buy": "add_to_cart"})
    assert rows(log.event, "action", "value") == [("add_to_cart", 9.5), ("click", None), ("other", None)]
    with pytest.raises(InputError, match="unknown action 'gaze'"):
        prepared_log([query("1")], events, actions={"buy": "gaze"})


@pytest.mark.parametrize("options", [{"session_gap": 0}, {"bot_pages": 0}, {"bot_minutes": -1}])
def test_invalid_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"above 0|1 or more"):
        prepared_log([query("1")], **options)


def test_query_texts_are_normalized() -> None:
    log = prepared_log([query("1", query="  Two\tRed  CATS\u00a0now "), query("2", query=None)])
    assert rows(log.serp, "query_norm") == [("two red cats now",), (None,)]


def test_an_empty_log() -> None:
    log = prepared_log([])
    assert [(account.read, account.kept) for account in log.accounts] == [(0, 0), (0, 0)]
    assert not log.has
    assert not log.findings
    assert not rows(log.shown)


def test_attributes_can_have_any_name() -> None:
    attributes = {'the "$shop"': "A", "named": "x", "session": "y"}
    log = prepared_log([query("1", **attributes)], attributes=[*attributes])
    assert log.attributes == ('the "$shop"', "named", "session_attribute")
    assert rows(log.serp, *log.attributes) == [("A", "x", "y")]


def test_capabilities() -> None:
    assert prepared_log([query("1", hits=None, n_total=0)]).has == {"zero_results", "sessions", "queries", "users"}
    events = [event("1", "click", 1, "a"), event("1", "purchase", 2, "a", value=3.0), event("1", "copy", 3)]
    assert prepared_log([query("1", latency_ms=3.0, rescued=False)], events).has == {
        "shown", "clicks", "dwell", "zero_results", "purchases", "values", "reading", "latency", "rescues", "sessions",
        "queries", "users", "ranks", "unclicked",
    }  # fmt: skip
    assert "dwell" not in prepared_log([query("1")], events, has_time=False).has


def test_duplicates_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judged.online.preparation.events._PART_SIZE", 3)
    with_id = [event("1", "click", i, "a", event_id=f"e{i % 7}") for i in range(10)]
    log = prepared_log([query("1")], with_id + [event("1", "click", 50 + i % 2, "a") for i in range(4)])
    assert excluded(log, "event") == {"duplicate-event": 3 + 2}


def test_many_unknown_actions_are_counted_and_few_are_listed() -> None:
    events = [event("1", f"act {i}", 1 + i / 1e4, "a") for i in range(50_000)]
    events += [event("1", "act 7", 9, "a"), event("1", None, 9), event("1", "", 9), event("1", "(none)", 9)]
    clicks = [event("1", name, 10 + i, "a") for i, name in enumerate(("click", "Item-Click", "my click", " CLICK "))]
    log = prepared_log([query("1")], events + clicks, actions={"my click": "click"})
    assert findings_by_rule(log)["event", "unknown-action"] == (50_004, 50_008, "kept")
    (unknown,) = [finding for finding in log.findings if finding.rule == "unknown-action"]
    assert "((none) 3, act 7 2, act 0 1, act 1 1, act 10 1, act 100 1, act 1000 1, act 10000 1 and 49,993 more)" in (
        unknown.problem
    )
    assert Counter(row[0] for row in rows(log.event, "action")) == {"click": 4, "other": 50_004}


def test_only_unknown_actions() -> None:
    log = prepared_log([query("1")], [event("1", "wink", 1), event("1", "it's $x", 2)])
    assert findings_by_rule(log)["event", "unknown-action"] == (2, 2, "kept")


def test_the_rank_base_of_many_applications() -> None:
    events = [
        event("1", "click", i / 100, f"x{i}", position=i % 2 + i // 2 % 2, application=f"app {i // 2}")
        for i in range(8000)
    ]
    events += [
        event("1", "click", 90, "none", position=0),
        event("1", "click", 90, "empty", position=1, application=""),
    ]
    log = prepared_log([query("1", hits=None)], events)
    # Every second application has positions 0 and 1, and counts from 0; the others have 1 and 2. Unnamed: 0.
    assert findings_by_rule(log)["event", "mixed-rank-base"] == (4001, 8002, "repaired")
    ranks = {row["object_id"]: row["rank"] for row in log.event.to_arrow("object_id", "rank").to_pylist()}
    assert [ranks.pop(name) for name in ("none", "empty")] == [1, 1]
    assert set(ranks.values()) == {1, 2}
    assert all(ranks[f"x{i}"] == i % 2 + 1 for i in range(8000))
    (mixed,) = [finding for finding in log.findings if finding.rule == "mixed-rank-base"]
    assert mixed.problem.count(": positions start at") == 8
    assert "; 3,994 more)" in mixed.problem


def test_numbers_that_are_too_large_for_a_rank() -> None:
    events = [
        event("1", "click", time, "a", position=position) for time, position in enumerate((2**53, -(2**53), 2**31 - 1))
    ]
    pages = [
        query("1"), query("2", page=2**31 - 1, size=2**53), query("3", first_rank=2**31 - 1),
        query("4", hits=None, n_total=2**53), query("5", hits=None, n_total=2**53, size=3),
    ]  # fmt: skip
    log = prepared_log(pages, [*events, event("2", "click", 5, "a"), event("3", "click", 5, "b")])
    assert rows(log.event, "time_ms", "rank")[:3] == [(NOW, 1), (NOW + 1000, 1), (NOW + 2000, 1)]
    assert sorted(row[0] for row in rows(log.event, "rank"))[3:] == [10**9, 10**9 + 1]
    assert findings_by_rule(log)["event", "rank-disagrees"] == (3, 5, "repaired")
    assert rows(log.serp, "query_id", "n_shown")[3:] == [("4", 2**31 - 1), ("5", 3)]


def test_errors_during_the_search_for_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr("judged.online.preparation.events._create_events", failing)
    with pytest.raises(MemoryError, match="no more"):
        prepared_log([query("1")], [event("1", "click", event_id="x")] * 2)
    monkeypatch.undo()
    monkeypatch.setattr("judged.online.preparation.events._duplicate_keys", failing)
    with pytest.raises(MemoryError, match="no more"):
        prepared_log([query("1")], [event("1", "click", event_id="x")] * 2)
