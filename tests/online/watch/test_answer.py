"""Output of a watch: sentences, tables, charts, and Prometheus metrics."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.watch import config as points
from judged.online.watch import watch
from judged.online.watch.config import (
    DayPoint,
    Event,
    LogSeries,
    SeriesKind,
    TableSeries,
    WatchConfig,
    first_config,
    read_log_days,
)
from judged.online.watch.watch import Watch
from judged.online.watch.watched import Guard, Rollback, WatchedPoint, WatchedSeries
from online.watch.test_points import FIRST, NAN, config, day

if TYPE_CHECKING:
    from pathlib import Path

MODULE = sys.modules["judged.online.watch.watch"]


def test_the_answer_of_a_watch(tmp_path: Path) -> None:
    """A series that never varied: 0.1 for 10 days, then 0.2."""
    rows = [f"{day(i)},{1 if i < 10 else 2},10,0.01" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["date,numerator,denominator,error", *rows]) + "\n")
    result = watch(config(tmp_path, Event(day(3), "a fair", day(3)), Event(day(11), "v2", deploy=True)))
    assert (result.is_healthy, result.title, len(result.alarms)) == (False, f"Watch of {day(11)}", 1)
    sentences, table, deployments, chart, points, *_ = result.blocks()
    assert sentences.texts == (  # type: ignore[attr-defined]
        f"faults has had an alarm since {day(10)}: 0.2 (baseline 0.1, +100.0%).", str(result.rollbacks[0]),
    )  # fmt: skip
    (row,) = table.records()  # type: ignore[attr-defined]
    assert (row["series"], row["state"], row["since"]) == ("faults", "alarm", day(10).isoformat())
    assert (row["center"], row["level"]) == pytest.approx((0.1, 0.2))
    assert (row["relative"], row["detection_days"], row["days"]) == (pytest.approx(1.0), 1, 1)
    assert result.rollbacks[0].decision == "no data"
    assert deployments.records() == []  # type: ignore[attr-defined]
    assert len(chart.lines) == 1  # type: ignore[attr-defined]
    plotted = points.records()  # type: ignore[attr-defined]
    # the day that is left out has no point
    assert [point["start"] for point in plotted] == [day(i).isoformat() for i in range(12) if i != 3]
    assert [point["start_ms"] for point in plotted][:2] == [1_772_409_600_000, 1_772_496_000_000]
    assert [point["kind"] for point in plotted] == ["baseline"] * 9 + ["alarm"] * 2
    assert result.facts() == {
        "today": day(11).isoformat(), "baseline": [FIRST.isoformat(), day(9).isoformat()], "alarms_per_month": 0.5,
        "margin_relative": 0.1,
    }  # fmt: skip
    lines = result.prometheus().splitlines()
    assert len(lines) == 6
    assert [line for line in lines if line.startswith("judged_watch_alarm")] == [
        'judged_watch_alarm{series="faults",part=""} 1'
    ]
    levels = {line.split("{")[0]: float(line.split()[-1]) for line in lines[3:]}
    assert levels == pytest.approx({"judged_watch_alarm": 1, "judged_watch_baseline": 0.1, "judged_watch_level": 0.2})
    without_alarm = watch(config(tmp_path, better="more"))
    assert (without_alarm.is_healthy, without_alarm.blocks()[0].texts) == (True, ("No alarm in 1 series.",))  # type: ignore[attr-defined]
    (tmp_path / "t.csv").write_text("date,numerator,denominator\n")
    with pytest.raises(InputError, match="no data for any day"):
        watch(config(tmp_path))


def test_bands_of_two_standard_deviations(tmp_path: Path) -> None:
    rows = [f"{day(i)},{10 + i % 3},100,0.01" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["date,numerator,denominator,error", *rows]) + "\n")
    result = watch(config(tmp_path, days=14, better="either"))
    (series,) = result.watched
    plotted, points = result.table("days1").records(), result.table("points").records()
    for row, data_row, point in zip(plotted, points, series.points, strict=True):
        assert (row["value"], row["expected"]) == (point.value, point.expected)
        assert row["expected_ci"] == pytest.approx((point.expected - 2 * point.sigma, point.expected + 2 * point.sigma))
        assert (data_row["value"], data_row["expected"], data_row["sigma"]) == (
            point.value,
            point.expected,
            point.sigma,
        )
        assert (data_row["start"], data_row["alarm"]) == (point.start.isoformat(), 0)
    assert series.center == pytest.approx(np.mean([0.1, 0.11, 0.12] * 4 + [0.1, 0.11]))
    assert series.level == pytest.approx(np.mean([0.1 + 0.01 * (i % 3) for i in range(13, 20)]))  # the last week
    assert {block.name: block.labels for block in result.blocks() if hasattr(block, "labels")}["series"] == 2


DROP = WatchedSeries(
    "clicks", "", "alarm", since=day(2), center=0.2, level=0.1, detection_days=5.0, better=1,
    points=(
        WatchedPoint(day(0), 0.25, 0.2, 0.03, True, False), WatchedPoint(day(1), NAN, NAN, 0.03, False, False),
        WatchedPoint(day(2), 0.11, 0.21, 0.02, False, True), WatchedPoint(day(3), 0.2, 0.2, 0.03, False, False),
    ),
)  # fmt: skip
MOVED = WatchedSeries("clicks", "mix", "mix changed", since=day(3), center=0.5, level=0.2571, detection_days=3.0,
                days=7, points=(WatchedPoint(day(0), 0.5, 0.5, 0.1, True, False),))  # fmt: skip
RARE = WatchedSeries("clicks", "device=x", "not monitored", "it is rare")
RARE_MIX = WatchedSeries("waits", "mix", "not monitored", "it is rare")
FLAT = WatchedSeries("waits", "", "ok", center=0.0, level=1.5, detection_days=math.inf)
LOSS = WatchedSeries("profit", "shop=a", "alarm", since=day(1), center=-10.0, level=-15.0, detection_days=2.0,
               points=(WatchedPoint(day(0), -15.0, -10.0, 1.0, False, True),))  # fmt: skip
ALL = (DROP, MOVED, RARE, RARE_MIX, FLAT, LOSS)
GUARDS = (Guard("clicks", "", -0.25, (-0.3, -0.2), "harmed", NAN), Guard("clicks", "x", 0.1, (0.05, 0.15), "ok", 7.4))
DEPLOYED = Event(day(2), "v2", deploy=True)


def answer(*series: WatchedSeries, back: tuple[Rollback, ...] = (), events: tuple[Event, ...] = ()) -> Watch:
    return Watch(config("", *events, margin_relative=0.05, alarms_per_month=0.25), series, back, day(3))


def test_sentences_of_all_series() -> None:
    rollback = Rollback(DEPLOYED, "roll back", GUARDS, 0.05)
    result = answer(*ALL, back=(rollback,), events=(Event(day(0), "a fair", day(1)), DEPLOYED))
    assert (result.title, result.is_healthy, result.alarms) == (f"Watch of {day(3)}", False, (DROP, LOSS))
    sentences, *_, settings = result.blocks()
    assert sentences.texts == (  # type: ignore[attr-defined]
        f"clicks has had an alarm since {day(2)}: 0.1 (baseline 0.2, -50.0%).",
        f"profit of shop=a has had an alarm since {day(1)}: -15 (baseline -10, -50.0%).",
        f"The shares of the slices have changed, which shifted clicks by -0.243 since {day(3)}.",
        str(rollback),
        "clicks of device=x is not monitored: it is rare.",
    )
    assert (settings.name, settings.texts) == ("method", (  # type: ignore[attr-defined]
        f"Baseline: {FIRST} to {day(9)}.",
        "Expected false alarms: at most 0.25 per month over all series, if nothing changes.",
        "Change to detect: 5% of the baseline.",
        f"Excluded: {day(0)} to {day(1)} (a fair).",
    ))  # fmt: skip
    assert len(answer(*ALL, events=(DEPLOYED,)).blocks()[-1].texts) == 3  # type: ignore[attr-defined]
    assert result.facts() == {
        "today": day(3).isoformat(), "baseline": [FIRST.isoformat(), day(9).isoformat()], "alarms_per_month": 0.25,
        "margin_relative": 0.05,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("series", "decision", "is_healthy", "sentence"),
    [
        ((FLAT,), "keep", True, "No alarm in 1 series."),
        ((FLAT, MOVED, RARE), "keep watching", True, "No alarm in 1 series."),
        ((FLAT, replace(FLAT, series="b")), None, True, "No alarm in 2 series."),
        ((FLAT,), "roll back", False,
         ("No alarm in 1 series, compared with the baseline. Each deployment is compared with the weeks"
          " before that deployment.")),
        ((RARE,), None, True, "No series is monitored yet."),
        ((DROP,), "keep", False, None),
    ],
)  # fmt: skip
def test_what_is_said_without_an_alarm(series: Any, decision: Any, is_healthy: bool, sentence: str | None) -> None:
    back = () if decision is None else (Rollback(DEPLOYED, decision, GUARDS, 0.05),)
    result = answer(*series, back=back)
    assert result.is_healthy == is_healthy
    last = result.blocks()[0].texts[-1]  # type: ignore[attr-defined]
    assert (last == sentence) if sentence else last.startswith("Deployment v2 on")


def test_the_table_of_series() -> None:
    table = answer(*ALL).blocks()[1]
    assert table.labels == 2  # type: ignore[attr-defined]
    grid = table.grid()  # type: ignore[attr-defined]
    assert grid.header == (
        "series", "part", "state", "since", "baseline", "current", "change", "detection days", "days per point",
    )  # fmt: skip
    assert [tuple(map(str, row)) for row in grid.rows] == [
        ("clicks", "", "alarm", str(day(2)), "0.2000", "0.1000", "-50%", "5", "1"),
        ("clicks", "mix", "mix changed", str(day(3)), "0.5000", "0.2571", "-49%", "3", "7"),
        ("clicks", "device=x", "not monitored", "", "-", "-", "-", "-", "1"),
        ("waits", "mix", "not monitored", "", "-", "-", "-", "-", "1"),
        ("waits", "", "ok", "", "0.0000", "1.5000", "-", "inf", "1"),
        ("profit", "shop=a", "alarm", str(day(1)), "-10.0000", "-15.0000", "-50%", "2", "1"),
    ]
    rows = table.records()  # type: ignore[attr-defined]
    assert [row["relative"] for row in rows] == [
        pytest.approx(-0.5), pytest.approx(-0.4858), None, None, None, pytest.approx(-0.5),
    ]  # fmt: skip
    assert [row["reason"] for row in rows] == ["", "", "it is rare", "it is rare", "", ""]
    assert "a change of 5%" in table.note  # type: ignore[attr-defined]
    without_slices = answer(DROP, FLAT).blocks()[1]
    assert "part" not in without_slices.grid().header  # type: ignore[attr-defined]
    assert [row["part"] for row in without_slices.records()] == ["", ""]  # type: ignore[attr-defined]


def test_the_table_of_deployments() -> None:
    first = Rollback(Event(day(1), "v1", deploy=True), "keep", (GUARDS[1],), 0.05)
    result = answer(DROP, back=(first, Rollback(DEPLOYED, "roll back", GUARDS, 0.05)))
    table = result.table("deployments")
    assert (table.labels, table.title) == (4, "Deployments")
    assert table.grid().header == ("deployed", "description", "series", "part", "change", "state", "loss per day")
    assert [tuple(map(str, row)) for row in table.grid().rows] == [
        (str(day(1)), "v1", "clicks", "x", "10% [5%, 15%]", "ok", "7"),
        (str(day(2)), "v2", "clicks", "", "-25% [-30%, -20%]", "harmed", "-"),
        (str(day(2)), "v2", "clicks", "x", "10% [5%, 15%]", "ok", "7"),
    ]
    assert [(row["relative"], row["relative_ci"], row["loss_per_day"]) for row in table.records()[1:]] == [
        (-0.25, [-0.3, -0.2], None), (0.1, [0.05, 0.15], 7.4),
    ]  # fmt: skip
    without_slices = answer(DROP, back=(Rollback(DEPLOYED, "roll back", GUARDS[:1], 0.05),)).table("deployments")
    assert "part" not in without_slices.grid().header
    assert "deployments" not in [block.name for block in answer(DROP).blocks()]


def test_charts_of_series_over_all_pages() -> None:
    """Of all series those with points and without a part; a missing point is not drawn, and the band is +- 2 sigma."""
    result = answer(FLAT, *ALL, events=(DEPLOYED, Event(day(0), "a fair", day(1))))
    blocks = [block for block in result.blocks() if block.name.startswith(("watched", "days"))]
    assert [block.name for block in blocks] == ["watched2", "days2"]
    chart, table = blocks
    assert (chart.table, chart.title, chart.kind, chart.height) == (table, "clicks", "points", 180)  # type: ignore[attr-defined]
    assert chart.sentence == "clicks: alarm, 0.1 (baseline 0.2, -50.0%)."  # type: ignore[attr-defined]
    (line,) = chart.lines  # type: ignore[attr-defined]
    assert (line.axis, line.value) == ("x", (day(2) - date(1970, 1, 1)).days * 86_400_000)
    assert table.folded
    assert table.grid().header == ("day", "clicks", "expected", "kind")  # type: ignore[attr-defined]
    assert [tuple(map(str, row)) for row in table.grid().rows] == [  # type: ignore[attr-defined]
        (str(day(0)), "0.2500", "0.2000 [0.140, 0.260]", "baseline"),
        (str(day(2)), "0.1100", "0.2100 [0.170, 0.250]", "alarm"),
        (str(day(3)), "0.2000", "0.2000 [0.140, 0.260]", "normal"),
    ]
    rows = table.records()  # type: ignore[attr-defined]
    assert [row["start_ms"] for row in rows] == [1_772_409_600_000 + 86_400_000 * i for i in (0, 2, 3)]


def test_all_points_in_data() -> None:
    table = answer(*ALL).table("points")
    assert table.only == "data"
    keys = ("series", "part", "start", "value", "expected", "sigma", "alarm")
    assert [tuple(row[key] for key in keys) for row in table.records()] == [
        ("clicks", "", str(day(0)), 0.25, 0.2, 0.03, 0), ("clicks", "", str(day(1)), None, None, 0.03, 0),
        ("clicks", "", str(day(2)), 0.11, 0.21, 0.02, 1), ("clicks", "", str(day(3)), 0.2, 0.2, 0.03, 0),
        ("clicks", "mix", str(day(0)), 0.5, 0.5, 0.1, 0), ("profit", "shop=a", str(day(0)), -15.0, -10.0, 1.0, 1),
    ]  # fmt: skip


def test_prometheus_reads_series_that_are_watched() -> None:
    escaped = replace(FLAT, series='a"b\\c\nd')
    assert answer(RARE, DROP, escaped).prometheus() == (
        "# TYPE judged_watch_alarm gauge\n# TYPE judged_watch_baseline gauge\n# TYPE judged_watch_level gauge\n"
        'judged_watch_alarm{series="a\\"b\\\\c\\nd",part=""} 0\n'
        'judged_watch_alarm{series="clicks",part=""} 1\n'
        'judged_watch_baseline{series="a\\"b\\\\c\\nd",part=""} 0\n'
        'judged_watch_baseline{series="clicks",part=""} 0.20000000000000001\n'
        'judged_watch_level{series="a\\"b\\\\c\\nd",part=""} 1.5\n'
        'judged_watch_level{series="clicks",part=""} 0.10000000000000001\n'
    )


def point(name: str, part: str, i: int, value: float = 0.5) -> DayPoint:
    return DayPoint(name, part, day(i).isoformat(), value, 0.1, 5.0, 10.0)


def test_series_mixes_and_classes_share_the_false_alarms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less is better of three parts, which take one side each; the other two series are watched on both sides."""
    calls: list[Any] = []

    def watch_series(
        name: Any, days: Any, kind: Any, _: Any, rate: float, *, alarm_state: str = "alarm"
    ) -> WatchedSeries:
        calls.append((name, days, kind, rate, alarm_state))
        return WatchedSeries(*name, "ok")

    monkeypatch.setattr(MODULE, "watch_series", watch_series)
    rows = {
        "faults": [(i, part) for part in ("", "a", "b") for i in (-2, 0, 1, 9)],
        "one": [(i, part) for part in ("", "c") for i in range(3)], "apart": [(0, "d")],
    }  # fmt: skip
    for name, days_and_slices in rows.items():
        sizes = [{("a", 9): 20, ("b", 0): 12}.get((part, i), 4) for i, part in days_and_slices]
        lines = [
            f"{day(i)},{size * (1 + (part == 'a')) / 4},{size},{part}"
            for size, (i, part) in zip(sizes, days_and_slices, strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["date,numerator,denominator,slice", *lines]) + "\n")
    tables = tuple(TableSeries(name, f"{name}.csv", "less" if name == "faults" else "either") for name in rows)
    events = (
        Event(day(-9), "long ago", day(-7)), Event(day(-9), "begins before", day(-2)), Event(day(1), "within", day(1)),
        Event(day(5), "deployed", deploy=True), Event(day(2), "later", day(8)),
    )  # fmt: skip
    settings = WatchConfig(FIRST, day(9), alarms_per_month=3.044, series=tables, event=events, path=str(tmp_path / "w"))
    result = watch(settings)
    assert result.today == day(9)
    less, either = SeriesKind(-1), SeriesKind(0)
    assert [(name, kind, alarm_state) for name, _, kind, _, alarm_state in calls] == [
        (("faults", ""), less, "alarm"), (("faults", "mix"), either, "mix changed"), (("faults", "a"), less, "alarm"),
        (("faults", "b"), less, "alarm"), (("one", ""), either, "alarm"), (("apart", "d"), either, "alarm"),
    ]  # fmt: skip
    # 3.044 a month of 30.44 days over 3 * 1 + 2 * 2 + 1 * 2 sides
    assert [rate for *_, rate, _ in calls] == pytest.approx([0.1 / 9] * 6)
    assert {days.first for _, days, *_ in calls} == {day(-2)}
    nan = math.nan
    assert calls[2][1].values.tolist() == pytest.approx([nan, nan, 0.5, *[nan] * 8, 0.5], nan_ok=True)
    # on the first and last day of the baseline a has 4 + 20 of all pages, and b 12 + 4; what is left is mix
    quality = (24 * 0.5 + 16 * 0.25) / 40
    assert calls[0][1].values[2] == pytest.approx(quality)
    assert calls[1][1].values[2] == pytest.approx(0.25 - quality)


