"""Whose a page or an event is, in which session, and that no row gets lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from judged.online.preparation.work import RULES as OF_QUERIES
from made_log import excluded, found, made, rows
from raw_made import event, query

MINUTE = 60


def sessions(log: Any) -> list[list[str]]:
    """Give the pages of each session, by their names."""
    by: dict[int, list[str]] = {}
    for session, name in rows(log.serp, "session", "query_id"):
        by.setdefault(session, []).append(name)
    return sorted(by.values())


def test_sessions_are_cut_by_inactivity_where_the_log_names_none() -> None:
    at = {"a": 0, "b": 30, "c": 61, "d": 100}  # minutes: a gap of exactly 30 cuts nothing
    queries = [query(name, minute * MINUTE, session_id=None) for name, minute in at.items()]
    assert sessions(made(queries)) == [["a", "b"], ["c"], ["d"]]
    assert sessions(made(queries, session_gap=31)) == [["a", "b", "c"], ["d"]]
    clicked = made(queries, [event("c", "click", 80 * MINUTE, "a", session_id=None)])
    assert sessions(clicked) == [["a", "b"], ["c", "d"]]  # 20 minutes after the click
    assert sessions(made(queries, has_time=False)) == [["a", "b", "c", "d"]]
    two = [{**one, "user_id": f"u{place % 2}"} for place, one in enumerate(queries)]
    assert sessions(made(two)) == [["a"], ["b"], ["c"], ["d"]]


def test_pages_learn_their_session_and_user_from_their_events() -> None:
    queries = [query(name, session_id=None, user_id=None) for name in "abc"]
    events = [
        event("a", "click", 5, "a", session_id="late"), event("a", "click", 2, "b", session_id="s1", user_id=None),
        event("b", "click", 3, "a", session_id="s1", user_id=None),
        event("?", "click", 3, "a", session_id="s1", user_id="ann"),
    ]  # fmt: skip
    log = made(queries, events)
    told = rows(log.session, "session_id", "user_id", "n_serps", "n_events")
    assert (None, None, 1, 0) in told  # page c, of which nobody knows anything
    assert found(log)["query", "no-user"] == (1, 3, "kept")
    assert {row[0] for row in told} == {None, "s1"}  # the click that came late stays with its page
    assert (sum(row[2] for row in told), sum(row[3] for row in told)) == (3, 4)
    assert {row[0] for row in rows(log.session, "user_id")} == {None, "u", "ann"}


def test_a_session_id_of_two_users_is_two_sessions() -> None:
    log = made([query("1", user_id="ann"), query("2", user_id="bob"), query("3", user_id="bob", session_id="t")])
    assert sessions(log) == [["1"], ["2"], ["3"]]
    assert found(log)["query", "session-of-two-users"] == (2, 3, "repaired")
    owners = rows(log.session, "session", "user")
    assert len(owners) == len({session for session, _ in owners}) == 3


def test_events_without_a_session_follow_their_page_and_then_their_user() -> None:
    queries = [query("1", session_id="x"), query("2", 90 * MINUTE, session_id="y")]
    events = [
        event("1", "click", 10, "a", session_id=None, user_id=None),
        event(None, "search", 95 * MINUTE, session_id=None),  # 5 minutes after page 2
        event(None, "search", 300 * MINUTE, session_id=None),  # long after everything
        event("2", "click", 91 * MINUTE, "a", session_id="z"),  # stays with its page, whatever it says
        event(None, "search", 1, session_id=None, user_id=None),
    ]
    log = made(queries, events)
    in_session = {row[0]: row[1:] for row in rows(log.session, "session_id", "n_serps", "n_events") if row[0]}
    assert in_session == {"x": (1, 1), "y": (1, 2)}
    assert [row[1:] for row in rows(log.session, "session_id", "n_serps", "n_events") if not row[0]] == [(0, 1), (0, 1)]
    assert found(log)["event", "no-user"] == (1, 5, "kept")
    ends = {row[0]: (row[2] - row[1]) / 1000 for row in rows(log.session, "session_id", "start_ms", "end_ms") if row[0]}
    assert ends == {"x": 10, "y": 5 * MINUTE}


NAMES = st.sampled_from([None, "", "1", "2", "3"])
OWNERS = {"user_id": st.sampled_from([None, "ann", "bob"]), "session_id": st.sampled_from([None, "s", "t"])}
TIMES = st.one_of(st.none(), st.integers(0, 200_000_000).map(lambda one: 1_699_900_000_000 + one))
QUERIES = st.fixed_dictionaries({
    "query_id": NAMES, **OWNERS, "time_ms": TIMES, "size": st.sampled_from([None, 0, 10]),
    "page": st.sampled_from([None, 1, 2]),
    "hit_ids": st.one_of(st.none(), st.lists(st.sampled_from("abc"), unique=True)),
    "bot": st.sampled_from([None, False, True]),
})  # fmt: skip
EVENTS = st.fixed_dictionaries({
    "query_id": NAMES, **OWNERS, "time_ms": TIMES, "event_id": st.sampled_from([None, "e", "f"]),
    "action": st.sampled_from([None, "click", "impression", "wink"]), "object_id": st.sampled_from([None, "a", "x"]),
    "position": st.one_of(st.none(), st.integers(-1, 5)), "bot": st.sampled_from([None, False, True]),
})  # fmt: skip


@settings(max_examples=6)
@given(st.lists(QUERIES, max_size=8), st.lists(EVENTS, max_size=8), st.booleans(), st.sampled_from(["exclude", "keep"]))
def test_every_row_has_a_place(queries: list[Any], events: list[Any], has_time: bool, bots: Any) -> None:
    log = made(queries, events, has_time=has_time, bots=bots)
    pages, done = rows(log.serp, "serp", "session", "user"), rows(log.event, "event", "session", "user", "serp")
    assert set(excluded(log, "query")) <= set(OF_QUERIES)
    assert len(pages) + sum(excluded(log, "query").values()) == len(queries)
    assert len(done) + sum(excluded(log, "event").values()) == len(events)
    found_rows = {one.rule: one.rows for one in log.findings if one.table == "event"}
    assert all(found_rows[rule] == count for rule, count in excluded(log, "event").items())
    owners = {row[0]: row[1] for row in rows(log.session, "session", "user")}
    assert len(owners) == len(rows(log.session))
    assert all(owners[session] == user for _, session, user in pages)
    assert all(owners[session] == user for _, session, user, _ in done)
    assert {session for _, session, _, *_ in pages + done} == set(owners)
    assert sum(row[0] for row in rows(log.session, "n_serps")) == len(pages)
    assert sum(row[0] for row in rows(log.session, "n_events")) == len(done)
    assert {row[3] for row in done} - {None} <= {row[0] for row in pages}
    listed = {row[0] for row in rows(log.serp, "query_id")}
    assert len(listed) == len(pages)
    assert listed <= {one["query_id"] for one in queries if one["query_id"]}
    for table in (log.serp, log.event, log.session, log.shown):
        lacking = {
            name: column.null_count for name, column in zip(table.columns, table.to_arrow().columns, strict=True)
        }
        nullable = {"application", "query", "query_norm", "language", "device", "n_total", "n_returned", "zero_results",
                    "rescued", "suggested", "latency_ms", "experiment", "variant", "assign_p", "ranker", "trace_id",
                    "team", "ranks", "propensity",
                    "seen", "object_id", "rank", "dwell_ms", "value", "session_id", "user_id"}  # fmt: skip
        if "event" in table.columns:
            nullable |= {"serp"}
        assert not [name for name, count in lacking.items() if count and name not in nullable]
