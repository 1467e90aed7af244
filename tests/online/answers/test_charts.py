"""Charts: their data, and that click metrics are never drawn without CTR by rank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.online import layout as charts
from judged.online.metrics import ONLINE_METRICS, online_metric
from judged.results.charts import picture, specification
from online_scores_made import CTR, NAN, WEIRD, dwell, estimate, ranks, scores

if TYPE_CHECKING:
    from judged.results import Answer


def panels(answer: Answer) -> list[dict[str, Any]]:
    spec = specification(answer.chart())
    return spec.get("vconcat", [spec])


def chart_rows(answer: Answer, name: str, *columns: str) -> list[tuple[Any, ...]]:
    table = answer.charts()[name].table
    return list(zip(*(table.column(column).values for column in columns), strict=True))


def axis(panel: dict[str, Any], channel: str) -> str:
    return next(
        layer["encoding"][channel]["title"] for layer in panel["layer"] if "title" in layer["encoding"][channel]
    )


def test_one_panel_per_unit_and_ctr_by_rank() -> None:
    answer = scores()
    assert [axis(panel, "x") for panel in panels(answer)] == ["share", "seconds", "rank"]
    assert chart_rows(answer, "share", "metric", "value") == [("PageCTR", 0.381), ("ZeroResults", 6 / 84)]
    assert answer.charts()["share"].table.column("value").ci == [(0.381 - 0.0123, 0.381 + 0.0123), None]
    assert chart_rows(answer, "ranks", "rank", "value") == [(1, 0.3), (2, 0.15), (3, 0.1)]
    assert panels(answer)[2]["title"]["text"] == "CTR by rank: position bias"


@pytest.mark.parametrize("name", ["PageCTR", "MeanRR", "ZeroResults", "Latency"])
def test_clicks_are_never_drawn_without_ranks(name: str) -> None:
    metric = ONLINE_METRICS[name]
    answer = scores(estimates=(estimate(metric, 30, 100, 0.05),))
    assert len(panels(answer)) == (2 if metric.biased else 1)


def test_slices_have_colors() -> None:
    slice_ranks = tuple(replace(estimate, slice="desktop") for estimate in ranks(0.4, 0.2))
    answer = scores(sliced=True, ranks=(*ranks(0.3, 0.15), *slice_ranks))
    assert chart_rows(answer, "share", "series", "value")[:3] == [("all", 0.381), ("desktop", 0.4), (WEIRD, 0.362)]
    layers = panels(answer)[0]["layer"]
    color = next(layer["encoding"]["color"] for layer in layers if "scale" in layer["encoding"].get("color", {}))
    assert len(set(color["scale"]["range"])) == len(color["scale"]["domain"]) == 3


def test_only_the_largest_slices_are_drawn() -> None:
    names = [f"s{i}" for i in range(20)]
    answer = scores(by="device", slices=tuple((name, 100 - abs(7 - i)) for i, name in enumerate(names)))
    assert charts.chart_slices(answer) == set(names[4:11])


def test_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="has no chart"):
        scores(estimates=(estimate(CTR, 0, 0, NAN),), ranks=()).chart()


def test_dwell() -> None:
    assert [axis(panel, "x") for panel in panels(dwell())] == ["seconds", "threshold"]
    table = dwell().charts()["dwell"].table
    row = table.column("seconds").values.index(30.0)
    assert (table.column("value").values[row], table.column("value").ci[row]) == (0.5, (0.1, 0.9))  # type: ignore[index]
    assert [seconds for (seconds,) in chart_rows(dwell(), "thresholds", "threshold")] == list(range(5, 65, 5))


def test_pictures() -> None:
    svg = picture(scores(sliced=True).chart(), "svg").decode()
    assert all(text in svg for text in ("PageCTR", "desktop", "CTR by rank: position bias"))
    assert "<script>" not in svg
    assert picture(dwell().chart(), "png").startswith(b"\x89PNG")


def test_much_smaller_metrics_have_a_separate_axis() -> None:
    """Of 26 s, 3 s, 0.03 s, and 0 s, the last two would look like 0. Shares are never split."""
    values = {"PageCTR": 0.9, "ZeroResults": 0.001,
             "TimeToFirstClick": 3.0, "TimeToSuccess": 26.0, "Latency": 0.03, "Latency(q=0.5)": 0.0}  # fmt: skip
    answer = scores(
        estimates=tuple(estimate(online_metric(name), 0, 1, 0.0, value=value) for name, value in values.items())
    )
    assert [[str(metric) for metric in group] for group in charts.axis_groups(answer)] == [
        ["PageCTR", "ZeroResults"],
        ["TimeToFirstClick", "TimeToSuccess"],
        ["Latency", "Latency(q=0.5)"],
    ]
    assert [name for (name,) in chart_rows(answer, "seconds2", "metric")] == ["Latency", "Latency(q=0.5)"]


def test_slices_with_equal_labels_are_drawn_separately() -> None:
    """Both have the same first 40 characters, and a slice may have the name of the estimates over all rows."""
    names = ("x" * 50 + "1", "x" * 50 + "2", "all")
    overall = [estimate(CTR, 300, 1000, 0.02)]
    estimates = tuple(
        overall + [estimate(CTR, 100 * number, 500, 0.02, slice=name) for number, name in enumerate(names, 1)]
    )
    answer = scores(by="text", slices=tuple((name, 500) for name in names), estimates=estimates)
    expected = ["all", "x" * 39 + "…", "x" * 39 + "… (2)", "all (2)"]
    assert chart_rows(answer, "share", "series", "value") == list(zip(expected, [0.3, 0.2, 0.4, 0.6], strict=True))
    head = next(line for line in answer.text().splitlines() if line.startswith("metric"))
    assert [cell.strip() for cell in head.split("  ") if cell.strip()][1:] == expected


def test_hours_of_the_week_have_a_line_per_weekday() -> None:
    hours = ("Monday 09", "Monday 17", "Sunday 09")
    slices = tuple(estimate(CTR, 10.0 * number, 100, 0.02, slice=name) for number, name in enumerate(hours, 1))
    answer = scores(
        by="hour of week",
        slices=tuple((name, 100) for name in hours),
        estimates=(estimate(CTR, 60, 300, 0.02), *slices),
    )
    assert chart_rows(answer, "week1", "weekday", "hour", "value") == [
        ("Monday", 9, 0.1), ("Monday", 17, 0.2), ("Sunday", 9, 0.3)]  # fmt: skip
    assert axis(panels(answer)[0], "x") == "hour (UTC)"
