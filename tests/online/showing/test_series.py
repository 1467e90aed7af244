"""A metric over time: limits, signals and changes in words, numbers and pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from judged.charts import specification
from judged.online.metrics.registry import online_metric
from judged.online.showing.document import KEYS
from online_scores_made import NAN, estimate, scores, series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.curves.series import Series
    from judged.online.estimating.over_time import Point

FIRST = "2024-10-04"


def test_the_table_and_what_is_said() -> None:
    made = series()
    rows = made.table().rows
    assert rows[0][:4] == (FIRST, "40.4%", "[39.4%, 41.4%]", rows[1][3])
    assert [at for at, row in enumerate(rows) if "what is usual" in row[-1]] == [9, *range(22, 29)]
    assert rows[9][-1].strip() == "below what is usual"
    assert rows[22][-1].strip().endswith("level 39.1% to 30.0%")
    assert rows[29][-1].strip() == "incomplete"
    assert rows[29][3] == "–"
    said = made.sentences
    assert said[0].startswith("PageCTR is usually 40.0%, the mean of 9 days; days differ ")
    assert said[1] == "Not usual: 2024-10-13, 2024-10-26, 2024-10-27, 2024-10-28, 2024-10-29 and 3 more."
    assert said[2] == "The level changed at 2024-10-26: 39.1% before, 30.0% after."


def test_ctr_by_rank_stands_beside_a_metric_of_clicks_alone() -> None:
    for shown in (series().text(), series().markdown()):
        assert "Position bias" in shown
        assert "30.0%" in shown
    zero = estimate(online_metric("ZeroResults"), 30, 100, 0.05)
    assert "Position bias" not in replace(series(), scores=scores(estimates=(zero,))).text()


def test_csv_and_json() -> None:
    made = series()
    head, first, *_, last = made.csv().splitlines()
    assert head.startswith(
        "start,complete,metric,value,low,high,error,numerator,denominator,units,low_limit,high_limit"
    )
    assert first.startswith(f"{FIRST},true,PageCTR,0.404,")
    assert last.endswith(",40,,,incomplete")
    read = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert list(read) == list(KEYS)
    assert len(read["series"]["points"]) == 30
    assert read["series"]["points"][0]["value"] == 404 / 1000
    assert read["estimates"][0]["value"] == 0.37
    assert [one["start_ms"] for one in read["series"]["changes"]] == [86_400_000 * 20_022]


def test_a_short_series_says_that_it_has_no_limits() -> None:
    made = without_limits(series().found.points[-4:], base=3)
    assert made.sentences == ("No limits: they take at least 8 complete days, and there are 3.",)
    assert "No limits" in made.text()


def test_a_long_series_says_what_else_limits_lack() -> None:
    points = series().found.points
    errors = zip(points, [0.0, NAN] * 15, strict=True)
    alone = [replace(one, estimate=replace(one.estimate, error=error)) for one, error in errors]
    assert without_limits(alone, base=0).sentences == (
        "No limits: they are made of errors, and in none of 29 complete days two users differ.",
    )
    assert without_limits(points, base=29).sentences == ("No limits: PageCTR is the same in all of 29 complete days.",)
    assert without_limits(points, base=7).sentences == (
        "No limits: they take at least 8 complete days at the beginning, and 7 of these have a value.",
    )


def test_the_chart_marks_what_is_not_usual_and_the_change() -> None:
    made = specification(series().chart())
    rows, centre, changes = (made["datasets"][name] for name in _data(made))
    assert [row["kind"] for row in rows] == ["usual"] * 9 + ["not usual"] + ["usual"] * 12 + ["not usual"] * 7 + [
        "incomplete"
    ]
    assert rows[0]["value"] == 0.404
    assert "least" not in rows[29]
    assert centre == [{"centre": series().found.centre}]
    assert changes == [{"time": 86_400_000 * 20_022}]


def without_limits(points: Sequence[Point], base: int) -> Series:
    found = replace(series().found, points=tuple(points), centre=NAN, base=base, signals=(), changes=())
    return replace(series(), found=found)


def _data(made: dict[str, object]) -> list[str]:
    layers = made["layer"]
    assert isinstance(layers, list)
    return list(dict.fromkeys(one["data"]["name"] for one in layers))
