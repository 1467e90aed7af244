"""Quantiles: standard errors by hand, and quantiles over time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from calibration import periods

from judged.online import online_metrics, over_time
from typed_logs import typed_log

MEDIAN = "Latency(q=0.5)"
DAY = 86_400_000


def page(serp: int, user: int, seconds: float, day: int = 0) -> dict[str, Any]:
    keys = {"serp": serp, "session": serp, "user": user, "time_ms": day * DAY + user * (DAY // 8 - 1)}
    device = "phone" if user else "desk"
    return {**keys, "query": "hat", "n_shown": 1, "latency_ms": 1000.0 * seconds, "device": device}


def test_the_error_of_a_median_by_hand() -> None:
    """16 users wait 1 to 16 s: half of them at most 8 s, with an error of sqrt(1 / 60) = 0.129 of that share.

    With Student's quantile 2.131 instead of 1.96, that is the error of 12.7 independent users. For these, the interval
    of Clopper and Pearson is 0.22 to 0.78: 4 to 13 s. Half of that, divided by 2.131, is the error.
    """
    log = typed_log([page(i, i, i + 1.0) for i in range(16)], [])
    result = online_metrics(log, MEDIAN, by="device")
    overall, desk = result.of(MEDIAN), result.of(MEDIAN, "desk")
    assert (overall.value, overall.low, overall.high, overall.method) == (8.0, 4.0, 13.0, "woodruff")
    assert overall.error == pytest.approx(4.5 / 2.131450, rel=1e-6)
    assert (desk.value, desk.units, desk.method) == (1.0, 1, "none")
    assert math.isnan(desk.error)


def test_a_median_over_time_has_limits() -> None:
    """Nine users wait 4 s less to 4 s more than the median, which is 13 s and 14 s in turn, and 40 s on the last day.

    The error is 3 s / 2.306 each day: the interval is from the second to the eighth user. Of the 45 pairs of days 25
    differ, by 1 s: with 2 / sqrt(pi) for what two normal values differ by, that is the spread. Limits are three of it
    from the center, moved up a little: nobody waits less than 0 s.
    """
    medians = [13.0, 14.0] * 5 + [40.0]
    rows = [(user, median + user - 4, day) for day, median in enumerate(medians) for user in range(9)]
    log = typed_log([page(i, user, seconds, day) for i, (user, seconds, day) in enumerate(rows)], [])
    (series,) = over_time(log, MEDIAN, warm_up=10).series
    assert [point.estimate.value for point in series.points] == medians
    assert [point.estimate.error for point in series.points] == pytest.approx([3 / 2.306004] * 11, rel=1e-6)
    assert (series.base, series.center) == (10, 13.5)
    spread = 25 / 45 * math.sqrt(math.pi) / 2
    assert series.points[0].high_limit - 13.5 == pytest.approx(3 * spread + spread**2 / 13.5 * 8 / 6)
    assert [(point.rule, point.point, point.side) for point in series.signals] == [("nelson-1", 10, "above")]


def test_the_median_of_money_is_that_of_pages_that_led_to_a_purchase() -> None:
    """Five of nine pages bring 10, 20, 30, 40 + 5 and 90: the half has spent 30 at most, and the mean is 32.5 each."""
    pages = [page(i, i, 1.0) for i in range(9)]
    purchases = [(0, 10.0), (1, 20.0), (2, 30.0), (3, 40.0), (3, 5.0), (4, 90.0)]
    keys = ("serp", "session", "user", "time_ms")
    sales = [
        {key: pages[i][key] for key in keys} | {"action": "purchase", "value": value, "object_id": f"{value}"}
        for i, value in purchases
    ]
    result = online_metrics(typed_log(pages, sales), ["OrderValue", "median order value"])
    assert (result.value("OrderValue"), result.value("OrderValue(q=0.5)")) == (195 / 6, 30.0)
    assert result.of("OrderValue(q=0.5)").units == 5


@pytest.mark.parametrize(("users", "q"), [(20, 0.5), (200, 0.9)])
def test_tests_of_quantiles_of_two_equal_arms_err_at_their_level(users: int, q: float) -> None:
    """400 tests, 5 % and 2 errors of that; with the error between values one error of the share away, 6 to 8 %."""
    coverage, _ = periods.arm_coverage(users, 400, statistic=f"quantile {q}")
    assert coverage >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / 400)
