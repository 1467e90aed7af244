"""Users and sessions of pages and events, and that no row is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from judged.online.preparation.work import RULES as QUERY_RULES
from made_log import excluded, findings_by_rule, prepared_log, rows
from raw_made import event, query

MINUTE = 60


def sessions(log: Any) -> list[list[str]]:
    """Return the query IDs of the pages of each session."""
    pages: dict[int, list[str]] = {}
    for session, name in rows(log.serp, "session", "query_id"):
        pages.setdefault(session, []).append(name)
    return sorted(pages.values())


def test_sessions_are_split_by_inactivity_without_session_ids() -> None:
    minutes = {"a": 0, "b": 30, "c": 61, "d": 100}  # a gap of exactly 30 minutes does not split a session
    queries = [query(name, minute * MINUTE, session_id=None) for name, minute in minutes.items()]
    assert sessions(prepared_log(queries)) == [["a", "b"], ["c"], ["d"]]
    assert sessions(prepared_log(queries, session_gap=31)) == [["a", "b", "c"], ["d"]]
    clicked = prepared_log(queries, [event("c", "click", 80 * MINUTE, "a", session_id=None)])
    assert sessions(clicked) == [["a", "b"], ["c", "d"]]  # 20 minutes after the click
    assert sessions(prepared_log(queries, has_time=False)) == [["a", "b", "c", "d"]]
    two_users = [{**page, "user_id": f"u{i % 2}"} for i, page in enumerate(queries)]
    assert sessions(prepared_log(two_users)) == [["a"], ["b"], ["c"], ["d"]]


def test_pages_get_their_session_and_user_from_their_events() -> None:
    queries = [query(name, session_id=None, user_id=None) for name in "abc"]
    events = [
        event("a", "click", 5, "a", session_id="late"), event("a", "click", 2, "b", session_id="s1", user_id=None),
        event("b", "click", 3, "a", session_id="s1", user_id=None),
        event("?", "click", 3, "a", session_id="s1", user_id="ann"),
    ]  # fmt: skip
    log = prepared_log(queries, events)
    session_rows = rows(log.session, "session_id", "user_id", "n_serps", "n_events")
    assert (None, None, 1, 0) in session_rows  # page c has no events
    assert findings_by_rule(log)["query", "no-user"] == (1, 3, "kept")
    assert {row[0] for row in session_rows} == {None, "s1"}  # the later click belongs to the session of its page
    assert (sum(row[2] for row in session_rows), sum(row[3] for row in session_rows)) == (3, 4)
    assert {row[0] for row in rows(log.session, "user_id")} == {None, "u", "ann"}


def test_a_session_id_with_two_users_is_split() -> None:
    log = prepared_log(
        [query("1", user_id="ann"), query("2", user_id="bob"), query("3", user_id="bob", session_id="t")]
    )
    assert sessions(log) == [["1"], ["2"], ["3"]]
    assert findings_by_rule(log)["query", "session-of-two-users"] == (2, 3, "repaired")
    owners = rows(log.session, "session", "user")
    assert len(owners) == len({session for session, _ in owners}) == 3


def test_events_without_a_session_id_get_that_of_their_page_or_user() -> None:
    queries = [query("1", session_id="x"), query("2", 90 * MINUTE, session_id="y")]
    events = [
        event("1", "click", 10, "a", session_id=None, user_id=None),
        event(None, "search", 95 * MINUTE, session_id=None),  # 5 minutes after page 2
        event(None, "search", 300 * MINUTE, session_id=None),  # after a long pause
        event("2", "click", 91 * MINUTE, "a", session_id="z"),  # the session of the page takes precedence
        event(None, "search", 1, session_id=None, user_id=None),
    ]
    log = prepared_log(queries, events)
    in_session = {row[0]: row[1:] for row in rows(log.session, "session_id", "n_serps", "n_events") if row[0]}
    assert in_session == {"x": (1, 1), "y": (1, 2)}
    assert [row[1:] for row in rows(log.session, "session_id", "n_serps", "n_events") if not row[0]] == [(0, 1), (0, 1)]
    assert findings_by_rule(log)["event", "no-user"] == (1, 5, "kept")
    ends = {row[0]: (row[2] - row[1]) / 1000 for row in rows(log.session, "session_id", "start_ms", "end_ms") if row[0]}
    assert ends == {"x": 10, "y": 5 * MINUTE}


NAMES = st.sampled_from([None, "", "1", "2", "3"])
OWNERS = {"user_id": st.sampled_from([None, "ann", "bob"]), "session_id": st.sampled_from([None, "s", "t"])}
TIMES = st.one_of(st.none(), st.integers(0, 200_000_000).map(lambda ms: 1_699_900_000_000 + ms))
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
def test_all_rows_are_accounted_for(queries: list[Any], events: list[Any], has_time: bool, bots: Any) -> None:
    log = prepared_log(queries, events, has_time=has_time, bots=bots)
    page_rows, event_rows = (
        rows(log.serp, "serp", "session", "user"),
        rows(log.event, "event", "session", "user", "serp"),
    )
    assert set(excluded(log, "query")) <= set(QUERY_RULES)
    assert len(page_rows) + sum(excluded(log, "query").values()) == len(queries)
    assert len(event_rows) + sum(excluded(log, "event").values()) == len(events)
    finding_rows = {finding.rule: finding.rows for finding in log.findings if finding.table == "event"}
    assert all(finding_rows[rule] == count for rule, count in excluded(log, "event").items())
    owners = {row[0]: row[1] for row in rows(log.session, "session", "user")}
    assert len(owners) == len(rows(log.session))
    assert all(owners[session] == user for _, session, user in page_rows)
    assert all(owners[session] == user for _, session, user, _ in event_rows)
    assert {session for _, session, _, *_ in page_rows + event_rows} == set(owners)
    assert sum(row[0] for row in rows(log.session, "n_serps")) == len(page_rows)
    assert sum(row[0] for row in rows(log.session, "n_events")) == len(event_rows)
    assert {row[3] for row in event_rows} - {None} <= {row[0] for row in page_rows}
    query_ids = {row[0] for row in rows(log.serp, "query_id")}
    assert len(query_ids) == len(page_rows)
    assert query_ids <= {page["query_id"] for page in queries if page["query_id"]}
    for table in (log.serp, log.event, log.session, log.shown):
        null_counts = {
            name: column.null_count for name, column in zip(table.columns, table.to_arrow().columns, strict=True)
        }
        nullable = {"application", "query", "query_norm", "language", "device", "n_total", "n_returned", "zero_results",
                    "rescued", "suggested", "latency_ms", "experiment", "variant", "assign_p", "ranker", "trace_id",
                    "team", "ranks", "propensity",
                    "seen", "object_id", "rank", "dwell_ms", "value", "session_id", "user_id"}  # fmt: skip
        if "event" in table.columns:
            nullable |= {"serp"}
        assert not [name for name, count in null_counts.items() if count and name not in nullable]
