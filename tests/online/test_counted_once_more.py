"""Regression tests with the smallest log that shows each bug, and an independent computation of the metrics."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from judged.online import online_metrics
from judged.online.facts.pages import FactSettings
from typed_logs import typed_log


def page(serp: int, seconds: int, query: str) -> dict[str, Any]:
    return {"serp": serp, "session": 1, "user": 1, "time_ms": seconds * 1000, "query": query, "n_shown": 10}


def event(serp: int, seconds: int, action: str, **more: Any) -> dict[str, Any]:
    return {"serp": serp, "session": 1, "user": 1, "time_ms": seconds * 1000, "action": action, **more}


def test_queries_to_a_success_count_the_one_that_is_still_repeated() -> None:
    """One session each: queries, number of the query with a cart event, and expected queries until success."""
    sessions = [
        ("hat, shoes, shoes", 2, 2),  # the second query, which is repeated after it came to something
        ("hat, shoes, shoes", 3, 2),
        ("shoes, shoes", 1, 1),
        ("shoes, shoes, hat, hat, hat", 4, 2),
        ("shoes, shoes, hat, shoes", 4, 3),
    ]
    pages, events = [], []
    for session, (texts, success, _) in enumerate(sessions):
        fields = {"session": session, "device": f"session {session}"}
        pages += [page(10 * session + i, 100 * i, text) | fields for i, text in enumerate(texts.split(", "), 1)]
        events.append(event(10 * session + success, 100 * success + 5, "add_to_cart", session=session))
    scores = online_metrics(typed_log(pages, events), "QueriesPerSuccess", by="device")
    values = [scores.of("QueriesPerSuccess", f"session {session}").value for session in range(len(sessions))]
    assert values == [queries for _, _, queries in sessions]


def test_a_ratio_with_denominator_0_is_nan() -> None:
    """A cart event without a click: carts per click is undefined, not infinite."""
    log = typed_log([page(1, 0, "hat")], [event(1, 5, "add_to_cart")])
    estimate = online_metrics(log, "CartsPerClick").of("CartsPerClick")
    assert (estimate.numerator, estimate.denominator) == (1, 0)
    assert math.isnan(estimate.value)


def test_quantiles_are_robust_to_rounding() -> None:
    """0.55 * 100 is 55.00000000000001 as a double; the 55% quantile of 1, 2, ..., 100 is still 55."""
    pages = [page(amount, amount, "hat") for amount in range(1, 101)]
    log = typed_log(pages, [event(amount, amount, "purchase", value=float(amount)) for amount in range(1, 101)])
    scores = online_metrics(log, "RevenuePerSearch", settings=FactSettings(winsorize=0.55))
    assert scores.value("RevenuePerSearch") * 100 == pytest.approx(sum(min(amount, 55) for amount in range(1, 101)))


def test_deep_ranks_are_counted_by_any_engine() -> None:
    ranks = (50, 51, 64, 65, 1025, 60_000)
    pages = [page(i, i, "hat") | {"n_shown": 80} for i in range(len(ranks))]
    log = typed_log(pages, [event(i, i, "click", rank=rank) for i, rank in enumerate(ranks)])
    scores = online_metrics(log, ["ImpressionCTR@80", "CTRAtRank(r=64)", "CTRAtRank(r=1025)", "FirstClickRR"])
    numerators = {str(estimate.metric): estimate.numerator for estimate in scores.estimates}
    assert numerators.pop("FirstClickRR") == pytest.approx(sum(1 / rank for rank in ranks), rel=1e-12)
    assert numerators == {"ImpressionCTR@80": 4, "CTRAtRank(r=64)": 1, "CTRAtRank(r=1025)": 0}  # 80 were shown


def test_a_page_with_a_click_was_not_empty() -> None:
    """Page 1 shows results of a corrected query, and on page 2 the user clicks on another block."""
    no_results = {"zero_results": True}
    pages = [page(1, 0, "hta") | no_results | {"rescued": True}, page(2, 50, "lamp") | no_results | {"n_shown": 0}]
    pages.append(page(3, 99, "zzz") | no_results | {"n_shown": 0})
    log = typed_log(pages, [event(1, 5, "click", rank=1), event(2, 55, "click", object_id="x")])
    scores = online_metrics(log, ["PageCTR", "PageCTR@3", "ZeroResults", "BadAbandonment"])
    sums = {str(row.metric): (row.numerator, row.denominator) for row in scores.estimates}
    assert sums == {"PageCTR": (2, 2), "PageCTR@3": (1, 2), "ZeroResults": (3, 3), "BadAbandonment": (1, 3)}


def test_clicks_on_results_that_were_not_shown_do_not_count() -> None:
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
    assert [(estimate.numerator, estimate.denominator) for estimate in scores.estimates] == [(1, 1), (1, 1), (3, 2)]
    assert [(estimate.rank, estimate.numerator, estimate.denominator) for estimate in scores.ranks] == [(1, 1, 1)]


def random_log(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Sample a log of 60 users with several sessions, pages, filters, copies, purchases, and ratings."""
    rng = random.Random(seed)  # noqa: S311
    pages, events = list[dict[str, Any]](), list[dict[str, Any]]()
    for user in range(60):
        time = rng.randrange(5 * 86_400)
        for visit in range(rng.choice([1, 1, 2, 3])):
            fields = {"session": 10 * user + visit, "user": user}
            text = rng.choice("abc")
            for _ in range(rng.randrange(1, 6)):
                is_next_page = bool(pages) and pages[-1]["session"] == fields["session"] and rng.random() < 0.3
                text = text if is_next_page else rng.choice("abc")
                number = pages[-1]["page"] + 1 if is_next_page else 1
                pages.append(
                    {"serp": len(pages), **fields, "time_ms": 1000 * time, "query": text, "page": number, "n_shown": 10}
                    | {"first_rank": 10 * number - 9, "filtered": rng.random() < 0.2}
                    | {"suggested": rng.choice([None, False, True])}
                )
                for _ in range(rng.choice([0, 0, 1, 2, 4])):
                    action = rng.choice(
                        ["click", "click", "click", "hover", "scroll", "copy", "purchase", "like", "dislike", "rating"]
                    )
                    event_ms = 1000 * time + 500 * rng.randrange(120)
                    details = {"rank": 10 * number - 10 + rng.randint(1, 10)} if action == "click" else {}
                    if action in {"purchase", "rating"}:
                        details = {"value": rng.randrange(1, 50) / 10}
                    events.append(
                        {"serp": pages[-1]["serp"], **fields, "time_ms": event_ms, "action": action, **details}
                    )
                time += rng.randrange(1, 90)
            time += rng.randrange(3600, 4 * 86_400)
    return pages, events


