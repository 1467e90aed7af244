"""What a watch is asked: which series, against which baseline, how many false alarms, and what is known to happen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from judged.data.toml_files import parse_toml, read_toml
from judged.data.toml_parts import Range, check_ranges, part_of
from judged.data.toml_places import Places, SettingError, nearest
from judged.errors import InputError
from judged.online.check import check_log
from judged.online.difference import headlines
from judged.stats.control import FEWEST

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
    measures: tuple[str, ...] = ("nDCG@10",)
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
    raw, places = parse_toml(text, path, "[watch] or [[series]]"), Places.of(text, path)
    with places.part():
        for table, value in raw.items():
            if table != "watch" and table not in _PARTS:
                raise SettingError(table, f"no table {table!r}", nearest(table, ("watch", *_PARTS)))
            many = table not in {"watch", "log"}
            if not isinstance(value, list if many else dict):
                raise SettingError(table, f"{table} is no such table", f"write [[{table}]]" if many else f"[{table}]")
    made: dict[str, Any] = {"path": path}
    for table, value in raw.items():
        if table == "log":
            with places.part(table):
                made[table] = part_of(LogSeries, value)
        elif table != "watch":
            made[table] = tuple(places.each(table, value, lambda part, kind=_PARTS[table]: part_of(kind, part)))
    with places.part("watch"):
        return part_of(WatchConfig, raw.get("watch", {}), made, apart=_PARTS)


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
