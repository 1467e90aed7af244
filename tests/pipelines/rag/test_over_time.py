"""Support over time: shares by hand, and unjudged sentences."""

from __future__ import annotations

import math
from datetime import date, datetime

import pytest

from judged.errors import InputError
from judged.pipelines.rag import support_over_time

TABLES = {
    "answers": [{"query_id": name} for name in "abcd"],
    "sentences": [{"query_id": name, "sentence": number} for name in "abcd" for number in (1, 2)],
    "support": [
        {"query_id": name, "sentence": number, "doc_id": doc, "verdict": verdict}
        for name, number, doc, verdict in (
            ("a", 1, "d", "support"), ("a", 1, "e", "contradicts"),  # support outweighs contradiction
            ("a", 2, "d", "contradicts"),
            ("b", 1, "d", "failed"),  # unjudged, as is the second sentence
            ("c", 1, "", "support"), ("c", 2, "", "partial"),
        )
    ],
}  # fmt: skip
TIMES = {"a": "2026-03-01T09:00", "b": datetime(2026, 3, 2, 23, 59), "c": date(2026, 3, 3)}  # noqa: DTZ001


def test_shares_by_hand() -> None:
    first, second = support_over_time(TABLES, TIMES, days=2).periods
    assert (first.begin, first.n, first.sentences, first.unjudged) == (date(2026, 3, 1), 2, 4, 2)
    assert (first.supported.value, first.contradicted.value) == (0.5, 0.5)
    assert (second.begin, second.supported.value, second.contradicted.value) == (date(2026, 3, 3), 0.5, 0.0)
    assert second.supported.ci is None  # a single answer has no interval


def test_a_period_without_verdicts_has_no_share() -> None:
    _, second, _ = support_over_time(TABLES, TIMES).periods
    assert second.unjudged == second.sentences == 2
    assert math.isnan(second.supported.value)


def test_invalid_times_raise() -> None:
    with pytest.raises(InputError, match="time of topic a"):
        support_over_time(TABLES, {"a": "yesterday"})
    with pytest.raises(InputError, match="no topic has both a time"):
        support_over_time(TABLES, {"d": "2026-03-01"})