def test_what_a_log_says_beside_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of another `by` and series that are no longer asked for are stored, and not watched."""
    watched_points: list[Any] = []

    def watch_all(points: Any, *_: Any) -> list[WatchedSeries]:
        watched_points.extend(points)
        return [WatchedSeries("PageCTR", "", "ok")]

    new = [point("PageCTR", part, i) for i in range(2) for part in ("", "device=x")]
    monkeypatch.setattr(MODULE, "read_log_days", lambda *_: iter(new))
    monkeypatch.setattr(MODULE, "_watch_all", watch_all)
    old = [point("PageCTR", "device=y", 0), point("PageCTR", "language=en", 0), point("faults", "language=en", 0),
           point("PageCTR", "", 0, 0.9), point("gone", "", 0)]  # fmt: skip
    points.write_state(tmp_path / "state", old)
    (tmp_path / "t.csv").write_text("date,numerator,denominator\n")
    log = LogSeries(("PageCTR",), "device")
    settings = replace(config(tmp_path), log=log, state="state")
    result = watch(settings, SimpleNamespace(), keep=False)  # type: ignore[arg-type]
    assert result.today == day(1)
    keys = [(point_.series, point_.part, point_.day, point_.value) for point_ in watched_points]
    assert keys == [
        ("PageCTR", "", str(day(0)), 0.5), ("PageCTR", "", str(day(1)), 0.5), ("PageCTR", "device=x", str(day(0)), 0.5),
        ("PageCTR", "device=x", str(day(1)), 0.5), ("PageCTR", "device=y", str(day(0)), 0.5),
        ("faults", "language=en", str(day(0)), 0.5),
    ]  # fmt: skip
    assert len(points.read_state(tmp_path / "state")) == 5
    watch(settings, SimpleNamespace())  # type: ignore[arg-type]
    assert len(points.read_state(tmp_path / "state")) == 8
    watched_points.clear()
    watch(replace(settings, log=LogSeries(("PageCTR",))), None)
    assert {(point_.series, point_.part) for point_ in watched_points} == {("PageCTR", ""), ("faults", "language=en")}


@pytest.mark.parametrize("by", ["", "device"])
def test_days_of_a_log(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete days with a value; of a quantile there are no sums. Classes follow the whole log."""
    calls: list[Any] = []

    def estimate(kind: str, value: float) -> Any:
        return SimpleNamespace(
            metric=SimpleNamespace(kind=kind), value=value, error=0.1, numerator=3.0, denominator=6.0
        )

    def over_time(_: Any, metrics: Any, *, where: str | None) -> Any:
        calls.append((metrics, where))
        days = [(0, False, 0.1), (1, True, 0.5), (2, True, NAN), (3, True, 0.75), (4, False, 0.9)]
        series = [
            SimpleNamespace(metric=name, points=[
                SimpleNamespace(start_ms=1_772_409_600_000 + 86_400_000 * i, complete=complete,
                                estimate=estimate(kind, value)) for i, complete, value in days
            ]) for name, kind in (("PageCTR", "ratio"), ("p90", "quantile"))
        ]  # fmt: skip
        return SimpleNamespace(series=series)

    monkeypatch.setattr(points, "over_time", over_time)
    monkeypatch.setattr(points, "slice_pages", lambda _, name: SimpleNamespace(values=(f"{name} x", 'a "b"')))
    metrics = ("PageCTR", "ZeroResultQueries")
    day_points = list(read_log_days(SimpleNamespace(), WatchConfig(FIRST, day(9), log=LogSeries(metrics, by))))  # type: ignore[arg-type]
    parts = ["", "device=device x", 'device=a "b"'] if by else [""]
    wheres = [None, 'device == "device x"', 'device == "a \\"b\\""'] if by else [None]
    assert calls == [(metrics, where) for where in wheres]
    assert [point_[:5] for point_ in day_points] == [
        (name, part, str(day(i)), value, 0.1)
        for part in parts for name in ("PageCTR", "p90") for i, value in ((1, 0.5), (3, 0.75))
    ]  # fmt: skip
    for point_ in day_points:
        assert point_.denominator == 6.0
        assert point_.numerator == 3.0 if point_.series == "PageCTR" else math.isnan(point_.numerator)
    with pytest.raises(InputError, match="no metrics"):
        list(read_log_days(SimpleNamespace(), config()))  # type: ignore[arg-type]


