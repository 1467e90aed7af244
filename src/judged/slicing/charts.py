"""Scores and differences by slice as charts of altair: a dot and its interval for each slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.charting import PALETTE, altair, themed
from judged.slicing.slice_scores import ALL

if TYPE_CHECKING:
    from judged.comparison import Pair
    from judged.slicing.compared_slices import ComparedSlices
    from judged.slicing.slice_scores import SliceTable

_LINE = 16  # pixels for each dot
_STATES = ("significant", "not significant", "too few topics")


def score_chart(found: SliceTable, measure: str, *, width: int, height: int | None) -> Any:
    """Draw the number of each run with its interval, by slice."""
    points: list[dict[str, Any]] = []
    for one in found.estimates:
        estimate = one.estimate
        if estimate.measure == measure and math.isfinite(estimate.value):
            point: dict[str, Any] = {
                "slice": _named(one.slice, one.n), "series": estimate.run, "value": estimate.value, "topics": one.n,
                "few": one.small,
            }  # fmt: skip
            points.append(point | _ends(estimate.ci))
    order = [_named(name, found.estimate(name).n) for name in found.names]
    runs = list(found.scores.run_names)
    few = any(point["few"] for point in points)
    hollow = "; hollow: too few topics to be judged by" if few else ""
    subtitle = f"{found.method.level:.0%} intervals over topics{hollow}"
    return dots_by_slice(points, order, runs, measure, (f"{measure} by slice", subtitle), "datum.few", (width, height))


def comparison_chart(found: ComparedSlices, measure: str, *, width: int, height: int | None) -> Any:
    """Draw the difference of each pair with its interval, by slice; hollow where nothing is significant."""
    points: list[dict[str, Any]] = []
    order: list[str] = []
    ratio = False
    for first, second in found.pairs:
        overall = found.overall.pair(first, second, measure)
        ratio = overall.is_ratio
        rows = found.of(measure, second)
        seen: list[tuple[str, int, float, Pair | None]] = [(ALL, overall.found.n, overall.shown_difference, overall)]
        seen += [(row.slice, row.n, row.difference, row.pair) for row in rows]
        for name, n, value, pair in seen:
            label = _named(name, n)
            order += [] if label in order else [label]
            if math.isfinite(value):
                state = _STATES[2] if pair is None else _STATES[not pair.significant]
                point = {"slice": label, "series": second, "value": value, "topics": n, "state": state}
                points.append(point | _ends(None if pair is None else pair.shown_interval))
    names, first = [second for _, second in found.pairs], found.pairs[0][0]
    what = f"{measure}: {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
    title = f"{what} {'/' if ratio else '-'} {first}", "filled: significant after correction; hollow: not significant"
    hollow = f"datum.state != '{_STATES[0]}'"
    across = f"{'ratio' if ratio else 'difference'} in {measure}"
    return dots_by_slice(points, order, names, across, title, hollow, (width, height), zero=1.0 if ratio else 0.0)


def _named(name: str, n: int) -> str:
    return f"{name} ({n})"


def _ends(ci: tuple[float, float] | None) -> dict[str, float]:
    return {} if ci is None or not all(map(math.isfinite, ci)) else {"low": ci[0], "high": ci[1]}


def _coloured(alt: Any, series: list[str]) -> Any:
    colours = [PALETTE[at % len(PALETTE)] for at in range(len(series))]
    legend = alt.Legend(title=None, labelLimit=300) if len(series) > 1 else None
    return alt.Color("series:N", sort=series, legend=legend, scale=alt.Scale(domain=series, range=colours))


def dots_by_slice(
    points: list[dict[str, Any]],
    order: list[str],
    series: list[str],
    across: str,
    title: tuple[str, str],
    hollow: str,
    size: tuple[int, int | None],  # width and height, or None for a height that fits
    zero: float | None = None,
) -> Any:
    """Draw dots on lines, slices downwards, series beside one another within a slice."""
    # `points`: with `slice`, `series`, `value`, `topics`, and `low` and `high` where there is an interval.
    alt = altair()
    base = alt.Chart(alt.InlineData(values=points))
    y = alt.Y("slice:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, grid=False))
    offset = {"yOffset": alt.YOffset("series:N", sort=series)} if len(series) > 1 else {}
    colour = _coloured(alt, series)
    x = alt.X("value:Q", title=across, scale=alt.Scale(zero=False), axis=alt.Axis(labelFlush=False, tickCount=6))
    shown = ("slice:N", "series:N", "value:Q", "low:Q", "high:Q", "topics:Q")
    tooltip = [alt.Tooltip(name, **({"format": ".4f"} if name in shown[2:5] else {})) for name in shown]
    line = base.mark_rule(strokeWidth=1.6).transform_filter("isValid(datum.low)")
    how = {"size": 46, "opacity": 1, "strokeWidth": 1.6}
    dots = (
        base.transform_filter(f"!({hollow})").mark_point(filled=True, **how),
        base.transform_filter(hollow).mark_point(filled=False, fill="white", **how),
    )
    layers = [
        line.encode(y=y, x=alt.X("low:Q", title=across), x2="high:Q", color=colour, **offset),
        *(dot.encode(y=y, x=x, color=colour, tooltip=tooltip, **offset) for dot in dots),
    ]
    if zero is not None:
        rule = alt.Chart(alt.InlineData(values=[{"value": zero}])).mark_rule(color="#999", strokeDash=[4, 3])
        layers.insert(0, rule.encode(x=x))
    height = size[1] or max(60, _LINE * len(order) * max(len(series), 1) + 8 * len(order))
    head = alt.TitleParams(title[0], subtitle=title[1], anchor="start", frame="group")
    return themed(alt.layer(*layers).properties(width=size[0], height=height, title=head))
