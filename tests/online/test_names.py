"""Names of metrics that people type."""

from __future__ import annotations

import pytest

from dozen_sessions import pages_and_events
from judged.errors import MeasureError
from judged.online import online_metrics
from judged.online.metrics import MEANT, NAMES, ONLINE_METRICS, online_metric, plain, understood
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
def test_what_is_typed_is_understood(typed: str) -> None:
    assert str(online_metric(typed)) == MEANINGS[typed]


def test_each_name_means_one_metric_that_there_is_and_is_no_other_metric() -> None:
    assert len(MEANT) == sum(len(names.split(", ")) for names, _, _ in NAMES)
    for typed, (metric, other) in MEANT.items():
        assert str(online_metric(metric)) == metric
        assert typed not in {plain(name) for name in ONLINE_METRICS}
        said = [word.strip(",") for word in other.split() if word[0].isupper()]
        assert set(said) <= set(ONLINE_METRICS)
        assert not other or said


def test_the_result_says_which_metric_was_meant() -> None:
    scores = online_metrics(typed_log(*pages_and_events()), iter(["CTR", "PageCTR@1", "AOV"]))
    assert [str(one) for one in scores.metrics] == ["PageCTR", "PageCTR@1", "OrderValue"]
    assert scores.policies[:2] == (
        ("CTR", "PageCTR; of shown results it is ImpressionCTR"), ("AOV", "OrderValue"))  # fmt: skip
    assert understood(["PageCTR"]) == ()
    assert scores.value("ctr") == scores.value("PageCTR") == 11 / 20


def test_nearly_a_name_is_answered_by_the_metric() -> None:
    with pytest.raises(MeasureError, match="did you mean OrderValue"):
        online_metric("averge order valu")


@pytest.mark.parametrize(
    ("name", "fix"),
    [("ReturnRate(d=0)", "give days, above 0"), ("GoodAbandonment(look=-1)", "give seconds, 0 or more"),
     ("DwellTime(t=0)", "seconds above 0, up to which the mean is taken"), ("DwellTime(q=1)", "between 0 and 1")],
)  # fmt: skip
def test_values_of_parameters_that_make_no_sense(name: str, fix: str) -> None:
    with pytest.raises(MeasureError, match=fix):
        online_metric(name)
