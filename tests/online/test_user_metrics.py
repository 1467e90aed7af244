"""Overview of user metrics: status by day of hand-made series, and numbers of the sample."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from judged.data import sample
from judged.errors import InputError
from judged.online import online_metrics, read_log
from judged.online.metrics import online_metric
from judged.online.simulation import Drift, SimulationPlan, Users, Visits, simulate
from judged.online.user_metrics import UserMetrics, level_status, slicing_attributes, user_metrics
from judged.results.headline import MAX_WORDS
from online_scores_made import CTR, estimate, scores, series

NAN = math.nan
SERIES = series().series[0]  # 0.4 until 2024-10-25, then 0.3
START = "2024-10-26"


@pytest.fixture(scope="module")
def log() -> Any:
    return read_log(sample.LOG)


def answer(metric: Any = CTR, **changes: Any) -> UserMetrics:
    """Return the overview of a metric whose level falls from 0.4 to 0.3, with changes to its series."""
    row = replace(SERIES, metric=metric, **changes)
    result = scores(estimates=(estimate(metric, 370, 1000, 0.01),), refused=())
    return UserMetrics(result, replace(series(), scores=result, series=(row,)), metric, ())


@pytest.mark.parametrize(
    ("metric", "changes", "status", "word"),
    [
        ("SatisfiedPageCTR", {}, "worse", f"lower since {START}"),
        ("ZeroResults", {}, "better", f"lower since {START}"),
        ("PageCTR", {}, "info", f"lower since {START}"),
        ("PageCTR", {"changes": ()}, "same", "no significant change"),
        ("PageCTR", {"changes": (), "center": NAN}, "info", "estimate"),
    ],
)
def test_the_status_is_the_direction_of_the_last_change(
    metric: str, changes: dict[str, Any], status: str, word: str
) -> None:
    result = answer(online_metric(metric), **changes)
    headline = result.headline
    assert (headline.status, headline.word) == (status, word)
    assert (headline.value, headline.ci) == (0.37, (0.36, 0.38))
    assert len(headline.sentence.split()) <= MAX_WORDS
    (row,) = result.table("overview").records()
    assert (row["metric"], row["value"], row["level"]) == (metric, 0.37, word)


def test_a_rise_is_the_opposite_of_a_fall() -> None:
    (change,) = SERIES.changes
    rise = replace(change, before=change.after, after=change.before)
    row = estimate(online_metric("SatisfiedPageCTR"), 370, 1000, 0.01)
    assert level_status(row, replace(SERIES, changes=(rise,))) == ("better", f"higher since {START}")
    assert level_status(row, replace(SERIES, changes=(rise, change)))[0] == "worse"


def test_without_a_value_nothing_is_known() -> None:
    row = estimate(CTR, 0, 0, NAN)
    assert level_status(row, SERIES) == ("unknown", "no data")
    assert level_status(estimate(CTR, 1, 2, 0.1), None) == ("info", "estimate")


def test_the_numbers_are_those_of_the_metrics(log: Any) -> None:
    result = user_metrics(log, "Abandonment", by="device")
    expected = online_metrics(log, "Abandonment", by="device")
    overall = expected.of("Abandonment")
    assert (result.headline.value, result.headline.ci) == (overall.value, (overall.low, overall.high))
    rows = {(row["metric"], row["slice"]): row["value"] for row in result.table("estimates").records()}
    for row in expected.estimates:
        assert rows["Abandonment", row.slice] == row.value
    assert [row["value"] for row in result.table("ranks").records() if row["slice"] is None] == [
        row.value for row in expected.ranks if row.slice is None
    ]
    days = [row["value"] for row in result.table("periods").records() if row["metric"] == "Abandonment"]
    by_day = online_metrics(log, "Abandonment", by="day")
    assert days == [row.value for row in by_day.estimates if row.slice is not None]


def test_a_metric_of_the_reader_is_added_and_an_unsupported_one_is_an_error(log: Any) -> None:
    assert user_metrics(log).metric == CTR
    assert str(user_metrics(log, "ExitRate").scores.metrics[-1]) == "ExitRate"
    with pytest.raises(InputError, match="Revenue is not supported"):
        user_metrics(log, "Revenue")


def test_attributes_have_at_least_two_slices(log: Any) -> None:
    names = slicing_attributes(log)
    assert {"variant", "device", "language", "query_class", "weekday"} < set(names)
    assert not {"application", "ranker", "topic"} & set(names)
    assert all(len(online_metrics(log, "PageCTR", by=name).slices) > 1 for name in ("device", "traffic", "weekday"))


def test_the_dates_of_a_log_may_be_missing(log: Any) -> None:
    result = user_metrics(replace(log, dated=False))
    assert (result.time, result.headline.status, result.headline.word) == (None, "info", "estimate")
    assert not {"weekday", "hour of day"} & set(result.attributes)
    assert "periods" not in result.tables()


@pytest.mark.slow
def test_a_planted_change_is_found_and_without_one_there_is_none() -> None:
    """Clicks fall by half on day 20 of 40; without a drift, at most 2% of the logs have a change of any metric."""
    # Few pages per user: otherwise the last days have only the most active users, who click more.
    plan = SimulationPlan(users=Users(number=1000, most=4), visits=Visits(hours_between=2.0), days=40)
    falling = user_metrics(simulate(replace(plan, drift=(Drift("attractiveness", 20.0, 0.5),)), seed=1).log())
    change = next(row for row in falling.table("overview").records() if row["metric"] == "SatisfiedPageCTR")
    status, word = level_status(falling.scores.of("SatisfiedPageCTR"), falling.time.of("SatisfiedPageCTR"))  # type: ignore[union-attr]
    assert (status, change["level"]) == ("worse", word)
    assert abs(int(word[-2:]) - 21) <= 2  # 2025-01-21 is day 20
    found = 0
    for seed in range(8):
        steady = user_metrics(simulate(plan, seed=seed).log())
        found += any(row.changes for row in steady.time.series)  # type: ignore[union-attr]
    assert found <= 1  # P(more | 0.02 * 8) < 0.02
