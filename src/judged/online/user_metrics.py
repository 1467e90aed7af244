"""`user_metrics`: metrics of users, each with its test for a change by day, by rank, and by slice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from judged.errors import InputError
from judged.online.differences import headline_metrics
from judged.online.engine import identifier
from judged.online.estimation.online_metrics import online_metrics
from judged.online.estimation.over_time import format_start
from judged.online.findings import describe_log, describe_method, describe_missing
from judged.online.layout import (
    RANK_CAVEAT,
    UNITS,
    definitions,
    describe_decline,
    estimate_column,
    estimate_decimals,
    estimates_table,
    format_interval,
    percent,
    ranks_chart,
    ranks_table,
    unit_show,
)
from judged.online.log import validate
from judged.online.metrics import OnlineMetric, online_metric, online_metrics_named
from judged.online.scores import check_has_estimates
from judged.online.series import over_time, sentences_of
from judged.online.slicing.columns import MAX_VALUES
from judged.online.statistics.control import MIN_POINTS
from judged.results import TEXT, Answer, Axis, Column, Headline, Section, Sentences, Table, columns_of, counted
from judged.results.decimals import p_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from judged.online.estimation.over_time import Series
    from judged.online.layout import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.online.scores import OnlineScores
    from judged.online.series import OverTime
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.headline import Status

_ALPHA = 0.01  # probability to detect a change of any metric, if no metric changes
_FIRST, _LAST = ("PageCTR",), ("DwellTime(q=0.5)",)  # metrics before and after the headline metrics
_COLUMNS = ("variant", "experiment", "device", "language", "application", "ranker")
_TEXT_SLICES = ("words", "query class", "script", "traffic", "seen")
_TIME_SLICES = ("weekday", "hour of day")


@dataclass(frozen=True, eq=False, repr=False)
class UserMetrics(Answer):
    """Metrics of users: result of `user_metrics`.

    Attributes
    ----------
    scores : OnlineScores
        Metrics and CTR by rank, by slice if there are slices.
    time : OverTime or None
        Metrics by day; None if the log has no dates.
    metric : OnlineMetric
        Metric of the headline and of the charts.
    attributes : tuple of str
        Slicing attributes of this log.
    """

    kind: ClassVar[str] = "user-metrics"
    main: ClassVar[str] = "overview"

    scores: OnlineScores
    time: OverTime | None
    metric: OnlineMetric
    attributes: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Metrics: {self.scores.log}"

    @property
    def headline(self) -> Headline:
        """Estimate of the metric, and the test for a change of its level by day."""
        estimate, series = self.scores.of(self.metric), self._series(self.metric)
        counts = dict(self.scores.counts)
        sample = f"{counted(counts['pages'], 'page')} of {counted(counts['users'], 'user')}"
        status, word = level_status(estimate, series)
        days = 0 if series is None else sum(point.complete for point in series.points)
        if status == "same":
            sentence = f"No significant change of {self.metric} in {counted(days, 'day')} ({sample})."
        elif series is not None and series.changes:
            change, write = series.changes[-1], unit_show(self.metric.unit, estimate_decimals(estimate)).write
            sentence = f"{self.metric} changed from {write(change.before)} to {write(change.after)}"
            sentence += f" (p {p_text(change.p, None)})."
        elif status == "unknown":
            sentence = f"The log has no value of {self.metric}."
        else:
            sentence = f"Estimate from {sample}; a test for a change requires {MIN_POINTS} complete days, got {days}."
        return Headline(
            status,
            word,
            sentence,
            f"{self.metric}: {self.metric.title[:1].lower()}{self.metric.title[1:]}",
            estimate.value,
            unit_show(self.metric.unit, estimate_decimals(estimate)),
            _interval(estimate),
            self.scores.level,
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the metrics, the selected metric by day, CTR by rank, and the metrics by slice."""
        scores, overall, series = self.scores, self.scores.unsliced(), self._series(self.metric)
        sentences = (*describe_log(scores), *(sentences_of(series, scores.over) if series is not None else ()))
        ranks = ranks_table(overall)
        day_chart: list[Block] = []
        if self.time is not None and series is not None:
            note = "Dashed: mean, and changes of the level. Gray: control limits."
            day_chart.append(replace(self.time.series_chart(1, series), sentence=note, subtitle=""))
        rank_chart = replace(ranks_chart(overall, ranks), title="CTR by rank", sentence=describe_decline(scores.ranks))
        return (
            Sentences((*sentences, *((RANK_CAVEAT,) if scores.ranks else ()), *describe_missing(overall))),
            Section("all_metrics", "Main metrics", (self._metrics_table(overall),)),
            *day_chart,
            *((rank_chart,) if scores.ranks else ()),
            *((self._slices_table(),) if scores.by is not None else ()),
            Sentences((f"{describe_method(scores)}.",), "method", "Method", folded=True),
            definitions(overall.metrics),
            *((replace(self.time.tables()["periods"], only="data"),) if self.time is not None else ()),
            *(replace(table, only="data") for table in (estimates_table(scores), ranks)),
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the log, the options, and the selected metric."""
        return {**self.scores.facts(), "metric": str(self.metric), "attributes": list(self.attributes)}

    def _series(self, metric: OnlineMetric) -> Series | None:
        return None if self.time is None else next((row for row in self.time.series if row.metric == metric), None)

    @property
    def _interval_name(self) -> str:
        return f"{percent(self.scores.level)} CI"

    def _metrics_table(self, overall: OnlineScores) -> Table:
        estimates = overall.estimates
        levels = [level_status(row, self._series(row.metric)) for row in estimates]
        statuses: list[Status] = [status for status, _ in levels]
        values = estimate_column(estimates, "value", "value")
        return Table(
            "overview",
            (
                Column("metric", [str(row.metric) for row in estimates], TEXT),
                Column("title", [row.metric.title for row in estimates], TEXT, "meaning"),
                replace(values, name="shown", ci=None, only="people"),
                Column("interval", list(map(format_interval, estimates)), TEXT, self._interval_name, only="people"),
                replace(values, only="data"),
                Column("level", [word for _, word in levels], TEXT, "by day", statuses=statuses),
                *columns_of(estimates, "denominator", "units"),
            ),
            kinds=["selected" if row.metric == self.metric else "" for row in estimates],
        )

    def _slices_table(self) -> Table:
        """Build the table of slices: the selected metric with its drawn interval, and the other metrics."""
        scores = self.scores
        names = list(scores.labels)
        estimates = {(row.metric, row.slice): row for row in scores.estimates}
        selected = [estimates.get((self.metric, name)) for name in names]
        column = estimate_column(selected, "selected", str(self.metric))
        others = [metric for metric in scores.metrics if metric != self.metric]
        pages = {None: dict(scores.counts)["pages"], **dict(scores.slices)}
        return Table(
            "by_slice",
            (
                Column("slice", list(scores.labels.values()), TEXT, scores.by),
                Column("pages", [pages[name] for name in names], UNITS),
                replace(column, axis=Axis.over(column.values, column.ci or (), self._interval_name)),
                *(_plain_column(metric, [estimates.get((metric, name)) for name in names]) for metric in others),
            ),
            f"Metrics by {scores.by}",
            note="Slices are not tested against each other: to test, use 'judged online difference'",
            only="people",
        )


def _plain_column(metric: OnlineMetric, rows: Sequence[OnlineEstimate | None]) -> Column:
    """Return the column of a metric without intervals, which are in the data."""
    return replace(estimate_column(rows, str(metric)), ci=None)


def _interval(estimate: OnlineEstimate) -> tuple[float, float] | None:
    return None if math.isnan(estimate.low) else (estimate.low, estimate.high)


def level_status(estimate: OnlineEstimate, series: Series | None) -> tuple[Status, str]:
    """Return the status of a metric by the test for changes of its level by day, in words.

    ``better`` and ``worse``: the last change, for metrics with a preferred direction; ``same``: no change was detected;
    ``info``: the log does not have enough days.
    """
    if math.isnan(estimate.value):
        return "unknown", "no data"
    if series is None or math.isnan(series.center):
        return "info", "estimate"
    if not series.changes:
        return "same", "no significant change"
    change = series.changes[-1]
    direction = 1 if change.after > change.before else -1
    start = format_start(series.points[change.point].start_ms, series.period)
    statuses: dict[int, Status] = {1: "better", 0: "info", -1: "worse"}
    status = statuses[direction * estimate.metric.better]
    return status, f"{'higher' if direction > 0 else 'lower'} since {start}"


def user_metrics(
    log: InteractionLog, metric: str | OnlineMetric | None = None, *, by: str | None = None, level: float = 0.95
) -> UserMetrics:
    """Compute the main metrics of users: overall, by day, by rank, and by slice.

    Parameters
    ----------
    log
        The log.
    metric
        Metric of the headline and of the charts, for example one that is not among the main metrics. None: the first of
        the main metrics that the log supports.
    by
        Slicing attribute; see `judged.online.slicing.slice_pages`.
    level
        Confidence level.

    Raises
    ------
    InputError
        If the log does not support the metric, or the slicing attribute does not exist.
    MeasureError
        If the metric is unknown.

    Notes
    -----
    The tests for changes by day are corrected for the number of metrics (Bonferroni): if no metric changes, a change is
    detected with a probability of 1%, or up to 2% for autocorrelated days.
    """
    validate(log=log, by=by, level=level)
    requested = None if metric is None else online_metric(metric)
    names = [*_FIRST, *headline_metrics(log), *_LAST, *([] if requested is None else [requested])]
    metrics = online_metrics_named(names)
    time = None
    if log.has_time and log.dated:
        time = over_time(log, metrics, alpha=_ALPHA / len(metrics), level=level)
    if time is None or by is not None:
        scores = check_has_estimates(online_metrics(log, metrics, by=by, level=level))
    else:
        scores = time.scores
    if requested is not None and requested not in scores.metrics:
        raise InputError(f"{requested} is not supported: {dict(scores.refused)[requested]}", fix="use another metric")
    selected = scores.metrics[0] if requested is None else requested
    return UserMetrics(scores, time, selected, slicing_attributes(log), scores.notes)


def slicing_attributes(log: InteractionLog) -> tuple[str, ...]:
    """Return the attributes by which a log has at least two slices, and attributes that are derived from queries."""
    names = [name for name in dict.fromkeys((*_COLUMNS, *log.attributes)) if name in log.serp.columns]
    counts = ", ".join(f"count(DISTINCT {identifier(name)}) AS n{i}" for i, name in enumerate(names))
    row = log.engine.rows(f"SELECT {counts} FROM {log.serp}")[0] if names else {}
    columns = [name for name, count in zip(names, row.values(), strict=True) if 1 < count <= MAX_VALUES]
    derived = _TEXT_SLICES if "queries" in log.has else ()
    return (*columns, *derived, *(_TIME_SLICES if log.dated and log.has_time else ()))