def plain_metrics(pages: list[dict[str, Any]], events: list[dict[str, Any]]) -> dict[str, float]:
    """Compute each metric independently of the library."""

    def events_of(page: dict[str, Any], *actions: str) -> list[dict[str, Any]]:
        return [event for event in events if event["serp"] == page["serp"] and event["action"] in actions]

    def share(rows: list[Any], condition: Callable[[Any], bool]) -> float:
        return sum(map(condition, rows)) / len(rows)

    def has_later_rows(page: dict[str, Any]) -> bool:
        """Return whether a page or action follows in the session."""
        actions = {"click", "purchase", "copy"}
        rows = [*pages, *(event for event in events if event["action"] in actions)]
        return any(row["session"] == page["session"] and row["time_ms"] > page["time_ms"] for row in rows)

    def has_next_page(first: dict[str, Any]) -> bool:
        for page in pages[first["serp"] + 1 :]:  # in order of time within a session
            if page["session"] != first["session"]:
                return False
            if page["query"] == first["query"]:
                return page["page"] > 1
        return False

    results = {(event["serp"], event["rank"]) for event in events if event["action"] == "click"}
    pages_with_click_at_2 = [
        page for page in pages if any(events_of(page, "click")) and (page["serp"], page["first_rank"] + 1) in results
    ]
    with_click_at_2 = [page for page in pages_with_click_at_2 if page["first_rank"] == 1]
    money = sum(event["value"] for event in events if event["action"] == "purchase")
    ratings = [event["value"] for event in events if event["action"] == "rating"]
    thumbs = [event["action"] for event in events if event["action"] in {"like", "dislike"}]
    first_pages = [page for page in pages if page["page"] == 1]
    suggestions = [page["suggested"] for page in first_pages if page["suggested"] is not None]
    return {
        "MeanClickRank": sum(rank for _, rank in results) / len(results),
        "LastClickAtRank(r=2)": share(
            with_click_at_2,
            lambda page: max((event["time_ms"], event["rank"]) for event in events_of(page, "click"))[1] == 2,
        ),
        "ExitRate": share(
            pages, lambda page: not events_of(page, "click", "purchase", "copy") and not has_later_rows(page)
        ),
        "SecondPageRate": share(first_pages, has_next_page),
        "OrderValue": money / sum(event["action"] == "purchase" for event in events),
        "RevenuePerSession": money / len({page["session"] for page in pages}),
        "RevenuePerUser": money / len({page["user"] for page in pages}),
        "Revenue": money,
        "PositiveFeedback": share(thumbs, lambda thumb: thumb == "like"),
        "MeanRating": sum(ratings) / len(ratings),
        "FilterUse": share(pages, lambda page: page["filtered"]),
        "SuggestionUse": share(suggestions, bool),
        "ReturnRate(d=3)": 1 - share_not_returned(pages, events, 3 * 86_400_000),
    }


