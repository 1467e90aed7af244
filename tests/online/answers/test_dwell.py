"""How long opened results are looked at, in words and numbers."""

from __future__ import annotations

import math

from judged.online.dwell import DwellTimes
from judged.online.estimation.survival import SurvivalEstimate
from online_scores_made import NAN, dwell, scores


def test_dwell_in_words() -> None:
    shown = dwell().text()
    assert "Half of 100 visits last longer than 30.0 s (95% interval 25.5 s to more than was watched)." in shown
    assert "The end of 20 visits was not seen" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["30", "s", "50.0%", "[10.0%,", "90.0%]", "40"] in lines
    assert ["30", "s", "60.0%", "[58.0%,", "62.0%]", "60", "100"] in lines
    assert "85.0% at 5 s, 30.0% at 60 s" in shown
    lines = dwell().csv().splitlines()
    assert lines[0] == "seconds,value,ci_low,ci_high,error,units"
    assert lines[10] == "30.0,0.5,0.1,0.9,0.05,40"
    assert dwell().csv("thresholds").splitlines()[1].startswith("5.0,SatisfiedClicks(t=5),0.85,")


def test_dwell_as_json() -> None:
    made = dwell().to_dict()
    assert made["median"] == {"value": 30.0, "low": 25.5, "high": None}
    assert (made["observed"], made["censored"]) == (80, 20)
    assert made["survival"][9] == {"seconds": 30.0, "value": 0.5, "ci": [0.1, 0.9], "error": 0.05, "units": 40}


def test_dwell_of_nothing() -> None:
    made = DwellTimes(scores(estimates=(), ranks=()), (), None)
    assert "No click of this log has a dwell time." in made.text()
    assert made.to_dict()["median"] is None
    gone = SurvivalEstimate(None, math.inf, math.inf, NAN, NAN, NAN, 1, 1, 9)
    assert DwellTimes(scores(estimates=(), ranks=()), (), gone).sentences[0] == (
        "More than half of 10 visits go on for longer than any was watched."
    )
