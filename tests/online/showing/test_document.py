"""JSON: the same keys for every command, full precision, null for what does not exist."""

from __future__ import annotations

import json
import math

import pytest

from judged.online.curves.dwell import DwellTimes
from judged.online.estimating.survival import SurvivalEstimate
from judged.online.showing.document import KEYS
from online_scores_made import NAN, WEIRD, dwell, scores

UNFIT = "ubi.ndjson is not fit: 60 of 1,060 query rows (5.7 %) are left out, more than 5 %: facet-request 60."


def test_keys_and_values() -> None:
    made = json.loads(json.dumps(scores(sliced=True).to_dict(), allow_nan=False))
    assert list(made) == list(KEYS)
    assert made["log"]["pages"] == 1000
    assert made["log"]["findings"][0] == {
        "rule": "facet-request", "table": "query", "rows": 60, "of": 1060, "done": "excluded",
        "problem": "facet requests are no searches", "fix": "do not log them as searches", "places": [],
    }  # fmt: skip
    assert made["slices"] == [{"slice": "desktop", "pages": 500}, {"slice": WEIRD, "pages": 500}]
    assert [one["metric"] for one in made["metrics"]] == [
        "PageCTR", "ZeroResults", "TimeToFirstClick", "DeepestClickRank", "AddToCart",
    ]  # fmt: skip
    assert made["estimates"][0]["low"] == 0.381 - 0.0123  # as it is, not as it is shown
    assert made["estimates"][3] | {"value": None} == {
        "metric": "ZeroResults", "by": None, "slice": None, "rank": None, "value": None, "low": None, "high": None,
        "error": None, "numerator": 6, "denominator": 84, "row": "page", "unit": "share", "units": 1, "method": "none",
    }  # fmt: skip
    assert [one["rank"] for one in made["ranks"]] == [1, 2, 3]
    assert made["refused"] == [{"metric": "AddToCart", "reason": "no add_to_cart event is in this log"}]
    assert made["policies"] == {"session_gap": "30 min", "rank_base": "1 (found)", "bots": "exclude"}
    assert made["warnings"][0] == UNFIT
    assert made["warnings"][1].startswith("Position bias")
    assert (made["series"], made["dwell"]) == ({}, {})


def test_dwell_has_the_same_keys() -> None:
    made = json.loads(json.dumps(dwell().to_dict(), allow_nan=False))
    assert list(made) == list(KEYS)
    assert made["dwell"]["median"] == {"seconds": 30.0, "low": 25.5, "high": None}
    assert made["dwell"]["survival"][9] == {
        "seconds": 30.0, "value": 0.5, "low": 0.1, "high": 0.9, "error": 0.05, "units": 40,
    }  # fmt: skip
    assert [one["metric"] for one in made["estimates"]][:2] == ["SatisfiedClicks(t=5)", "SatisfiedClicks(t=10)"]
    assert made["warnings"] == [UNFIT]


def test_dwell_in_words() -> None:
    shown = dwell().text()
    assert "Half of 100 visits last longer than 30.0 s (95% interval 25.5 s to more than was watched)." in shown
    assert "The end of 20 visits was not seen" in shown
    assert "\n30 s            50.0%  [10.0%, 90.0%]     40\n" in shown
    assert "\n30 s                  60.0%  [58.0%, 62.0%]         60     100\n" in shown
    assert "85.0% at 5 s, 30.0% at 60 s" in shown
    lines = dwell().csv().splitlines()
    assert lines[0] == "curve,seconds,value,low,high,error,units"
    assert lines[10] == "survival,30.0,0.5,0.1,0.9,0.05,40"
    assert lines[19].startswith("satisfied,5.0,0.85,")
    assert "| 30 s | 50.0% | [10.0%, 90.0%] | 40 |" in dwell().markdown()


def test_dwell_of_nothing() -> None:
    made = DwellTimes(scores(estimates=(), ranks=()), (), None)
    assert "No click of this log has a dwell time." in made.text()
    assert made.to_dict()["dwell"] == {"survival": [], "median": None, "observed": 0, "censored": 0}
    gone = SurvivalEstimate(None, math.inf, math.inf, NAN, NAN, NAN, 1, 1, 9)
    assert DwellTimes(scores(estimates=(), ranks=()), (), gone).sentences[0] == (
        "More than half of 10 visits go on for longer than any was watched."
    )


@pytest.mark.parametrize("by", [None, "device"])
def test_every_number_comes_back(by: str | None) -> None:
    made = scores(sliced=by is not None)
    again = json.loads(json.dumps(made.to_dict()))
    records = [*again["estimates"], *again["ranks"]]
    for one, row in zip((*made.estimates, *made.ranks), records, strict=True):
        for name in ("value", "low", "high", "error", "numerator", "denominator"):
            exact = getattr(one, name)
            assert row[name] is None if math.isnan(exact) else row[name] == exact
