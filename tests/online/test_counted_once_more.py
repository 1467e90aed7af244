"""Numbers that were once wrong, each with the smallest log that shows it; and numbers counted by other loops."""

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
    found = online_metrics(log, "RevenuePerSearch", settings=FactSettings(winsorize=0.55))
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


def drawn(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw a log of 60 users, some of whom come back, turn pages, filter, copy, buy and say what they think."""
    chance = random.Random(seed)  # noqa: S311
    pages, events = list[dict[str, Any]](), list[dict[str, Any]]()
    for user in range(60):
        time = chance.randrange(5 * 86_400)
        for visit in range(chance.choice([1, 1, 2, 3])):
            own = {"session": 10 * user + visit, "user": user}
            text = chance.choice("abc")
            for _ in range(chance.randrange(1, 6)):
                turn = bool(pages) and pages[-1]["session"] == own["session"] and chance.random() < 0.3
                text = text if turn else chance.choice("abc")
                number = pages[-1]["page"] + 1 if turn else 1
                pages.append(
                    {"serp": len(pages), **own, "time_ms": 1000 * time, "query": text, "page": number, "n_shown": 10}
                    | {"first_rank": 10 * number - 9, "filtered": chance.random() < 0.2}
                    | {"suggested": chance.choice([None, False, True])}
                )
                for _ in range(chance.choice([0, 0, 1, 2, 4])):
                    action = chance.choice(
                        ["click", "click", "click", "hover", "scroll", "copy", "purchase", "like", "dislike", "rating"]
                    )
                    at = 1000 * time + 500 * chance.randrange(120)
                    more = {"rank": 10 * number - 10 + chance.randint(1, 10)} if action == "click" else {}
                    if action in {"purchase", "rating"}:
                        more = {"value": chance.randrange(1, 50) / 10}
                    events.append({"serp": pages[-1]["serp"], **own, "time_ms": at, "action": action, **more})
                time += chance.randrange(1, 90)
            time += chance.randrange(3600, 4 * 86_400)
    return pages, events


def other_loops(pages: list[dict[str, Any]], events: list[dict[str, Any]]) -> dict[str, float]:
    """Count the metrics again, one at a time, with nothing shared but the log."""

    def of(page: dict[str, Any], *actions: str) -> list[dict[str, Any]]:
        return [event for event in events if event["serp"] == page["serp"] and event["action"] in actions]

    def share(rows: list[Any], holds: Callable[[Any], bool]) -> float:
        return sum(map(holds, rows)) / len(rows)

    def later(page: dict[str, Any]) -> bool:
        """Say whether anything follows in the session."""
        others = [one for one in pages if one["session"] == page["session"] and one["time_ms"] > page["time_ms"]]
        acts = {"click", "purchase", "copy"}
        done = [one for one in events if one["session"] == page["session"] and one["action"] in acts]
        return bool(others) or any(one["time_ms"] > page["time_ms"] for one in done)

    def turned(first: dict[str, Any]) -> bool:
        for one in pages[first["serp"] + 1 :]:  # in order of time within a session
            if one["session"] != first["session"]:
                return False
            if one["query"] == first["query"]:
                return one["page"] > 1
        return False

    results = {(event["serp"], event["rank"]) for event in events if event["action"] == "click"}
    second = [page for page in pages if any(of(page, "click")) and (page["serp"], page["first_rank"] + 1) in results]
    at_2 = [page for page in second if page["first_rank"] == 1]
    money = sum(event["value"] for event in events if event["action"] == "purchase")
    ratings = [event["value"] for event in events if event["action"] == "rating"]
    thumbs = [event["action"] for event in events if event["action"] in {"like", "dislike"}]
    first = [page for page in pages if page["page"] == 1]
    told = [page["suggested"] for page in first if page["suggested"] is not None]
    return {
        "MeanClickRank": sum(rank for _, rank in results) / len(results),
        "LastClickAtRank(r=2)": share(
            at_2, lambda page: max((one["time_ms"], one["rank"]) for one in of(page, "click"))[1] == 2
        ),
        "ExitRate": share(pages, lambda page: not of(page, "click", "purchase", "copy") and not later(page)),
        "SecondPageRate": share(first, turned),
        "OrderValue": money / sum(event["action"] == "purchase" for event in events),
        "RevenuePerSession": money / len({page["session"] for page in pages}),
        "RevenuePerUser": money / len({page["user"] for page in pages}),
        "Revenue": money,
        "PositiveFeedback": share(thumbs, lambda thumb: thumb == "like"),
        "MeanRating": sum(ratings) / len(ratings),
        "FilterUse": share(pages, lambda page: page["filtered"]),
        "SuggestionUse": share(told, bool),
        "ReturnRate(d=3)": 1 - away(pages, events, 3 * 86_400_000),
    }


def away(pages: list[dict[str, Any]], events: list[dict[str, Any]], time: int) -> float:
    """Give the share of users that stay away for longer than a time: a product over the moments of returns."""
    end = max(row["time_ms"] for row in (*pages, *events))
    known = list[tuple[int, bool]]()
    for user in {page["user"] for page in pages}:
        visits = sorted({page["session"] for page in pages if page["user"] == user})
        left = max(row["time_ms"] for row in (*pages, *events) if row["session"] == visits[0])
        back = [page["time_ms"] for page in pages if visits[1:] and page["session"] == visits[1]]
        known.append((max((min(back) if back else end) - left, 0), bool(back)))
    share = 1.0
    for moment in sorted({at for at, back in known if back and at <= time}):
        share *= 1 - sum(at == moment and back for at, back in known) / sum(at >= moment for at, _ in known)
    return share


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_loops_count_the_same(seed: int) -> None:
    pages, events = drawn(seed)
    expected = other_loops(pages, events)
    scores = online_metrics(typed_log(pages, events), expected, settings=FactSettings(winsorize=1))
    assert {name: scores.value(name) for name in expected} == pytest.approx(expected, rel=1e-9)


def test_good_bad_and_unknown_abandonment_add_up_at_every_look() -> None:
    log = typed_log(*drawn(4))
    scores = online_metrics(log, [f"{kind}Abandonment(look={look})" for kind in ("Good", "Bad", "Unknown")
                                  for look in (0, 20, 50)] + ["Abandonment"])  # fmt: skip
    good = [scores.value(f"GoodAbandonment(look={look})") for look in (0, 20, 50)]
    assert good[0] > good[1] > good[2] > 0
    for look in (0, 20, 50):
        shares = [scores.of(f"{kind}Abandonment(look={look})").numerator for kind in ("Good", "Bad", "Unknown")]
        assert sum(shares) == scores.of("Abandonment").numerator
