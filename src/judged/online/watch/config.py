"""What a watch is asked: which series, against which baseline, how many false alarms, and what is known to happen."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
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
from judged.online.differences import headlines
from judged.online.metrics import ONLINE_METRICS, online_metric
from judged.online.series import over_time
from judged.online.slicing import slice_pages
from judged.online.statistics.control import FEWEST
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
    """Metrics of logs; `by`: classes of pages, by which a change of mix is parted from one of quality."""

    metrics: tuple[str, ...]
    by: str = ""


@dataclass(frozen=True)
class CanarySeries:
    """The same queries asked again and again: run files with a date in their names, scored by the same judgments.

    Their first `depth` results are also held against those of the baseline's last run (RBO).
    """

    qrels: str
    runs: str
    measures: tuple[str, ...] = (DEFAULT_MEASURE,)
    depth: Annotated[int, Range(1, 1_000_000)] = 10

    __post_init__ = check_ranges


@dataclass(frozen=True)
class TableSeries:
    """Anything else, from a table with ``date``, ``numerator``, ``denominator``, and, if they are known, ``error`` of
    their ratio and ``slice``.
    """  # noqa: D205

    name: str
    table: str
    better: Better = "either"


@dataclass(frozen=True)
class Event:
    """Something known: a deployment to be judged, or, with `until`, days that are left out, that one included."""

    date: date
    what: str
    until: date | None = None
    deploy: bool = False

    def __post_init__(self) -> None:
        if self.until and self.until < self.date:
            raise SettingError("until", "the event ends before it begins", "write the last day that is left out")
        if not (self.until or self.deploy):
            raise InputError("nothing follows from this event", fix="write deploy = true, or until = 2026-09-30")


@dataclass(frozen=True)
class WatchConfig:
    """All that a watch is asked.

    Parameters
    ----------
    baseline_from, baseline_to
        First and last day of the baseline: it stays the same until somebody moves it.
    alarms_a_month
        False alarms that all series together may have, where nothing changes.
    margin_relative
        The change that is worth an alarm, as a share of the baseline: smaller ones take longer, larger ones less.
    state
        The file that keeps what was seen; empty: nothing is kept.
    log, canary, series, event
        What is watched, and what is known.
    path
        The file that it was read from: paths in it are seen from there.
    """

    baseline_from: date
    baseline_to: date
    alarms_a_month: float = 0.5
    margin_relative: float = 0.05
    state: str = ""
    log: LogSeries | None = None
    canary: tuple[CanarySeries, ...] = ()
    series: tuple[TableSeries, ...] = ()
    event: tuple[Event, ...] = ()
    path: str = ""

    def __post_init__(self) -> None:
        if self.baseline_to <= self.baseline_from:
            raise SettingError("baseline_to", "the baseline ends before it begins", "write its first and last day")
        days = (self.baseline_to - self.baseline_from).days + 1
        if days < FEWEST:
            fix = f"write a first and a last day that make {FEWEST} days or more, better 28"
            raise SettingError("baseline_to", f"the baseline has {days} days, at least {FEWEST} are required", fix)
        for name, most in (("alarms_a_month", 30.0), ("margin_relative", 1.0)):
            if not 0 < getattr(self, name) <= most:
                raise SettingError(name, f"{name} is {getattr(self, name)}", f"give a number above 0, at most {most:g}")
        if not (self.log or self.canary or self.series):
            raise InputError("nothing is watched", fix="write [log], [[canary]] or [[series]]")

    def file(self, name: str) -> Path:
        """Say where a file of the configuration is."""
        return Path(self.path).parent / name


_PARTS: dict[str, type] = {"log": LogSeries, "canary": CanarySeries, "series": TableSeries, "event": Event}


def read_watch(path: str | Path) -> WatchConfig:
    """Read the configuration of a watch from a TOML file.

    Its table ``[watch]`` has the keys of `WatchConfig`; ``[log]``, ``[[canary]]``, ``[[series]]`` and ``[[event]]``
    those of their classes.

    Raises
    ------
    InputError
        If it cannot be read, a key is unknown or missing, or a value makes no sense, with the line.
    """
    return parse_watch(read_toml(path, "write one with 'judged watch CONFIG LOG --init'"), str(path))


def parse_watch(text: str, path: str = "") -> WatchConfig:
    r"""Read a configuration from the text of its file; `path` is what messages call it.

    >>> text = "[watch]\nbaseline_from = 2026-09-01\nbaseline_to = 2026-09-28\n[log]\nmetrics = ['PageCTR']"
    >>> parse_watch(text).log
    LogSeries(metrics=('PageCTR',), by='')
    """
    raw, places = parse_toml(text, path, "[watch] or [[series]]"), SourceLines.of(text, path)
    with places.locate_errors():
        for table, value in raw.items():
            if table != "watch" and table not in _PARTS:
                raise SettingError(table, f"no table {table!r}", suggest_name(table, ("watch", *_PARTS)))
            many = table not in {"watch", "log"}
            if not isinstance(value, list if many else dict):
                raise SettingError(table, f"{table} is no such table", f"write [[{table}]]" if many else f"[{table}]")
    made: dict[str, Any] = {"path": path}
    for table, value in raw.items():
        if table == "log":
            with places.locate_errors(table):
                made[table] = build_from_keys(LogSeries, value)
        elif table != "watch":
            made[table] = tuple(
                places.map_tables(table, value, lambda part, kind=_PARTS[table]: build_from_keys(kind, part))
            )
    with places.locate_errors("watch"):
        return build_from_keys(WatchConfig, raw.get("watch", {}), made, exclude=_PARTS)


_FIRST = """\
# Is the system still what it was? Ask every day:
# judged watch THIS_FILE LOG_OF_YESTERDAY

