"""Configuration of a watch (series, baseline, rate of false alarms, events), its input data, and its state file."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.data.records import read_records
from judged.data.run import Run
from judged.data.toml_files import (
    Range,
    SettingError,
    SourceLines,
    build_from_keys,
    check_ranges,
    parse_toml,
    read_toml,
    suggest_name,
)
from judged.errors import InputError, JudgedWarning
from judged.online.check import check_log
from judged.online.differences import headline_metrics
from judged.online.metrics import ONLINE_METRICS, online_metric
from judged.online.series import over_time
from judged.online.slicing import slice_pages
from judged.online.statistics.control import MIN_POINTS
from judged.results.files import atomic_write
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import evaluate
from judged.scoring.judging.align import align
from judged.stats.rank_biased_overlap import rbo

if TYPE_CHECKING:
    from judged.online.log import InteractionLog


Better: TypeAlias = Literal["more", "less", "either"]


@dataclass(frozen=True)
class LogSeries:
    """Metrics of logs; `by`: slicing attribute, whose slices separate changes of the mix from changes of quality."""

    metrics: tuple[str, ...]
    by: str = ""


@dataclass(frozen=True)
class CanarySeries:
    """Fixed queries that are run every day: run files with a date in their names, scored by the same judgments.

    Their first `depth` results are also compared with those of the last run of the baseline (RBO).
    """

    qrels: str
    runs: str
    measures: tuple[str, ...] = (DEFAULT_MEASURE,)
    depth: Annotated[int, Range(1, 1_000_000)] = 10

    __post_init__ = check_ranges


@dataclass(frozen=True)
class TableSeries:
    """Any other series: a table with ``date``, ``numerator``, ``denominator``, and optionally ``error``, ``slice``."""

    name: str
    table: str
    better: Better = "either"


@dataclass(frozen=True)
class Event:
    """Known event: a deployment to decide on, or, with `until`, days to exclude, up to and including that day."""

    date: date
    description: str
    until: date | None = None
    deploy: bool = False

    def __post_init__(self) -> None:
        if self.until and self.until < self.date:
            problem = f"`until` must not be before `date`, got {self.until} and {self.date}"
            raise SettingError("until", problem, "set `until` to the last excluded day, on or after `date`")
        if not (self.until or self.deploy):
            raise InputError(
                "this event has no effect",
                fix="write deploy = true for a deployment, or until = 2026-09-30 to exclude all days up to that date",
            )


@dataclass(frozen=True)
class WatchConfig:
    """Configuration of a watch.

    Parameters
    ----------
    baseline_from, baseline_to
        First and last day of the baseline, which does not move by itself.
    alarms_per_month
        Expected number of false alarms per month over all series together, if nothing changes.
    margin_relative
        Change to detect, as a share of the baseline: smaller ones are detected later, larger ones earlier.
    state
        File that stores the data of past days; empty: do not store them.
    log, canary, series, event
        Series to watch, and known events.
    path
        File of the configuration; paths in it are relative to its folder.
    """

    baseline_from: date
    baseline_to: date
    alarms_per_month: float = 0.5
    margin_relative: float = 0.05
    state: str = ""
    log: LogSeries | None = None
    canary: tuple[CanarySeries, ...] = ()
    series: tuple[TableSeries, ...] = ()
    event: tuple[Event, ...] = ()
    path: str = ""

    def __post_init__(self) -> None:
        if self.baseline_to <= self.baseline_from:
            problem = f"`baseline_to` must be after `baseline_from`, got {self.baseline_to} and {self.baseline_from}"
            raise SettingError("baseline_to", problem, "write the first and the last day of the baseline")
        days = (self.baseline_to - self.baseline_from).days + 1
        if days < MIN_POINTS:
            fix = f"use a baseline of at least {MIN_POINTS} days, preferably 28"
            raise SettingError("baseline_to", f"the baseline must have at least {MIN_POINTS} days, got {days}", fix)
        for name, limit in (("alarms_per_month", 30.0), ("margin_relative", 1.0)):
            if not 0 < getattr(self, name) <= limit:
                problem = f"`{name}` must be above 0 and at most {limit:g}, got {getattr(self, name)}"
                raise SettingError(name, problem, f"remove {name} to use its default")
        if not (self.log or self.canary or self.series):
            raise InputError("the configuration has no series", fix="write [log], [[canary]], or [[series]]")

    def resolve_path(self, name: str) -> Path:
        """Return the path of a file that the configuration names."""
        return Path(self.path).parent / name


_TABLES: dict[str, type] = {"log": LogSeries, "canary": CanarySeries, "series": TableSeries, "event": Event}


def read_watch(path: str | Path) -> WatchConfig:
    """Read the configuration of a watch from a TOML file.

    Its table ``[watch]`` has the keys of `WatchConfig`; ``[log]``, ``[[canary]]``, ``[[series]]``, and ``[[event]]``
    those of their classes.

    Raises
    ------
    InputError
        If the file cannot be read, a key is unknown or missing, or a value is invalid; with the line.
    """
    return parse_watch(read_toml(path, "write one with 'judged watch CONFIG LOG --init'"), str(path))


def parse_watch(text: str, path: str = "") -> WatchConfig:
    r"""Parse the text of a configuration file; `path`: its name in error messages.

    >>> text = "[watch]\nbaseline_from = 2026-09-01\nbaseline_to = 2026-09-28\n[log]\nmetrics = ['PageCTR']"
    >>> parse_watch(text).log
    LogSeries(metrics=('PageCTR',), by='')
    """
    raw, source_lines = parse_toml(text, path, "[watch] or [[series]]"), SourceLines.of(text, path)
    with source_lines.locate_errors():
        for table, value in raw.items():
            if table != "watch" and table not in _TABLES:
                raise SettingError(table, f"unknown table {table!r}", suggest_name(table, ("watch", *_TABLES)))
            is_array = table not in {"watch", "log"}
            if not isinstance(value, list if is_array else dict):
                fix = f"write [[{table}]]" if is_array else f"write [{table}]"
                raise SettingError(table, f"{table} must be {'an array of tables' if is_array else 'a table'}", fix)
    fields: dict[str, Any] = {"path": path}
    for table, value in raw.items():
        if table == "log":
            with source_lines.locate_errors(table):
                fields[table] = build_from_keys(LogSeries, value)
        elif table != "watch":
            build = partial(build_from_keys, _TABLES[table])
            fields[table] = tuple(source_lines.map_tables(table, value, build))
    with source_lines.locate_errors("watch"):
        return build_from_keys(WatchConfig, raw.get("watch", {}), fields, exclude=_TABLES)


_TEMPLATE = """\
# Detects changes of a running system. Run once a day:
# judged watch THIS_FILE LOG_OF_YESTERDAY

