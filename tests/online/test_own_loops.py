"""Small logs with edge cases, counted by hand from the definitions of the metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judged.online import InteractionLog, online_metrics, read_log

START = 1_760_000_000_000
ANN = {"client_id": "ann", "session_id": "s"}


def page(name: str, ms: int, text: str = "a", hits: int = 2, **fields: Any) -> dict[str, Any]:
    ids = [f"d{number}" for number in range(1, hits + 1)]
    return {"query_id": name, "timestamp": START + ms, "user_query": text, "query_response_hit_ids": ids, **fields}


def click(name: str, ms: int, object_id: str, ordinal: int, **fields: Any) -> dict[str, Any]:
    attributes = {"object": {"object_id": object_id}, "position": {"ordinal": ordinal}}
    return {
        "action_name": "click", "query_id": name, "timestamp": START + ms, "event_attributes": attributes, **fields,
    }  # fmt: skip


def log_of(folder: Path, records: list[dict[str, Any]], **options: Any) -> InteractionLog:
    path = folder / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, records)))
    return read_log(path, **options)


def test_pages_without_a_user_id_are_separate_users(tmp_path: Path) -> None:
    log = log_of(tmp_path, [*(page(str(i), 1000 * i) for i in range(101)), click("1", 1500, "d1", 1)])
    estimate = online_metrics(log, ["PageCTR"]).of("PageCTR")
    assert (estimate.numerator, estimate.denominator, estimate.units) == (1, 101, 101)


def test_an_early_click_begins_the_session_of_its_page(tmp_path: Path) -> None:
    user, day = {"client_id": "ann"}, 86_400_000
    records = [page("1", 0, **user), click("2", day - 1000, "d1", 1, **user), page("2", day, "b", **user)]
    estimate = online_metrics(log_of(tmp_path, records), ["QueriesPerSession"]).of("QueriesPerSession")
    assert (estimate.numerator, estimate.denominator) == (2, 2)


def test_an_early_click_does_not_split_a_session(tmp_path: Path) -> None:
    user = {"client_id": "ann"}
    records = [click("1", -1000, "d1", 1, **user), page("1", 0, **user), page("2", 9000, "b", **user)]
    estimate = online_metrics(log_of(tmp_path, records), ["QueriesPerSession"]).of("QueriesPerSession")
    assert (estimate.numerator, estimate.denominator) == (2, 1)


@pytest.mark.parametrize("k", [50, 51, 100])
def test_a_click_after_the_end_of_the_list_is_not_a_shown_result(tmp_path: Path, k: int) -> None:
    log = log_of(tmp_path, [page("1", 0, hits=10, **ANN), click("1", 1000, "elsewhere", 30, **ANN)])
    estimate = online_metrics(log, [f"ImpressionCTR@{k}"]).of(f"ImpressionCTR@{k}")
    assert (estimate.numerator, estimate.denominator) == (0, 10)


def test_two_simultaneous_queries_count_as_two_until_success(tmp_path: Path) -> None:
    records = [
        page("1", 0, "tv", **ANN), page("2", 0, "laptop", **ANN), click("1", 1000, "d1", 1, **ANN),
        page("3", 60_000, "tv", **ANN),
    ]  # fmt: skip
    estimate = online_metrics(log_of(tmp_path, records), ["QueriesPerSuccess"]).of("QueriesPerSuccess")
    assert (estimate.numerator, estimate.denominator) == (2, 1)


def test_clicks_without_a_page_do_not_support_page_metrics(tmp_path: Path) -> None:
    records = [page("1", 0, **ANN), click("lost", 1000, "d1", 1, **ANN), page("2", 90_000, **ANN)]
    scores = online_metrics(log_of(tmp_path, records), ["PageCTR", "DwellOver"])
    assert [str(metric) for metric, _ in scores.refused] == ["PageCTR", "DwellOver"]


def test_no_bad_abandonment_if_an_earlier_page_succeeds_later(tmp_path: Path) -> None:
    """Page 1 has a click after 5 s, and again after 60 s, after the abandoned page 2: no bad abandonment."""
    pages = [page("1", 0, **ANN), page("2", 45_000, **ANN)]
    log = log_of(tmp_path, [*pages, click("1", 5_000, "d1", 1, **ANN), click("1", 60_000, "d2", 2, **ANN)])
    scores = online_metrics(log, ["Abandonment", "BadAbandonment", "UnknownAbandonment"])
    assert [estimate.numerator for estimate in scores.estimates] == [1, 0, 1]
    early = log_of(tmp_path, [*pages, click("1", 5_000, "d1", 1, **ANN)])
    assert online_metrics(early, ["BadAbandonment"]).of("BadAbandonment").numerator == 1


def test_values_of_carts_without_purchases_are_no_revenue(tmp_path: Path) -> None:
    cart = {**click("1", 1000, "d1", 1, **ANN), "action_name": "add_to_cart"}
    cart["event_attributes"] = {**cart["event_attributes"], "value": 5.0}
    bought = {**click("1", 2000, "d1", 1, **ANN), "action_name": "purchase"}
    records = [page("1", 0, **ANN), click("1", 500, "d1", 1, **ANN), cart, bought]
    scores = online_metrics(log_of(tmp_path, records), ["Conversion", "RevenuePerSearch"])
    assert scores.value("Conversion") == 1.0
    assert [str(metric) for metric, _ in scores.refused] == ["RevenuePerSearch"]