[watch]
baseline_from = {first}
baseline_to = {last}      # it stays the same until you move it
alarms_a_month = 0.5          # false ones, over all series together
margin_relative = 0.05        # a change that is worth an alarm
state = {state}          # what was seen

[log]
metrics = [{metrics}]
# by = "device"               # parts a change of mix from one of quality

# The same queries, asked every day: files with a date in their names.
# [[canary]]
# qrels = "qrels.txt"
# runs = "canaries/*.run"
# measures = ["nDCG@10"]

# Anything else, by day: columns date, numerator, denominator; perhaps error and slice.
# [[series]]
# name = "false positives found in review"
# table = "review.csv"
# better = "less"

# [[event]]
# date = {last}
# what = "version 2"
# deploy = true               # or: until = a date, and the days up to it are left out
"""


def first_config(log: InteractionLog, state: str = "watch.json") -> str:
    """Write a first configuration: the first four weeks of a log as the baseline, and the usual metrics.

    `state` is the file that keeps what was seen: one for each configuration.

    Raises
    ------
    InputError
        If the log has no dates, or fewer than eight days.
    """
    span = check_log(log).period
    if span is None:
        raise InputError("the log has no dates", fix="take a log with dates", path=log.name)
    first, end = (datetime.fromtimestamp(time_ms / 1000, UTC).date() for time_ms in span)
    days = (end - first).days
    if days < FEWEST:
        raise InputError(f"the log has {days + 1} days", fix=f"take one of {FEWEST + 1} or more", path=log.name)
    last = min(first + timedelta(27), end - timedelta(1))
    metrics = ", ".join(f'"{one}"' for one in headlines(log, "user")[:4])
    return _FIRST.format(first=first, last=last, metrics=metrics, state=json.dumps(state, ensure_ascii=False))


_DATE = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)")


class DayPoint(NamedTuple):
    """One day of one series, of all pages or of one class of them.

    ``numerator`` is NaN where the value is no ratio of sums, as a quantile is not; ``error`` is that of the value.
    """

    series: str
    part: str
    day: str  # 2026-09-30
    value: float
    error: float
    numerator: float
    denominator: float


class Meaning(NamedTuple):
    """What a series is: whether more of it is better, and whether it is a share or an amount, of few events perhaps."""

    better: int
    share: bool = False
    amount: bool = False  # money: its points vary by how much, too


def meanings(config: WatchConfig) -> dict[str, Meaning]:
    """Name the series of a configuration, in its order."""
    named: dict[str, Meaning] = {}
    for metric in map(online_metric, config.log.metrics if config.log else ()):
        ratio = metric.kind == "ratio"
        named[str(metric)] = Meaning(metric.better, ratio and metric.unit == "share", ratio and metric.unit == "money")
    for canary in config.canary:
        named |= {f"{measure} of canaries": Meaning(1) for measure in canary.measures}
        named["RBO of canaries"] = Meaning(1)
    for table in config.series:
        if table.name in named or table.name in ONLINE_METRICS:
            raise InputError(f"two series are called {table.name}", fix="give each a name of its own", path=config.path)
        named[table.name] = Meaning({"more": 1, "less": -1, "either": 0}[table.better])
    return named


def of_log(log: InteractionLog, config: WatchConfig) -> Iterator[DayPoint]:
    """Give the complete days of a log: its metrics over all pages, and of each class.

    A log of one day is that day's: where nobody searches at night, its first page may come late.
    """
    if config.log is None:
        raise InputError("a log is given, and the configuration has no metrics", fix="write [log]", path=config.path)
    classes = slice_pages(log, config.log.by).values if config.log.by else ()
    alone = False
    for part in ("", *classes):
        where = f"{config.log.by} == {json.dumps(part, ensure_ascii=False)}" if part else None
        named = f"{config.log.by}={part}" if part else ""
        made = over_time(log, config.log.metrics, where=where).series
        alone = alone if part else all(len(series.points) == 1 for series in made)
        for series in made:
            for point in series.points:
                one = point.estimate
                if (point.complete or alone) and not math.isnan(one.value):
                    day = datetime.fromtimestamp(point.start_ms / 1000, UTC).date().isoformat()
                    sums = one.numerator if one.metric.kind == "ratio" else math.nan, one.denominator
                    yield DayPoint(str(series.metric), named, day, one.value, one.error, *sums)


def of_canaries(canary: CanarySeries, config: WatchConfig) -> Iterator[DayPoint]:
    """Score each day's run of the canary queries, and hold it against the last run of the baseline."""
    dated = {day: path for path in sorted(glob(str(config.file(canary.runs)))) if (day := _dated(path))}  # noqa: PTH207
    before = [day for day in dated if day <= config.baseline_to.isoformat()]
    if not before:
        raise InputError(
            "no run of the canaries is as old as the baseline", fix="name runs by date: canary-2026-09-30.run",
            path=str(config.file(canary.runs)),
        )  # fmt: skip
    last = Run.of(dated[max(before)])
    for day, path in dated.items():
        run = Run.of(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)
            scores = evaluate(config.file(canary.qrels), run, canary.measures)
        for measure, values in zip(scores.measure_names, scores.values[0], strict=True):
            n = len(values)
            yield DayPoint(f"{measure} of canaries", "", day, float(values.mean()), n**-0.5, float(values.sum()), n)
        both = align(last, run, depth=canary.depth)
        like = [rbo(both.first_tie[rows], both.second_tie[rows]).value for rows in map(both.rows, both.query_ids)]
        n, like = len(like), np.nan_to_num(like)  # one that is not answered any more is as unlike as can be
        yield DayPoint("RBO of canaries", "", day, float(np.sum(like)) / n, n**-0.5, float(np.sum(like)), n)


