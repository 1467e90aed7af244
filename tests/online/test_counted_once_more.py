"""Numbers that were once wrong: each with the smallest log that shows it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from judged.online import online_metrics
from judged.online.facts.settings import FactSettings
from typed_logs import typed_log


def page(serp: int, seconds: int, query: str) -> dict[str, Any]:
    return {"serp": serp, "session": 1, "user": 1, "time_ms": seconds * 1000, "query": query, "n_shown": 10}


def event(serp: int, seconds: int, action: str, **more: Any) -> dict[str, Any]:
    return {"serp": serp, "session": 1, "user": 1, "time_ms": seconds * 1000, "action": action, **more}


def test_queries_to_a_success_count_the_one_that_is_still_repeated() -> None:
    """One session each: the texts, on which of them something came into the cart, and queries until then."""
    sessions = [
        ("hat, shoes, shoes", 2, 2),  # the second query, which is repeated after it came to something
        ("hat, shoes, shoes", 3, 2),
        ("shoes, shoes", 1, 1),
        ("shoes, shoes, hat, hat, hat", 4, 2),
        ("shoes, shoes, hat, shoes", 4, 3),
    ]
    pages, events = [], []
    for session, (texts, success, _) in enumerate(sessions):
        own = {"session": session, "device": f"session {session}"}
        pages += [page(10 * session + at, 100 * at, text) | own for at, text in enumerate(texts.split(", "), 1)]
        events.append(event(10 * session + success, 100 * success + 5, "add_to_cart", session=session))
    scores = online_metrics(typed_log(pages, events), "QueriesPerSuccess", by="device")
    found = [scores.of("QueriesPerSuccess", f"session {session}").value for session in range(len(sessions))]
    assert found == [queries for _, _, queries in sessions]


def test_what_is_divided_by_nothing_is_no_number() -> None:
    """A cart without a click: it is not infinitely many carts a click."""
    log = typed_log([page(1, 0, "hat")], [event(1, 5, "add_to_cart")])
    found = online_metrics(log, "CartsPerClick").of("CartsPerClick")
    assert (found.numerator, found.denominator) == (1, 0)
    assert math.isnan(found.value)


def test_rounding_does_not_pass_over_an_amount() -> None:
    """0.55 * 100 is 55.00000000000001 as a double: of 1, 2, ..., 100, still 55 is what 55 % do not exceed."""
    pages = [page(at, at, "hat") for at in range(1, 101)]
    log = typed_log(pages, [event(at, at, "purchase", value=float(at)) for at in range(1, 101)])
    found = online_metrics(log, "RevenuePerSearch", settings=FactSettings(winsorise=0.55))
    assert found.value("RevenuePerSearch") * 100 == pytest.approx(sum(min(at, 55) for at in range(1, 101)))


def test_deep_ranks_are_counted_by_any_engine() -> None:
    ranks = (50, 51, 64, 65, 1025, 60_000)
    pages = [page(at, at, "hat") | {"n_shown": 80} for at in range(len(ranks))]
    log = typed_log(pages, [event(at, at, "click", rank=rank) for at, rank in enumerate(ranks)])
    scores = online_metrics(log, ["ImpressionCTR@80", "CTRAtRank(r=64)", "CTRAtRank(r=1025)", "FirstClickRR"])
    found = {str(one.metric): one.numerator for one in scores.estimates}
    assert found.pop("FirstClickRR") == pytest.approx(sum(1 / rank for rank in ranks), rel=1e-12)
    assert found == {"ImpressionCTR@80": 4, "CTRAtRank(r=64)": 1, "CTRAtRank(r=1025)": 0}  # 80 were shown


def test_a_page_with_a_click_was_not_empty() -> None:
    """Nothing was found for the typed text; what answers a changed one is shown, or another block clicked on."""
    none = {"zero_results": True}
    pages = [page(1, 0, "hta") | none | {"rescued": True}, page(2, 50, "lamp") | none | {"n_shown": 0}]
    pages.append(page(3, 99, "zzz") | none | {"n_shown": 0})
    log = typed_log(pages, [event(1, 5, "click", rank=1), event(2, 55, "click", object_id="x")])
    scores = online_metrics(log, ["PageCTR", "PageCTR@3", "ZeroResults", "BadAbandonment"])
    found = {str(one.metric): (one.numerator, one.denominator) for one in scores.estimates}
    assert found == {"PageCTR": (2, 2), "PageCTR@3": (1, 2), "ZeroResults": (3, 3), "BadAbandonment": (1, 3)}


def test_what_was_not_shown_cannot_raise_a_rate_above_one() -> None:
    pages = [
        {"serp": 0, "session": 0, "user": 0, "time_ms": 0, "query": "a", "n_shown": 1},
        {"serp": 1, "session": 1, "user": 1, "time_ms": 0, "query": "b", "n_shown": 0},
    ]
    clicks = [
        {"serp": serp, "session": serp, "user": serp, "time_ms": 5000 + rank, "action": "click", "rank": rank}
        for serp, rank in ((0, 1), (0, 7), (1, 1))
    ]
    log = typed_log(pages, clicks)
    scores = online_metrics(log, ["ImpressionCTR", "ImpressionCTR@10", "ClicksPerPage"])
    assert [(one.numerator, one.denominator) for one in scores.estimates] == [(1, 1), (1, 1), (3, 2)]
    assert [(one.rank, one.numerator, one.denominator) for one in scores.ranks] == [(1, 1, 1)]
