"""Points, pooling, and limits of a watched series by hand."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.watch.config import (
    CanarySeries,
    DayPoint,
    Event,
    SeriesKind,
    TableSeries,
    WatchConfig,
    merge_days,
    read_canary_days,
    read_state,
    read_table_days,
    series_kinds,
    write_state,
)
from judged.online.watch.watched import (
    DailySeries,
    _days_per_point,
    _missing_share,
    _pool_days,
    _watch_constant,
    _weighted_mean,
    arrange_by_day,
    split_quality_and_mix,
    watch_series,
)

if TYPE_CHECKING:
    from pathlib import Path

FIRST = date(2026, 3, 2)
NAN = math.nan


def day(number: int) -> date:
    return FIRST + timedelta(number)


def config(folder: Any = "", *events: Event, better: Any = "less", days: int = 10, **options: Any) -> WatchConfig:
    table, path = TableSeries("faults", "t.csv", better), str(folder / "w.toml") if folder else ""
    return WatchConfig(FIRST, day(days - 1), series=(table,), event=events, path=path,
                       **{"margin_relative": 0.1, **options})  # fmt: skip


def series(values: Any, errors: Any = None, sizes: Any = None) -> DailySeries:
    values = np.array(values, dtype=float)
    errors, sizes = (
        np.ones(len(values)) if column is None else np.array(column, dtype=float) for column in (errors, sizes)
    )
    return DailySeries(FIRST, values, errors, sizes)


def test_points_stand_at_their_days() -> None:
    points = [DayPoint("s", "", day(i).isoformat(), 10.0 + i, 0.1 * i, NAN, 100.0 + i) for i in (-1, 0, 2, 3, 4)]
    by_day = arrange_by_day(points, FIRST, day(3), np.array([False, False, False, True]))
    assert by_day.first == FIRST
    for values, expected in zip(
        (by_day.values, by_day.errors, by_day.sizes),
        ((10, NAN, 12, NAN), (0, NAN, 0.2, NAN), (100, NAN, 102, NAN)),
        strict=True,
    ):
        assert values == pytest.approx(expected, nan_ok=True)


def test_a_later_reading_of_a_day_takes_the_place_of_the_first() -> None:
    def point(name: str, day_number: int, value: float) -> DayPoint:
        return DayPoint(name, "", day(day_number).isoformat(), value, 1.0, 1.0, 1.0)

    points = merge_days([point("b", 0, 1), point("a", 1, 2), point("a", 0, 3)], [point("a", 1, 4), point("a", 2, 5)])
    assert [(point.series, point.value) for point in points] == [("a", 3), ("a", 4), ("a", 5), ("b", 1)]


def test_quality_has_the_mix_of_the_baseline() -> None:
    """Baseline of two days: class a has 3 + 1 pages of value 0.5 and 0.7, b 4 + 8 of 0.1 and 0.4; c comes later."""
    a = series([0.5, 0.7, 0.9, NAN], [0.1, 0.1, 0.3, NAN], [3, 1, 5, NAN])
    b = series([0.1, 0.4, 0.2, 0.3], [0.1, 0.1, 0.4, 0.2], [4, 8, 5, 5])
    c = series([NAN, NAN, 0.8, 0.8], sizes=[NAN, NAN, 5, 5])
    overall = series([0.3, 0.4, 0.7, NAN])
    quality, mix = split_quality_and_mix(overall, {"a": a, "b": b, "c": c}, np.array([True, True, False, False]))
    # a is 4 of 16 pages, b 12
    expected = [0.25 * 0.5 + 0.75 * 0.1, 0.25 * 0.7 + 0.75 * 0.4, 0.25 * 0.9 + 0.75 * 0.2, NAN]
    assert quality.values == pytest.approx(expected, nan_ok=True)
    assert mix.values == pytest.approx(overall.values - np.array(expected), nan_ok=True)
    assert quality.errors[2] == pytest.approx(math.hypot(0.25 * 0.3, 0.75 * 0.4))
    assert mix.errors is overall.errors
    complete = series([0.3, 0.4, 0.7, 0.6])
    missing, _ = split_quality_and_mix(complete, {"a": a, "b": b}, np.array([True, True, False, False]))
    baseline_value = (3 * 0.5 + 0.7) / 4
    assert missing.values[3] == pytest.approx(0.25 * baseline_value + 0.75 * 0.3)
    assert missing.errors[3] == pytest.approx(0.75 * 0.2)
    halves = {
        name: DailySeries(FIRST, slice_days.values, slice_days.errors, slice_days.sizes / 32)
        for name, slice_days in (("a", a), ("b", b))
    }
    scaled, _ = split_quality_and_mix(overall, halves, np.array([True, True, False, False]))  # a weighs 1/8 and b 3/8
    assert scaled.values == pytest.approx(expected, nan_ok=True)
    no_quality, mix_only = split_quality_and_mix(complete, {"c": c}, np.array([True, True, False, False]))
    assert np.isnan(no_quality.values).all()
    assert mix_only is complete


def test_days_are_pooled_by_their_sizes() -> None:
    pooled = _pool_days(
        series([1, 2, NAN, NAN, NAN, 5, 9], [0.1, 0.2, NAN, NAN, NAN, 0.3, 1], [1, 3, 7, 5, NAN, 2, 1]), 3
    )
    assert pooled.values == pytest.approx([7 / 4, 5])
    assert pooled.errors == pytest.approx([math.hypot(0.1, 0.6) / 4, 0.3])
    assert pooled.sizes == pytest.approx([4, 2])
    assert np.isnan(_pool_days(series([NAN, NAN], sizes=[2, 3]), 2).sizes).all()
    assert _pool_days(series([1, 2], sizes=[0.25, 0.5]), 2).sizes.tolist() == [0.75]
    daily = series([1, 2])
    assert _pool_days(daily, 1) is daily


@pytest.mark.parametrize(
    ("share", "pages", "days"),
    [(0.5, 20, 1), (0.5, 19.8, 7), (0.01, 1000, 1), (0.99, 1000, 1), (0.01, 999, 7), (0.01, 1000 / 7, 7),
     (0.01, 142, 14), (0.01, 1000 / 14, 14), (0.01, 71, 28), (0.01, 1000 / 28 + 0.01, 28), (0.01, 35, 0)],
)  # fmt: skip
def test_a_point_has_ten_events_and_ten_of_the_others(share: float, pages: float, days: int) -> None:
    days_of_share = series([share, NAN, share], sizes=[pages, 10**6, pages])
    assert _days_per_point(days_of_share, SeriesKind(1, share=True)) == days
    assert _days_per_point(days_of_share, SeriesKind(1)) == 1


@pytest.mark.parametrize(("error", "days"), [(0.3, 1), (0.32, 7), (0.83, 7), (0.84, 14), (0.0, 1)])
def test_a_point_of_money_has_as_many_equal_sums(error: float, days: int) -> None:
    """Of a mean of 1 with an error e there are 1 / e^2 equal sums a day: 0.316 for 10, 0.837 for 10 / 7."""
    days_of_money = series([1.0] * 4, [error] * 4, [5.0] * 4)
    assert _days_per_point(days_of_money, SeriesKind(1, amount=True)) == days


@pytest.mark.parametrize(
    ("values", "share"),
    [([1, 2, 3], 0.0), ([NAN, 1, 2, NAN], 0.0), ([1, NAN, 1], 0.35), ([1, *[NAN] * 2, *[1] * 17], 0.1),
     ([1, *[NAN], *[1] * 18], 0.05), ([1, *[NAN], *[1] * 19], 0.05), ([1, NAN, NAN, 1], 0.5)],
)  # fmt: skip
def test_missing_days_are_rounded_up_to_a_twentieth(values: list[float], share: float) -> None:
    assert _missing_share(np.array(values, dtype=float)) == pytest.approx(share)


def test_a_mean_of_days_is_weighted_by_sizes() -> None:
    daily = series([9, 1, NAN, 4], sizes=[9, 1, 5, 2])
    assert _weighted_mean(daily, slice(1, None)) == pytest.approx(3)
    assert math.isnan(_weighted_mean(daily, slice(2, 3)))
    assert _weighted_mean(series([9, 4], sizes=[NAN, 2]), slice(0, None)) == 4


@pytest.mark.parametrize(
    ("better", "values", "since"),
    [
        (-1, [1.11], 10), (-1, [1.09], None), (-1, [0.5], None), (1, [0.89], 10), (1, [0.91], None), (1, [1.5], None),
        (0, [0.89], 10), (0, [1.11], 10), (0, [1.05], None), (-1, [1.2, 1.0], None), (-1, [1.2, 1.0, 1.2, 1.3], 12),
        (-1, [1.2, NAN, 1.3], 12), (-1, [1.2, 1.3, NAN], 10),
    ],
)  # fmt: skip
def test_a_series_that_never_varied_is_off_beyond_the_margin(
    better: int, values: list[float], since: int | None
) -> None:
    daily = series([1.0] * 10 + values, sizes=[2.0] * 9 + [4.0] * (1 + len(values)))
    result = watch_series(("s", "p"), daily, SeriesKind(better), config(), 0.01)
    assert (result.series, result.part, result.center, result.detection_days, result.better) == (
        "s",
        "p",
        1.0,
        1.0,
        better,
    )
    assert (result.state, result.since) == (("ok", None) if since is None else ("alarm", day(since)))
    assert result.level == [value for value in values if not math.isnan(value)][-1]
    assert result.size == pytest.approx((18 + 4 * (1 + len(values))) / (10 + len(values)))
    assert result.autocorrelation == 0.0
    assert [point.inside for point in result.points] == [True] * 10 + [False] * len(values)
    assert not any(point.alarm for point in result.points[:10])
    assert [point.start for point in result.points] == [day(i) for i in range(10 + len(values))]
    assert {(point.expected, point.sigma) for point in result.points} == {(1.0, 0.0)}
    constant = _watch_constant(("s", "p"), daily, np.arange(len(daily.values)) < 10, SeriesKind(better), config())
    assert constant.points == result.points or any(map(math.isnan, values))


@pytest.mark.parametrize(
    ("n_points", "reason"), [(7, "the baseline must have at least 8 points (one point per 1 day), got 7"), (8, "")]
)
def test_a_baseline_has_eight_points(n_points: int, reason: str) -> None:
    result = watch_series(
        ("s", ""), series([1.0] * n_points + [NAN] * (10 - n_points) + [1.0]), SeriesKind(0), config(), 0.01
    )
    assert result.reason.startswith(reason)
    assert (result.state == "not monitored") == bool(reason)


def test_rare_events_are_not_watched() -> None:
    result = watch_series(("s", ""), series([0.5] * 10, sizes=[0.5] * 10), SeriesKind(0, share=True), config(), 0.01)
    assert (result.state, result.reason) == ("not monitored", "the series has fewer than 10 events per 28 days")


def test_rows_of_a_table(tmp_path: Path) -> None:
    """Without an error: of a share its binomial one, of a number by size that of a Poisson count."""
    (tmp_path / "t.csv").write_text(
        "date,numerator,denominator,error,slice\n2026-03-02T10:00,1,4,,\n2026-03-03,8,4,,\n2026-03-04,-8,4,,\n"
        "2026-03-05,1,4,0,a\n2026-03-06,1,4,0.5,\n2026-03-07,0,4,,\n2026-03-08,4,4,,\n2026-03-09,4,0,,\n"
    )
    rows = list(read_table_days(TableSeries("faults", "t.csv"), config(tmp_path)))
    assert [(row.series, row.part, row.day) for row in rows] == [
        ("faults", "a" if i == 3 else "", day(i).isoformat()) for i in range(7)
    ]
    assert [row.value for row in rows] == [0.25, 2.0, -2.0, 0.25, 0.25, 0.0, 1.0]
    expected = [math.sqrt(0.25 * 0.75 / 4), math.sqrt(2 / 4), math.sqrt(2 / 4), 0.0, 0.5, 0.0, 0.0]
    assert [row.error for row in rows] == pytest.approx(expected)
    assert [(row.numerator, row.denominator) for row in rows[:2]] == [(1, 4), (8, 4)]
    write_state(tmp_path / "state", [*rows, DayPoint("q", "", "2026-03-02", 1.0, 2.0, NAN, 3.0)])
    restored = read_state(tmp_path / "state")
    assert restored[:-1] == rows
    assert math.isnan(restored[-1].numerator)
    assert restored[-1]._replace(numerator=0.0) == DayPoint("q", "", "2026-03-02", 1.0, 2.0, 0.0, 3.0)
    assert read_state(tmp_path / "none") == []


def test_canaries_by_hand(tmp_path: Path) -> None:
    """RR of two queries: 1 and 1/2, then 1/2 and nothing. RBO with the baseline's last run is 1 if both are alike."""
    (tmp_path / "q").write_text("q1 0 a 1\nq2 0 b 1\n")
    best_run = "q1 Q0 a 1 2 x\nq1 Q0 c 2 1 x\nq2 Q0 d 1 2 x\nq2 Q0 b 2 1 x\n"
    for number, text in (
        (0, "q1 Q0 z 1 1 x\nq2 Q0 z 1 1 x\n"),
        (9, best_run),
        (10, best_run),
        (11, "q1 Q0 c 1 2 x\nq1 Q0 a 2 1 x\n"),
    ):
        (tmp_path / f"c-{day(number)}.run").write_text(text)
    canary = CanarySeries("q", "c-*.run", ("RR",))
    points = list(read_canary_days(canary, config(tmp_path)))
    rr = [point for point in points if point.series == "RR of canaries"]
    assert [(point.day, point.value, point.numerator, point.denominator) for point in rr] == [
        (day(0).isoformat(), 0.0, 0.0, 2), (day(9).isoformat(), 0.75, 1.5, 2),
        (day(10).isoformat(), 0.75, 1.5, 2), (day(11).isoformat(), 0.25, 0.5, 2),
    ]  # fmt: skip
    overlaps = [point for point in points if point.series == "RBO of canaries"]
    assert [point.value for point in overlaps][:3] == pytest.approx([0, 1, 1])
    assert 0 < overlaps[3].value < 0.5  # of one query the two documents change places, of the other there is nothing
    assert [point.numerator for point in overlaps] == pytest.approx([2 * point.value for point in overlaps])
    assert {(point.error, point.denominator, point.part) for point in points} == {(2**-0.5, 2, "")}
    with pytest.raises(InputError, match="on or before"):
        list(read_canary_days(CanarySeries("q", f"c-{day(10)}.run"), config(tmp_path)))


