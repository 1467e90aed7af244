"""Metrics of a log as tables of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.online.metrics.registry import FAMILIES
from judged.online.showing.numbers import (
    NOTHING,
    amount,
    decimals_of,
    number,
    sentence,
    shown,
    slice_of,
    span,
    span_of,
    value_of,
)
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.findings import LogFinding
    from judged.online.metrics.metric import OnlineMetric

MARK = "*"
"""Stands at metrics that depend on rank: CTR by rank is shown beside them."""
_OTHERS = "Others"
_ACROSS = 30  # slices that stand beside one another; more of them stand below one another
_BAR = 24  # characters of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def by_family(metrics: Iterable[OnlineMetric]) -> list[tuple[str, list[OnlineMetric]]]:
    """Put metrics of a family together, in the order of the registry; within one the order stays.

    >>> from judged.online.metrics.registry import online_metrics_named
    >>> [(family, [str(one) for one in known]) for family, known in by_family(online_metrics_named(
    ...     ["DwellOver", "PageCTR@3", "ImpressionCTR"]))]
    [('Clicks', ['PageCTR@3', 'ImpressionCTR']), ('Visits', ['DwellOver'])]
    """
    known = list(metrics)
    names = {family: {one.name for one in members} for family, members in FAMILIES.items()}
    registered = set[str]().union(*names.values())
    groups = [(family, [one for one in known if one.name in names[family]]) for family in names]
    groups.append((_OTHERS, [one for one in known if one.name not in registered]))
    return [(family, members) for family, members in groups if members]


def marked(metric: OnlineMetric) -> str:
    """Write the name of a metric, marked where it depends on rank."""
    return f"{metric} {MARK}" if metric.biased else str(metric)


def metrics_table(scores: ScoresTable) -> Table:
    """Lay out one row a metric, by family: value, interval, the two sums, users."""
    header = ("metric", "value", f"{percent(scores.level)} interval", "numerator", "denominator", f"{scores.over}s")
    rows: list[tuple[str, ...]] = []
    for family, members in by_family(scores.metrics):
        rows.append((family, *("" for _ in header[1:])))
        for one in map(scores.of, members):
            sums = amount(one.numerator), amount(one.denominator)
            rows.append((_name(one.metric), value_of(one), span_of(one), *sums, f"{one.units:,}"))
    return Table(header, tuple(rows))


def slices_table(scores: ScoresTable) -> Table:
    """Lay out one row a metric and one column a slice: value with its interval; over all rows first.

    Of many slices, as hours are, each has a row, and each metric a column.
    """
    named = [None, *(name for name, _ in scores.slices)]
    pages = (amount(float(dict(scores.counts).get("pages", 0))), *(f"{pages:,}" for _, pages in scores.slices))
    found = {(str(one.metric), one.slice): one for one in scores.estimates}
    if len(scores.slices) > _ACROSS:
        metrics = [one for _, members in by_family(scores.metrics) for one in members]
        header = (shown(scores.by or ""), "pages", *map(marked, metrics))
        cells = [[_cell(found.get((str(one), name))) for one in metrics] for name in named]
        begun = [(slice_of(scores, name), size) for name, size in zip(named, pages, strict=True)]
        return Table(header, tuple((*first, *rest) for first, rest in zip(begun, cells, strict=True)))
    header = ("metric", *(slice_of(scores, name) for name in named))
    rows: list[tuple[str, ...]] = [("pages", *pages)]
    for family, members in by_family(scores.metrics):
        rows.append((family, *("" for _ in header[1:])))
        rows += [(_name(one), *(_cell(found.get((str(one), name))) for name in named)) for one in members]
    return Table(header, tuple(rows))


def ranks_table(scores: ScoresTable, *, bars: bool = False) -> Table:
    """Lay out CTR by rank: one row a rank, with bars for a terminal; of a sliced result one column a slice."""
    ranks = [one for one in scores.ranks if one.slice is None]
    if scores.by is not None:
        return _ranks_by_slice(scores)
    header = ("rank", "CTR", f"{percent(scores.level)} interval", "clicked", "shown", *(("",) if bars else ()))
    places = max(map(decimals_of, ranks), default=1)
    top = max((one.value for one in ranks if not math.isnan(one.value)), default=0.0)
    drawn = [bar(one.value, top) for one in ranks]
    width = max(map(len, drawn), default=0)
    rows = tuple(
        (
            str(one.rank),
            number(one.value, "share", places),
            span(one.low, one.high, "share", places),
            amount(one.numerator),
            amount(one.denominator),
            *((line.ljust(width),) if bars else ()),
        )
        for one, line in zip(ranks, drawn, strict=True)
    )
    return Table(header, rows)


def _ranks_by_slice(scores: ScoresTable) -> Table:
    found = {(one.rank, one.slice): one for one in scores.ranks}
    named = [None, *(name for name, _ in scores.slices)]
    ranks = dict.fromkeys(one.rank for one in scores.ranks)
    if len(scores.slices) > _ACROSS:
        across = (shown(scores.by or ""), *(f"rank {rank}" for rank in ranks))
        down = ((slice_of(scores, name), *(_cell(found.get((rank, name))) for rank in ranks)) for name in named)
        return Table(across, tuple(down))
    header = ("rank", *(slice_of(scores, name) for name in named))
    rows = tuple((str(rank), *(_cell(found.get((rank, name))) for name in named)) for rank in ranks)
    return Table(header, rows)


def findings_table(findings: Iterable[LogFinding]) -> Table:
    """Lay out how much of the log met a rule, and what was done with it: one row a rule."""
    rows = tuple((one.rule, one.table, one.done, f"{one.rows:,}", f"{one.of:,}", _few(one.share)) for one in findings)
    return Table(("rule", "of", "done", "rows", "of rows", "share"), rows, labels=3)


def _few(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "<0.1 %"


def refused_table(scores: ScoresTable) -> Table:
    """Lay out what the log cannot tell: one row a reason, with the metrics that it concerns."""
    return Table(
        ("why not", "metrics"), tuple((sentence(why), ", ".join(names)) for why, names in refused(scores)), labels=2
    )


def refused(scores: ScoresTable) -> list[tuple[str, list[str]]]:
    """Put the metrics together that are refused for one reason."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in scores.refused:
        by_reason.setdefault(why, []).append(str(metric))
    return list(by_reason.items())


