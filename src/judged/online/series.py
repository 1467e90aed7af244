"""Metrics over time: control limits, unusual periods, and change points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judged.errors import InputError
from judged.online.estimation.online_metrics import online_metrics
from judged.online.estimation.over_time import Series, build_series, format_start
from judged.online.findings import describe_log, describe_method, describe_missing
from judged.online.layout import UNITS, estimate_column, estimate_decimals, estimates_table, percent, unit_show
from judged.online.log import validate
from judged.online.metrics import OnlineMetric
from judged.online.slicing import bucket_starts
from judged.online.statistics.control import MIN_POINTS
from judged.results import (
    NUMBER,
    TEXT,
    YES_NO,
    Answer,
    Chart,
    Column,
    Section,
    Sentences,
    Show,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import ReferenceLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.log import InteractionLog
    from judged.online.scores import OnlineScores
    from judged.online.statistics.control import Signal
    from judged.results import Block
    from judged.results.blocks import Note


def over_time(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric,
    *,
    every: Literal["hour", "day", "week"] = "day",
    warm_up: int | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    **options: Any,
) -> OverTime:
    """Compute metrics over time, with control limits, unusual periods, and change points.

    Parameters
    ----------
    log
        The log.
    metrics
        One or several metrics or their names.
    every
        Length of a period, in UTC; weeks begin on Mondays.
    warm_up
        Number of complete periods at the beginning that determine the control limits. None: the periods before the
        first change point, or all periods without one or if it is too early.
    alpha
        Probability of finding a change point in a series without one.
    seed
        Seed of the permutation test for change points.
    **options
        Options of `online_metrics`: ``where``, ``unit``, ``level``, ``settings``, ``progress``.

    Returns
    -------
    OverTime

    Raises
    ------
    InputError
        If the log has no timestamps, supports none of the metrics, or an option is invalid.
    MeasureError
        If a metric is unknown.
    """
    requested = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    validate(log=log, metrics=requested, every=every, warm_up=warm_up, alpha=alpha, seed=seed)
    if unsupported := {"by", "documents"} & set(options):
        raise InputError(f"`{min(unsupported)}` is not supported for time series", fix="omit this option")
    if not log.has_time:
        raise InputError("the log has no timestamps", fix="use a log with timestamps", path=", ".join(log.files))
    if not log.dated:
        problem = "a time series requires dates, but the log has only times of day"
        raise InputError(problem, fix="use a log with dates", path=", ".join(log.files))
    if not (names := list(requested or ())):
        raise InputError("`metrics` is empty", fix="use the name of a metric, such as PageCTR")
    scores = online_metrics(log, names, by=every, **options)
    if not scores.estimates:
        metric, reason = scores.refused[0]
        raise InputError(
            f"{metric} is not supported: {reason}", fix="list the supported metrics with 'judged logs check'"
        )
    span = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    series: list[Series] = []
    for metric in scores.metrics:
        periods = [row for row in scores.estimates if row.metric == metric and row.slice is not None]
        # Slices are labels of periods; the series needs their start times.
        starts = bucket_starts([row.slice or "" for row in periods])
        test_options: Any = {"period": every, "warm_up": warm_up, "alpha": alpha, "seed": seed}
        pairs = list(zip(starts, periods, strict=True))
        series.append(build_series(pairs, covered=(span["first"], span["last"]), **test_options))
    return OverTime(scores.unsliced(), tuple(series), scores.notes)


_MAX_DECIMALS = 6
_COLORS = {"in control": "#0072B2", "signal": "#D55E00", "incomplete": "#7F7F7F"}


@dataclass(frozen=True, eq=False, repr=False)
class OverTime(Answer):
    """Metrics over time: result of `over_time`.

    The main table, ``periods``, has one row per metric and period.

    Attributes
    ----------
    scores : OnlineScores
        Metrics over all periods, with CTR by rank and the description of the log.
    series : tuple of Series
        Values of each metric by period.
    """

    kind: ClassVar[str] = "over-time"
    main: ClassVar[str] = "periods"
    stacked: ClassVar[bool] = True

    scores: OnlineScores
    series: tuple[Series, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{', '.join(str(series.metric) for series in self.series)} by {self.series[0].period}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Control limits, unusual periods, and changes, metric by metric."""
        return tuple(sentence for series in self.series for sentence in sentences_of(series, self.scores.over))

    def of(self, metric: str | OnlineMetric) -> Series:
        """Return the series of a metric.

        Raises
        ------
        KeyError
            If there is no such series.
        """
        for series in self.series:
            if str(series.metric) == str(metric):
                return series
        raise KeyError(str(metric))

    def blocks(self) -> tuple[Block, ...]:
        """Return a section per metric with its chart and periods, and CTR by rank for click metrics."""
        scores = self.scores
        ranks = scores.ranks_blocks()[1:] if scores.biased and scores.ranks else ()
        return (
            Sentences(describe_log(scores)),
            *(self._section(number, series) for number, series in enumerate(self.series, 1)),
            *ranks,
            Sentences((*describe_missing(scores), f"{describe_method(scores)}."), "method"),
            *self._data(),
            *scores.background(),
        )

    def facts(self) -> dict[str, Any]:
        """Return the log, the options, and the length of a period."""
        return {**self.scores.facts(), "every": self.series[0].period}

    def series_chart(self, number: int, series: Series) -> Chart:
        """Return the chart of a series; `number` makes its name unique."""
        name = str(series.metric)
        lines = [ReferenceLine("x", series.points[change.point].start_ms) for change in series.changes]
        lines += [] if math.isnan(series.center) else [ReferenceLine("y", series.center)]
        return Chart(
            f"series{number}",
            f"{name} by {series.period}",
            _periods_table([series], self.scores.over),
            " ".join(sentences_of(series, self.scores.over)),
            kind="points",
            x="start_ms",
            x_title=f"{series.period} (UTC)",
            y="value",
            y_title=name,
            color="kind",
            colors=_COLORS,
            path="in_chart",
            steps="linear",
            band="center",
            lines=tuple(lines),
            spread="time",
            percent="y" if series.metric.unit == "share" else "",
            includes={"x": tuple(float(other.points[end].start_ms) for other in self.series for end in (0, -1))},
            subtitle=f"{percent(self.scores.level)} CIs; gray: control limits; dashed: center line and level changes",
            height=200,
        )

    def _section(self, number: int, series: Series) -> Section:
        chart, sentences = self.series_chart(number, series), sentences_of(series, self.scores.over)
        return Section(chart.name, str(series.metric), (chart, chart.table, Sentences(sentences)))

    def _data(self) -> tuple[Table, ...]:
        control = ("center", NUMBER), ("sigma_z", NUMBER), ("base", UNITS), ("run", UNITS), ("alpha", NUMBER)
        signals = [(series, signal) for series in self.series for signal in series.signals]
        changes = [(series, change) for series in self.series for change in series.changes]
        tables = {
            "control": (_metric_column(self.series), *columns_of(self.series, *control)),
            "signals": (
                _metric_column([series for series, _ in signals]),
                Column("rule", [signal.rule for _, signal in signals], TEXT),
                Column("start_ms", [series.points[signal.point].start_ms for series, signal in signals], UNITS),
                Column("since_ms", [series.points[signal.first].start_ms for series, signal in signals], UNITS),
                Column("side", [signal.side for _, signal in signals], TEXT),
            ),
            "changes": (
                _metric_column([series for series, _ in changes]),
                Column("start_ms", [series.points[change.point].start_ms for series, change in changes], UNITS),
                *columns_of([change for _, change in changes], ("before", NUMBER), ("after", NUMBER), ("p", NUMBER)),
            ),
        }
        return (
            replace(_periods_table(self.series, self.scores.over), name="periods", only="data"),
            *(Table(name, columns, only="data") for name, columns in tables.items()),
            replace(estimates_table(self.scores), only="data"),
        )