def share_not_returned(pages: list[dict[str, Any]], events: list[dict[str, Any]], time: int) -> float:
    """Return the Kaplan-Meier estimate of the share of users that have not returned after a time."""
    end = max(row["time_ms"] for row in (*pages, *events))
    durations = list[tuple[int, bool]]()
    for user in {page["user"] for page in pages}:
        visits = sorted({page["session"] for page in pages if page["user"] == user})
        end_of_first = max(row["time_ms"] for row in (*pages, *events) if row["session"] == visits[0])
        returns = [page["time_ms"] for page in pages if visits[1:] and page["session"] == visits[1]]
        durations.append((max((min(returns) if returns else end) - end_of_first, 0), bool(returns)))
    share = 1.0
    for event_time in sorted({duration for duration, returned in durations if returned and duration <= time}):
        n_returned = sum(duration == event_time and returned for duration, returned in durations)
        share *= 1 - n_returned / sum(duration >= event_time for duration, _ in durations)
    return share


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_metrics_equal_an_independent_computation(seed: int) -> None:
    pages, events = random_log(seed)
    expected = plain_metrics(pages, events)
    scores = online_metrics(typed_log(pages, events), expected, settings=FactSettings(winsorize=1))
    assert {name: scores.value(name) for name in expected} == pytest.approx(expected, rel=1e-9)


def test_good_bad_and_unknown_abandonment_add_up_to_abandonment() -> None:
    log = typed_log(*random_log(4))
    scores = online_metrics(log, [f"{kind}Abandonment(look={look})" for kind in ("Good", "Bad", "Unknown")
                                  for look in (0, 20, 50)] + ["Abandonment"])  # fmt: skip
    good = [scores.value(f"GoodAbandonment(look={look})") for look in (0, 20, 50)]
    assert good[0] > good[1] > good[2] > 0
    for look in (0, 20, 50):
        shares = [scores.of(f"{kind}Abandonment(look={look})").numerator for kind in ("Good", "Bad", "Unknown")]
        assert sum(shares) == scores.of("Abandonment").numerator
