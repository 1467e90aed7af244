"""Charts: what is drawn is what was found, and clicks are never drawn without CTR by rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judged.charts import picture, specification
from judged.errors import InputError
from judged.online.metrics.registry import ONLINE_METRICS, online_metric
from judged.online.showing import charts
from online_scores_made import CTR, NAN, WEIRD, dwell, estimate, ranks, scores


def panels(chart: Any) -> list[dict[str, Any]]:
    made = specification(chart)
    shared = made.get("data")  # of a single panel it stands outside
    return [one | {"data": made["datasets"][one.get("data", shared)["name"]]} for one in made["vconcat"]]


def values(panel: dict[str, Any]) -> Any:
    return panel["data"]


def axis(panel: dict[str, Any], channel: str) -> str:
    return panel["layer"][0]["encoding"][channel]["title"]


def test_one_panel_a_unit_and_ctr_by_rank_below() -> None:
    drawn = panels(scores().chart())
    assert [axis(one, "x") for one in drawn] == ["share", "seconds", "rank"]
    assert values(drawn[0]) == [
        {"value": 0.381, "low": 0.381 - 0.0123, "high": 0.381 + 0.0123, "metric": "PageCTR", "slice": "all"},
        {"value": 6 / 84, "metric": "ZeroResults", "slice": "all"},
    ]
    assert [(one["rank"], one["value"]) for one in values(drawn[2])] == [(1, 0.3), (2, 0.15), (3, 0.1)]
    assert drawn[2]["title"]["text"] == "CTR by rank: position bias"


@pytest.mark.parametrize("name", ["PageCTR", "MeanRR", "ZeroResults", "Latency"])
def test_clicks_are_never_drawn_without_ranks(name: str) -> None:
    metric = ONLINE_METRICS[name]
    drawn = panels(scores(estimates=(estimate(metric, 30, 100, 0.05),)).chart())
    assert len(drawn) == (2 if metric.biased else 1)


def test_slices_have_colours_and_ranks_stand_apart() -> None:
    by = tuple(replace(one, slice="desktop") for one in ranks(0.4, 0.2))
    made = scores(sliced=True, ranks=(*ranks(0.3, 0.15), *by))
    drawn = panels(made.chart())
    assert [(one["slice"], one["value"]) for one in values(drawn[0])][:3] == [
        ("all", 0.381),
        ("desktop", 0.4),
        (WEIRD[:39] + "…" if len(WEIRD) > 40 else WEIRD, 0.362),
    ]
    colour = drawn[0]["layer"][0]["encoding"]["color"]
    assert colour["title"] == "device"
    assert len(set(colour["scale"]["range"])) == len(colour["scale"]["domain"]) == 3
    at = {(one["rank"], one["slice"]): one["at"] for one in values(drawn[-1])}
    assert at[1, "all"] < at[1, "desktop"]
    assert abs(at[1, "all"] - 1) < 0.5 > abs(at[1, "desktop"] - 1)


def test_only_the_largest_slices_are_drawn() -> None:
    names = [f"s{at}" for at in range(20)]
    made = scores(by="device", slices=tuple((name, 100 - abs(7 - at)) for at, name in enumerate(names)))
    assert charts.drawn_slices(made) == names[4:11]


def test_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="there is no number to draw"):
        scores(estimates=(estimate(CTR, 0, 0, NAN),), ranks=()).chart()


def test_dwell() -> None:
    drawn = panels(dwell().chart())
    assert [axis(one, "x") for one in drawn] == ["seconds", "threshold in seconds"]
    assert next(one for one in values(drawn[0]) if one["x"] == 30.0) == {
        "x": 30.0,
        "value": 0.5,
        "low": 0.1,
        "high": 0.9,
    }
    assert [one["x"] for one in values(drawn[1])] == list(range(5, 65, 5))


def test_pictures() -> None:
    svg = picture(scores(sliced=True).chart(), "svg").decode()
    assert all(one in svg for one in ("PageCTR", "desktop", "CTR by rank: position bias", "95% intervals over users"))
    assert "<script>" not in svg
    assert picture(dwell().chart(), "png").startswith(b"\x89PNG")


def test_what_is_far_smaller_has_an_axis_of_its_own() -> None:
    """Of 26 s, 3 s, 0.03 s and 0 s the last two would be dots at 0; shares are never parted."""
    found = {"PageCTR": 0.9, "ZeroResults": 0.001,
             "TimeToSuccess": 26.0, "TimeToFirstClick": 3.0, "Latency": 0.03, "Latency(q=0.5)": 0.0}  # fmt: skip
    made = scores(estimates=tuple(estimate(online_metric(name), 0, 1, 0.0, value=at) for name, at in found.items()))
    assert [[str(one) for one in group] for group in charts.groups(made)] == [
        ["PageCTR", "ZeroResults"],
        ["TimeToFirstClick", "TimeToSuccess"],
        ["Latency", "Latency(q=0.5)"],
    ]
    drawn = panels(made.chart())
    assert [[one["metric"] for one in values(panel)] for panel in drawn[1:3]] == [
        ["TimeToSuccess", "TimeToFirstClick"],
        ["Latency", "Latency(q=0.5)"],
    ]


def test_slices_that_look_alike_are_not_drawn_as_one() -> None:
    """Cut at 40 characters both are the same; and a slice may be called as all rows are."""
    names = ("x" * 50 + "1", "x" * 50 + "2", "all")
    whole = [estimate(CTR, 300, 1000, 0.02)]
    known = tuple(whole + [estimate(CTR, 100 * at, 500, 0.02, slice=name) for at, name in enumerate(names, 1)])
    made = scores(by="text", slices=tuple((name, 500) for name in names), estimates=known)
    expected = ["all", "x" * 39 + "…", "x" * 39 + "… (2)", "all (2)"]
    assert [(one["slice"], one["value"]) for one in values(panels(made.chart())[0])] == list(
        zip(expected, [0.3, 0.2, 0.4, 0.6], strict=True)
    )
    head = next(line for line in made.text().splitlines() if line.startswith("metric"))
    assert head.split("  ")[0] == "metric"
    assert [one.strip() for one in head.split("  ") if one.strip()][1:] == expected