[watch]
baseline_from = {first}
baseline_to = {last}      # the baseline does not move by itself
alarms_per_month = 0.5          # false alarms, over all series together
margin_relative = 0.05        # change to detect, as a share of the baseline
state = {state}          # file with the data of past days

[log]
metrics = [{metrics}]
# by = "device"               # separates changes of the mix from changes of quality

# Fixed queries that are run every day: run files with a date in their names.
# [[canary]]
# qrels = "qrels.txt"
# runs = "canaries/*.run"
# measures = ["nDCG@10"]

# Any other series by day: columns date, numerator, denominator; optionally error and slice.
# [[series]]
# name = "false positives found in review"
# table = "review.csv"
# better = "less"

# [[event]]
# date = {last}
# description = "version 2"
# deploy = true               # or until = 2026-09-30: excludes the days up to that date
"""


def first_config(log: InteractionLog, state: str = "watch.json") -> str:
    """Write a first configuration: the first four weeks of a log as the baseline, and the headline metrics.

    `state`: name of the state file, which each configuration needs for itself.

    Raises
    ------
    InputError
        If the log has no dates, or fewer than nine days.
    """
    span = check_log(log).period
    if span is None:
        raise InputError("the log has no dates", fix="use a log with dates", path=log.name)
    first_day, end_day = (datetime.fromtimestamp(time_ms / 1000, UTC).date() for time_ms in span)
    days = (end_day - first_day).days
    if days < MIN_POINTS:
        problem = f"the log must have at least {MIN_POINTS + 1} days, got {days + 1}"
        raise InputError(problem, fix="use a longer log", path=log.name)
    last_day = min(first_day + timedelta(27), end_day - timedelta(1))  # the last day of a log may be incomplete
    metrics = ", ".join(f'"{metric}"' for metric in headline_metrics(log, "user")[:4])
    state_toml = json.dumps(state, ensure_ascii=False)
    return _TEMPLATE.format(first=first_day, last=last_day, metrics=metrics, state=state_toml)


_DATE = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)")


class DayPoint(NamedTuple):
    """One day of one series, of all pages or of one slice.

    ``numerator`` is NaN if the value is not a ratio of sums, as for quantiles. ``error`` is the standard error of
    `value`.
    """

    series: str
    part: str
    day: str  # 2026-09-30
    value: float
    error: float
    numerator: float
    denominator: float


class SeriesKind(NamedTuple):
    """Direction of a series (1: more is better), and whether it is a share or an amount, which may have few events."""

    better: int
    share: bool = False
    amount: bool = False  # money, whose variance depends on the distribution of amounts


def series_kinds(config: WatchConfig) -> dict[str, SeriesKind]:
    """Return the series of a configuration, in its order, with their kinds."""
    kinds: dict[str, SeriesKind] = {}
    for metric in map(online_metric, config.log.metrics if config.log else ()):
        unit = metric.unit if metric.kind == "ratio" else ""
        kinds[str(metric)] = SeriesKind(metric.better, share=unit == "share", amount=unit == "money")
    for canary in config.canary:
        kinds |= {f"{measure} of canaries": SeriesKind(1) for measure in canary.measures}
        kinds["RBO of canaries"] = SeriesKind(1)
    for table in config.series:
        if table.name in kinds or table.name in ONLINE_METRICS:
            problem = f"a series must not have the name of another series or of a metric, got {table.name}"
            raise InputError(problem, fix="use another name for the series", path=config.path)
        kinds[table.name] = SeriesKind({"more": 1, "less": -1, "either": 0}[table.better])
    return kinds


def read_log_days(log: InteractionLog, config: WatchConfig) -> Iterator[DayPoint]:
    """Yield the complete days of a log: its metrics over all pages, and by slice.

    A log of a single day is taken as complete, because its first page may come late in the day.
    """
    if config.log is None:
        problem = "the configuration has no metrics for the log"
        raise InputError(problem, fix="add a table [log] with metrics", path=config.path)
    slices = slice_pages(log, config.log.by).values if config.log.by else ()
    is_one_day = False
    for slice_name in ("", *slices):
        # JSON quoting is valid in conditions.
        where = f"{config.log.by} == {json.dumps(slice_name, ensure_ascii=False)}" if slice_name else None
        part = f"{config.log.by}={slice_name}" if slice_name else ""
        all_series = over_time(log, config.log.metrics, where=where).series
        if not slice_name:
            is_one_day = all(len(series.points) == 1 for series in all_series)
        for series in all_series:
            for point in series.points:
                estimate = point.estimate
                if (point.complete or is_one_day) and not math.isnan(estimate.value):
                    day = datetime.fromtimestamp(point.start_ms / 1000, UTC).date().isoformat()
                    numerator = estimate.numerator if estimate.metric.kind == "ratio" else math.nan
                    numbers = estimate.value, estimate.error, numerator, estimate.denominator
                    yield DayPoint(str(series.metric), part, day, *numbers)


def read_canary_days(canary: CanarySeries, config: WatchConfig) -> Iterator[DayPoint]:
    """Score the run of each day on the canary queries, and compare it with the last run of the baseline."""
    pattern = str(config.resolve_path(canary.runs))
    run_paths = {day: path for path in sorted(glob(pattern)) if (day := _date_of_file(path))}  # noqa: PTH207
    baseline_days = [day for day in run_paths if day <= config.baseline_to.isoformat()]
    if not baseline_days:
        problem = (
            f"no run of the canary queries has a date on or before {config.baseline_to}, the last day of the baseline"
        )
        raise InputError(
            problem, fix="write the date into the names of run files, such as canary-2026-09-30.run", path=pattern
        )
    baseline_run = Run.of(run_paths[max(baseline_days)])
    for day, path in run_paths.items():
        run = Run.of(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)
            scores = evaluate(config.resolve_path(canary.qrels), run, canary.measures)
        values = {f"{measure} of canaries": scores.values[0, i] for i, measure in enumerate(scores.measure_names)}
        pairs = align(baseline_run, run, depth=canary.depth)
        topic_rows = [pairs.rows(query_id) for query_id in pairs.query_ids]
        overlaps = [rbo(pairs.first_tie[rows], pairs.second_tie[rows]).value for rows in topic_rows]
        values["RBO of canaries"] = np.nan_to_num(overlaps)  # a query without results today has no overlap
        for name, by_topic in values.items():
            n, total = len(by_topic), float(np.sum(by_topic))
            yield DayPoint(name, "", day, total / n, n**-0.5, total, n)


def _date_of_file(path: str) -> str:
    match = _DATE.search(Path(path).name)
    return "-".join(match.groups()) if match else ""


def read_table_days(table: TableSeries, config: WatchConfig) -> Iterator[DayPoint]:
    """Read a table of sums by day; without an error, the ratio is assumed to be binomial, or its numerator Poisson."""
    path = config.resolve_path(table.table)
    seen_rows: set[tuple[str, str]] = set()
    for line, row in read_records(path):
        try:
            day = date.fromisoformat(str(row["date"])[:10]).isoformat()
            numerator, denominator = float(row["numerator"]), float(row["denominator"])
            error = float(row.get("error") or math.nan)
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            problem = (
                f"there is no column {cause}"
                if isinstance(cause, KeyError)
                else f"the row has an invalid value: {cause}"
            )
            fix = "use columns date (2026-09-30), numerator, denominator, and optionally error and slice"
            raise InputError(problem, fix=fix, path=str(path), line=line) from None
        is_valid_error = math.isnan(error) or 0 <= error < math.inf
        if not (math.isfinite(numerator) and math.isfinite(denominator) and is_valid_error):
            problem = "numerator and denominator must be finite, and the error finite and not negative"
            values = f"{numerator}, {denominator}, {error}"
            raise InputError(f"{problem}, got {values}", fix="correct the row", path=str(path), line=line)
        if not denominator > 0:
            continue
        part = str(row.get("slice") or "")
        if (day, part) in seen_rows:
            problem = f"a day must have one row per slice, but {day} has two rows for the same slice"
            raise InputError(problem, fix="sum the rows of the same day and slice", path=str(path), line=line)
        seen_rows.add((day, part))
        value = numerator / denominator
        if math.isnan(error):
            variance = value * (1.0 - value) if 0 <= value <= 1 else abs(value)  # binomial, else Poisson
            error = math.sqrt(variance / denominator)
        yield DayPoint(table.name, part, day, value, error, numerator, denominator)


def read_state(path: Path) -> list[DayPoint]:
    """Read the state file; return an empty list if it does not exist yet."""
    if not path.exists():
        return []
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        # JSON has no NaN: it is stored as null.
        rows: list[list[Any]] = [[math.nan if value is None else value for value in row] for row in state["points"]]
        return [
            DayPoint(str(series), str(part), date.fromisoformat(day).isoformat(), *map(float, numbers))
            for series, part, day, *numbers in rows
        ]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        fix = "move the file away, and run 'judged watch' on the logs of the baseline again"
        raise InputError("the file is not a state file of 'judged watch'", fix=fix, path=str(path)) from None


def write_state(path: Path, points: Iterable[DayPoint]) -> None:
    """Write the state file atomically."""
    rows: list[list[Any]] = [[None if value != value else value for value in point] for point in points]  # noqa: PLR0124
    with atomic_write(path) as temporary:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        temporary.write_text(f'{{"watch": 1, "points": [\n{lines}\n]}}\n', encoding="utf-8")


def merge_days(old: Iterable[DayPoint], new: Iterable[DayPoint]) -> list[DayPoint]:
    """Merge days; new data of a day replace old ones."""
    # Later entries of a dict replace earlier ones.
    points = {(point.series, point.part, point.day): point for point in (*old, *new)}
    return [points[key] for key in sorted(points)]
