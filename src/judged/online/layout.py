"""Estimates of metrics as text, tables, and charts: by family, by slice, by rank."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.online.metrics import FAMILIES
from judged.results import ANY, NUMBER, TEXT, Chart, Column, Show, Table, bars, columns_of, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.online.metrics import OnlineMetric, Unit
    from judged.online.scores import OnlineScores


Method: TypeAlias = Literal["delta", "bootstrap", "exact", "woodruff", "greenwood", "none"]


@dataclass(frozen=True)
class OnlineEstimate:
    """One metric on one slice.

    Parameters
    ----------
    metric
        The metric.
    slice
        Value of the slice; None: all rows.
    value
        The estimate; NaN where there is nothing to divide by.
    low, high
        The interval; NaN where there is none (one user, or nothing).
    error
        Standard error; NaN where there is none.
    numerator, denominator
        The two sums (for quantiles: rows at or below the value, and rows; for survival: NaN, and visits).
    units
        How many users (or other units) the interval is made over.
    method
        How the interval was made: ``delta``, ``bootstrap``, ``exact`` (shares that are 0 or 1 for all units:
        Clopper and Pearson over units), ``woodruff`` (quantiles), ``greenwood`` (survival, clustered), ``none``.
    rank
        The rank, for CTR by rank; else None.
    effective_units
        Effective number of units (Kish): as many units with equal denominators would have this weight; NaN where it is
        not known.
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
"""Stands for all rows where slices stand beside them."""
_LEAST: dict[str, int] = {
    "share": 1, "count": 2, "seconds": 1, "rank": 2, "reciprocal rank": 3, "money": 2, "rating": 2,
}  # fmt: skip
_MORE = 3  # decimals beyond the least
_WORD, _SENTENCE, _PLACE = 60, 800, 120  # characters of what comes from a log


def in_unit(unit: Unit, decimals: int | None = None, sign: str = "") -> Show:
    """Write values of a unit with so many decimals, those of the percentage for a share; None: the least it has.

    With the sign ``+`` they are differences; of shares, in percentage points.

    >>> seconds = in_unit("seconds", 2)
    >>> in_unit("share").write(0.3811), seconds.write(41.25), seconds.limit(40.1), seconds.write(float("nan"))
    ('38.1%', '41.25 s', '40.10', '-')
    >>> in_unit("share", 1, "+").write(0.02)
    '+2.0 pp'
    """
    places = _LEAST[unit] if decimals is None else decimals
    after = {"share": " pp" if sign else "%", "seconds": " s"}.get(unit, "")
    ends = (after, "" if sign else after.strip(" s"))
    write, limit = (partial(_written, 100 if unit == "share" else 1, places, sign, end) for end in ends)
    return Show(write, "float64", limit, None if after else lambda digits: in_unit(unit, digits, sign))


