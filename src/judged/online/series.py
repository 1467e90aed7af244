"""Metrics over time: each period beside what is usual, what is not, and when the level changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judged.errors import InputError
from judged.online import findings as words
from judged.online.estimation.online_metrics import online_metrics
from judged.online.estimation.over_time import Series, build_series, format_start
from judged.online.layout import UNITS, decimals_of, estimates_table, in_unit, percent, values
from judged.online.log import need
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
    """Follow metrics over time: what is usual for each, what is not, and where its level changed.

    Parameters
    ----------
    log
        The log.
    metrics
        One or several, or their names.
    every
        Length of a period, in UTC; weeks begin on Mondays.
    warm_up
        So many complete periods at the beginning say what is usual; None: those before the first change of level, or
        all where there is none or it comes too soon.
    alpha
        The chance of finding a change of level in a series that has none.
    seed
        Of the random orders that changes are tested with.
    **options
        Of `online_metrics`: ``where``, ``unit``, ``level``, ``settings``, ``progress``.

    Returns
    -------
    OverTime

    Raises
    ------
    InputError
        If the log has no clock, or cannot tell any of the metrics, or an option makes no sense.
    MeasureError
        If there is no such metric.
    """
    given = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    need(log=log, metrics=given, every=every, warm_up=warm_up, alpha=alpha, seed=seed)
    if wrong := {"by", "objects"} & set(options):
        raise InputError(f"{min(wrong)} makes no series", fix="follow metrics over all pages")
    if not log.has_time:
        raise InputError("the log has no clock", fix="take a log with times", path=", ".join(log.files))
    if not log.dated:
        problem = "the log has times of a day and no dates: nothing can be followed over days"
        raise InputError(problem, fix="take a log with dates", path=", ".join(log.files))
    if not (names := list(given or ())):
        raise InputError("no metric is named", fix="give a name, such as PageCTR")
    scores = online_metrics(log, names, by=every, **options)
    if not scores.estimates:
        metric, why = scores.refused[0]
        raise InputError(f"{metric}: {why}", fix="see what the log can tell: judged logs check")
    span = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    series: list[Series] = []
    for metric in scores.metrics:
        periods = [one for one in scores.estimates if one.metric == metric and one.slice is not None]
        starts = bucket_starts([one.slice or "" for one in periods])
        how: Any = {"period": every, "warm_up": warm_up, "alpha": alpha, "seed": seed}
        series.append(
            build_series(list(zip(starts, periods, strict=True)), covered=(span["first"], span["last"]), **how)
        )
    return OverTime(scores.unsliced(), tuple(series), scores.notes)


_MOST = 6  # decimals
_COLORS = {"usual": "#0072B2", "not usual": "#D55E00", "incomplete": "#7F7F7F"}


@dataclass(frozen=True, eq=False, repr=False)
class OverTime(Answer):
    """Metrics over time, and over the whole log: what `over_time` returns.

    Its main table, ``periods``, has one row a metric and period.

    Attributes
    ----------
    scores : OnlineScores
        The metrics over the whole log, with CTR by rank and what the log is.
    series : tuple of Series
        Each metric by period.
    """

    kind: ClassVar[str] = "over-time"
    main: ClassVar[str] = "periods"
    stacked: ClassVar[bool] = True

    scores: OnlineScores
    series: tuple[Series, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return f"{', '.join(str(series.metric) for series in self.series)} by {self.series[0].period}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is usual, what is not, and what changed, metric by metric."""
        return tuple(said for series in self.series for said in sentences_of(series, self.scores.over))

    def of(self, metric: str | OnlineMetric) -> Series:
        """Give the series of one metric.

        Raises
        ------
        KeyError
            If there is none.
        """
        for series in self.series:
            if str(series.metric) == str(metric):
                return series
        raise KeyError(str(metric))

    def blocks(self) -> tuple[Block, ...]:
        """Give a section a metric with its periods and its chart; CTR by rank stands below metrics of clicks."""
        scores = self.scores
        ranks = scores.ranks_blocks()[1:] if scores.biased and scores.ranks else ()
        return (
            Sentences(words.about(scores)),
            *(self._section(at, series) for at, series in enumerate(self.series, 1)),
            *ranks,
            Sentences((*words.missing(scores), f"{words.made(scores)}."), "made"),
            *self._data(),
            *scores.background(),
        )

    def facts(self) -> dict[str, Any]:
        """Give what the log is, what was chosen, and how long a period is."""
        return {**self.scores.facts(), "every": self.series[0].period}

    def _section(self, at: int, series: Series) -> Section:
        name, said, over = str(series.metric), sentences_of(series, self.scores.over), self.scores.over
        table = _periods([series], over)
        lines = [ReferenceLine("x", series.points[change.point].start_ms) for change in series.changes]
        lines += [] if math.isnan(series.center) else [ReferenceLine("y", series.center)]
        chart = Chart(
            f"series{at}",
            f"{name} by {series.period}",
            table,
            " ".join(said),
            kind="points",
            x="start_ms",
            x_title=f"{series.period} (UTC)",
            y="value",
            y_title=name,
            color="kind",
            colors=_COLORS,
            path="drawn",
            steps="linear",
            band="usual",
            lines=tuple(lines),
            spread="time",
            percent="y" if series.metric.unit == "share" else "",
            reach={"x": tuple(float(one.points[end].start_ms) for one in self.series for end in (0, -1))},
            subtitle=f"with {percent(self.scores.level)} intervals; gray: what is usual; dashed: its mean, and changes",
            height=200,
        )
        return Section(f"series{at}", name, (chart, table, Sentences(said)))

    def _data(self) -> tuple[Table, ...]:
        """Lay out the periods of all metrics, what is usual for each, signals and changes."""
        usual = ("center", NUMBER), ("sigma_z", NUMBER), ("base", UNITS), ("run", UNITS), ("alpha", NUMBER)
        signals = [(series, one) for series in self.series for one in series.signals]
        changes = [(series, one) for series in self.series for one in series.changes]
        tables = {
            "usual": (_named(self.series), *columns_of(self.series, *usual)),
            "signals": (
                _named([series for series, _ in signals]),
                Column("rule", [one.rule for _, one in signals], TEXT),
                Column("start_ms", [series.points[one.point].start_ms for series, one in signals], UNITS),
                Column("since_ms", [series.points[one.first].start_ms for series, one in signals], UNITS),
                Column("side", [one.side for _, one in signals], TEXT),
            ),
            "changes": (
                _named([series for series, _ in changes]),
                Column("start_ms", [series.points[one.point].start_ms for series, one in changes], UNITS),
                *columns_of([one for _, one in changes], ("before", NUMBER), ("after", NUMBER), ("p", NUMBER)),
            ),
        }
        return (
            replace(_periods(self.series, self.scores.over), name="periods", only="data"),
            *(Table(name, columns, only="data") for name, columns in tables.items()),
            replace(estimates_table(self.scores), only="data"),
        )