def _metric_column(series_list: Sequence[Series]) -> Column:
    return Column("metric", [str(series.metric) for series in series_list], TEXT, only="data")


def _periods_table(series_list: Sequence[Series], over: str) -> Table:
    """Build the table with one row per metric and period."""
    first = series_list[0]
    points = [(series, point) for series in series_list for point in series.points]
    formats = [unit_format for series in series_list for unit_format in [_series_format(series)] * len(series.points)]
    estimates = [point.estimate for _, point in points]
    limits = [None if math.isnan(point.low_limit) else (point.low_limit, point.high_limit) for _, point in points]
    writers = [unit_format.limit or unit_format.write for unit_format in formats]
    limit_texts = [
        pair and f"[{write(pair[0])}, {write(pair[1])}]" for write, pair in zip(writers, limits, strict=True)
    ]
    notes = [note for series in series_list for note in notes_of(series)]
    width = max(map(len, notes))  # Cells are right-aligned; padding aligns the notes to the left.
    columns = (
        _metric_column([series for series, _ in points]),
        Column("start", [format_start(point.start_ms, first.period) for _, point in points], TEXT,
               f"{first.period} (UTC)"),
        *columns_of([point for _, point in points], "start_ms", "complete"),
        replace(estimate_column(estimates, "value", str(first.metric)), each=formats),
        Column("limits", limit_texts, TEXT, "control limits", only="people"),
        Column("center", [pair and series.center for (series, _), pair in zip(points, limits, strict=True)], NUMBER,
               ci=limits, only="data"),
        Column("error", [estimate.error for estimate in estimates], NUMBER, only="data"),
        *columns_of(estimates, "numerator", "denominator", ("units", UNITS, f"{over}s")),
        Column("kind", [kind for series in series_list for kind in _kinds(series)], TEXT, only="data"),
        Column("note", notes, Show(f"{{:<{width}}}".format, "string"), "note".ljust(width)),
        Column("in_chart", [not math.isnan(estimate.value) for estimate in estimates], YES_NO, only="json"),
    )  # fmt: skip
    return Table(f"by_{first.period}", columns, labels=2, only="people")


