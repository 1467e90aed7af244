"""Parsing of metric names and their synonyms."""

from __future__ import annotations

import pytest

from dozen_sessions import pages_and_events
from judged.errors import MeasureError
from judged.online import online_metrics
from judged.online.metrics import (
    ONLINE_METRICS,
    SYNONYM_ROWS,
    SYNONYMS,
    normalize_name,
    online_metric,
    resolved_synonyms,
)
from typed_logs import typed_log

MEANINGS = {
    "CTR": "PageCTR",
    "ctr@3": "PageCTR@3",
    "MRR": "TopmostClickRR",
    "ZeroResultRate": "ZeroResults",
    "AbandonmentRate": "Abandonment",
    "AddToCartRate": "AddToCart",
    "Dwell Time": "DwellTime",
    "median_dwell_time": "DwellTime(q=0.5)",
    "median dwell time(q=0.9)": "DwellTime(q=0.9)",
    "ConversionRate": "Conversion",
    "revenue-per-search": "RevenuePerSearch",
    "ReformulationRate": "Reformulation",
    "SatisfiedClickRate(t=20)": "SatisfiedClicks(t=20)",
    "AverageClickPosition": "MeanClickRank",
    "P95 latency": "Latency(q=0.95)",
}


@pytest.mark.parametrize("typed", MEANINGS)
def test_synonyms(typed: str) -> None:
    assert str(online_metric(typed)) == MEANINGS[typed]


def test_each_synonym_refers_to_one_metric_and_is_not_a_metric_name() -> None:
    assert len(SYNONYMS) == sum(len(names.split(", ")) for names, _, _ in SYNONYM_ROWS)
    for synonym, (metric, note) in SYNONYMS.items():
        assert str(online_metric(metric)) == metric
        assert synonym not in {normalize_name(name) for name in ONLINE_METRICS}
        mentioned = [word.strip(",") for word in note.split() if word[0].isupper()]
        assert set(mentioned) <= set(ONLINE_METRICS)
        assert not note or mentioned


def test_results_name_the_metric_of_a_synonym() -> None:
    scores = online_metrics(typed_log(*pages_and_events()), iter(["CTR", "PageCTR@1", "AOV"]))
    assert [str(metric) for metric in scores.metrics] == ["PageCTR", "PageCTR@1", "OrderValue"]
    assert scores.policies[:2] == (
        ("CTR", "PageCTR (for shown results, use ImpressionCTR)"), ("AOV", "OrderValue"))  # fmt: skip
    assert resolved_synonyms(["PageCTR"]) == ()
    assert scores.value("ctr") == scores.value("PageCTR") == 11 / 20


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(MeasureError, match="did you mean OrderValue"):
        online_metric("averge order valu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ReturnRate(d=0)", "must be above 0 and at most 3650, got 0"),
        ("GoodAbandonment(look=-1)", "must be 0 or more, got -1"),
        ("DwellTime(t=0)", "must be above 0, got 0"),
        ("DwellTime(q=1)", "between 0 and 1"),
    ],
)
def test_invalid_values_of_parameters(name: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        online_metric(name)