def _dated(path: str) -> str:
    found = _DATE.search(Path(path).name)
    return "-".join(found.groups()) if found else ""


def of_table(table: TableSeries, config: WatchConfig) -> Iterator[DayPoint]:
    """Read a table of sums by day; without an error, the ratio is taken for a share, or its numerator for a count."""
    path = config.file(table.table)
    read: set[tuple[str, str]] = set()
    for line, row in read_records(path):
        try:
            day = date.fromisoformat(str(row["date"])[:10]).isoformat()
            above, below = float(row["numerator"]), float(row["denominator"])
            error = float(row.get("error") or math.nan)
        except (KeyError, TypeError, ValueError, OverflowError) as wrong:
            what = f"no {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            fix = "give columns date (2026-09-30), numerator and denominator, and perhaps error and slice"
            raise InputError(f"a row cannot be read: {what}", fix=fix, path=str(path), line=line) from None
        if not (math.isfinite(above) and math.isfinite(below) and (math.isnan(error) or 0 <= error < math.inf)):
            fix = "give finite numbers, and an error of 0 or more"
            raise InputError("a row has a number that cannot be", fix=fix, path=str(path), line=line)
        if not below > 0:
            continue
        part = str(row.get("slice") or "")
        if (day, part) in read:
            fix = "add rows of the same day and slice up"
            raise InputError(f"a second row of {day}", fix=fix, path=str(path), line=line)
        read.add((day, part))
        value = above / below
        if math.isnan(error):
            error = math.sqrt(value * (1.0 - value) / below) if 0 <= value <= 1 else math.sqrt(abs(value) / below)
        yield DayPoint(table.name, part, day, value, error, above, below)


def remembered(path: Path) -> list[DayPoint]:
    """Read what a watch has seen before; nothing where there is no file yet."""
    if not path.exists():
        return []
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows: list[list[Any]] = [[math.nan if value is None else value for value in row] for row in kept["points"]]
        return [
            DayPoint(str(series), str(part), date.fromisoformat(day).isoformat(), *map(float, numbers))
            for series, part, day, *numbers in rows
        ]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        fix = "move it away, and let the watch read the logs of the baseline again"
        raise InputError("this is no state of a watch", fix=fix, path=str(path)) from None


def remember(path: Path, points: Iterable[DayPoint]) -> None:
    """Keep what was seen, whole or not at all."""
    rows: list[list[Any]] = [[None if value != value else value for value in point] for point in points]  # noqa: PLR0124
    with atomic_write(path) as temporary:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        temporary.write_text(f'{{"watch": 1, "points": [\n{lines}\n]}}\n', encoding="utf-8")


def merged(old: Iterable[DayPoint], new: Iterable[DayPoint]) -> list[DayPoint]:
    """Put days together: what is read again takes the place of what was read before."""
    return sorted({(one.series, one.part, one.day): one for one in (*old, *new)}.values(), key=lambda one: one[:3])
