"""Differences of metrics between slices or periods of a log, with significance tests."""

from __future__ import annotations

import itertools
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
from judged.online.layout import estimate_column, estimate_decimals, percent, unit_show
from judged.online.log import LogAnswer, answer_fields, validate
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
    """Two periods of equal length, unless the log begins too late; times in milliseconds since 1970.

    Parameters
    ----------
    begin, since, end
        The first period is ``[begin, since)``, the second ``[since, end)``.
    """

    begin: int
    since: int
    end: int

    @property
    def whole_weeks(self) -> bool:
        """Whether both periods consist of complete weeks."""
        return (self.since - self.begin) % _WEEK == 0 and (self.end - self.since) % _WEEK == 0

    @property
    def sql(self) -> str:
        """SQL expression of the period of a page by its ``time_ms``; null outside of both."""
        in_range = f"time_ms >= {self.begin} AND time_ms < {self.end}"
        return f"CASE WHEN {in_range} THEN CASE WHEN time_ms < {self.since} THEN '{BEFORE}' ELSE '{AFTER}' END END"

    def slices(self, log: InteractionLog) -> Relation:
        """Return ``serp`` and ``slice`` of the pages in the two periods."""
        return log.engine.query(f"SELECT serp, {self.sql} AS slice FROM {log.serp} WHERE ({self.sql}) IS NOT NULL")

    @property
    def compared(self) -> str:
        """The compared periods, with a warning if weekdays may differ."""
        weeks = "" if self.whole_weeks else "; the periods are not whole weeks and may contain different weekdays"
        return f"{self} (UTC){weeks}"

    def __str__(self) -> str:
        later = f"{_format_time(self.since)} to {_format_time(self.end - 1)}"
        return f"{later}, compared with the period from {_format_time(self.begin)}"


def periods(log: InteractionLog, since: str | None = None) -> Periods:
    """Split a log into two periods.

    Parameters
    ----------
    log
        The log.
    since
        Date, or date and time (UTC), at which the second period begins; it ends with the log. None: a week before the
        last page, or the middle of a log of less than two weeks.

    Raises
    ------
    InputError
        If the log has no dates, `since` is not a date, or a period has no pages.

    Examples
    --------
    >>> day = 86_400_000
    >>> Periods(0, 7 * day, 14 * day).whole_weeks, str(Periods(0, day, 3 * day))
    (True, '1970-01-02 00:00 to 1970-01-03 23:59, compared with the period from 1970-01-01 00:00')
    """
    if not (log.has_time and log.dated):
        raise InputError(
            "the log has no dates, so periods cannot be compared", fix="compare slices instead", path=log.name
        )
    extent = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    if extent["first"] is None or extent["first"] == extent["last"]:
        raise InputError(
            "all pages of the log have the same time, so periods cannot be compared",
            fix="compare slices instead",
            path=log.name,
        )
    first, end = int(extent["first"]), int(extent["last"]) + 1
    if since is None:
        # A log of two weeks rarely begins at midnight, so a day less is accepted.
        length = _WEEK if end - first >= 2 * _WEEK - _DAY else (end - first) // 2
        return Periods(end - 2 * length, end - length, end)
    start = _parse_time(since)
    if not first < start < end:
        extent_text = f"{_format_time(first)} to {_format_time(end - 1)}"
        raise InputError(
            f"the log has no pages before or no pages after {since}",
            fix=f"use a time within {extent_text}",
            path=log.name,
        )
    # As long as the second period, if the log goes back so far.
    return Periods(max(first, 2 * start - end), start, end)