def _kinds(series: Series) -> list[str]:
    kinds = dict.fromkeys((signal.point for signal in series.signals), "signal")
    kinds |= {i: "incomplete" for i, point in enumerate(series.points) if not point.complete}
    return [kinds.get(i, "in control") for i in range(len(series.points))]


def _series_format(series: Series) -> Show:
    """Return the number format of a series: with the decimals of its most precise period."""
    decimals = [estimate_decimals(row.estimate) for row in series.points if not math.isnan(row.estimate.value)]
    return unit_show(series.metric.unit, min(max(decimals, default=1), _MAX_DECIMALS))


def notes_of(series: Series) -> list[str]:
    """Return a note for each period, empty if there is nothing unusual."""
    notes: list[list[str]] = [[] if point.complete else ["incomplete"] for point in series.points]
    for signal in series.signals:
        notes[signal.point].append(_describe_signal(signal))
    write = _series_format(series).write
    for change in series.changes:
        notes[change.point].append(f"level changes from {write(change.before)} to {write(change.after)}")
    return ["; ".join(note) for note in notes]


def _describe_signal(signal: Signal) -> str:
    if signal.rule == "nelson-1":
        return f"{signal.side} the control limits"
    return f"{counted(signal.point - signal.first + 1, 'period')} in a row {signal.side} the center"


def sentences_of(series: Series, over: str) -> tuple[str, ...]:
    """Describe control limits, unusual periods, and change points, or why there are no limits."""
    period, write = series.period, _series_format(series).write
    if math.isnan(series.center):
        return (f"No control limits: {_no_limits_reason(series, over)}.",)
    starts = [format_start(point.start_ms, period) for point in series.points]
    unusual = sorted({signal.point for signal in series.signals})
    more = f" and {len(unusual) - 5} more" if len(unusual) > 5 else ""
    center = f"The center line of {series.metric} is {write(series.center)}, the mean of {series.base} {period}s."
    ratio = f"{series.sigma_z:.1f} times as much as expected from the sample of {over}s"
    return (
        f"{center} The {period}s vary {ratio}; the control limits include this variation.",
        f"Signals on: {', '.join(starts[i] for i in unusual[:5])}{more}." if unusual else "No signals.",
        *(
            f"Change of the level at {starts[change.point]}: from {write(change.before)} to {write(change.after)},"
            f" p = {change.p:.2g}."
            for change in series.changes
        ),
    )


def _no_limits_reason(series: Series, over: str) -> str:
    periods = f"complete {series.period}s"
    estimates = [row.estimate for row in series.points if row.complete and not math.isnan(row.estimate.value)]
    if len(estimates) < MIN_POINTS:
        return f"at least {MIN_POINTS} {periods} are required, got {len(estimates)}"
    if not any(estimate.error > 0 for estimate in estimates):
        return f"the standard error over {over}s is 0 or missing in each of {len(estimates)} {periods}"
    if series.base < MIN_POINTS:
        return f"at least {MIN_POINTS} {periods} at the start must have a value, got {series.base}"
    return f"{series.metric} has the same value in each of {series.base} {periods}"
