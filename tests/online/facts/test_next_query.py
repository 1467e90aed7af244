"""Next queries of sessions, page by page."""

from __future__ import annotations

import random

import pyarrow as pa

from judged.online.engine import Database
from judged.online.facts import reformulation as module
from judged.online.facts.reformulation import begin_next_queries, reformulation_kind

TYPES = {
    "serp": "int64", "session": "int64", "time_ms": "int64", "page": "int32", "query_norm": "string",
    "filtered": "bool",
}  # fmt: skip


def next_queries(pages, within_ms=2**62):
    """Return the next queries by key (from 1) of pages as (session, time_ms, page, text, optionally filtered)."""
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in TYPES.items()])
    rows = [dict(zip(TYPES, (key, *page, False)[: len(TYPES)], strict=True)) for key, page in enumerate(pages, 1)]
    engine = Database()
    serp = engine.register(pa.Table.from_pylist(rows, schema))
    next_rows = engine.rows(f"FROM {begin_next_queries(serp, within_ms=within_ms)()}")
    assert len({row["serp"] for row in next_rows}) == len(next_rows)
    no_next = {"next_serp": None, "gap_ms": None, "kind": None, "again": False}
    return {key: {"serp": key, **no_next} for key in range(1, len(pages) + 1)} | {row["serp"]: row for row in next_rows}


def next_kinds(pages):
    """Return (next page, gap, kind) of each page."""
    return {key: (row["next_serp"], row["gap_ms"], row["kind"]) for key, row in next_queries(pages).items()}


def test_a_session_page_by_page():
    pages = [
        (1, 0, 1, "shoes"),  # 1: reloaded
        (1, 1_000, 1, "shoes"),  # 2: given up after its second page
        (1, 2_500, 2, "shoes"),  # 3: turning the page asks nothing
        (2, 2_600, 1, "weather"),  # 4: another session does not come between
        (1, 4_000, 1, "red shoes"),  # 5
        (1, 9_000, 1, "red shos"),  # 6: more than a word changed by letters
        (1, 9_500, 1, "red shoes"),  # 7: filtered now: the same text
        (1, 9_900, 1, "red shoes"),  # 8
        (1, 20_000, 1, "tax law"),  # 9
        (2, 30_000, 1, None),  # 10: without a text
        (2, 31_000, 1, "weather"),  # 11
        (3, 0, 2, "cut off"),  # 12: the log begins with a second page
        (3, 5, 1, "tie"),  # 13
    ]
    assert next_kinds(pages) == {
        1: (2, 1_000, "same"),
        2: (5, 3_000, "specialize"),
        3: (5, 1_500, "specialize"),
        5: (6, 5_000, "spelling"),
        6: (7, 500, "spelling"),
        7: (8, 400, "same"),
        8: (9, 10_100, "new-topic"),
        9: (None, None, None),
        4: (10, 27_400, None),
        10: (11, 1_000, None),
        11: (None, None, None),
        12: (13, 5, "new-topic"),
        13: (None, None, None),
    }


def test_next_is_strictly_later_and_ties_go_to_the_smaller_key():
    pages = [(1, 5, 1, "a b"), (1, 5, 1, "a"), (1, 6, 1, "b"), (1, 6, 1, "a b c"), (1, 6, 2, "a")]
    assert next_kinds(pages) == {
        1: (3, 1, "generalize"),
        2: (3, 1, "new-topic"),
        3: (None, None, None),
        4: (None, None, None),
        5: (None, None, None),
    }


def test_no_page_at_all_and_no_pair_of_texts():
    assert next_kinds([]) == {}
    assert next_kinds([(1, 0, 1, "a"), (2, 0, 1, "b"), (2, 1, 3, "b")]) == dict.fromkeys((1, 2, 3), (None,) * 3)


def test_a_filter_cuts_no_chain_of_what_is_asked_without_one():
    """Sessions map texts (a dot: filtered) to the positions of the pages whose query is repeated."""
    sessions = {
        "a a": [1],
        "a a.": [],
        "a a. a": [1],
        "a a. a. a b": [1],
        "a b. a": [1],  # filtered pages take no part at all
        "a a. b a": [],
        "a. a a": [2],
        "a. a. a.": [],
        "a a. b. b": [],
    }
    pages, expected = [], []
    for session, (texts, again) in enumerate(sessions.items()):
        steps = texts.split()
        expected += [i in again for i in range(1, len(steps) + 1)]
        pages += [(session, i, 1, text[0], text[1:] == ".") for i, text in enumerate(steps)]
    rows = next_queries(pages, within_ms=0)  # known however late
    assert [rows[key]["again"] for key in sorted(rows)] == expected


def test_a_page_behind_the_first_asks_nothing_again():
    rows = next_queries([(1, 0, 1, "a"), (1, 1, 2, "a"), (1, 2, 1, "a", True), (1, 3, 1, "a"), (1, 4, 1, None)])
    assert [rows[key]["again"] for key in sorted(rows)] == [True, False, False, False, False]


def test_many_pages_against_a_walk_through_each_session(monkeypatch):
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 7)  # many batches
    rng = random.Random(3)  # noqa: S311 - a test's data
    words = ["red", "shoes", "shoos", "boots", "weather"]
    pages = [
        (
            rng.randrange(40),
            rng.randrange(10_000),
            rng.choice([1, 1, 1, 2]),
            " ".join(rng.sample(words, rng.randint(1, 3))),
        )
        for _ in range(600)
    ]
    expected = {}
    all_pages = sorted((session, time, key, text) for key, (session, time, _, text) in enumerate(pages, 1))
    first_pages = [page for page in all_pages if pages[page[2] - 1][2] == 1]
    for session, time, key, text in all_pages:
        next_page = next((page for page in first_pages if page[0] == session and page[1] > time), None)
        expected_next = (
            (next_page[2], next_page[1] - time, reformulation_kind(text, next_page[3])) if next_page else (None,) * 3
        )
        expected[key] = expected_next
    assert len({kind for _, _, kind in expected.values()}) == 7  # all kinds, and none
    assert next_kinds(pages) == expected


def test_what_is_asked_again_without_a_filter_against_a_walk_through_each_session():
    rng = random.Random(4)  # noqa: S311 - a test's data
    pages = [
        (rng.randrange(60), rng.randrange(40), rng.choice([1, 1, 1, 2]), rng.choice(["a", "a", "b", None]),
         rng.random() < 0.4)
        for _ in range(600)
    ]  # fmt: skip
    unfiltered = sorted((s, t, key, text) for key, (s, t, page, text, filtered) in enumerate(pages, 1)
                   if page == 1 and not filtered)  # fmt: skip
    again = dict.fromkeys(range(1, len(pages) + 1), False)
    for session, time, key, text in ((s, t, key, text) for s, t, key, text in unfiltered if text):
        next_page = next(
            (candidate for candidate in unfiltered if candidate[0] == session and candidate[1] > time), None
        )
        again[key] = next_page is not None and next_page[3] == text
    assert {key: row["again"] for key, row in next_queries(pages).items()} == again
    assert 50 < sum(again.values()) < 250