def _parse_time(since: str) -> int:
    try:
        time = datetime.fromisoformat(since)
    except ValueError:
        raise InputError(
            f"the start of the period must be a date, got {since!r}",
            fix="write the date as 2024-05-31 or 2024-05-31T09:00",
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _format_time(time_ms: int) -> str:
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
"""Most important metrics; of each group, the first that a log supports."""

_MAX_HEADLINES = 5


@dataclass(frozen=True)
class MetricDifference:
    """Difference of a metric between two slices.

    Parameters
    ----------
    metric
        The metric.
    baseline, other
        Estimates of both slices.
    difference
        `other` minus `baseline`, with a confidence interval and p-value from the same test.
    p
        Adjusted p-value; NaN if not available.
    """

    metric: OnlineMetric
    baseline: OnlineEstimate
    other: OnlineEstimate
    difference: RatioDifference
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class LogDifference(LogAnswer):
    """Differences of metrics between slices of a log and a baseline, with significance tests.

    Parameters
    ----------
    by
        Slicing attribute; None: time.
    baseline
        Slice with which the other slices are compared.
    differences
        Differences, ordered by slice, then metric.
    refused
        Unsupported metrics, with the reason.
    correction
        Correction of p-values for multiple tests.
    """

    kind: ClassVar[str] = "log-difference"
    title_format: ClassVar[str] = "Differences from {baseline}: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("by", "baseline", "correction")

    by: str | None
    baseline: str
    differences: tuple[MetricDifference, ...]
    refused: tuple[tuple[OnlineMetric, str], ...]
    correction: str

    def blocks(self) -> tuple[Block, ...]:
        """Return the table of differences and the block about the method."""
        differences = self.differences
        n_differences = counted(len(differences), "difference")
        adjustment = (
            f"p not adjusted for {n_differences}"
            if self.correction == "none"
            else f"p adjusted for {n_differences} (correction: {self.correction})"
        )
        estimates = [row.other for row in differences]
        table = Table(
            "differences",
            (
                Column("metric", [str(row.metric) for row in differences], TEXT),
                Column("slice", [estimate.slice for estimate in estimates], TEXT),
                estimate_column([row.baseline for row in differences], "baseline", self.baseline),
                estimate_column(estimates, "value", "value"),
                *difference_columns([(row.other, row.difference) for row in differences]),
                Column("p", [row.p for row in differences], P_VALUE, "p"),
                Column("units", [estimate.units for estimate in estimates], only="data"),
            ),
            labels=2,
            note=f"{percent(self.level)} confidence intervals over {self.unit}s;"
            f" {adjustment}; in simulations with unequally active users, 91% to 100% of the 95% CIs of a difference"
            " covered the true value (docs/calibration.md)",
        )
        return table, self.method_block(*(f"{metric} is not compared: {reason}" for metric, reason in self.refused))

    def facts(self) -> Mapping[str, Any]:
        """Return the options and the unsupported metrics."""
        return {**super().facts(), "refused": {str(metric): reason for metric, reason in self.refused}}


def difference_format(estimate: OnlineEstimate) -> Show:
    """Return the number format of differences of a metric: with a sign, and the decimals of the estimate."""
    return unit_show(estimate.metric.unit, estimate_decimals(estimate), "+")


def difference_columns(
    rows: Sequence[tuple[OnlineEstimate, RatioDifference]], name: str = "difference", title: str | None = None
) -> tuple[Column, ...]:
    """Build the column of differences with intervals, in the units of their metrics."""
    formats = [difference_format(estimate) for estimate, _ in rows]
    values, intervals = [row.value for _, row in rows], [(row.low, row.high) for _, row in rows]
    return (Column(name, values, formats[0] if formats else P_VALUE, title, ci=intervals, each=formats),)


def difference(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    by: str | None = None,
    baseline: str | None = None,
    since: str | None = None,
    where: str | None = None,
    documents: Any = None,
    unit: Unit = "user",
    level: float = 0.95,
    correction: str = "holm",
    settings: FactSettings | None = None,
) -> LogDifference:
    """Compare slices of a log with a baseline, or a period with the one before, and test each difference.

    If users occur in both slices, the interval accounts for the correlation. Slices are not an experiment: users of
    different devices differ in more than their device.

    Parameters
    ----------
    log
        The log.
    metrics
        Ratios such as ``PageCTR``; None: the first five of `HEADLINES` that the log supports.
    by
        Slicing attribute (see `judged.online.slicing.slice_pages`); None: two periods.
    baseline
        Slice that the others are compared with; None: the first slice, or the earlier period.
    since
        Start of the second period; None: see `judged.online.differences.periods`.
    where
        Condition for pages: see `judged.online.online_metrics`.
    documents
        Documents with dates, to slice by ``freshness``; see `judged.online.slicing.slice_pages`.
    unit
        Independent unit of the confidence intervals.
    level
        Confidence level.
    correction
        Correction for multiple tests, a name in `judged.stats.correction.CORRECTIONS`.
    settings
        Gaps and windows that define sessions, visits, and reformulations.

    Raises
    ------
    MeasureError
        If a metric is unknown.
    InputError
        If the slice is unknown or the only one, or an option is invalid.
    """
    validate(log=log, by=by, baseline=baseline, since=since, where=where, unit=unit, level=level)
    one_of("correction", correction, CORRECTIONS)
    if by is not None and since is not None:
        raise InputError("`by` and `since` cannot be combined", fix="use only `by` or only `since`")
    settings = settings or FactSettings()
    supported, refused = comparable_metrics(metrics, log, unit)
    names: tuple[str, ...] = (BEFORE, AFTER)
    with log.engine.scratch():
        if by is None:
            span = periods(log, since)
            slices, options, warnings = span.slices(log), {"periods": str(span)}, ()
        else:
            slicing = slice_pages(log, by, documents=documents)
            slices, names, options = slicing.table, slicing.values, {"slices": slicing.note}
            warnings = slicing.warnings
        selection, condition = (None, "") if where is None else pages_where(log, where)
        if len(names) < 2:
            raise InputError(f"{by} has only one value", fix="slice by another attribute", path=log.name)
        base = names[0] if baseline is None else one_of("slice", baseline, names)
        pages = metric_pages(log, supported, settings, slices=slices, chosen=selection)
        differences = slice_differences(pages, supported, names, base, unit, level, correction)
    return LogDifference(
        by=by,
        baseline=base,
        differences=tuple(differences),
        refused=tuple(refused.items()),
        correction=correction,
        **answer_fields(log, unit, level, {"where": condition, **options}, settings, warnings),
    )


def headline_metrics(log: InteractionLog, unit: Unit = "user") -> tuple[OnlineMetric, ...]:
    """Return the first five metrics of `HEADLINES` that a log supports."""
    candidates = [online_metric(name) for group in HEADLINES for name in group]
    supported = {str(metric) for metric in split_supported(candidates, log, unit)[0]}
    firsts = (next((name for name in group if name in supported), None) for group in HEADLINES)
    return tuple(online_metric(name) for name in firsts if name is not None)[:_MAX_HEADLINES]


def comparable_metrics(
    metrics: Any, log: InteractionLog, unit: Unit, *, kinds: Sequence[Kind] = ("ratio",)
) -> tuple[tuple[OnlineMetric, ...], dict[OnlineMetric, str]]:
    """Split metrics into those that can be compared, and the others with reasons. None: the headline metrics."""
    if metrics is None:
        return headline_metrics(log, unit), {}
    names = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    supported, refused = split_supported(online_metrics_named(names), log, unit)
    not_ratios = {metric: "this metric is not a ratio of two sums" for metric in supported if metric.kind not in kinds}
    return tuple(metric for metric in supported if metric not in not_ratios), dict(refused) | not_ratios


def slice_differences(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    names: Sequence[str],
    baseline: str,
    unit: Unit,
    level: float,
    correction: str,
) -> list[MetricDifference]:
    """Compare slices with a baseline, ordered by slice, then metric, with p-values corrected for their number."""
    differences: list[MetricDifference] = []
    for sums, group in unit_sums(pages, metrics, unit, sliced=True):
        differences += _differences(sums, group, unit, baseline, names, level)
    order = {key: position for position, key in enumerate(itertools.product(names, metrics))}
    differences.sort(key=lambda row: order[row.other.slice or "", row.metric])
    # The family of tests is all slices and metrics of the call.
    adjusted = adjust([row.difference.p for row in differences], correction).tolist()
    return [replace(row, p=p) for row, p in zip(differences, adjusted, strict=True)]


def _differences(
    sums: UnitSums, metrics: Sequence[OnlineMetric], unit: Unit, baseline: str, names: Sequence[str], level: float
) -> list[MetricDifference]:
    unit_moments = moments(sums, metrics)
    estimates = {(estimate.slice, str(estimate.metric)): estimate for estimate in ratios(sums, metrics, level)}
    sums_by_slice = {metric: ratio_sums(unit_moments, metric) for metric in metrics}
    differences: list[MetricDifference] = []
    for name in names:
        if name == baseline:
            continue
        products = shared_products(sums, metrics, unit, baseline, name)
        for metric in metrics:
            first, second = sums_by_slice[metric].get(baseline), sums_by_slice[metric].get(name)
            if first is None or second is None:
                continue
            # Users in both slices make the two ratios dependent.
            rho = correlation(first, second, *products[metric]) if first.d and second.d else 0.0
            difference = ratio_difference(first, second, level, rho=rho, **interval_options(metric))
            pair = estimates[baseline, str(metric)], estimates[name, str(metric)]
            differences.append(MetricDifference(metric, *pair, difference, difference.p))
    return differences