def _written(times: int, decimals: int, sign: str, after: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    text = f"{times * value:{sign},.{decimals}f}"
    return (text if text.strip("+-0.,") else text.lstrip("+-")) + after  # no sign before a zero


def decimals_of(estimate: OnlineEstimate) -> int:
    """Say how many decimals an estimate deserves: as many as make two digits of half its interval.

    Without an interval it is as many as make three digits of the value, so that a rare event is not shown as 0.
    """
    times = 100.0 if estimate.metric.unit == "share" else 1.0
    half, size = times * (estimate.high - estimate.low) / 2, abs(times * estimate.value)
    least = _LEAST[estimate.metric.unit]
    deserved = 1 - math.floor(math.log10(half)) if half > 0 else 2 - math.floor(math.log10(size)) if size > 0 else least
    return min(max(deserved, least), least + _MORE)


def value_of(estimate: OnlineEstimate) -> str:
    """Write the value of an estimate, with as many decimals as it deserves."""
    return in_unit(estimate.metric.unit, decimals_of(estimate)).write(estimate.value)


def span_of(estimate: OnlineEstimate) -> str:
    """Write the interval of an estimate; its ends say no seconds."""
    if math.isnan(estimate.low):
        return "-"
    show = in_unit(estimate.metric.unit, decimals_of(estimate))
    low, high = map(show.limit or show.write, (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def values(
    estimates: Sequence[OnlineEstimate | None], name: str, title: str | None = None, *, decimals: int | None = None
) -> Column:
    """Make a column of estimates with their intervals, each with its unit and as many decimals as it deserves."""
    limits = [None if one is None or math.isnan(one.low) else (one.low, one.high) for one in estimates]
    shows = [
        NUMBER if one is None else in_unit(one.metric.unit, decimals_of(one) if decimals is None else decimals)
        for one in estimates
    ]
    return Column(name, [None if one is None else one.value for one in estimates], NUMBER, title, limits, each=shows)


def amount(value: float) -> str:
    """Write a sum: whole numbers whole.

    >>> amount(12345.0), amount(88.526), amount(float("nan"))
    ('12,345', '88.5', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


AMOUNT = Show(amount, "float64")
UNITS = Show(amount, "int64")


def percent(level: float) -> str:
    """Write a level: 0.95 is 95%.

    >>> percent(0.95), percent(0.999), percent(0.9)
    ('95%', '99.9%', '90%')
    """
    return f"{100 * level:.4g}%"


def shown(text: str, most: int = 40) -> str:
    r"""Write a text of the log on one line, cut, and without characters that would steer a terminal.

    >>> shown("a\x1b[31m b\n c"), shown("x" * 50, 5)
    ('a�[31m b c', 'xxxx…')
    """
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def labels(slices: Iterable[str]) -> dict[str | None, str]:
    """Name slices as they are shown; where two would look alike, or like "all" rows, the later one gets a number.

    >>> labels(["x" * 50 + "1", "x" * 50 + "2", "all", "b"])["all"]
    'all (2)'
    >>> [name[-5:] for name in labels(["x" * 50 + "1", "x" * 50 + "2"]).values()]
    ['all', 'xxxx…', '… (2)']
    """
    seen = Counter({ALL: 1})
    named: dict[str | None, str] = {None: ALL}
    for value in slices:
        text = shown(value)
        seen[text] += 1
        named[value] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return named


def sentence(text: str) -> str:
    r"""Write a sentence in which texts of the log stand: each of its words is cut, so that none hides the others.

    >>> sentence("of tables: a\nb " + "x" * 70 + " 3"), len(sentence("word " * 1000))
    ('of tables: a b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… 3', 800)
    """
    return shown(" ".join(shown(word, _WORD) for word in text.split()), _SENTENCE)


def place(text: str) -> str:
    r"""Write a file and a line, or an id: what is cut is the beginning, so that the line stays.

    >>> place("a\tb.ndjson:7"), len(place("x" * 300 + ":7")), place("x" * 300 + ":7")[-3:]
    ('a b.ndjson:7', 120, 'x:7')
    """
    flat = _flat(text)
    return flat if len(flat) <= _PLACE else "…" + flat[1 - _PLACE :]


def _flat(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


MARK = "*"
"""Stands at metrics that depend on rank: CTR by rank is shown beside them."""
_ACROSS = 30  # slices that stand beside one another; more of them stand below one another
_OTHERS = "Others"
_FAMILY = {metric.name: family for family, members in FAMILIES.items() for metric in members}


def family_of(metric: OnlineMetric) -> str:
    """Name the family of a metric."""
    return _FAMILY.get(metric.name, _OTHERS)


def by_family(metrics: Iterable[OnlineMetric]) -> list[OnlineMetric]:
    """Put metrics of a family together, in the order of the registry; within one the order stays.

    >>> from judged.online.metrics import online_metrics_named
    >>> list(map(str, by_family(online_metrics_named(["DwellOver", "PageCTR@3", "ImpressionCTR"]))))
    ['PageCTR@3', 'ImpressionCTR', 'DwellOver']
    """
    order = [*FAMILIES, _OTHERS]
    return sorted(metrics, key=lambda metric: order.index(family_of(metric)))


def estimates_table(scores: OnlineScores, note: str = "") -> Table:
    """Lay out one row an estimate; of a sliced result only for data."""
    order = {metric: at for at, metric in enumerate(by_family(scores.metrics))}
    estimates = sorted(scores.estimates, key=lambda one: order[one.metric])
    metrics = [one.metric for one in estimates]
    columns = (
        Column("metric", list(map(str, metrics)), TEXT, mark=_marks(metrics)),
        Column("slice", [one.slice for one in estimates], TEXT, only="data"),
        *_numbers(scores, estimates),
    )
    groups = [family_of(metric) for metric in metrics]
    return Table("estimates", columns, note=note, only="data" if scores.by is not None else "", groups=groups)


def by_slice(scores: OnlineScores, note: str) -> Table:
    """Lay out one row a metric and one column a slice, all rows first; of many slices, as hours are, one row each."""
    metrics = by_family(scores.metrics)
    pages = [float(dict(scores.counts).get("pages", 0)), *(float(pages) for _, pages in scores.slices)]
    known = {(one.metric, one.slice): one for one in scores.estimates}
    name, *rest = _across(
        scores, "metric", [f"{one} {MARK}" if one.biased else str(one) for one in metrics], metrics, known
    )
    groups: list[str] = []
    if len(scores.slices) > _ACROSS:
        rest = [Column("pages", pages, AMOUNT), *rest]
    else:
        name = replace(name, values=["pages", *map(str, metrics)], mark=["", *_marks(metrics)])
        rest = [
            replace(column, values=[size, *column.values], ci=[None, *(column.ci or ())], each=[AMOUNT, *column.each])
            for column, size in zip(rest, pages, strict=True)
        ]
        groups = ["", *map(family_of, metrics)]
    return Table("by_slice", (name, *rest), note=note, only="people", groups=groups)


def ranks_table(scores: OnlineScores) -> Table:
    """Lay out CTR by rank: one row a rank, for a terminal with bars; of a sliced result only for data."""
    places = max(map(decimals_of, scores.ranks), default=1)
    columns = (
        Column("rank", [one.rank for one in scores.ranks], UNITS),
        Column("slice", [one.slice for one in scores.ranks], TEXT, only="data"),
        *_numbers(scores, scores.ranks, places, ("CTR", "clicked", "shown")),
        bars([one.value for one in scores.ranks]),
    )
    return Table("ranks", columns, "CTR by rank", only="data" if scores.by is not None else "")


def ranks_by_slice(scores: OnlineScores) -> Table:
    """Lay out CTR by rank with a column a slice; of many slices with a row each."""
    known = {(one.rank, one.slice): one for one in scores.ranks}
    ranks = list(dict.fromkeys(one.rank for one in scores.ranks))
    named = [f"rank {rank}" if len(scores.slices) > _ACROSS else str(rank) for rank in ranks]
    return Table("ranks_by_slice", _across(scores, "rank", named, ranks, known), "CTR by rank", only="people")


def _marks(metrics: Iterable[OnlineMetric]) -> list[str]:
    return [MARK if metric.biased else "" for metric in metrics]


def _numbers(
    scores: OnlineScores,
    estimates: Sequence[OnlineEstimate],
    decimals: int | None = None,
    titles: tuple[str, str, str] = ("value", "numerator", "denominator"),
) -> tuple[Column, ...]:
    """Lay out values with their intervals, both sums, and how the intervals are made."""
    return (
        values(estimates, "value", titles[0], decimals=decimals),
        Column("error", [one.error for one in estimates], NUMBER, only="data"),
        *columns_of(estimates, ("numerator", AMOUNT, titles[1]), ("denominator", AMOUNT, titles[2])),
        *columns_of(estimates, ("units", UNITS, f"{scores.over}s"), "method"),
    )


def _across(
    scores: OnlineScores,
    name: str,
    written: list[str],
    keys: Sequence[Any],
    known: Mapping[tuple[Any, str | None], OnlineEstimate],
) -> tuple[Column, ...]:
    """Lay estimates out by key and slice: a column a slice, or a row a slice where there are many."""
    slices = scores.labels
    rows = [[known.get((key, one)) for key in keys] for one in slices]
    if len(slices) > _ACROSS + 1:
        across = zip(*rows, strict=True)
        named = Column(name, list(slices.values()), TEXT, shown(scores.by or ""))
        return named, *(values(column, f"c{at}", written[at]) for at, column in enumerate(across))
    labels = slices.values()
    columns = (values(row, f"c{at}", label) for at, (row, label) in enumerate(zip(rows, labels, strict=True)))
    return Column(name, written, TEXT), *columns


def definitions(metrics: Iterable[OnlineMetric], *, folded: bool = True) -> Table:
    """Lay out what metrics are, and when they mislead."""
    known = list(dict.fromkeys(metrics))
    numerators, denominators = zip(*(metric.columns() for metric in known), strict=True) if known else ((), ())
    columns = (
        Column("metric", list(map(str, known)), TEXT),
        *columns_of(known, ("title", TEXT, "what"), "kind", "row"),
        Column("numerator", numerators, TEXT, only="data"),
        Column("denominator", denominators, TEXT, only="data"),
        *columns_of(known, "unit", "better"),
        Column("parameters", [dict(metric.parameters) for metric in known], ANY, only="json"),
        *columns_of(known, ("formula", TEXT), ("window", TEXT), "attribution", "source"),
        *columns_of(known, ("misleads", TEXT, "misleads when"), "needs", "biased"),
    )
    return Table("metrics", columns, "What each metric is", labels=5, folded=folded)


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
    """Draw metrics that share an axis together, a dot and an interval each; hours of a week as a line a weekday."""
    if scores.by == "hour of week":
        return tuple(_week(estimates, at, metric) for at, metric in enumerate(scores.metrics[:MOST], 1))
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
                color="series" if scores.by else "",
                percent="x" if unit == "share" else "",
                numbers=estimates,
            )
        )
    return tuple(made)


def _week(estimates: Table, at: int, metric: OnlineMetric) -> Chart:
    """Draw a metric over the hours of a day, a line a weekday."""
    slices, of = estimates.column("slice").values, estimates.columns[0].values
    rows = [row for row, name in enumerate(slices) if name is not None and of[row] == str(metric)]
    days, hours = zip(*(slices[row].split() for row in rows), strict=True) if rows else ((), ())
    named = (Column("weekday", list(days), TEXT), Column("hour", list(map(int, hours)), UNITS))
    kept = replace(estimates.take(rows), only="people", groups=())
    return Chart(
        f"week{at}",
        f"{metric} by hour and weekday",
        replace(kept, columns=(*kept.columns, *named)),
        f"{metric} of each hour (UTC), a line a weekday; the table has intervals.",
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
    """Draw CTR over rank from 0 upwards, a line a slice."""
    first = next((one for one in scores.ranks if one.slice is None and not math.isnan(one.value)), None)
    top = "" if first is None else f"At rank {first.rank}, {first.value:.1%} of what was shown was clicked. "
    return Chart(
        "ranks",
        "CTR by rank: position bias",
        _drawn(scores, ranks),
        f"{top}{steepness(scores.ranks)} {WHAT_FALLS}",
        kind="lines",
        x="rank",
        y="value",
        y_title="CTR",
        color="series" if scores.by else "",
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


WHAT_FALLS = (
    "What falls with rank is both how good results are and how often users look there: the log alone does not part the"
    " two."
)
"""Said below CTR by rank."""


def steepness(ranks: Sequence[OnlineEstimate]) -> str:
    """Say how much less the last of the ranks is clicked than the first.

    What of this is attention and what is quality, the log alone does not tell.
    """
    known = [one for one in ranks if one.rank is not None and one.slice is None and not math.isnan(one.value)]
    if len(known) < 2 or known[0].value <= 0:
        return ""
    first, last = known[0], known[-1]
    if not last.value:
        return f"What stood at rank {first.rank} was clicked, and nothing was at rank {last.rank}."
    more, less = (first, last) if first.value >= last.value else (last, first)
    times = f"{more.value / less.value:.1f} times as often"
    return f"What stood at rank {more.rank} was clicked {times} as what stood at rank {less.rank}."
