"""A metric over time: which periods count, what is said of them, and what is written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged import InputError
from judged.online.estimation.over_time import period_end, series_of, written_start
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric

DAY = 86_400_000
MONDAY = 1_767_571_200_000  # 2026-01-05


def metric(unit: str = "share") -> OnlineMetric:
    return OnlineMetric("Rate", "", "page", "n", "d", unit, 1, "", "", "", "", "")


def estimate(value: float, pages: float = 1000.0, *, of: OnlineMetric | None = None) -> OnlineEstimate:
    error = math.sqrt(0.21 / pages) if pages else math.nan
    return OnlineEstimate(
        of or metric(), None, value, value - error, value + error, error, value * pages, pages, int(pages / 2), "delta"
    )


def series(values: np.ndarray, pages: float = 1000.0) -> list[tuple[int, OnlineEstimate]]:
    return [(MONDAY + at * DAY, estimate(float(value), pages)) for at, value in enumerate(values)]


def noisy(count: int) -> np.ndarray:
    """Make up a flat series that is above and below 0.3 in turn."""
    sizes = np.random.default_rng(1).uniform(0.2, 1.2, size=count)
    return 0.3 + sizes * np.tile([1, -1], count)[:count] * math.sqrt(0.21 / 1000)


def test_incomplete_periods_are_shown_and_count_nowhere() -> None:
    values = noisy(20)
    values[[0, -1]] = 0.9  # far too many
    covered = (MONDAY + DAY // 2, MONDAY + 19 * DAY + DAY // 3)
    found = series_of(series(values), every="day", covered=covered)
    assert [at for at, one in enumerate(found.points) if not one.complete] == [0, 19]
    assert found.base == 18
    assert found.center == pytest.approx(values[1:-1].mean())
    assert math.isnan(found.points[0].high_limit)
    assert found.signals == ()
    whole = series_of(series(values), every="day", covered=(MONDAY + DAY // 21, MONDAY + 20 * DAY - DAY // 21))
    assert whole.base == 20
    assert {signal.point for signal in whole.signals if signal.rule == "nelson-1"} == {0, 19}
    assert series_of(series(values), every="day").base == 20


def test_a_day_of_nothing_is_a_signal_and_a_shift_a_change() -> None:
    values = noisy(40)
    values[25:] -= 0.1
    found = series_of(series(values), every="day", warm_up=20)
    assert found.base == 20
    assert [one.point for one in found.changes] == [25]
    assert {one.rule for one in found.signals} == {"nelson-1", "nelson-2"}
    assert min(one.point for one in found.signals) == 25
    points = series(noisy(30))
    points[22] = (points[22][0], OnlineEstimate(metric(), None, 0.0, 0.0, 0.01, 0.0, 0.0, 1000.0, 500, "exact"))
    out = series_of(points, every="day", warm_up=20)
    assert [(one.rule, one.point, one.side) for one in out.signals] == [("nelson-1", 22, "below")]
    assert out.changes == ()


def test_limits_follow_the_size_and_stay_within_the_unit() -> None:
    points = [(MONDAY + at * DAY, estimate(0.02 + 0.01 * (at % 2), 40.0 if at == 3 else 4000.0)) for at in range(12)]
    found = series_of(points, every="day")
    assert found.points[3].low_limit == 0.0
    small, large = (found.points[at].high_limit - found.center for at in (3, 4))
    assert small > 10.0 * large  # the error is 10 times as large, and the share of 40 pages more skewed
    money = [(start, estimate(1 + 6 * (at % 2), of=metric("money"))) for at, (start, _) in enumerate(points)]
    limits = series_of(money, every="day").points[0]
    assert (limits.low_limit, limits.high_limit > 7) == (0.0, True)


def test_periods_without_a_value_are_passed_over() -> None:
    points = series(noisy(20))
    points[4] = (points[4][0], estimate(math.nan, 0.0))
    found = series_of(points, every="day")
    assert found.base == 19
    assert math.isnan(found.points[4].low_limit)


def test_few_periods_have_no_limits() -> None:
    found = series_of(series(noisy(7)), every="day")
    assert math.isnan(found.center)
    assert (found.signals, found.changes) == ((), ())


def test_signals_and_changes() -> None:
    values = noisy(40)
    values[25:] -= 0.1
    found = series_of(series(values), every="day", covered=(MONDAY, MONDAY + 39 * DAY + 1), warm_up=20)
    (change,) = found.changes
    assert change.point == 25
    assert (change.before, change.after) == pytest.approx((values[:25].mean(), values[25:39].mean()))
    assert [one.complete for one in found.points] == [True] * 39 + [False]
    assert ("nelson-1", 25, 25, "below") in [(one.rule, one.point, one.first, one.side) for one in found.signals]


def test_calendar() -> None:
    december = 1_764_547_200_000  # 2025-12-01
    assert written_start(december, "month") == "2025-12"
    assert written_start(period_end(december, "month"), "month") == "2026-01"
    leap = 1_706_745_600_000  # 2024-02-01
    assert (period_end(leap, "month") - leap) // DAY == 29
    assert period_end(MONDAY, "week") == MONDAY + 7 * DAY
    assert period_end(MONDAY, "hour") == MONDAY + DAY // 24
    assert written_start(MONDAY + DAY // 24, "hour") == "2026-01-05 01:00"


def test_refusals() -> None:
    points = series(noisy(10))
    with pytest.raises(InputError, match="no period 'year'"):
        series_of(points, every="year")
    with pytest.raises(InputError, match="there is no period with rows"):
        series_of([], every="day")
    with pytest.raises(InputError, match="not in order of time"):
        series_of([points[1], points[0]], every="day")
    with pytest.raises(InputError, match="several metrics"):
        series_of([points[0], (points[1][0], estimate(0.1, of=metric().given(k=5)))], every="day")
    with pytest.raises(InputError, match="5 periods are too few"):
        series_of(points, every="day", warm_up=5)
