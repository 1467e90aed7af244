"""Charts of metrics: those that share an axis with an interval each, by slice, and CTR by rank."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from judged.answer import TEXT, Chart, Column, Table, counted
from judged.online import words
from judged.online.numbers import percent, shown

if TYPE_CHECKING:
    from judged.online.metrics import OnlineMetric
    from judged.online.scores import OnlineScores

MOST = 7
"""So many slices are drawn, those with the most pages; tables have all of them."""
_UNBOUNDED = {"count", "seconds", "money"}
_FAR = 50  # times: who is so much smaller than another has an axis of its own
_TITLES = {
    "share": "Shares",
    "count": "Counts",
    "seconds": "Durations",
    "rank": "Ranks",
    "money": "Money",
    "rating": "Ratings",
}


def metric_charts(scores: OnlineScores, estimates: Table) -> tuple[Chart, ...]:
    """Draw metrics that share an axis together, a dot and an interval each."""
    made: list[Chart] = []
    units: list[str] = []
    for group in groups(scores):
        unit, names = group[0].unit, set(map(str, group))
        units.append(unit)
        nth = units.count(unit)
        said = f"Each metric with its {percent(scores.level)} interval over {scores.over}s{_by(scores)}."
        made.append(
            Chart(
                "".join(unit.split()) + (str(nth) if nth > 1 else ""),
                _TITLES.get(unit, "Reciprocal ranks") + (", the small ones" if nth > 1 else ""),
                _drawn(scores, estimates, names),
                said,
                y="metric",
                x_title=unit,
                colour="series" if scores.by else "",
                percent="x" if unit == "share" else "",
                numbers=estimates,
            )
        )
    return tuple(made)


def ranks_chart(scores: OnlineScores, ranks: Table) -> Chart:
    """Draw CTR over rank from 0 upwards, a line a slice."""
    first = next((one for one in scores.ranks if one.slice is None and not math.isnan(one.value)), None)
    top = "" if first is None else f"At rank {first.rank}, {first.value:.1%} of what was shown was clicked. "
    return Chart(
        "ranks",
        "CTR by rank: position bias",
        _drawn(scores, ranks),
        f"{top}{words.steepness(scores.ranks)} {words.WHAT_FALLS}",
        kind="lines",
        x="rank",
        y="value",
        y_title="CTR",
        colour="series" if scores.by else "",
        spread="cutoff",
        percent="y",
        reach={"y": (0.0,)},
        height=200,
        numbers=ranks,
    )


def groups(scores: OnlineScores) -> tuple[tuple[OnlineMetric, ...], ...]:
    """Give the metrics that share an axis: those of one unit, the small ones apart.

    Latencies of milliseconds beside minutes of searching would all stand at 0.
    """
    by_unit: dict[str, dict[OnlineMetric, float]] = {}
    for one in scores.estimates:
        if not math.isnan(one.value):
            sizes = by_unit.setdefault(one.metric.unit, {})
            sizes[one.metric] = max(sizes.get(one.metric, 0.0), abs(one.value))
    return tuple(group for unit, sizes in by_unit.items() for group in _by_size(unit, sizes))


def _by_size(unit: str, sizes: dict[OnlineMetric, float]) -> list[tuple[OnlineMetric, ...]]:
    """Part metrics of one unit where one is so much smaller than the largest that its interval could not be seen."""
    tops: list[float] = []
    for size in sorted(sizes.values(), reverse=True):
        if not tops or (unit in _UNBOUNDED and 0 < size < tops[-1] / _FAR):
            tops.append(size)
    place = {metric: max(at for at, top in enumerate(tops) if size <= top) for metric, size in sizes.items()}
    return [tuple(metric for metric in sizes if place[metric] == at) for at in range(len(tops))]


def _drawn(scores: OnlineScores, table: Table, metrics: set[str] | None = None) -> Table:
    """Leave the rows that are drawn: of some metrics, over all rows and of the slices with the most pages."""
    kept, slices, of = drawn_slices(scores), table.column("slice").values, table.columns[0].values
    rows = [at for at, name in enumerate(slices) if name in {None, *kept} and (not metrics or of[at] in metrics)]
    left = replace(table.take(rows), only="people", groups=())
    series = [scores.labels[slices[row]] for row in rows]
    named = [Column("series", series, TEXT, shown(scores.by))] if scores.by is not None else []
    return replace(left, columns=(*left.columns, *named))


def drawn_slices(scores: OnlineScores) -> set[str]:
    """Name the slices that are drawn: those with the most pages."""
    return {name for name, _ in sorted(scores.slices, key=lambda sized: -sized[1])[:MOST]}


def _by(scores: OnlineScores) -> str:
    if scores.by is None:
        return ""
    left = len(scores.slices) - MOST
    few = f"; the {MOST} values with the most pages, {counted(left, 'other')} in the table" if left > 0 else ""
    return f", over all pages and by {shown(scores.by)}{few}"
