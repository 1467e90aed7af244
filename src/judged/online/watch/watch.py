"""`watch`: state of each series of a running system against its baseline, and decisions on its deployments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.online.metrics import online_metric
from judged.online.watch.config import (
    DayPoint,
    SeriesKind,
    WatchConfig,
    merge_days,
    read_canary_days,
    read_log_days,
    read_state,
    read_table_days,
    read_watch,
    series_kinds,
    write_state,
)
from judged.online.watch.watched import (
    GUARD_STATUSES,
    MIX,
    QUALITY,
    RELATIVE_CHANGE,
    Guard,
    Rollback,
    WatchedSeries,
    arrange_by_day,
    display_name,
    rollbacks,
    split_quality_and_mix,
    watch_series,
)
from judged.results import (
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Answer,
    Axis,
    Chart,
    Column,
    Headline,
    Sentences,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import ReferenceLine

if TYPE_CHECKING:
    from pathlib import Path

    from judged.online.log import InteractionLog
    from judged.online.watch.watched import State
    from judged.results import Block
    from judged.results.headline import Status

_MONTH = 30.44  # days
_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_STATUSES: dict[State, Status] = {"ok": "same", "alarm": "worse", "mix changed": "info", "not monitored": "unknown"}
_COLORS = {"normal": "#0072B2", "alarm": "#D55E00", "baseline": "#7F7F7F"}


@dataclass(frozen=True, eq=False, repr=False)
class Watch(Answer):
    """Result of a watch.

    Attributes
    ----------
    config : WatchConfig
        Configuration.
    watched : tuple of WatchedSeries
        Each series: all pages, then the mix, then each slice.
    rollbacks : tuple of Rollback
        Decision on each deployment.
    today : date
        Last day with data.
    """

    kind: ClassVar[str] = "watch"
    main: ClassVar[str] = "series"

    config: WatchConfig
    watched: tuple[WatchedSeries, ...]
    rollbacks: tuple[Rollback, ...]
    today: date

    @property
    def title(self) -> str:
        """Title of the answer."""
        return f"Watch of {self.today}"

    @property
    def alarms(self) -> tuple[WatchedSeries, ...]:
        """Series with an alarm today."""
        return tuple(series for series in self.watched if series.state == "alarm")

    @property
    def is_healthy(self) -> bool:
        """Whether there is no alarm, and no deployment to roll back."""
        return not self.alarms and all(rollback.decision != "roll back" for rollback in self.rollbacks)

    @property
    def headline(self) -> Headline:
        """Deployment to roll back, or the alarm with the largest relative change, or that there is no alarm."""
        failed = [row for row in self.rollbacks if row.decision == "roll back"]
        if failed:
            return failed[-1].headline
        if self.alarms:
            row = max(self.alarms, key=lambda series: np.nan_to_num(abs(_relative_change(series))))
            status = "worse" if any(series.better for series in self.alarms) else "info"
            total = counted(len(self.alarms), "series", "series")
            sentence = f"{total} with an alarm; largest change: {display_name(row)} since {row.since}."
            return Headline(
                status,
                "alarm",
                sentence,
                f"{display_name(row)}, change from the baseline",
                _relative_change(row),
                RELATIVE_CHANGE,
            )
        monitored = [series for series in self.watched if series.state != "not monitored"]
        if not monitored:
            return Headline("unknown", "not monitored", "No series has enough data to be monitored.")
        days = max(series.detection_days for series in monitored)
        sentence = f"No alarm in {counted(len(monitored), 'series', 'series')} up to {self.today}."
        if math.isfinite(days):
            change = f"{100 * self.config.margin_relative:g}%"
            sentence += f" A change of {change} is detected within {days:.0f} days with 80% probability."
        return Headline("same", "no alarm", sentence)

    def blocks(self) -> tuple[Block, ...]:
        """Return the alarms, all series, the deployments, and a chart of each series."""
        numbered = list(enumerate(self.watched, 1))
        drawn = [(number, series) for number, series in numbered if series.points and series.part == QUALITY]
        # Series with an alarm come first.
        drawn.sort(key=lambda pair: pair[1].state != "alarm")
        charts = [self._chart_and_table(number, series) for number, series in drawn]
        return (
            Sentences(self._summary()),
            self._series_table(),
            *((_deployments_table(self.rollbacks),) if self.rollbacks else ()),
            *(chart for chart, _ in charts),
            *(table for _, table in charts),
            self._points_table(),
            Sentences(self._settings_text(), "method"),
        )

    def facts(self) -> dict[str, Any]:
        """Return the metadata shown with the results."""
        config = self.config
        return {
            "today": self.today.isoformat(),
            "baseline": [config.baseline_from.isoformat(), config.baseline_to.isoformat()],
            "alarms_per_month": config.alarms_per_month,
            "margin_relative": config.margin_relative,
        }

    def prometheus(self) -> str:
        """Format all series in the text format of Prometheus."""
        types = [f"# TYPE judged_watch_{name} gauge" for name in ("alarm", "baseline", "level")]
        lines: list[str] = []
        for series in (series for series in self.watched if series.state != "not monitored"):
            labels = f'series="{_escape_label(series.series)}",part="{_escape_label(series.part)}"'
            values = {"alarm": int(series.state == "alarm"), "level": series.level, "baseline": series.center}
            lines += [f"judged_watch_{name}{{{labels}}} {value:.17g}" for name, value in values.items()]
        return "\n".join([*types, *sorted(lines)]) + "\n"

    def _summary(self) -> tuple[str, ...]:
        moved_mixes = [series for series in self.watched if series.state == "mix changed"]
        quality = [series for series in self.watched if series.part != MIX]
        unwatched = [series for series in quality if series.reason]
        n_watched = sum(series.state != "not monitored" for series in quality)
        return (
            *(f"{display_name(row)} has had an alarm since {row.since}: {_format_change(row)}." for row in self.alarms),
            *(f"The shares of the slices have changed, which shifted {mix.series} by {mix.level - mix.center:+.3g}"
            f" since {mix.since}."
              for mix in moved_mixes),
            *map(str, self.rollbacks),
            *(f"{display_name(series)} is not monitored: {series.reason}." for series in unwatched),
            *(() if self.alarms else (self._no_alarm(n_watched),)),
        )  # fmt: skip

    def _no_alarm(self, n_series: int) -> str:
        """Describe that no series has an alarm; a deployment that lost may be detected before the series has one."""
        if not n_series:
            return "No series is monitored yet."
        series_text = counted(n_series, "series", "series")
        if self.is_healthy:
            return f"No alarm in {series_text}."
        return (
            f"No alarm in {series_text}, compared with the baseline. Each deployment is compared with the weeks"
            f" before that deployment."
        )

    def _settings_text(self) -> tuple[str, ...]:
        config = self.config
        excluded = [f"{event.date} to {event.until} ({event.description})" for event in config.event if event.until]
        return (
            f"Baseline: {config.baseline_from} to {config.baseline_to}.",
            (
                f"Expected false alarms: at most {config.alarms_per_month:g} per month over all series, if nothing"
                " changes."
            ),
            f"Change to detect: {100 * config.margin_relative:g}% of the baseline.",
            *((f"Excluded: {', '.join(excluded)}.",) if excluded else ()),
        )

    def _series_table(self) -> Table:
        rows = self.watched
        statuses: list[Status] = [_status_of(row) for row in rows]
        return Table(
            "series",
            (
                *columns_of(rows, ("series", TEXT)),
                _slice_column(rows),
                Column("state", [row.state for row in rows], TEXT, statuses=statuses),
                Column("since", [row.since.isoformat() if row.since else "" for row in rows], TEXT),
                *columns_of(rows, ("center", NUMBER, "baseline"), ("level", NUMBER, "current")),
                Column("relative", [_relative_change(row) for row in rows], SHARE, "change"),
                *columns_of(rows, ("detection_days", COUNT, "detection days"), ("days", COUNT, "days per point")),
                Column("reason", [row.reason for row in rows], TEXT, only="data"),
            ),
            "Series",
            labels=2,
            note=f"Detection days: a change of {100 * self.config.margin_relative:g}% is detected within this number"
            f" of days with a probability of 80%."
            " Current: mean since the alarm; for series without an alarm, mean of the last week.",
        )

    def _chart_and_table(self, number: int, series: WatchedSeries) -> tuple[Chart, Table]:
        name = series.series
        points = [point for point in series.points if point.value == point.value]
        kinds = ["baseline" if point.inside else "alarm" if point.alarm else "normal" for point in points]
        table = Table(
            f"days{number}",
            (
                Column("start", [point.start.isoformat() for point in points], TEXT, "day"),
                Column("start_ms", [_ms(point.start) for point in points], COUNT, only="data"),
                Column("value", [point.value for point in points], NUMBER, name),
                Column("expected", [point.expected for point in points], NUMBER, "expected",
                       ci=[(point.expected - 2 * point.sigma, point.expected + 2 * point.sigma) for point in points]),
                Column("kind", kinds, TEXT),
            ),
            name,
            folded=True,
        )  # fmt: skip
        deployments = [ReferenceLine("x", _ms(event.date)) for event in self.config.event if event.deploy]
        sentence = f"{display_name(series)}: {series.state}, {_format_change(series)}."
        chart = Chart(
            f"watched{number}", name, table, sentence, kind="points", x="start_ms", x_title="day (UTC)", y="value",
            y_title=name, color="kind", colors=_COLORS, band="expected", lines=tuple(deployments), spread="time",
            subtitle="gray band: baseline +- 2 standard deviations of a point; dashed lines: deployments", height=180,
        )  # fmt: skip
        return chart, table

    def _points_table(self) -> Table:
        rows = [(series, point) for series in self.watched for point in series.points]
        return Table(
            "points",
            (
                *columns_of([series for series, _ in rows], ("series", TEXT), ("part", TEXT)),
                Column("start", [point.start.isoformat() for _, point in rows], TEXT),
                *columns_of([point for _, point in rows], ("value", NUMBER), ("expected", NUMBER), ("sigma", NUMBER)),
                Column("alarm", [int(point.alarm) for _, point in rows], COUNT),
            ),
            only="data",
        )


def watch(config: WatchConfig | str | Path, log: InteractionLog | None = None, *, keep: bool = True) -> Watch:
    """Compare all series of a configuration with their baselines, and decide on deployments.

    Parameters
    ----------
    config
        Configuration, or its file.
    log
        New data; its complete days replace stored ones. None: only canaries and tables are read.
    keep
        Whether new data are stored in the state file; running twice has no further effect.

    Raises
    ------
    InputError
        If the configuration, one of its files, or the state cannot be read, or there are no data of any day.
    """
    settings = config if isinstance(config, WatchConfig) else read_watch(config)
    state_path = settings.resolve_path(settings.state) if settings.state else None
    kinds = series_kinds(settings)
    new = [] if log is None else list(read_log_days(log, settings))
    new += [point for canary in settings.canary for point in read_canary_days(canary, settings)]
    new += [point for table in settings.series for point in read_table_days(table, settings)]
    points = merge_days(read_state(state_path) if state_path else (), new)
    if keep and state_path:
        write_state(state_path, points)
    # The state may have slices by another attribute, from before the configuration was changed: they are ignored.
    prefix = f"{settings.log.by}=" if settings.log else ""
    log_series = {str(online_metric(name)) for name in (settings.log.metrics if settings.log else ())}
    relevant = [
        point
        for point in points
        if point.series in kinds and (point.series not in log_series or point.part.startswith(prefix) or not point.part)
    ]
    if not relevant:
        fix = "pass logs that cover whole days (UTC) of the baseline, or tables with at least one row"
        raise InputError("there are no data for any day", fix=fix, path=settings.path)
    days = [date.fromisoformat(point.day) for point in relevant]
    # The baseline may begin before the first day with data.
    first_day, today = min(*days, settings.baseline_from), max(days)
    watched = list(_watch_all(relevant, kinds, settings, first_day, today))
    return Watch(settings, tuple(watched), tuple(rollbacks(watched, settings)), today)


def _watch_all(
    points: Iterable[DayPoint], kinds: dict[str, SeriesKind], config: WatchConfig, first_day: date, today: date
) -> Iterable[WatchedSeries]:
    """Yield the state of each series, its mix, and its slices; they share the false alarms."""
    n_days = (today - first_day).days + 1
    excluded = np.zeros(n_days, dtype=bool)
    for event in config.event:
        if event.until:
            excluded[max((event.date - first_day).days, 0) : max((event.until - first_day).days + 1, 0)] = True
    ordinals = first_day.toordinal() + np.arange(n_days)
    in_baseline = (ordinals >= config.baseline_from.toordinal()) & (ordinals <= config.baseline_to.toordinal())
    by_name: dict[tuple[str, str], list[DayPoint]] = {}
    for point in points:
        by_name.setdefault((point.series, point.part), []).append(point)
    # A series without a direction has a CUSUM on each side; each side has the same share of the false alarms.
    sides = sum(1 if kinds[series].better else 2 for series, _ in by_name)
    rate = config.alarms_per_month / _MONTH / sides
    for series, kind in kinds.items():
        days_of_series = {key: days for key, days in by_name.items() if key[0] == series}
        slices = {part: arrange_by_day(days, first_day, today, excluded) for (_, part), days in days_of_series.items()}
        overall = slices.pop(QUALITY, None)
        if overall is not None and len(slices) > 1 and not np.isnan(overall.values).all():
            quality, mix = split_quality_and_mix(overall, slices, in_baseline)
            yield watch_series((series, QUALITY), quality, kind, config, rate)
            # A change of the mix is neither good nor bad.
            undirected = kind._replace(better=0, share=False)
            yield watch_series((series, MIX), mix, undirected, config, rate, alarm_state="mix changed")
        elif overall is not None:
            yield watch_series((series, QUALITY), overall, kind, config, rate)
        for slice_name, days in slices.items() if len(slices) > 1 or overall is None else ():
            yield watch_series((series, slice_name), days, kind, config, rate)


def _deployments_table(rollbacks: tuple[Rollback, ...]) -> Table:
    events = [rollback.event for rollback in rollbacks for _ in rollback.guards]
    guards = [guard for rollback in rollbacks for guard in rollback.guards]
    relative, intervals = [guard.relative for guard in guards], [guard.ci for guard in guards]
    statuses: list[Status] = [GUARD_STATUSES[guard.state] for guard in guards]
    return Table(
        "deployments",
        (
            Column("deployed", [event.date.isoformat() for event in events], TEXT),
            *columns_of(events, ("description", TEXT)),
            *columns_of(guards, ("series", TEXT)),
            _slice_column(guards),
            Column(
                "relative",
                relative,
                SHARE,
                "change",
                intervals,
                axis=Axis.over(relative, intervals, "CI", 0.0),
                statuses=statuses,
            ),
            Column("state", [guard.state for guard in guards], TEXT, statuses=statuses),
            *columns_of(guards, ("loss_per_day", COUNT, "loss per day")),
        ),
        "Deployments",
        labels=4,
        note="CIs are anytime-valid, and hold jointly for all series of a deployment. The loss per day has the unit"
        " of the series.",
    )


def _status_of(series: WatchedSeries) -> Status:
    """Return the status of a series; an alarm of a series without a direction is neither good nor bad."""
    return "info" if series.state == "alarm" and not series.better else _STATUSES[series.state]


def _slice_column(rows: Sequence[WatchedSeries | Guard]) -> Column:
    """Return the column of slices, which is hidden if there are none."""
    slices = [row.part for row in rows]
    return Column("part", slices, TEXT, only="" if any(slices) else "data")


def _format_change(series: WatchedSeries) -> str:
    relative = f", {100 * _relative_change(series):+.1f}%" if series.center else ""
    return f"{series.level:.4g} (baseline {series.center:.4g}{relative})"


def _relative_change(series: WatchedSeries) -> float:
    """Return the change as a share of the baseline's absolute value, with the sign of the change."""
    return (series.level - series.center) / abs(series.center) if series.center else np.nan


def _ms(day: date) -> int:
    return (day.toordinal() - _EPOCH) * _DAY_MS


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