def _named(many: Sequence[Series]) -> Column:
    return Column("metric", [str(series.metric) for series in many], TEXT, only="data")


def _periods(many: Sequence[Series], over: str) -> Table:
    """Lay out one row a metric and period: value, interval, what is usual, and what is not."""
    first = many[0]
    points = [(series, one) for series in many for one in series.points]
    shows = [show for series in many for show in [_show(series)] * len(series.points)]
    estimates = [one.estimate for _, one in points]
    limits = [None if math.isnan(one.low_limit) else (one.low_limit, one.high_limit) for _, one in points]
    ends = [show.limit or show.write for show in shows]
    written = [two and f"[{end(two[0])}, {end(two[1])}]" for end, two in zip(ends, limits, strict=True)]
    notes = [note for series in many for note in notes_of(series)]
    width = max(map(len, notes))  # a text of a table stands right: filled up, it begins where the others do
    columns = (
        _named([series for series, _ in points]),
        Column("start", [format_start(one.start_ms, first.period) for _, one in points], TEXT, f"{first.period} (UTC)"),
        *columns_of([one for _, one in points], "start_ms", "complete"),
        replace(values(estimates, "value", str(first.metric)), each=shows),
        Column("limits", written, TEXT, "usual", only="people"),
        Column("usual", [two and series.center for (series, _), two in zip(points, limits, strict=True)], NUMBER,
               ci=limits, only="data"),
        Column("error", [one.error for one in estimates], NUMBER, only="data"),
        *columns_of(estimates, "numerator", "denominator", ("units", UNITS, f"{over}s")),
        Column("kind", [kind for series in many for kind in _kinds(series)], TEXT, only="data"),
        Column("note", notes, Show(f"{{:<{width}}}".format, "string"), "note".ljust(width)),
        Column("drawn", [not math.isnan(one.value) for one in estimates], YES_NO, only="json"),
    )  # fmt: skip
    return Table(f"by_{first.period}", columns, labels=2, only="people")