def csv_table(scores: ScoresTable, *, ranks: bool = False) -> Table:
    """Lay out one estimate a row in full precision, CTR by rank behind them; or those of the ranks alone."""
    records = scores.to_dicts()[len(scores.estimates) if ranks else 0 :]
    header = tuple(records[0]) if records else ("metric", "value")
    rows = tuple(tuple(full(cell) for cell in record.values()) for record in records)
    return Table(header, rows, labels=4)


def full(cell: object) -> str:
    """Write a value in full; nothing for what does not exist.

    >>> full(0.1), full(float("nan")), full(None), full("click"), full(3)
    ('0.1', '', '', 'click', '3')
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(cell) if isinstance(cell, float) else str(cell)


def percent(level: float) -> str:
    """Write a level: 0.95 is 95%.

    >>> percent(0.95), percent(0.999), percent(0.9)
    ('95%', '99.9%', '90%')
    """
    return f"{100 * level:.4g}%"


def bar(value: float, top: float) -> str:
    """Draw a bar of characters, as long as a value is beside the largest.

    >>> bar(0.5, 1.0) == "█" * 12, bar(0.0, 1.0), bar(float("nan"), 1.0)
    (True, '', '')
    """
    if math.isnan(value) or top <= 0:
        return ""
    whole, rest = divmod(round(8 * _BAR * value / top), 8)
    return ("█" * whole + _EIGHTHS[rest]).rstrip()


def _name(metric: OnlineMetric) -> str:
    return f"  {marked(metric)}"


def _cell(one: OnlineEstimate | None) -> str:
    if one is None or math.isnan(one.value):
        return NOTHING
    known = span_of(one)
    return Cell(value_of(one), rest="" if known == NOTHING else known)
