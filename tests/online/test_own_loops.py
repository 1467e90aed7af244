"""Small hostile logs, each counted by hand: what a plain reading of the definitions gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judged.online import InteractionLog, online_metrics, read_log

START = 1_760_000_000_000
ANN = {"client_id": "ann", "session_id": "s"}


def page(name: str, ms: int, text: str = "a", hits: int = 2, **more: Any) -> dict[str, Any]:
    ids = [f"d{at}" for at in range(1, hits + 1)]
    return {"query_id": name, "timestamp": START + ms, "user_query": text, "query_response_hit_ids": ids, **more}


def click(name: str, ms: int, thing: str, ordinal: int, **more: Any) -> dict[str, Any]:
    attributes = {"object": {"object_id": thing}, "position": {"ordinal": ordinal}}
    return {
        "action_name": "click", "query_id": name, "timestamp": START + ms, "event_attributes": attributes, **more,
    }  # fmt: skip


def made(folder: Path, records: list[dict[str, Any]], **options: Any) -> InteractionLog:
    path = folder / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, records)))
    return read_log(path, **options)


def test_pages_of_nobody_are_users_of_their_own(tmp_path: Path) -> None:
    log = made(tmp_path, [*(page(str(at), 1000 * at) for at in range(101)), click("1", 1500, "d1", 1)])
    found = online_metrics(log, ["PageCTR"]).of("PageCTR")
    assert (found.numerator, found.denominator, found.units) == (1, 101, 101)


def test_an_early_click_begins_the_session_of_its_page(tmp_path: Path) -> None:
    who, day = {"client_id": "ann"}, 86_400_000
    records = [page("1", 0, **who), click("2", day - 1000, "d1", 1, **who), page("2", day, "b", **who)]
    found = online_metrics(made(tmp_path, records), ["QueriesPerSession"]).of("QueriesPerSession")
    assert (found.numerator, found.denominator) == (2, 2)


def test_an_early_click_parts_no_session(tmp_path: Path) -> None:
    who = {"client_id": "ann"}
    records = [click("1", -1000, "d1", 1, **who), page("1", 0, **who), page("2", 9000, "b", **who)]
    found = online_metrics(made(tmp_path, records), ["QueriesPerSession"]).of("QueriesPerSession")
    assert (found.numerator, found.denominator) == (2, 1)


@pytest.mark.parametrize("k", [50, 51, 100])
def test_a_click_behind_the_list_is_no_shown_result(tmp_path: Path, k: int) -> None:
    log = made(tmp_path, [page("1", 0, hits=10, **ANN), click("1", 1000, "elsewhere", 30, **ANN)])
    found = online_metrics(log, [f"ImpressionCTR@{k}"]).of(f"ImpressionCTR@{k}")
    assert (found.numerator, found.denominator) == (0, 10)


def test_two_queries_at_once_are_two_until_success(tmp_path: Path) -> None:
    records = [
        page("1", 0, "tv", **ANN), page("2", 0, "laptop", **ANN), click("1", 1000, "d1", 1, **ANN),
        page("3", 60_000, "tv", **ANN),
    ]  # fmt: skip
    found = online_metrics(made(tmp_path, records), ["QueriesPerSuccess"]).of("QueriesPerSuccess")
    assert (found.numerator, found.denominator) == (2, 1)


def test_clicks_on_no_page_tell_nothing_of_pages(tmp_path: Path) -> None:
    records = [page("1", 0, **ANN), click("lost", 1000, "d1", 1, **ANN), page("2", 90_000, **ANN)]
    scores = online_metrics(made(tmp_path, records), ["PageCTR", "DwellOver"])
    assert [str(metric) for metric, _ in scores.refused] == ["PageCTR", "DwellOver"]


def test_a_page_is_not_left_in_vain_if_an_earlier_one_succeeds_after_it(tmp_path: Path) -> None:
    """Page 1 succeeds after 5 s, and again after 60 s, when page 2 was asked for and left: nothing was in vain."""
    seen = [page("1", 0, **ANN), page("2", 45_000, **ANN)]
    log = made(tmp_path, [*seen, click("1", 5_000, "d1", 1, **ANN), click("1", 60_000, "d2", 2, **ANN)])
    found = online_metrics(log, ["Abandonment", "BadAbandonment", "UnknownAbandonment"])
    assert [one.numerator for one in found.estimates] == [1, 0, 1]
    early = made(tmp_path, [*seen, click("1", 5_000, "d1", 1, **ANN)])
    assert online_metrics(early, ["BadAbandonment"]).of("BadAbandonment").numerator == 1


def test_values_of_carts_alone_are_no_revenue(tmp_path: Path) -> None:
    cart = {**click("1", 1000, "d1", 1, **ANN), "action_name": "add_to_cart"}
    cart["event_attributes"] = {**cart["event_attributes"], "value": 5.0}
    bought = {**click("1", 2000, "d1", 1, **ANN), "action_name": "purchase"}
    records = [page("1", 0, **ANN), click("1", 500, "d1", 1, **ANN), cart, bought]
    scores = online_metrics(made(tmp_path, records), ["Conversion", "RevenuePerSearch"])
    assert scores.value("Conversion") == 1.0
    assert [str(metric) for metric, _ in scores.refused] == ["RevenuePerSearch"]
