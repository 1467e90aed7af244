"""What is no argument at all is refused in words that say what to do."""

from __future__ import annotations

from typing import Any

import pytest

from dozen_sessions import pages_and_events
from judged.errors import InputError, MeasureError
from judged.online import (
    FactSettings,
    InteractionLog,
    against_qrels,
    click_preferences,
    online_metric,
    online_metrics,
    over_time,
    preference_agreement,
    read_log,
)
from typed_logs import typed_log

QRELS = {"1": {"a": 1}}


@pytest.fixture(scope="module")
def log() -> InteractionLog:
    return typed_log(*pages_and_events())


@pytest.mark.parametrize("value", ["log.ndjson", None, 3, {"serp": []}])
def test_what_is_no_log(value: Any) -> None:
    calls = [
        lambda: online_metrics(value),
        lambda: over_time(value, "PageCTR"),
        lambda: against_qrels(value, QRELS),
        lambda: preference_agreement(value, QRELS),
        lambda: click_preferences(value),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"a {type(value).__name__} is no log. Fix: read it first"):
            call()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"metrics": 3}, "metrics is 3. Fix: give a name, or a list of names"),
        ({"by": 3}, "by is 3. Fix: give a text"),
        ({"unit": ["user"]}, r"unit is \['user'\]. Fix: take user or session"),
        ({"unit": "click"}, "unit is 'click'. Fix: take user or session"),
        ({"unit": None}, "unit is None"),
        ({"level": "x"}, "level is 'x'. Fix: give a number"),
        ({"level": True}, "level is True. Fix: give a number"),
        ({"level": None}, "level is None"),
        ({"level": 95}, "give a number between 0 and 1"),
        ({"interval": ("delta",)}, "interval is .* Fix: take delta or bootstrap"),
        ({"resamples": 2e3}, "resamples is 2000.0. Fix: give a whole number"),
        ({"seed": "0"}, "seed is '0'. Fix: give a whole number"),
        ({"settings": {"success": 20}}, "must be FactSettings, got .* Fix: pass FactSettings"),
    ],
)
def test_options_of_metrics(log: InteractionLog, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        online_metrics(log, **given)


@pytest.mark.parametrize("name", [3, None, ["PageCTR"], b"PageCTR"])
def test_what_names_no_metric(log: InteractionLog, name: Any) -> None:
    for call in (lambda: online_metric(name), lambda: online_metrics(log, [name]), lambda: over_time(log, [name])):
        with pytest.raises(MeasureError, match=r"names no online metric. Fix: give a name such as 'PageCTR'"):
            call()


def test_one_metric_may_be_given_as_it_is(log: InteractionLog) -> None:
    assert online_metrics(log, online_metric("PageCTR")).value("PageCTR") == 11 / 20


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"every": 3}, "every is 3. Fix: take hour or day or week"),
        ({"every": "month"}, "every is 'month'. Fix: take hour or day or week"),
        ({"every": ["day"]}, "every is"),
        ({"warm_up": "8"}, "warm_up is '8'. Fix: give a whole number"),
        ({"alpha": "x"}, "alpha is 'x'. Fix: give a number"),
        ({"seed": 0.5}, "seed is 0.5. Fix: give a whole number"),
        ({"by": "device"}, "by makes no series"),
        ({"level": "x"}, "level is 'x'"),
    ],
)
def test_options_of_a_series(log: InteractionLog, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        over_time(log, "PageCTR", **given)
    for nothing, refused in ((3, "metrics is 3. Fix: give a name, or a list"), ([], "no metric is named")):
        with pytest.raises(InputError, match=refused):
            over_time(log, nothing)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"outcomes": 3}, "outcomes is 3"),
        ({"outcomes": [3]}, "outcomes is 3. Fix: give a name, or a list of names"),
        ({"outcomes": [["clicked"]]}, r"outcomes is \['clicked'\]"),
        ({"measures": 3}, "measures is 3"),
        ({"by": 3}, "by is 3"),
        ({"pages": ["first"]}, "pages is"),
        ({"unit": ["user"]}, "unit is"),
        ({"dwell": "30"}, "dwell is '30'. Fix: give a number"),
        ({"least_judged": "x"}, "least_judged is 'x'. Fix: give a number"),
        ({"bins": 2.5}, "bins is 2.5. Fix: give a whole number"),
        ({"least_pages": None}, "least_pages is None"),
        ({"level": "x"}, "level is 'x'. Fix: give a number"),
        ({"topics": 3}, "topics is 3"),
    ],
)
def test_options_against_qrels(log: InteractionLog, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        against_qrels(log, QRELS, **given)


@pytest.mark.parametrize("qrels", [3, None, ["a"]])
def test_what_is_no_judgments(log: InteractionLog, qrels: Any) -> None:
    for call in (against_qrels, preference_agreement):
        with pytest.raises(InputError, match="Fix: "):
            call(log, qrels)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rules": 3}, "rules is 3"),
        ({"rules": [["above"]]}, r"rules is \['above'\]. Fix: give a name, or a list of names"),
        ({"rules": []}, "no rule is given"),
        ({"depth": "x"}, "depth is 'x'. Fix: give a whole number"),
        ({"depth": 1}, "2 or more"),
    ],
)
def test_options_of_preferences(log: InteractionLog, given: dict[str, Any], says: str) -> None:
    for call in (lambda: click_preferences(log, **given), lambda: preference_agreement(log, QRELS, **given)):
        with pytest.raises(InputError, match=says):
            call()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"success": "30"}, "success is '30'. Fix: give a number"),
        ({"reformulation_gap": None}, "reformulation_gap is None"),
        ({"reformulation_gap": float("inf")}, "reformulation_gap is inf. Fix: give a number of seconds, from 0 to 1e"),
        ({"attribution_window": -1}, "attribution_window is -1"),
        ({"attribution_window": float("nan")}, "attribution_window is nan"),
        ({"winsorize": "x"}, "winsorize is 'x'. Fix: give a number"),
    ],
)
def test_settings(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        FactSettings(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"paths": 3}, "a int names no log. Fix: give the path"),
        ({"paths": None}, "a NoneType names no log"),
        ({"paths": b"log"}, "a bytes names no log"),
        ({"paths": ["log", 3]}, "a int names no log"),
        ({"paths": []}, "no log was named"),
        ({"layout": 3}, "layout is 3. Fix: give a text"),
        ({"mapping": 3}, "mapping is 3. Fix: give a text"),
        ({"bots": ["keep"]}, r"bots is \['keep'\]"),
        ({"session_gap": "30"}, "session_gap is '30'. Fix: give a number"),
        ({"bot_pages": None}, "bot_pages is None"),
        ({"rank_base": "1"}, "rank_base is '1'. Fix: give a whole number"),
        ({"now_ms": 1.5}, "now_ms is 1.5. Fix: give a whole number"),
        ({"actions": ["click"]}, "actions is .* Fix: give "),
        ({"name": 3}, "name is 3. Fix: give a text"),
        ({"memory": 4}, "memory is 4. Fix: give a text"),
        ({"threads": "2"}, "threads is '2'. Fix: give a whole number"),
        ({"threads": 0}, "threads is 0. Fix: give a whole number, 1 or more"),
    ],
)
def test_options_of_reading(given: dict[str, Any], says: str) -> None:
    options: dict[str, Any] = {"paths": "nothing.ndjson", **given}
    with pytest.raises(InputError, match=says):
        read_log(**options)