def test_what_series_mean() -> None:
    from judged.online.watch.config import LogSeries

    log = LogSeries(("PageCTR", "RevenuePerSearch", "ZeroResultQueries"))
    tables = tuple(TableSeries(name, "t", name) for name in ("more", "less", "either"))  # type: ignore[arg-type]
    kinds = series_kinds(WatchConfig(FIRST, day(9), log=log, canary=(CanarySeries("q", "r"),), series=tables))
    assert kinds == {
        "PageCTR": SeriesKind(0, share=True),
        "RevenuePerSearch": SeriesKind(1, amount=True),
        "ZeroResultQueries": SeriesKind(-1, share=True),
        "nDCG@10 of canaries": SeriesKind(1),
        "RBO of canaries": SeriesKind(1),
        "more": SeriesKind(1),
        "less": SeriesKind(-1),
        "either": SeriesKind(0),
    }
    for name in ("more", "PageCTR"):
        with pytest.raises(InputError, match="name of another series or of a metric"):
            series_kinds(WatchConfig(FIRST, day(9), series=(*tables, TableSeries(name, "t"))))


def test_days_of_a_point_are_weighted_by_their_sizes_and_missing_ones_left_out() -> None:
    rng = np.random.default_rng(5)
    n = 7 * 20 + 3
    sizes = rng.integers(20, 60, n).astype(float)
    values = 0.05 + 0.02 * rng.standard_normal(n)
    values[[3, 10, 139]] = np.nan
    result = watch_series(
        ("x", ""),
        DailySeries(FIRST, values, np.full(n, 0.03), sizes),
        SeriesKind(1, share=True),
        config(days=7 * 18),
        0.01,
    )
    assert (result.days, len(result.points)) == (7, 20)
    totals = []
    for week, point in enumerate(result.points):
        rows = [row for row in range(7 * week, 7 * week + 7) if not math.isnan(values[row])]
        assert point.start == FIRST + timedelta(7 * week)
        assert point.value == pytest.approx(np.average(values[rows], weights=sizes[rows]))
        assert point.inside is (week < 18)
        totals.append(sizes[rows].sum())
    assert result.size == pytest.approx(np.mean(totals))
    assert result.level == pytest.approx(result.points[-1].value)  # of one week


def test_the_level_is_the_weighted_mean_of_the_last_seven_days_with_a_value() -> None:
    rng = np.random.default_rng(6)
    n = 60
    values, sizes = 0.3 + 0.01 * rng.standard_normal(n), rng.integers(100, 900, n).astype(float)
    values[[52, 57]] = np.nan
    result = watch_series(
        ("x", ""), DailySeries(FIRST, values, np.full(n, 0.01), sizes), SeriesKind(0), config(days=40), 1e-6
    )
    rows = [row for row in range(n) if not math.isnan(values[row])][-7:]
    assert result.state == "ok"
    assert result.level == pytest.approx(np.average(values[rows], weights=sizes[rows]))
    assert result.since is None