def _kinds(series: Series) -> list[str]:
    unusual = {one.point for one in series.signals}
    kinds = dict.fromkeys(unusual, "not usual") | {
        at: "incomplete" for at, one in enumerate(series.points) if not one.complete
    }
    return [kinds.get(at, "usual") for at in range(len(series.points))]


def _show(series: Series) -> Show:
    """Write with as many decimals as the periods deserve that are known best."""
    known = [decimals_of(one.estimate) for one in series.points if not math.isnan(one.estimate.value)]
    return in_unit(series.metric.unit, min(max(known, default=1), _MOST))


def notes_of(series: Series) -> list[str]:
    """Say of each period what is to be said."""
    notes: list[list[str]] = [[] if one.complete else ["incomplete"] for one in series.points]
    for signal in series.signals:
        notes[signal.point].append(_said(signal))
    write = _show(series).write
    for change in series.changes:
        notes[change.point].append(f"level {write(change.before)} to {write(change.after)}")
    return ["; ".join(note) for note in notes]


def _said(signal: Signal) -> str:
    if signal.rule == "nelson-1":
        return f"{signal.side} what is usual"
    return f"{counted(signal.point - signal.first + 1, 'period')} {signal.side} the mean"


def sentences_of(series: Series, over: str) -> tuple[str, ...]:
    """Say what is usual, what is not, and what changed; a series that is too short for that says so."""
    every, write = series.period, _show(series).write
    if math.isnan(series.center):
        return (f"No limits: {_why_no_limits(series, over)}.",)
    starts = [format_start(one.start_ms, every) for one in series.points]
    unusual = sorted({one.point for one in series.signals})
    more = f" and {len(unusual) - 5} more" if len(unusual) > 5 else ""
    times = f"{series.sigma_z:.1f} times as much as {over}s within one would have them"
    scatter = f"{every}s differ {times}, and the limits allow for that"
    return (
        f"{series.metric} is usually {write(series.center)}, the mean of {series.base} {every}s; {scatter}.",
        f"Not usual: {', '.join(starts[at] for at in unusual[:5])}{more}."
        if unusual
        else "Nothing lies outside of what is usual.",
        *(
            f"The level changed at {starts[one.point]}: {write(one.before)} before, {write(one.after)} after."
            for one in series.changes
        ),
    )


def _why_no_limits(series: Series, over: str) -> str:
    """Say what limits lack: periods, errors of them, or anything that varies."""
    every = f"complete {series.period}s"
    whole = [one.estimate for one in series.points if one.complete and not math.isnan(one.estimate.value)]
    if len(whole) < MIN_POINTS:
        return f"they take at least {MIN_POINTS} {every}, and there are {len(whole)}"
    if not any(one.error > 0 for one in whole):
        return f"they are made of errors, and in none of {len(whole)} {every} two {over}s differ"
    if series.base < MIN_POINTS:
        return f"they take at least {MIN_POINTS} {every} at the beginning, and {series.base} of these have a value"
    return f"{series.metric} is the same in all of {series.base} {every}"
