"""Charts: what is drawn is what was found, and clicks are never drawn without CTR by rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judged.charting import picture, specification
from judged.errors import InputError
from judged.online.metrics.registry import ONLINE_METRICS
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
