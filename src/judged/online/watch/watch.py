"""`watch`: each series of a running system against its baseline, and what follows from the last deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.online.metrics import online_metric
from judged.online.watch.config import (
    DayPoint,
    WatchConfig,
    meanings,
    merged,
    of_canaries,
    of_log,
    of_table,
    read_watch,
    remember,
    remembered,
)
from judged.online.watch.watched import (
    MIX,
    QUALITY,
    Guard,
    Rollback,
    Watched,
    days_of,
    name_of,
    parted,
    rollbacks,
    watched,
)
from judged.results import (
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Answer,
    Chart,
    Column,
    Sentences,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import ReferenceLine

if TYPE_CHECKING:
    from pathlib import Path

    from judged.online.log import InteractionLog
    from judged.results import Block

_MONTH = 30.44  # days
_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_COLORS = {"usual": "#0072B2", "alarm": "#D55E00", "baseline": "#7F7F7F"}


@dataclass(frozen=True, eq=False, repr=False)
class Watch(Answer):
    """What a watch says today.

    Attributes
    ----------
    config : WatchConfig
        What was asked.
    watched : tuple of Watched
        Each series, of all pages, then the mix, then each class.
    rollbacks : tuple of Rollback
        What follows for each deployment.
    today : date
        The last day of which anything is known.
    """

    kind: ClassVar[str] = "watch"
    main: ClassVar[str] = "series"

    config: WatchConfig
    watched: tuple[Watched, ...]
    rollbacks: tuple[Rollback, ...]
    today: date

    @property
    def title(self) -> str:
        """What it answers."""
        return f"Watch of {self.today}"

    @property
    def alarms(self) -> tuple[Watched, ...]:
        """The series that are off today."""
        return tuple(one for one in self.watched if one.state == "alarm")

    @property
    def calm(self) -> bool:
        """Whether nothing is off, and no deployment should be taken back."""
        return not self.alarms and all(one.decision != "roll back" for one in self.rollbacks)

    def blocks(self) -> tuple[Block, ...]:
        """Give what is off, all series, the deployments, and a chart of each series that is off."""
        return (
            Sentences(self._said()),
            self._series(),
            *((_rollbacks(self.rollbacks),) if self.rollbacks else ()),
            *(
                block
                for at, one in enumerate(self.watched, 1)
                if one.points and one.part == QUALITY
                for block in self._drawn(at, one)
            ),
            self._points(),
            Sentences(self._made(), "made"),
        )

    def facts(self) -> dict[str, Any]:
        """Give what was declared."""
        config = self.config
        return {
            "today": self.today.isoformat(),
            "baseline": [config.baseline_from.isoformat(), config.baseline_to.isoformat()],
            "alarms_a_month": config.alarms_a_month,
            "margin_relative": config.margin_relative,
        }

    def prometheus(self) -> str:
        """Write every series as Prometheus reads them."""
        types = [f"# TYPE judged_watch_{name} gauge" for name in ("alarm", "baseline", "level")]
        lines: list[str] = []
        for one in (one for one in self.watched if one.state != "not watched"):
            labels = f'series="{_escaped(one.series)}",part="{_escaped(one.part)}"'
            values = {"alarm": int(one.state == "alarm"), "level": one.level, "baseline": one.center}
            lines += [f"judged_watch_{name}{{{labels}}} {value:.17g}" for name, value in values.items()]
        return "\n".join([*types, *sorted(lines)]) + "\n"

    def _said(self) -> tuple[str, ...]:
        moved = [one for one in self.watched if one.state == "mix moved"]
        watched_ = [one for one in self.watched if one.state != "not watched" and one.part != MIX]
        return (
            *(f"{name_of(one)} is off since {one.since}: {_change(one)}." for one in self.alarms),
            *(
                f"The mix moves {one.series} by {one.level - one.center:+.3g} since {one.since}: no change of quality."
                for one in moved
            ),
            *map(str, self.rollbacks),
            *(f"{name_of(one)} is not watched: {one.why}." for one in self.watched if one.why and one.part != MIX),
            *(() if self.alarms else (self._no_alarm(len(watched_)),)),
        )

    def _no_alarm(self, number: int) -> str:
        """Describe that no series has an alarm; a deployment that lost may be detected before the series has one."""
        if not number:
            return "Nothing is watched yet."
        series = counted(number, "series", "series")
        if self.calm:
            return f"Nothing is off in {series}."
        return f"No alarm against the baseline in {series}: a deployment is compared with the weeks before it."

    def _made(self) -> tuple[str, ...]:
        config = self.config
        left_out = [f"{one.date} to {one.until} ({one.what})" for one in config.event if one.until]
        return (
            f"Baseline: {config.baseline_from} to {config.baseline_to}.",
            f"At most {config.alarms_a_month:g} false alarms a month over all series together, where nothing changes.",
            f"Made for changes of {100 * config.margin_relative:g} %.",
            *((f"Left out: {', '.join(left_out)}.",) if left_out else ()),
        )

    def _series(self) -> Table:
        rows = self.watched
        return Table(
            "series",
            (
                *columns_of(rows, ("series", TEXT)),
                _parts(rows),
                *columns_of(rows, ("state", TEXT)),
                Column("since", [one.since.isoformat() if one.since else "" for one in rows], TEXT),
                *columns_of(rows, ("center", NUMBER, "baseline"), ("level", NUMBER, "now")),
                Column("relative", [_relative(one) for one in rows], SHARE, "change"),
                *columns_of(rows, ("within", COUNT, "found within days"), ("days", COUNT, "days a point")),
                Column("why", [one.why for one in rows], TEXT, only="data"),
            ),
            "Series",
            labels=2,
            note=f"found within: four of five changes of {100 * self.config.margin_relative:g} % are by then; "
            "now: since the change, or in the last week",
        )

    def _drawn(self, at: int, one: Watched) -> tuple[Chart, Table]:
        points = [point for point in one.points if point.value == point.value]
        kinds = ["baseline" if point.inside else "alarm" if point.alarm else "usual" for point in points]
        table = Table(
            f"days{at}",
            (
                Column("start", [point.start.isoformat() for point in points], TEXT, "day"),
                Column("start_ms", [_ms(point.start) for point in points], COUNT, only="data"),
                Column("value", [point.value for point in points], NUMBER, one.series),
                Column("expected", [point.expected for point in points], NUMBER, "usual",
                       ci=[(p.expected - 2 * p.sigma, p.expected + 2 * p.sigma) for p in points]),
                Column("kind", kinds, TEXT),
            ),
            one.series,
            folded=True,
        )  # fmt: skip
        deploys = [ReferenceLine("x", _ms(event.date)) for event in self.config.event if event.deploy]
        said = f"{name_of(one)}: {one.state}, {_change(one)}."
        chart = Chart(
            f"watched{at}", one.series, table, said, kind="points", x="start_ms", x_title="day (UTC)", y="value",
            y_title=one.series, color="kind", colors=_COLORS, band="expected", lines=tuple(deploys), spread="time",
            subtitle="gray: two standard deviations of a point around the baseline; dashed: deployments", height=180,
        )  # fmt: skip
        return chart, table

    def _points(self) -> Table:
        rows = [(one, point) for one in self.watched for point in one.points]
        return Table(
            "points",
            (
                *columns_of([one for one, _ in rows], ("series", TEXT), ("part", TEXT)),
                Column("start", [point.start.isoformat() for _, point in rows], TEXT),
                *columns_of([point for _, point in rows], ("value", NUMBER), ("expected", NUMBER), ("sigma", NUMBER)),
                Column("alarm", [int(point.alarm) for _, point in rows], COUNT),
            ),
            only="data",
        )


def watch(config: WatchConfig | str | Path, log: InteractionLog | None = None, *, keep: bool = True) -> Watch:
    """Look at all series of a configuration, with what its state remembers, and say what is off.

    Parameters
    ----------
    config
        What is watched, or its file.
    log
        What is new: complete days take the place of what was known of them. None: canaries and tables alone are read.
    keep
        Whether what is new is remembered in the state file; running twice changes nothing.

    Raises
    ------
    InputError
        If the configuration, its files or the state cannot be read, or nothing is known of any day.
    """
    asked = config if isinstance(config, WatchConfig) else read_watch(config)
    state, known = asked.file(asked.state) if asked.state else None, meanings(asked)
    new = [] if log is None else list(of_log(log, asked))
    new += [point for canary in asked.canary for point in of_canaries(canary, asked)]
    new += [point for table in asked.series for point in of_table(table, asked)]
    points = merged(remembered(state) if state else (), new)
    if keep and state:
        remember(state, points)
    of_log_, by = (asked.log.metrics, f"{asked.log.by}=") if asked.log else ((), "")
    own = {str(online_metric(name)) for name in of_log_}  # classes of another `by` are remembered, and not mixed in
    seen = [
        one
        for one in points
        if one.series in known and (one.series not in own or one.part.startswith(by) or not one.part)
    ]
    if not seen:
        fix = "give logs of whole days (UTC) of the baseline, or tables with rows"
        raise InputError("nothing is known of any day yet", fix=fix, path=asked.path)
    days = [date.fromisoformat(point.day) for point in seen]
    first, today = min(*days, asked.baseline_from), max(days)
    found = list(_watched(seen, known, asked, first, today))
    return Watch(asked, tuple(found), tuple(rollbacks(found, asked)), today)


def _watched(
    seen: Iterable[DayPoint], known: dict[str, Any], config: WatchConfig, first: date, today: date
) -> Iterable[Watched]:
    """Watch each series, its mix and its classes; alarms are shared over all that can give one."""
    number = (today - first).days + 1
    left_out = np.zeros(number, dtype=bool)
    for event in config.event:
        if event.until:
            left_out[max((event.date - first).days, 0) : max((event.until - first).days + 1, 0)] = True
    at = first.toordinal() + np.arange(number)
    base = (at >= config.baseline_from.toordinal()) & (at <= config.baseline_to.toordinal())
    by_name: dict[tuple[str, str], list[DayPoint]] = {}
    for point in seen:
        by_name.setdefault((point.series, point.part), []).append(point)
    sides = sum(1 if known[series].better else 2 for series, _ in by_name)
    rate = config.alarms_a_month / _MONTH / sides
    for series, meaning in known.items():
        parts = {part: days_of(by_name[name, part], first, today, left_out) for name, part in by_name if name == series}
        whole = parts.pop(QUALITY, None)
        if whole is not None and len(parts) > 1 and not np.isnan(whole.values).all():
            quality, mix = parted(whole, parts, base)
            yield watched((series, QUALITY), quality, meaning, config, rate)
            either = meaning._replace(better=0, share=False)
            yield watched((series, MIX), mix, either, config, rate, told="mix moved")
        elif whole is not None:
            yield watched((series, QUALITY), whole, meaning, config, rate)
        for part, days in parts.items() if len(parts) > 1 or whole is None else ():
            yield watched((series, part), days, meaning, config, rate)


def _rollbacks(made: tuple[Rollback, ...]) -> Table:
    events, guards = ([one.event for one in made for _ in one.guards], [guard for one in made for guard in one.guards])
    relative, ends = [guard.relative for guard in guards], [guard.ci for guard in guards]
    return Table(
        "deployments",
        (
            Column("deployed", [event.date.isoformat() for event in events], TEXT),
            *columns_of(events, ("what", TEXT)),
            *columns_of(guards, ("series", TEXT)),
            _parts(guards),
            Column("relative", relative, SHARE, "change", ends),
            *columns_of(guards, ("state", TEXT), ("a_day", COUNT, "lost a day")),
        ),
        "Deployments",
        labels=4,
        note="intervals hold on any day, for all series of a deployment together; lost a day: of what a series counts",
    )


def _parts(rows: Sequence[Watched | Guard]) -> Column:
    """Name classes, for people only where there are any."""
    parts = [one.part for one in rows]
    return Column("part", parts, TEXT, only="" if any(parts) else "data")


def _change(one: Watched) -> str:
    relative = f" ({100 * _relative(one):+.1f} %)" if one.center else ""
    return f"{one.level:.4g}, where the baseline has {one.center:.4g}{relative}"


def _relative(one: Watched) -> float:
    """Return the change as a share of the baseline's absolute value, with the sign of the change."""
    return (one.level - one.center) / abs(one.center) if one.center else np.nan


def _ms(day: date) -> int:
    return (day.toordinal() - _EPOCH) * _DAY_MS


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
