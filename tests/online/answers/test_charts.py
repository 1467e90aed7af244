"""Charts: what is drawn is what was found, and clicks are never drawn without CTR by rank."""

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
    made = specification(answer.chart())
    return made.get("vconcat", [made])


def drawn(answer: Answer, name: str, *columns: str) -> list[tuple[Any, ...]]:
    table = answer.charts()[name].table
    return list(zip(*(table.column(column).values for column in columns), strict=True))


def axis(panel: dict[str, Any], channel: str) -> str:
    return next(
        layer["encoding"][channel]["title"] for layer in panel["layer"] if "title" in layer["encoding"][channel]
    )


def test_one_panel_a_unit_and_ctr_by_rank_below() -> None:
    made = scores()
    assert [axis(one, "x") for one in panels(made)] == ["share", "seconds", "rank"]
    assert drawn(made, "share", "metric", "value") == [("PageCTR", 0.381), ("ZeroResults", 6 / 84)]
    assert made.charts()["share"].table.column("value").ci == [(0.381 - 0.0123, 0.381 + 0.0123), None]
    assert drawn(made, "ranks", "rank", "value") == [(1, 0.3), (2, 0.15), (3, 0.1)]
    assert panels(made)[2]["title"]["text"] == "CTR by rank: position bias"


@pytest.mark.parametrize("name", ["PageCTR", "MeanRR", "ZeroResults", "Latency"])
def test_clicks_are_never_drawn_without_ranks(name: str) -> None:
    metric = ONLINE_METRICS[name]
    made = scores(estimates=(estimate(metric, 30, 100, 0.05),))
    assert len(panels(made)) == (2 if metric.biased else 1)


def test_slices_have_colors() -> None:
    by = tuple(replace(one, slice="desktop") for one in ranks(0.4, 0.2))
    made = scores(sliced=True, ranks=(*ranks(0.3, 0.15), *by))
    assert drawn(made, "share", "series", "value")[:3] == [("all", 0.381), ("desktop", 0.4), (WEIRD, 0.362)]
    layers = panels(made)[0]["layer"]
    color = next(layer["encoding"]["color"] for layer in layers if "scale" in layer["encoding"].get("color", {}))
    assert len(set(color["scale"]["range"])) == len(color["scale"]["domain"]) == 3


def test_only_the_largest_slices_are_drawn() -> None:
    names = [f"s{at}" for at in range(20)]
    made = scores(by="device", slices=tuple((name, 100 - abs(7 - at)) for at, name in enumerate(names)))
    assert charts.drawn_slices(made) == set(names[4:11])


def test_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="has no chart"):
        scores(estimates=(estimate(CTR, 0, 0, NAN),), ranks=()).chart()


def test_dwell() -> None:
    assert [axis(one, "x") for one in panels(dwell())] == ["seconds", "threshold"]
    table = dwell().charts()["dwell"].table
    row = table.column("seconds").values.index(30.0)
    assert (table.column("value").values[row], table.column("value").ci[row]) == (0.5, (0.1, 0.9))  # type: ignore[index]
    assert [at for (at,) in drawn(dwell(), "thresholds", "threshold")] == list(range(5, 65, 5))


def test_pictures() -> None:
    svg = picture(scores(sliced=True).chart(), "svg").decode()
    assert all(one in svg for one in ("PageCTR", "desktop", "CTR by rank: position bias"))
    assert "<script>" not in svg
    assert picture(dwell().chart(), "png").startswith(b"\x89PNG")


def test_what_is_far_smaller_has_an_axis_of_its_own() -> None:
    """Of 26 s, 3 s, 0.03 s and 0 s the last two would be dots at 0; shares are never parted."""
    found = {"PageCTR": 0.9, "ZeroResults": 0.001,
             "TimeToFirstClick": 3.0, "TimeToSuccess": 26.0, "Latency": 0.03, "Latency(q=0.5)": 0.0}  # fmt: skip
    made = scores(estimates=tuple(estimate(online_metric(name), 0, 1, 0.0, value=at) for name, at in found.items()))
    assert [[str(one) for one in group] for group in charts.groups(made)] == [
        ["PageCTR", "ZeroResults"],
        ["TimeToFirstClick", "TimeToSuccess"],
        ["Latency", "Latency(q=0.5)"],
    ]
    assert [name for (name,) in drawn(made, "seconds2", "metric")] == ["Latency", "Latency(q=0.5)"]


def test_slices_that_look_alike_are_not_drawn_as_one() -> None:
    """Cut at 40 characters both are the same; and a slice may be called as all rows are."""
    names = ("x" * 50 + "1", "x" * 50 + "2", "all")
    whole = [estimate(CTR, 300, 1000, 0.02)]
    known = tuple(whole + [estimate(CTR, 100 * at, 500, 0.02, slice=name) for at, name in enumerate(names, 1)])
    made = scores(by="text", slices=tuple((name, 500) for name in names), estimates=known)
    expected = ["all", "x" * 39 + "…", "x" * 39 + "… (2)", "all (2)"]
    assert drawn(made, "share", "series", "value") == list(zip(expected, [0.3, 0.2, 0.4, 0.6], strict=True))
    head = next(line for line in made.text().splitlines() if line.startswith("metric"))
    assert [one.strip() for one in head.split("  ") if one.strip()][1:] == expected


def test_hours_of_a_week_are_a_line_a_weekday() -> None:
    hours = ("Monday 09", "Monday 17", "Sunday 09")
    by = tuple(estimate(CTR, 10.0 * at, 100, 0.02, slice=name) for at, name in enumerate(hours, 1))
    made = scores(
        by="hour of week", slices=tuple((name, 100) for name in hours), estimates=(estimate(CTR, 60, 300, 0.02), *by)
    )
    assert drawn(made, "week1", "weekday", "hour", "value") == [
        ("Monday", 9, 0.1), ("Monday", 17, 0.2), ("Sunday", 9, 0.3)]  # fmt: skip
    assert axis(panels(made)[0], "x") == "hour (UTC)"
