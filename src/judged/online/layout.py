"""Estimates of a log as typed tables: metrics, by slice too, CTR by rank, and what the metrics are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.answer import ANY, NUMBER, TEXT, Column, Table, bars, columns_of
from judged.online.metrics import FAMILIES
from judged.online.numbers import AMOUNT, UNITS, decimals_of, shown, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.online.estimates import OnlineEstimate
    from judged.online.metrics import OnlineMetric
    from judged.online.scores import OnlineScores

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
