"""Metrics over time: limits, signals, and changes in text, data, and charts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from judged.online.metrics import online_metric
from judged.online.series import OverTime, sentences_of
from online_scores_made import CTR, NAN, estimate, scores, series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.estimation.over_time import Series, SeriesPoint

FIRST = "2024-10-04"
SERIES = series().series[0]


def test_the_table_and_the_sentences() -> None:
    rows = series().tables()["periods"].records()
    notes = [row["note"] for row in rows]
    assert (rows[0]["metric"], rows[0]["start"], rows[0]["value"]) == ("PageCTR", FIRST, 404 / 1000)
    assert [i for i, note in enumerate(notes) if "the control limits" in note] == [9, *range(22, 29)]
    assert notes[9] == "below the control limits"
    assert notes[22].endswith("level changes from 39.1% to 30.0%")
    assert (notes[29], rows[29]["center_ci"]) == ("incomplete", None)
    assert [row["kind"] for row in rows] == ["in control"] * 9 + ["signal"] + ["in control"] * 12 + ["signal"] * 7 + [
        "incomplete"
    ]
    sentences = series().sentences
    assert sentences[0].startswith("The center line of PageCTR is 40.0%, the mean of 9 days. The days vary ")
    assert sentences[1] == "Signals on: 2024-10-13, 2024-10-26, 2024-10-27, 2024-10-28, 2024-10-29 and 3 more."
    assert sentences[2].startswith("Change of the level at 2024-10-26: from 39.1% to 30.0%, p = 0.0")
    lines = series().text().splitlines()
    assert f"{FIRST}  40.4% [39.4%, 41.4%]" in next(line for line in lines if line.startswith(FIRST))


def test_ctr_by_rank_is_shown_for_click_metrics_only() -> None:
    assert "CTR by rank" in series().text()
    zero = estimate(online_metric("ZeroResults"), 30, 100, 0.05)
    assert "CTR by rank" not in replace(series(), scores=scores(estimates=(zero,))).text()


def test_several_metrics_share_the_axis_of_time() -> None:
    zero = online_metric("ZeroResults")
    points = tuple(replace(point, estimate=replace(point.estimate, metric=zero)) for point in SERIES.points[4:])
    result = OverTime(scores(), (SERIES, replace(SERIES, metric=zero, points=points, signals=(), changes=())))
    assert [row["metric"] for row in result.tables()["periods"].records()] == ["PageCTR"] * 30 + ["ZeroResults"] * 26
    reach = [chart.includes["x"] for name, chart in result.charts().items() if name.startswith("series")]
    assert reach[0] == reach[1]
    assert (min(reach[0]), max(reach[0])) == (SERIES.points[0].start_ms, SERIES.points[-1].start_ms)
    assert len(result.chart().to_dict()["vconcat"]) == 2
    assert result.of(zero).points == points
    with pytest.raises(KeyError):
        result.of("Latency")


def test_csv_and_json() -> None:
    head, first, *_, last = series().csv().splitlines()
    assert head.startswith("metric,start,start_ms,complete,value,ci_low,ci_high,center,center_low,center_high,error")
    assert first.startswith(f"PageCTR,{FIRST},1728000000000,true,0.404,")
    assert last.endswith(",40,incomplete,incomplete")
    data = series().to_dict()
    assert data["changes"] == [
        {"metric": "PageCTR", "start_ms": 86_400_000 * 20_022, **{name: getattr(SERIES.changes[0], name)
                                                                for name in ("before", "after", "p")}}
    ]  # fmt: skip
    assert data["estimates"][0]["value"] == 0.37


def test_a_short_series_has_no_limits() -> None:
    short = without_limits(SERIES.points[-4:], base=3)
    assert sentences_of(short, "user") == ("No control limits: at least 8 complete days are required, got 3.",)


def test_other_reasons_for_missing_limits() -> None:
    errors = zip(SERIES.points, [0.0, NAN] * 15, strict=True)
    points = [replace(point, estimate=replace(point.estimate, error=error)) for point, error in errors]
    assert sentences_of(without_limits(points, base=0), "session") == (
        "No control limits: the standard error over sessions is 0 or missing in each of 29 complete days.",
    )
    assert sentences_of(without_limits(SERIES.points, base=29), "user") == (
        "No control limits: PageCTR has the same value in each of 29 complete days.",
    )
    assert sentences_of(without_limits(SERIES.points, base=7), "user") == (
        "No control limits: at least 8 complete days at the start must have a value, got 7.",
    )


def test_the_chart_marks_the_mean_and_the_change() -> None:
    chart = series().charts()["series1"]
    assert [(line.axis, line.value) for line in chart.lines] == [("x", 86_400_000 * 20_022), ("y", SERIES.center)]
    assert chart.table.column("center").ci[29] is None  # type: ignore[index]
    assert str(CTR) == chart.y_title


def without_limits(points: Sequence[SeriesPoint], base: int) -> Series:
    return replace(SERIES, points=tuple(points), center=NAN, base=base, signals=(), changes=())
