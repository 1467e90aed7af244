"""What differs between two slices, or two periods, of a log: metrics side by side, each difference tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.online.estimation.online_metrics import (
    Unit,
    interval_options,
    moments,
    ratio_sums,
    ratios,
    shared_products,
    split_supported,
)
from judged.online.estimation.sums import UnitSums, metric_pages, unit_sums
from judged.online.facts.pages import FactSettings, PageFacts
from judged.online.layout import decimals_of, in_unit, percent, values
from judged.online.log import LogAnswer, about, need
from judged.online.metrics import Kind, OnlineMetric, online_metric, online_metrics_named
from judged.online.slicing import pages_where, slice_pages
from judged.results import P_VALUE, TEXT, Column, Show, Table, counted
from judged.results.spelling import one_of
from judged.stats.correction import CORRECTIONS, adjust
from judged.stats.ratio import RatioDifference, correlation, ratio_difference

if TYPE_CHECKING:
    from judged.online.engine import Relation
    from judged.online.layout import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.results import Block


_DAY = 86_400_000
_WEEK = 7 * _DAY
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Periods:
    """Two stretches of equal length, or as long before as the log goes back; times in milliseconds since 1970.

    Parameters
    ----------
    begin, since, end
        From `begin` to below `since` is before, from there to below `end` is after.
    """

    begin: int
    since: int
    end: int

    @property
    def whole_weeks(self) -> bool:
        """Whether both have each weekday equally often."""
        return (self.since - self.begin) % _WEEK == 0 and (self.end - self.since) % _WEEK == 0

    @property
    def sql(self) -> str:
        """Give the SQL that says of a page in which it is, by its ``time_ms``; null for none."""
        inside = f"time_ms >= {self.begin} AND time_ms < {self.end}"
        return f"CASE WHEN {inside} THEN CASE WHEN time_ms < {self.since} THEN '{BEFORE}' ELSE '{AFTER}' END END"

    def slices(self, log: InteractionLog) -> Relation:
        """Give ``serp`` and ``slice`` of the pages in one of them."""
        return log.engine.query(f"SELECT serp, {self.sql} AS slice FROM {log.serp} WHERE ({self.sql}) IS NOT NULL")

    @property
    def compared(self) -> str:
        """What is compared, and whether weekdays may differ."""
        weeks = "" if self.whole_weeks else "; these are no whole weeks, so weekdays may differ"
        return f"{self} (UTC){weeks}"

    def __str__(self) -> str:
        return f"{_written(self.since)} to {_written(self.end - 1)}, before: from {_written(self.begin)}"


def periods(log: InteractionLog, since: str | None = None) -> Periods:
    """Part a log.

    Parameters
    ----------
    log
        The log.
    since
        The date, or date and time (UTC), at which the later stretch begins; it ends with the log. None: a week before
        the log's last page; of a log of less than two weeks, its middle.

    Raises
    ------
    InputError
        If the log has no dates, this is none, or there are no pages on one side of it.

    Examples
    --------
    >>> day = 86_400_000
    >>> Periods(0, 7 * day, 14 * day).whole_weeks, str(Periods(0, day, 3 * day))
    (True, '1970-01-02 00:00 to 1970-01-03 23:59, before: from 1970-01-01 00:00')
    """
    if not (log.has_time and log.dated):
        raise InputError("this log has no dates: nothing is before anything else", fix="compare slices", path=log.name)
    ends = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    if ends["first"] is None or ends["first"] == ends["last"]:
        raise InputError("this log is of one moment: nothing is before it", fix="compare slices", path=log.name)
    first, end = int(ends["first"]), int(ends["last"]) + 1
    if since is None:
        length = _WEEK if end - first >= 2 * _WEEK - _DAY else (end - first) // 2
        return Periods(end - 2 * length, end - length, end)
    start = _read(since)
    if not first < start < end:
        stretch = f"{_written(first)} to {_written(end - 1)}"
        raise InputError(f"no page is on one side of {since}", fix=f"give a time within {stretch}", path=log.name)
    return Periods(max(first, 2 * start - end), start, end)


def _read(since: str) -> int:
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise InputError(f"{since!r} is no date", fix="write it as 2024-05-31 or 2024-05-31T09:00") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _written(time_ms: int) -> str:
    return np.datetime_as_string(np.datetime64(time_ms, "ms"), unit="m").replace("T", " ")


HEADLINES = (
    ("Conversion", "SessionSuccess"),
    ("SatisfiedPageCTR", "PageCTR"),
    ("ZeroResultQueries", "ZeroResults"),
    ("Reformulation",),
    ("Abandonment",),
    ("FirstClickRR",),
    ("RevenuePerSearch",),
    ("QueriesPerSession",),
)
"""The numbers that matter, the first of each that a log can tell."""

_FIVE = 5


@dataclass(frozen=True)
class MetricDifference:
    """One metric on two slices.

    Parameters
    ----------
    metric
        The metric.
    baseline, other
        Its estimates.
    difference
        The other less the baseline, with the interval and p-value that fit one another.
    p
        The p-value adjusted for how many differences were tested; NaN where there is none.
    """

    metric: OnlineMetric
    baseline: OnlineEstimate
    other: OnlineEstimate
    difference: RatioDifference
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class LogDifference(LogAnswer):
    """Metrics of slices of one log beside those of a baseline, each difference tested.

    Parameters
    ----------
    by
        What the log was sliced by; None: time.
    baseline
        The slice that the others are compared with.
    found
        The differences, by slice, then metric.
    refused
        Metrics that cannot be compared, with the reason.
    correction
        As asked for.
    """

    kind: ClassVar[str] = "log-difference"
    answers: ClassVar[str] = "What differs from {baseline}: {log}"
    asked: ClassVar[tuple[str, ...]] = ("by", "baseline", "correction")

    by: str | None
    baseline: str
    found: tuple[MetricDifference, ...]
    refused: tuple[tuple[OnlineMetric, str], ...]
    correction: str

    def blocks(self) -> tuple[Block, ...]:
        """Give one table, and what it rests on."""
        found = self.found
        estimates = [one.other for one in found]
        table = Table(
            "differences",
            (
                Column("metric", [str(one.metric) for one in found], TEXT),
                Column("slice", [one.slice for one in estimates], TEXT),
                values([one.baseline for one in found], "baseline", self.baseline),
                values(estimates, "value", "value"),
                *difference_columns([(one.other, one.difference) for one in found]),
                Column("p", [one.p for one in found], P_VALUE, "p"),
                Column("units", [one.other.units for one in found], only="data"),
            ),
            labels=2,
            note=f"{percent(self.level)} intervals over {self.unit}s, of the difference too;"
            f" p adjusted by {self.correction} for {counted(len(found), 'difference')}; where users are unequally"
            " active, simulated 95% intervals of a difference held in 91 to 100% (docs/calibration.md)",
        )
        return table, self.made(*(f"not compared, {metric}: {why}" for metric, why in self.refused))

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        return {**super().facts(), "refused": {str(metric): why for metric, why in self.refused}}


def in_metric(estimate: OnlineEstimate) -> Show:
    """Write differences of a metric with a sign, and as many decimals as its estimate deserves."""
    return in_unit(estimate.metric.unit, decimals_of(estimate), "+")


def difference_columns(
    rows: Sequence[tuple[OnlineEstimate, RatioDifference]], name: str = "difference", title: str | None = None
) -> tuple[Column, ...]:
    """Lay out differences in the units of their metrics, with signs."""
    each = [in_metric(estimate) for estimate, _ in rows]
    made = [difference for _, difference in rows]
    return (Column(name, [one.value for one in made], each[0] if each else P_VALUE, title,
                   ci=[(one.low, one.high) for one in made], each=each),)  # fmt: skip


def difference(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    by: str | None = None,
    baseline: str | None = None,
    since: str | None = None,
    where: str | None = None,
    objects: Any = None,
    unit: Unit = "user",
    level: float = 0.95,
    correction: str = "holm",
    settings: FactSettings | None = None,
) -> LogDifference:
    """Compare slices of a log with a baseline, or what came later with what was before: each difference is tested.

    A user may be on both sides, as in two weeks of one shop: how alike the two sides of a user are counts in the
    interval. Slices of their own making are not an experiment: users who chose a device differ in more than that.

    Parameters
    ----------
    log
        The log.
    metrics
        Ratios such as ``PageCTR``; None: the five first of `HEADLINES` that the log can tell.
    by
        What to slice by (see `judged.online.slicing.slice_pages`); None: by time, before and since.
    baseline
        The slice that the others are compared with; None: the first one, and of two periods the earlier.
    since
        When the later period begins; None: see `judged.online.difference.periods`.
    where
        Only pages that meet this condition count: see `judged.online.online_metrics`.
    objects
        When results were made, to slice by ``freshness``.
    unit
        What intervals are made over.
    level
        Of the intervals.
    correction
        For how many differences are tested, a name in `judged.stats.correction.CORRECTIONS`.
    settings
        What counts as belonging together.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If there is no such slice, nothing to compare it with, or an option makes no sense.
    """
    need(log=log, by=by, baseline=baseline, since=since, where=where, unit=unit, level=level)
    one_of("correction", correction, CORRECTIONS)
    if by is not None and since is not None:
        raise InputError("slices and periods are two comparisons", fix="give by, or since")
    settings = settings or FactSettings()
    told, refused = comparable(metrics, log, unit)
    names: tuple[str, ...] = (BEFORE, AFTER)
    with log.engine.scratch():
        if by is None:
            span = periods(log, since)
            slices, first = span.slices(log), {"periods": str(span)}
        else:
            cut = slice_pages(log, by, objects=objects)
            slices, names, first = cut.table, cut.values, {"slices": cut.note}
        chosen, said = (None, "") if where is None else pages_where(log, where)
        if len(names) < 2:
            raise InputError(f"{by} has one value: nothing to compare it with", fix="slice by another", path=log.name)
        base = names[0] if baseline is None else one_of("slice", baseline, names)
        pages = metric_pages(log, told, settings, slices=slices, chosen=chosen)
        found = compared(pages, told, names, base, unit, level, correction)
    return LogDifference(
        by=by,
        baseline=base,
        found=tuple(found),
        refused=tuple(refused.items()),
        correction=correction,
        **about(log, unit, level, {"where": said, **first}, settings),
    )


def headlines(log: InteractionLog, unit: Unit = "user") -> tuple[OnlineMetric, ...]:
    """Give the five first of `HEADLINES` that a log can tell."""
    told = {
        str(one)
        for one in split_supported([online_metric(name) for group in HEADLINES for name in group], log, unit)[0]
    }
    firsts = (next((name for name in group if name in told), None) for group in HEADLINES)
    return tuple(online_metric(name) for name in firsts if name is not None)[:_FIVE]


def comparable(
    metrics: Any, log: InteractionLog, unit: Unit, *, kinds: Sequence[Kind] = ("ratio",)
) -> tuple[tuple[OnlineMetric, ...], dict[OnlineMetric, str]]:
    """Part the metrics that can be compared, for None the headlines, from those that cannot, with the reason."""
    if metrics is None:
        return headlines(log, unit), {}
    names = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    told, refused = split_supported(online_metrics_named(names), log, unit)
    not_ratios = {one: "it is no ratio of two sums" for one in told if one.kind not in kinds}
    return tuple(one for one in told if one not in not_ratios), dict(refused) | not_ratios


def compared(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    names: Sequence[str],
    baseline: str,
    unit: Unit,
    level: float,
    correction: str,
) -> list[MetricDifference]:
    """Compare slices with a baseline, by slice, then metric; p-values allow for how many there are."""
    parts = unit_sums(pages, metrics, unit, sliced=True)
    found = [one for sums, of in parts for one in _differences(sums, of, unit, baseline, names, level)]
    order = {(name, metric): at for at, (name, metric) in enumerate((n, m) for n in names for m in metrics)}
    found.sort(key=lambda one: order[one.other.slice or "", one.metric])
    adjusted = adjust([one.difference.p for one in found], correction).tolist()
    return [replace(one, p=p) for one, p in zip(found, adjusted, strict=True)]


def _differences(
    sums: UnitSums, metrics: Sequence[OnlineMetric], unit: Unit, baseline: str, names: Sequence[str], level: float
) -> list[MetricDifference]:
    """Compare every slice with the baseline."""
    found = moments(sums, metrics)
    estimates = {(one.slice, str(one.metric)): one for one in ratios(sums, metrics, level)}
    of = {metric: ratio_sums(found, metric) for metric in metrics}
    made: list[MetricDifference] = []
    for name in names:
        if name == baseline:
            continue
        products = shared_products(sums, metrics, unit, baseline, name)
        for metric in metrics:
            first, second = of[metric].get(baseline), of[metric].get(name)
            if first is None or second is None:
                continue
            rho = correlation(first, second, *products[metric]) if first.d and second.d else 0.0
            kinds = interval_options(metric)
            between = ratio_difference(first, second, level, rho=rho, **kinds)
            before, other = estimates[baseline, str(metric)], estimates[name, str(metric)]
            made.append(MetricDifference(metric, before, other, between, between.p))
    return made
