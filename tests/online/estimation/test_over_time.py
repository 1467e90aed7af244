"""A metric over time: which periods count, signals, changes, and the format of dates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged import InputError
from judged.online.estimation.over_time import build_series, format_start, period_end
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric

DAY = 86_400_000
MONDAY = 1_767_571_200_000  # 2026-01-05


def metric(unit: str = "share") -> OnlineMetric:
    return OnlineMetric("Rate", "", "page", "n", "d", unit, 1, "", "", "", "", "")


def estimate(value: float, pages: float = 1000.0, *, online_metric: OnlineMetric | None = None) -> OnlineEstimate:
    error = math.sqrt(0.21 / pages) if pages else math.nan
    return OnlineEstimate(
        online_metric or metric(),
        None,
        value,
        value - error,
        value + error,
        error,
        value * pages,
        pages,
        int(pages / 2),
        "delta",
    )


def series(values: np.ndarray, pages: float = 1000.0) -> list[tuple[int, OnlineEstimate]]:
    return [(MONDAY + day * DAY, estimate(float(value), pages)) for day, value in enumerate(values)]


def noisy(count: int) -> np.ndarray:
    """Return a flat series that alternates above and below 0.3."""
    sizes = np.random.default_rng(1).uniform(0.2, 1.2, size=count)
    return 0.3 + sizes * np.tile([1, -1], count)[:count] * math.sqrt(0.21 / 1000)


def test_incomplete_periods_are_shown_and_count_nowhere() -> None:
    values = noisy(20)
    values[[0, -1]] = 0.9  # far too many
    covered = (MONDAY + DAY // 2, MONDAY + 19 * DAY + DAY // 3)
    result = build_series(series(values), period="day", covered=covered)
    assert [i for i, point in enumerate(result.points) if not point.complete] == [0, 19]
    assert result.base == 18
    assert result.center == pytest.approx(values[1:-1].mean())
    assert math.isnan(result.points[0].high_limit)
    assert result.signals == ()
    nearly_complete = build_series(
        series(values), period="day", covered=(MONDAY + DAY // 21, MONDAY + 20 * DAY - DAY // 21)
    )
    assert nearly_complete.base == 20
    assert {signal.point for signal in nearly_complete.signals if signal.rule == "nelson-1"} == {0, 19}
    assert build_series(series(values), period="day").base == 20


def test_a_day_of_nothing_is_a_signal_and_a_shift_a_change() -> None:
    values = noisy(40)
    values[25:] -= 0.1
    result = build_series(series(values), period="day", warm_up=20)
    assert result.base == 20
    assert [signal.point for signal in result.changes] == [25]
    assert {signal.rule for signal in result.signals} == {"nelson-1", "nelson-2"}
    assert min(signal.point for signal in result.signals) == 25
    points = series(noisy(30))
    points[22] = (points[22][0], OnlineEstimate(metric(), None, 0.0, 0.0, 0.01, 0.0, 0.0, 1000.0, 500, "exact"))
    with_zero = build_series(points, period="day", warm_up=20)
    assert [(signal.rule, signal.point, signal.side) for signal in with_zero.signals] == [("nelson-1", 22, "below")]
    assert with_zero.changes == ()


def test_limits_follow_the_size_and_stay_within_the_unit() -> None:
    points = [
        (MONDAY + day * DAY, estimate(0.02 + 0.01 * (day % 2), 40.0 if day == 3 else 4000.0)) for day in range(12)
    ]
    result = build_series(points, period="day")
    assert result.points[3].low_limit == 0.0
    small, large = (result.points[day].high_limit - result.center for day in (3, 4))
    assert small > 10.0 * large  # the error is 10 times as large, and the share of 40 pages more skewed
    money = [
        (start, estimate(1 + 6 * (day % 2), online_metric=metric("money"))) for day, (start, _) in enumerate(points)
    ]
    limits = build_series(money, period="day").points[0]
    assert (limits.low_limit, limits.high_limit > 7) == (0.0, True)


def test_periods_without_a_value_are_passed_over() -> None:
    points = series(noisy(20))
    points[4] = (points[4][0], estimate(math.nan, 0.0))
    result = build_series(points, period="day")
    assert result.base == 19
    assert math.isnan(result.points[4].low_limit)


def test_few_periods_have_no_limits() -> None:
    result = build_series(series(noisy(7)), period="day")
    assert math.isnan(result.center)
    assert (result.signals, result.changes) == ((), ())


def test_signals_and_changes() -> None:
    values = noisy(40)
    values[25:] -= 0.1
    result = build_series(series(values), period="day", covered=(MONDAY, MONDAY + 39 * DAY + 1), warm_up=20)
    (change,) = result.changes
    assert change.point == 25
    assert (change.before, change.after) == pytest.approx((values[:25].mean(), values[25:39].mean()))
    assert [signal.complete for signal in result.points] == [True] * 39 + [False]
    assert ("nelson-1", 25, 25, "below") in [
        (signal.rule, signal.point, signal.first, signal.side) for signal in result.signals
    ]


def test_calendar() -> None:
    december = 1_764_547_200_000  # 2025-12-01
    assert format_start(december, "month") == "2025-12"
    assert format_start(period_end(december, "month"), "month") == "2026-01"
    february = 1_706_745_600_000  # 2024-02-01
    assert (period_end(february, "month") - february) // DAY == 29
    assert period_end(MONDAY, "week") == MONDAY + 7 * DAY
    assert period_end(MONDAY, "hour") == MONDAY + DAY // 24
    assert format_start(MONDAY + DAY // 24, "hour") == "2026-01-05 01:00"


def test_refusals() -> None:
    points = series(noisy(10))
    with pytest.raises(InputError, match="no period 'year'"):
        build_series(points, period="year")
    with pytest.raises(InputError, match="no period has data"):
        build_series([], period="day")
    with pytest.raises(InputError, match="in order of time"):
        build_series([points[1], points[0]], period="day")
    with pytest.raises(InputError, match="the same metric"):
        build_series(
            [points[0], (points[1][0], estimate(0.1, online_metric=metric().with_parameters(k=5)))], period="day"
        )
    with pytest.raises(InputError, match="`warm_up` must be at least 8 periods, got 5"):
        build_series(points, period="day", warm_up=5)
