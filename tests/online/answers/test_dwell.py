"""Dwell times as text, CSV, and JSON."""

from __future__ import annotations

import math

from judged.online.dwell import DwellTimes
from judged.online.estimation.survival import SurvivalEstimate
from online_scores_made import NAN, dwell, scores


def test_dwell_as_text_and_csv() -> None:
    text = dwell().text()
    assert "The median dwell time of 100 visits is 30.0 s, 95% CI [25.5 s, not reached]." in text
    assert "The end of 20 visits was not observed" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["30", "s", "50.0%", "[10.0%,", "90.0%]", "40"] in lines
    assert ["30", "s", "60.0%", "[58.0%,", "62.0%]", "60", "100"] in lines
    assert "85.0% at 5 s, 30.0% at 60 s" in text
    lines = dwell().csv().splitlines()
    assert lines[0] == "seconds,value,ci_low,ci_high,error,units"
    assert lines[10] == "30.0,0.5,0.1,0.9,0.05,40"
    assert dwell().csv("thresholds").splitlines()[1].startswith("5.0,SatisfiedClicks(t=5),0.85,")


def test_dwell_as_json() -> None:
    data = dwell().to_dict()
    assert data["median"] == {"value": 30.0, "low": 25.5, "high": None}
    assert (data["observed"], data["censored"]) == (80, 20)
    assert data["survival"][9] == {"seconds": 30.0, "value": 0.5, "ci": [0.1, 0.9], "error": 0.05, "units": 40}


def test_dwell_without_visits() -> None:
    result = DwellTimes(scores(estimates=(), ranks=()), (), None)
    assert "No click of this log has a dwell time." in result.text()
    assert result.to_dict()["median"] is None
    all_censored = SurvivalEstimate(None, math.inf, math.inf, NAN, NAN, NAN, 1, 1, 9)
    assert DwellTimes(scores(estimates=(), ranks=()), (), all_censored).sentences[0] == (
        "The median dwell time of 10 visits is unknown: the median exceeds all observed dwell times."
    )
