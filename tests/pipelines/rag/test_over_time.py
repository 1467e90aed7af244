"""Support over time: by hand, and what is unjudged."""

from __future__ import annotations

import math
from datetime import date, datetime

import pytest

from judged.errors import InputError
from judged.pipelines.rag import support_over_time

GIVEN = {
    "answers": [{"query_id": name} for name in "abcd"],
    "sentences": [{"query_id": name, "sentence": at} for name in "abcd" for at in (1, 2)],
    "support": [
        {"query_id": name, "sentence": at, "doc_id": doc, "verdict": verdict}
        for name, at, doc, verdict in (
            ("a", 1, "d", "support"), ("a", 1, "e", "contradicts"),  # supported all the same
            ("a", 2, "d", "contradicts"),
            ("b", 1, "d", "failed"),  # unjudged, as is the second sentence
            ("c", 1, "", "support"), ("c", 2, "", "partial"),
        )
    ],
}  # fmt: skip
TIMES = {"a": "2026-03-01T09:00", "b": datetime(2026, 3, 2, 23, 59), "c": date(2026, 3, 3)}  # noqa: DTZ001


def test_shares_by_hand() -> None:
    first, second = support_over_time(GIVEN, TIMES, days=2).periods
    assert (first.begin, first.n, first.sentences, first.unjudged) == (date(2026, 3, 1), 2, 4, 2)
    assert (first.supported.value, first.contradicted.value) == (0.5, 0.5)
    assert (second.begin, second.supported.value, second.contradicted.value) == (date(2026, 3, 3), 0.5, 0.0)
    assert second.supported.ci is None  # of one answer nothing is known of others


def test_a_period_without_verdicts_has_no_share() -> None:
    _, second, _ = support_over_time(GIVEN, TIMES).periods
    assert second.unjudged == second.sentences == 2
    assert math.isnan(second.supported.value)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="time of a"):
        support_over_time(GIVEN, {"a": "yesterday"})
    with pytest.raises(InputError, match="no sentence"):
        support_over_time(GIVEN, {"d": "2026-03-01"})
