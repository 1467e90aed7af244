"""Invalid arguments raise errors that state the value and a fix."""

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
def test_values_that_are_not_logs(value: Any) -> None:
    calls = [
        lambda: online_metrics(value),
        lambda: over_time(value, "PageCTR"),
        lambda: against_qrels(value, QRELS),
        lambda: preference_agreement(value, QRELS),
        lambda: click_preferences(value),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"expected a log, got {type(value).__name__}. Fix: read the log"):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": 3}, "metrics is 3. Fix: use a name or a list of names"),
        ({"by": 3}, "by is 3. Fix: use a string"),
        ({"unit": ["user"]}, r"unit is \['user'\]. Fix: use user or session"),
        ({"unit": "click"}, "unit is 'click'. Fix: use user or session"),
        ({"unit": None}, "unit is None"),
        ({"level": "x"}, "level is 'x'. Fix: use a number"),
        ({"level": True}, "level is True. Fix: use a number"),
        ({"level": None}, "level is None"),
        ({"level": 95}, "use a number between 0 and 1"),
        ({"interval": ("delta",)}, "interval is .* Fix: use delta or bootstrap"),
        ({"resamples": 2e3}, "resamples is 2000.0. Fix: use an integer"),
        ({"seed": "0"}, "seed is '0'. Fix: use an integer"),
        ({"settings": {"success": 20}}, "must be FactSettings, got .* Fix: pass FactSettings"),
    ],
)
def test_options_of_metrics(log: InteractionLog, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        online_metrics(log, **options)


@pytest.mark.parametrize("name", [3, None, ["PageCTR"], b"PageCTR"])
def test_values_that_are_not_metric_names(log: InteractionLog, name: Any) -> None:
    for call in (lambda: online_metric(name), lambda: online_metrics(log, [name]), lambda: over_time(log, [name])):
        with pytest.raises(MeasureError, match=r"must be a string, got .*\. Fix: use a name such as 'PageCTR'"):
            call()


def test_a_metric_object_is_accepted(log: InteractionLog) -> None:
    assert online_metrics(log, online_metric("PageCTR")).value("PageCTR") == 11 / 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 3}, "every is 3. Fix: use hour or day or week"),
        ({"every": "month"}, "every is 'month'. Fix: use hour or day or week"),
        ({"every": ["day"]}, "every is"),
        ({"warm_up": "8"}, "warm_up is '8'. Fix: use an integer"),
        ({"alpha": "x"}, "alpha is 'x'. Fix: use a number"),
        ({"seed": 0.5}, "seed is 0.5. Fix: use an integer"),
        ({"by": "device"}, "`by` is not supported for time series"),
        ({"level": "x"}, "level is 'x'"),
    ],
)
def test_options_of_a_series(log: InteractionLog, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        over_time(log, "PageCTR", **options)
    for metrics, expected in ((3, "metrics is 3. Fix: use a name or a list"), ([], "`metrics` is empty")):
        with pytest.raises(InputError, match=expected):
            over_time(log, metrics)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcomes": 3}, "outcomes is 3"),
        ({"outcomes": [3]}, "outcomes is 3. Fix: use a name or a list of names"),
        ({"outcomes": [["clicked"]]}, r"outcomes is \['clicked'\]"),
        ({"measures": 3}, "measures is 3"),
        ({"by": 3}, "by is 3"),
        ({"pages": ["first"]}, "pages is"),
        ({"unit": ["user"]}, "unit is"),
        ({"dwell": "30"}, "dwell is '30'. Fix: use a number"),
        ({"min_judged": "x"}, "min_judged is 'x'. Fix: use a number"),
        ({"bins": 2.5}, "bins is 2.5. Fix: use an integer"),
        ({"min_pages": None}, "min_pages is None"),
        ({"level": "x"}, "level is 'x'. Fix: use a number"),
        ({"topics": 3}, "`topics` must be a column, a path, or a mapping of topic IDs to texts, got 3"),
    ],
)
def test_options_against_qrels(log: InteractionLog, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        against_qrels(log, QRELS, **options)


@pytest.mark.parametrize("qrels", [3, None, ["a"]])
def test_values_that_are_not_judgments(log: InteractionLog, qrels: Any) -> None:
    for call in (against_qrels, preference_agreement):
        with pytest.raises(InputError, match="Fix: "):
            call(log, qrels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": 3}, "rules is 3"),
        ({"rules": [["above"]]}, r"rules is \['above'\]. Fix: use a name or a list of names"),
        ({"rules": []}, "`rules` is empty"),
        ({"depth": "x"}, "depth is 'x'. Fix: use an integer"),
        ({"depth": 1}, "2 or more"),
    ],
)
def test_options_of_preferences(log: InteractionLog, options: dict[str, Any], message: str) -> None:
    for call in (lambda: click_preferences(log, **options), lambda: preference_agreement(log, QRELS, **options)):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"success": "30"}, "success is '30'. Fix: use a number"),
        ({"reformulation_gap": None}, "reformulation_gap is None"),
        ({"reformulation_gap": float("inf")}, "reformulation_gap is inf. Fix: use a number of seconds from 0 to 1e"),
        ({"attribution_window": -1}, "attribution_window is -1"),
        ({"attribution_window": float("nan")}, "attribution_window is nan"),
        ({"winsorize": "x"}, "winsorize is 'x'. Fix: use a number"),
    ],
)
def test_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FactSettings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": 3}, "expected a path, got int. Fix: use the path"),
        ({"paths": None}, "expected a path, got NoneType"),
        ({"paths": b"log"}, "expected a path, got bytes"),
        ({"paths": ["log", 3]}, "expected a path, got int"),
        ({"paths": []}, "no files"),
        ({"layout": 3}, "layout is 3. Fix: use a string"),
        ({"mapping": 3}, "mapping is 3. Fix: use a path"),
        ({"bots": ["keep"]}, r"bots is \['keep'\]"),
        ({"session_gap": "30"}, "session_gap is '30'. Fix: use a number"),
        ({"bot_pages": None}, "bot_pages is None"),
        ({"rank_base": "1"}, "rank_base is '1'. Fix: use 0 or 1"),
        ({"now_ms": 1.5}, "now_ms is 1.5. Fix: use an integer"),
        ({"actions": ["click"]}, "actions is .* Fix: use a dict"),
        ({"name": 3}, "name is 3. Fix: use a string"),
        ({"memory": 4}, "memory is 4. Fix: use a string"),
        ({"threads": "2"}, "threads is '2'. Fix: use an integer"),
        ({"threads": 0}, "threads is 0. Fix: use an integer of 1 or more"),
    ],
)
def test_options_of_reading(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"paths": "nothing.ndjson", **options}
    with pytest.raises(InputError, match=message):
        read_log(**arguments)
