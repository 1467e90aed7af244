"""Facts that hang on other pages of the session, counted by hand, on both backends."""

from __future__ import annotations

from typing import Any

import pytest

from judged.online import FactSettings, online_metrics
from judged.online.engine import rows_of
from judged.online.facts.actions import acted_pages
from typed_logs import typed_log

pytestmark = pytest.mark.parametrize("backend", ["duckdb", "polars"])


def pages_of(*sessions: str) -> list[dict[str, Any]]:
    """Read sessions as "0 lamp, 5 lamp 2, 9 hat filtered none": second, text, page, filtered, nothing found."""
    pages: list[dict[str, Any]] = []
    for session, text in enumerate(sessions):
        for one in text.split(", "):
            seconds, query, *more = one.split()
            number, empty = int(next((part for part in more if part.isdigit()), 1)), "none" in more
            own = {"serp": len(pages), "session": session, "user": session, "time_ms": int(seconds) * 1000}
            found = {"page": number, "first_rank": 10 * number - 9, "n_shown": 0 if empty else 10}
            pages.append({**own, "query": query, **found, "filtered": "filtered" in more, "zero_results": empty})
    return pages


def counted(pages: list[dict[str, Any]], events: list[dict[str, Any]], backend: str, *names: str) -> dict[str, Any]:
    scores = online_metrics(typed_log(pages, events, backend=backend), names)
    return {str(one.metric): (one.numerator, one.denominator) for one in scores.estimates}


def test_a_filter_does_not_take_a_query_without_results_away(backend: str) -> None:
    pages = pages_of(
        "0 lamp none, 5 lamp filtered none",  # asked once without a filter, in vain
        "0 hat, 5 hat filtered none, 9 hat, 12 hat",  # once
        "0 tie none, 5 tie filtered none, 9 tiebar",  # twice, the first in vain
        "0 rug none, 5 rug filtered none, 9 rug none",  # once, in vain
    )
    names = ("ZeroResults", "ZeroResultQueries", "FilteredZeroResults", "QueriesPerSession")
    assert counted(pages, [], backend, *names) == {
        "ZeroResults": (1 + 0 + 1 + 2, 1 + 3 + 2 + 2),
        "ZeroResultQueries": (1 + 0 + 1 + 1, 1 + 1 + 2 + 1),
        "FilteredZeroResults": (4, 4),
        "QueriesPerSession": (1 + 1 + 2 + 1, 4),
    }


def test_a_page_behind_the_first_is_reformulated_as_it_is(backend: str) -> None:
    """The last page of each session succeeds, so that nothing is bad by what follows alone."""
    pages = pages_of(
        "0 sofa, 20 sofa 2, 30 sofa 3, 40 sofas",  # three pages of a query that was worded anew
        "0 desk, 20 desk 2, 40 desk",  # asked again: not known why
        "0 rugs, 290 rugs 2, 310 rug",  # more than 300 seconds after the first page, soon after the second
        "0 cupboard, 20 cupboard 2, 40 television",  # another topic
    )
    last = [3, 6, 9, 12]
    clicks = [
        {"serp": at, **{key: pages[at][key] for key in ("session", "user")}, "action": "click", "rank": 1}
        | {"time_ms": pages[at]["time_ms"] + 1000}
        for at in last
    ]
    names = ("Abandonment", "BadAbandonment", "UnknownAbandonment", "Reformulation")
    assert counted(pages, clicks, backend, *names) == {
        "Abandonment": (9, 13),
        "BadAbandonment": (3 + 0 + 1 + 0, 13),
        "UnknownAbandonment": (0 + 2 + 1 + 2, 13),
        "Reformulation": (1, 7),  # of sofa; desk is asked once
    }


@pytest.mark.parametrize("turned", [False, True])
def test_of_pages_at_one_time_a_cart_falls_to_the_one_logged_last(backend: str, turned: bool) -> None:
    pages = pages_of("3 lamp, 5 hat, 5 tie, 5 rug, 12 sofa", "5 desk")
    cart = {"session": 0, "user": 0, "action": "add_to_cart"}
    events = [{**cart, "time_ms": at} for at in (2_999, 4_000, 5_000, 11_999)]
    log = typed_log(pages[::-1] if turned else pages, events, backend=backend)
    found = {row["serp"]: row["carts"] for row in rows_of(acted_pages(log, FactSettings()))}
    assert found == {0: 1, 3: 2}  # the first came before any page
