"""Estimates of metrics as text, tables, and charts: by family, by slice, by rank."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.online.metrics import FAMILIES
from judged.results import ANY, NUMBER, TEXT, Chart, Column, Show, Table, bars, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.online.metrics import OnlineMetric, Unit
    from judged.online.scores import OnlineScores


Method: TypeAlias = Literal["delta", "bootstrap", "exact", "woodruff", "greenwood", "none"]


@dataclass(frozen=True)
class OnlineEstimate:
    """Estimate of a metric on one slice.

    Parameters
    ----------
    metric
        The metric.
    slice
        Value of the slicing attribute; None: all rows.
    value
        Point estimate; NaN if the denominator is 0.
    low, high
        Confidence interval; NaN if not available (fewer than two units).
    error
        Standard error; NaN if not available.
    numerator, denominator
        Sums of the ratio (quantiles: rows at or below the value, and rows; survival: NaN, and visits).
    units
        Number of independent units (users or sessions).
    method
        Interval method: ``delta``, ``bootstrap``, ``exact`` (shares that are 0 or 1 for all units: Clopper-Pearson
        over units), ``woodruff`` (quantiles), ``greenwood`` (survival, clustered), or ``none``.
    rank
        Rank, for CTR by rank; otherwise None.
    effective_units
        Effective number of units (Kish): the number of units with equal denominators and the same precision; NaN if
        unknown.
    """

    metric: OnlineMetric
    slice: str | None
    value: float
    low: float
    high: float
    error: float
    numerator: float
    denominator: float
    units: int
    method: Method
    rank: int | None = None
    effective_units: float = math.nan


ALL = "all"
"""Label of the estimates over all rows, next to slices."""
_MIN_DECIMALS: dict[str, int] = {
    "share": 1, "count": 2, "seconds": 1, "rank": 2, "reciprocal rank": 3, "money": 2, "rating": 2,
}  # fmt: skip
_MAX_EXTRA_DECIMALS = 3
_MAX_WORD, _MAX_SENTENCE, _MAX_LOCATION = 60, 800, 120  # characters of texts that come from a log


def unit_show(unit: Unit, decimals: int | None = None, sign: str = "") -> Show:
    """Return the number format of a unit. Decimals of shares are those of the percentage; None: the minimum.

    Use the sign ``+`` for differences; differences of shares are in percentage points.

    >>> seconds = unit_show("seconds", 2)
    >>> unit_show("share").write(0.3811), seconds.write(41.25), seconds.limit(40.1), seconds.write(float("nan"))
    ('38.1%', '41.25 s', '40.10', '-')
    >>> unit_show("share", 1, "+").write(0.02)
    '+2.0 pp'
    """
    digits = _MIN_DECIMALS[unit] if decimals is None else decimals
    suffix = {"share": " pp" if sign else "%", "seconds": " s"}.get(unit, "")
    suffixes = (suffix, "" if sign else suffix.strip(" s"))  # the limits of an interval omit " s" and "pp"
    write, limit = (partial(_format_value, 100 if unit == "share" else 1, digits, sign, text) for text in suffixes)
    return Show(write, "float64", limit, None if suffix else lambda count: unit_show(unit, count, sign))


def _format_value(factor: int, decimals: int, sign: str, suffix: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    text = f"{factor * value:{sign},.{decimals}f}"
    return (text if text.strip("+-0.,") else text.lstrip("+-")) + suffix  # no sign before a zero


def estimate_decimals(estimate: OnlineEstimate) -> int:
    """Return the number of decimals to show: two significant digits of the half-width of the interval.

    Without an interval, three significant digits of the value, so that a rate of a rare event is not shown as 0.
    """
    factor = 100.0 if estimate.metric.unit == "share" else 1.0
    # Two significant digits of the uncertainty, as is usual for measurements (GUM, section 7.2.6).
    half_width, size = factor * (estimate.high - estimate.low) / 2, abs(factor * estimate.value)
    minimum = _MIN_DECIMALS[estimate.metric.unit]
    decimals = minimum
    if half_width > 0:
        decimals = 1 - math.floor(math.log10(half_width))
    elif size > 0:
        decimals = 2 - math.floor(math.log10(size))
    return min(max(decimals, minimum), minimum + _MAX_EXTRA_DECIMALS)


def format_estimate(estimate: OnlineEstimate) -> str:
    """Format the value of an estimate, with the decimals of `estimate_decimals`."""
    return unit_show(estimate.metric.unit, estimate_decimals(estimate)).write(estimate.value)


def format_interval(estimate: OnlineEstimate) -> str:
    """Format the confidence interval of an estimate, without the unit of durations."""
    if math.isnan(estimate.low):
        return "-"
    show = unit_show(estimate.metric.unit, estimate_decimals(estimate))
    low, high = map(show.limit or show.write, (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def estimate_column(
    estimates: Sequence[OnlineEstimate | None], name: str, title: str | None = None, *, decimals: int | None = None
) -> Column:
    """Build a column of estimates with intervals, each with its unit and number of decimals."""
    limits = [None if row is None or math.isnan(row.low) else (row.low, row.high) for row in estimates]
    formats = [
        NUMBER if row is None else unit_show(row.metric.unit, estimate_decimals(row) if decimals is None else decimals)
        for row in estimates
    ]
    return Column(name, [None if row is None else row.value for row in estimates], NUMBER, title, limits, each=formats)


def format_amount(value: float) -> str:
    """Format a sum; integers have no decimals.

    >>> format_amount(12345.0), format_amount(88.526), format_amount(float("nan"))
    ('12,345', '88.5', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


AMOUNT = Show(format_amount, "float64")
UNITS = Show(format_amount, "int64")


def percent(level: float) -> str:
    """Format a confidence level as a percentage.

    >>> percent(0.95), percent(0.999), percent(0.9)
    ('95%', '99.9%', '90%')
    """
    return f"{100 * level:.4g}%"


def clip(text: str, max_length: int = 40) -> str:
    r"""Clip a text of the log to one line without control characters, which could inject terminal commands.

    >>> clip("a\x1b[31m b\n c"), clip("x" * 50, 5)
    ('a�[31m b c', 'xxxx…')
    """
    flat = _flat(text)
    return flat if len(flat) <= max_length else flat[: max_length - 1] + "…"


def slice_labels(slices: Iterable[str]) -> dict[str | None, str]:
    """Return the labels of slices. If a clipped label repeats another, or equals "all", a number is appended.

    >>> slice_labels(["x" * 50 + "1", "x" * 50 + "2", "all", "b"])["all"]
    'all (2)'
    >>> [name[-5:] for name in slice_labels(["x" * 50 + "1", "x" * 50 + "2"]).values()]
    ['all', 'xxxx…', '… (2)']
    """
    # "all" is taken by the estimates over all rows.
    occurrences = Counter({ALL: 1})
    labels: dict[str | None, str] = {None: ALL}
    for value in slices:
        text = clip(value)
        occurrences[text] += 1
        labels[value] = text if occurrences[text] == 1 else f"{text} ({occurrences[text]})"
    return labels


def clip_words(text: str) -> str:
    r"""Clip each word of a sentence with texts of the log, so that a long text does not hide the others.

    >>> clip_words("of tables: a\nb " + "x" * 70 + " 3"), len(clip_words("word " * 1000))
    ('of tables: a b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… 3', 800)
    """
    return clip(" ".join(clip(word, _MAX_WORD) for word in text.split()), _MAX_SENTENCE)


def clip_location(text: str) -> str:
    r"""Clip the beginning of a ``file:line`` or ID, so that the line number remains.

    >>> clip_location("a\tb.ndjson:7"), len(clip_location("x" * 300 + ":7")), clip_location("x" * 300 + ":7")[-3:]
    ('a b.ndjson:7', 120, 'x:7')
    """
    flat = _flat(text)
    return flat if len(flat) <= _MAX_LOCATION else "…" + flat[1 - _MAX_LOCATION :]


def _flat(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in " ".join(text.split()))


MARK = "*"
"""Mark of metrics that depend on rank."""
RANK_NOTE = "the metric depends on rank: read it together with CTR by rank"
"""Explanation of the mark."""
_MAX_SLICE_COLUMNS = 30  # with more slices, the slices are the rows of the table
_OTHERS = "Others"
_FAMILY = {metric.name: family for family, members in FAMILIES.items() for metric in members}


def family_of(metric: OnlineMetric) -> str:
    """Return the family of a metric."""
    return _FAMILY.get(metric.name, _OTHERS)


def by_family(metrics: Iterable[OnlineMetric]) -> list[OnlineMetric]:
    """Sort metrics by family, in the order of the registry. The order within a family is unchanged.

    >>> from judged.online.metrics import online_metrics_named
    >>> list(map(str, by_family(online_metrics_named(["DwellOver", "PageCTR@3", "ImpressionCTR"]))))
    ['PageCTR@3', 'ImpressionCTR', 'DwellOver']
    """
    order = [*FAMILIES, _OTHERS]
    return sorted(metrics, key=lambda metric: order.index(family_of(metric)))


def estimates_table(scores: OnlineScores, note: str = "") -> Table:
    """Build the table of estimates, one row each; for sliced results only in the data."""
    order = {metric: position for position, metric in enumerate(by_family(scores.metrics))}
    estimates = sorted(scores.estimates, key=lambda estimate: order[estimate.metric])
    metrics = [estimate.metric for estimate in estimates]
    columns = (
        Column("metric", list(map(str, metrics)), TEXT, mark=_marks(metrics)),
        Column("slice", [estimate.slice for estimate in estimates], TEXT, only="data"),
        *_value_columns(scores, estimates),
    )
    groups = [family_of(metric) for metric in metrics]
    return Table("estimates", columns, note=note, only="data" if scores.by is not None else "", groups=groups)


def by_slice(scores: OnlineScores, note: str) -> Table:
    """Build a table with a row per metric and a column per slice; with many slices (such as hours), a row per slice."""
    metrics = by_family(scores.metrics)
    pages = [float(dict(scores.counts).get("pages", 0)), *(float(pages) for _, pages in scores.slices)]
    estimates = {(estimate.metric, estimate.slice): estimate for estimate in scores.estimates}
    labels = [f"{metric} {MARK}" if metric.biased else str(metric) for metric in metrics]
    label_column, *columns = _columns_by_slice(scores, "metric", labels, metrics, estimates)
    groups: list[str] = []
    if len(scores.slices) > _MAX_SLICE_COLUMNS:
        columns = [Column("pages", pages, AMOUNT), *columns]
    else:
        label_column = replace(label_column, values=["pages", *map(str, metrics)], mark=["", *_marks(metrics)])
        columns = [
            replace(column, values=[size, *column.values], ci=[None, *(column.ci or ())], each=[AMOUNT, *column.each])
            for column, size in zip(columns, pages, strict=True)
        ]
        groups = ["", *map(family_of, metrics)]
    return Table("by_slice", (label_column, *columns), note=note, only="people", groups=groups)


def ranks_table(scores: OnlineScores) -> Table:
    """Build the table of CTR by rank, with bars for a terminal; for sliced results only in the data."""
    decimals = max(map(estimate_decimals, scores.ranks), default=1)
    columns = (
        Column("rank", [estimate.rank for estimate in scores.ranks], UNITS),
        Column("slice", [estimate.slice for estimate in scores.ranks], TEXT, only="data"),
        *_value_columns(scores, scores.ranks, decimals, ("CTR", "clicked", "shown")),
        bars([estimate.value for estimate in scores.ranks]),
    )
    return Table("ranks", columns, "CTR by rank", only="data" if scores.by is not None else "")


def ranks_by_slice(scores: OnlineScores) -> Table:
    """Build the table of CTR by rank with a column per slice, or a row per slice if there are many."""
    estimates = {(estimate.rank, estimate.slice): estimate for estimate in scores.ranks}
    ranks = list(dict.fromkeys(estimate.rank for estimate in scores.ranks))
    labels = [f"rank {rank}" if len(scores.slices) > _MAX_SLICE_COLUMNS else str(rank) for rank in ranks]
    columns = _columns_by_slice(scores, "rank", labels, ranks, estimates)
    return Table("ranks_by_slice", columns, "CTR by rank", only="people")


def _marks(metrics: Iterable[OnlineMetric]) -> list[str]:
    return [MARK if metric.biased else "" for metric in metrics]


def _value_columns(
    scores: OnlineScores,
    estimates: Sequence[OnlineEstimate],
    decimals: int | None = None,
    titles: tuple[str, str, str] = ("value", "numerator", "denominator"),
) -> tuple[Column, ...]:
    return (
        estimate_column(estimates, "value", titles[0], decimals=decimals),
        Column("error", [estimate.error for estimate in estimates], NUMBER, only="data"),
        *columns_of(estimates, ("numerator", AMOUNT, titles[1]), ("denominator", AMOUNT, titles[2])),
        *columns_of(estimates, ("units", UNITS, f"{scores.over}s"), "method"),
    )


def _columns_by_slice(
    scores: OnlineScores,
    name: str,
    key_labels: list[str],
    keys: Sequence[Any],
    estimates: Mapping[tuple[Any, str | None], OnlineEstimate],
) -> tuple[Column, ...]:
    """Arrange estimates by key and slice: a column per slice, or a row per slice if there are many."""
    labels = scores.labels
    by_slice = [[estimates.get((key, value)) for key in keys] for value in labels]
    if len(labels) > _MAX_SLICE_COLUMNS + 1:
        by_key = zip(*by_slice, strict=True)
        slice_column = Column(name, list(labels.values()), TEXT, clip(scores.by or ""))
        return slice_column, *(estimate_column(row, f"c{i}", key_labels[i]) for i, row in enumerate(by_key))
    pairs = zip(by_slice, labels.values(), strict=True)
    columns = (estimate_column(row, f"c{i}", label) for i, (row, label) in enumerate(pairs))
    return Column(name, key_labels, TEXT), *columns


def definitions(metrics: Iterable[OnlineMetric], *, folded: bool = True) -> Table:
    """Build the table of metric definitions."""
    distinct = list(dict.fromkeys(metrics))
    numerators, denominators = zip(*(metric.columns() for metric in distinct), strict=True) if distinct else ((), ())
    columns = (
        Column("metric", list(map(str, distinct)), TEXT),
        *columns_of(distinct, ("title", TEXT, "description"), "kind", "row"),
        Column("numerator", numerators, TEXT, only="data"),
        Column("denominator", denominators, TEXT, only="data"),
        *columns_of(distinct, "unit", "better"),
        Column("parameters", [dict(metric.parameters) for metric in distinct], ANY, only="json"),
        *columns_of(distinct, ("formula", TEXT), ("window", TEXT), "attribution", "source"),
        *columns_of(distinct, ("misleads", TEXT, "caveats"), "needs", "biased"),
    )
    return Table("metrics", columns, "Definitions of the metrics", labels=5, folded=folded)


MAX_CHART_SLICES = 7
"""Maximum number of slices in a chart, those with the most pages. Tables show all slices."""
_UNBOUNDED = {"count", "seconds", "money"}
_MAX_SIZE_RATIO = 50  # a metric this many times smaller than the largest gets a separate axis
_TITLES = {
    "share": "Shares",
    "count": "Counts",
    "seconds": "Durations",
    "rank": "Ranks",
    "money": "Revenue",
    "rating": "Ratings",
}


def metric_charts(scores: OnlineScores, estimates: Table) -> tuple[Chart, ...]:
    """Return one dot chart per group of metrics with a common axis, or line charts if sliced by hour of week."""
    if scores.by == "hour of week":
        # 168 hours on one axis are not readable: one chart per metric, with a line per weekday.
        metrics = scores.metrics[:MAX_CHART_SLICES]
        return tuple(_week_chart(estimates, number, metric) for number, metric in enumerate(metrics, 1))
    charts: list[Chart] = []
    units: list[str] = []
    for group in axis_groups(scores):
        unit, names = group[0].unit, set(map(str, group))
        units.append(unit)
        repeat = units.count(unit)
        intervals = f"{percent(scores.level)} confidence intervals over {scores.over}s"
        charts.append(
            Chart(
                "".join(unit.split()) + (str(repeat) if repeat > 1 else ""),
                _TITLES.get(unit, "Reciprocal ranks") + (": small values" if repeat > 1 else ""),
                _chart_rows(scores, estimates, names),
                f"Metrics with {intervals}{_slices_note(scores)}.",
                y="metric",
                x_title=unit,
                color="series" if scores.by else "",
                percent="x" if unit == "share" else "",
                numbers=estimates,
            )
        )
    return tuple(charts)


def _week_chart(estimates: Table, number: int, metric: OnlineMetric) -> Chart:
    slices, metrics = estimates.column("slice").values, estimates.columns[0].values
    rows = [row for row, hour in enumerate(slices) if hour is not None and metrics[row] == str(metric)]
    days, hours = zip(*(slices[row].split() for row in rows), strict=True) if rows else ((), ())
    axes = (Column("weekday", list(days), TEXT), Column("hour", list(map(int, hours)), UNITS))
    table = replace(estimates.take(rows), only="people", groups=())
    return Chart(
        f"week{number}",
        f"{metric} by hour and weekday",
        replace(table, columns=(*table.columns, *axes)),
        f"{metric} by hour (UTC), one line per weekday. The table has confidence intervals.",
        kind="lines",
        x="hour",
        x_title="hour (UTC)",
        y_title=str(metric),
        y="value",
        color="weekday",
        spread="cutoff",
        percent="y" if metric.unit == "share" else "",
        height=240,
        numbers=estimates,
    )


def ranks_chart(scores: OnlineScores, ranks: Table) -> Chart:
    """Build the line chart of CTR by rank from 0 upwards, one line per slice."""
    first = next((row for row in scores.ranks if row.slice is None and not math.isnan(row.value)), None)
    top = "" if first is None else f"{first.value:.1%} of the results shown at rank {first.rank} were clicked. "
    return Chart(
        "ranks",
        "CTR by rank: position bias",
        _chart_rows(scores, ranks),
        f"{top}{describe_decline(scores.ranks)} {RANK_CAVEAT}",
        kind="lines",
        x="rank",
        y="value",
        y_title="CTR",
        color="series" if scores.by else "",
        spread="cutoff",
        percent="y",
        includes={"y": (0.0,)},
        height=200,
        numbers=ranks,
    )


def axis_groups(scores: OnlineScores) -> tuple[tuple[OnlineMetric, ...], ...]:
    """Group metrics by axis: those of one unit, split if their sizes differ so much that small ones look like 0."""
    by_unit: dict[str, dict[OnlineMetric, float]] = {}
    for estimate in scores.estimates:
        if not math.isnan(estimate.value):
            sizes = by_unit.setdefault(estimate.metric.unit, {})
            sizes[estimate.metric] = max(sizes.get(estimate.metric, 0.0), abs(estimate.value))
    return tuple(group for unit, sizes in by_unit.items() for group in _split_by_size(unit, sizes))


def _split_by_size(unit: str, sizes: dict[OnlineMetric, float]) -> list[tuple[OnlineMetric, ...]]:
    maxima: list[float] = []
    for size in sorted(sizes.values(), reverse=True):
        if not maxima or (unit in _UNBOUNDED and 0 < size < maxima[-1] / _MAX_SIZE_RATIO):
            maxima.append(size)
    group_of = {metric: max(i for i, top in enumerate(maxima) if size <= top) for metric, size in sizes.items()}
    return [tuple(metric for metric in sizes if group_of[metric] == i) for i in range(len(maxima))]


def _chart_rows(scores: OnlineScores, table: Table, metrics: set[str] | None = None) -> Table:
    """Select the rows of a chart: estimates over all rows and of the slices with the most pages."""
    slices, names = table.column("slice").values, table.columns[0].values
    in_chart = {None, *chart_slices(scores)}
    rows = [i for i, value in enumerate(slices) if value in in_chart and (not metrics or names[i] in metrics)]
    selection = replace(table.take(rows), only="people", groups=())
    labels = [scores.labels[slices[row]] for row in rows]
    series = [Column("series", labels, TEXT, clip(scores.by))] if scores.by is not None else []
    return replace(selection, columns=(*selection.columns, *series))


def chart_slices(scores: OnlineScores) -> set[str]:
    """Return the slices that are drawn in charts: those with the most pages."""
    return {name for name, _ in sorted(scores.slices, key=lambda slice_pages: -slice_pages[1])[:MAX_CHART_SLICES]}


def _slices_note(scores: OnlineScores) -> str:
    if scores.by is None:
        return ""
    omitted = len(scores.slices) - MAX_CHART_SLICES
    most = f". The chart has the {MAX_CHART_SLICES} slices with the most pages"
    selection = f"{most}; the table has {omitted:,} more slice{'s' if omitted > 1 else ''}" if omitted > 0 else ""
    return f", for all pages and by {clip(scores.by)}{selection}"


RANK_CAVEAT = (
    "CTR depends on rank because relevance and the probability of examination both change with rank. A log alone"
    " cannot separate the effects of relevance and examination."
)
"""Caveat below CTR by rank."""


def describe_decline(ranks: Sequence[OnlineEstimate]) -> str:
    """Compare the CTR at the first and last rank in a sentence, which may be due to attention or to quality."""
    overall = [row for row in ranks if row.rank is not None and row.slice is None and not math.isnan(row.value)]
    if len(overall) < 2 or overall[0].value <= 0:
        return ""
    first, last = overall[0], overall[-1]
    if not last.value:
        return f"Results at rank {first.rank} were clicked, and no results at rank {last.rank} were."
    more, less = (first, last) if first.value >= last.value else (last, first)
    ratio = f"{more.value / less.value:.1f} times as often"
    return f"Results at rank {more.rank} were clicked {ratio} as results at rank {less.rank}."