@pytest.mark.parametrize(("sizes", "days"), [((1, 1), 1), ((1, 2), 0), ((2, 1), 0)])
def test_a_log_of_one_day_is_that_day(sizes: tuple[int, int], days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where one metric has two days; a class with one day alone is none of a longer log."""

    def series(number: int) -> Any:
        estimate = SimpleNamespace(
            metric=SimpleNamespace(kind="ratio"), value=0.5, error=0.1, numerator=3.0, denominator=6.0
        )
        days = [SimpleNamespace(start_ms=1_772_409_600_000, complete=False, estimate=estimate)] * number
        return SimpleNamespace(metric="PageCTR", points=days)

    def over_time(*_: Any, where: str | None) -> Any:
        return SimpleNamespace(series=[series(1)] if where else [series(number) for number in sizes])

    monkeypatch.setattr(points, "over_time", over_time)
    monkeypatch.setattr(points, "slice_pages", lambda *_: SimpleNamespace(values=("x",)))
    settings = WatchConfig(FIRST, day(9), log=LogSeries(("PageCTR",), "device"))
    day_points = list(read_log_days(SimpleNamespace(), settings))  # type: ignore[arg-type]
    assert [estimate.part for estimate in day_points] == ["", "", "device=x"] * days


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"alarms_per_month": 0.0}, "got 0.0"), ({"alarms_per_month": 30.1}, "got 30.1"),
        ({"margin_relative": 0.0}, "got 0.0"), ({"margin_relative": 1.01}, "got 1.01"),
        ({"baseline_to": FIRST}, "must be after"), ({"series": ()}, "has no series"),
    ],
)  # fmt: skip
def test_limits_of_what_may_be_asked(options: Any, problem: str) -> None:
    default = config()
    with pytest.raises(InputError, match=problem):
        replace(default, **options)
    assert replace(default, alarms_per_month=30.0, margin_relative=1.0).margin_relative == 1.0
    without_options = WatchConfig(FIRST, day(9), series=default.series)
    assert (without_options.alarms_per_month, without_options.margin_relative, without_options.log) == (0.5, 0.05, None)


def test_an_event_of_one_day_and_events_that_end_before_they_begin() -> None:
    assert Event(day(1), "x", day(1)).deploy is False
    for arguments in ((day(1), "x", day(0)), (day(1), "x")):
        with pytest.raises(InputError):
            Event(*arguments)


@pytest.mark.parametrize(
    ("days", "last_day"), [(8.5, 7), (9, 8), (27, 26), (28, 27), (28.9, 27), (29, 27), (60, 27), (7.99, None)]
)
def test_the_first_configuration_has_four_weeks_at_most(
    days: float, last_day: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last day of a log may be cut off: the baseline ends before it."""
    module = sys.modules["judged.online.watch.config"]
    start = 1_772_409_600_000 + 3_600_000
    period = (start, start + int((days - 1 / 24) * 86_400_000))
    monkeypatch.setattr(module, "check_log", lambda _: SimpleNamespace(period=period))
    monkeypatch.setattr(module, "headline_metrics", lambda *_: ("one", "two", "three", "four", "five"))
    log: Any = SimpleNamespace(name="log")
    if last_day is None:
        with pytest.raises(InputError, match="got 8"):
            first_config(log)
        return
    text = first_config(log, "s.json")
    assert f"baseline_from = {FIRST}\nbaseline_to = {day(last_day)} " in text
    assert 'metrics = ["one", "two", "three", "four"]' in text
    assert 'state = "s.json" ' in text
    assert 'state = "watch.json" ' in first_config(log)
    assert 'state = "Würfel.json" ' in first_config(log, "Würfel.json")
    monkeypatch.setattr(module, "check_log", lambda _: SimpleNamespace(period=None))
    with pytest.raises(InputError, match="no dates"):
        first_config(log)
