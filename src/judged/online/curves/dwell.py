"""How long opened results are looked at, and what that says about the threshold of a satisfied click."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.showing import words
from judged.online.showing.document import arranged, document, plain
from judged.online.showing.layout import full, percent
from judged.online.showing.numbers import NOTHING, counted, number, span, span_of, value_of
from judged.online.showing.text import below, lines
from judged.tables import Table

if TYPE_CHECKING:
    from judged.online.estimating.measuring import Unit
    from judged.online.estimating.survival import SurvivalEstimate
    from judged.online.facts.settings import FactSettings
    from judged.online.log import InteractionLog
    from judged.online.result import OnlineScores

SECONDS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 300, 600)
"""The times at which the curve is taken."""
THRESHOLDS = tuple(range(5, 65, 5))
"""The thresholds of a satisfied click that are held against one another, in seconds."""
_WIDTH = 100


@dataclass(frozen=True)
class DwellTimes:
    """The Kaplan-Meier curve of dwell times, and satisfied clicks by threshold.

    Parameters
    ----------
    scores
        ``SatisfiedClicks(t=...)`` at each threshold, and what the log is.
    curve
        The share of visits that last so many seconds or more.
    median
        The time by which half of the visits have ended; None where there are no visits.
    """

    scores: OnlineScores
    curve: tuple[SurvivalEstimate, ...]
    median: SurvivalEstimate | None

    def curve_table(self) -> Table:
        """Lay out one row a time: the share of visits that last as long."""
        header = ("seconds", "last as long", f"{percent(self.scores.level)} interval", f"{self.scores.over}s")
        rows = tuple(
            (_seconds(one), number(one.value, "share"), span(one.low, one.high, "share"), f"{one.units:,}")
            for one in self.curve
        )
        return Table(header, rows)

    def thresholds_table(self) -> Table:
        """Lay out one row a threshold: the share of clicks that count as satisfied by it."""
        header = ("threshold", "satisfied clicks", f"{percent(self.scores.level)} interval", "satisfied", "clicks")
        rows = tuple(
            (
                f"{one.metric.parameters['t']:g} s",
                value_of(one),
                span_of(one),
                f"{one.numerator:,.0f}",
                f"{one.denominator:,.0f}",
            )
            for one in self.scores.estimates
        )
        return Table(header, rows)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the curves say, and what they do not."""
        if self.median is None:
            return ("No click of this log has a dwell time.",)
        found, level = self.median, percent(self.scores.level)
        visits = found.observed + found.censored
        half = _time(found.value)
        limits = "" if math.isnan(found.low) else f" ({level} interval {_time(found.low)} to {_time(found.high)})"
        said = [
            f"Half of {counted(visits, 'visit')} last longer than {half}{limits}."
            if math.isfinite(found.value)
            else f"More than half of {counted(visits, 'visit')} go on for longer than any was watched.",
        ]
        said.append(
            f"The end of {counted(found.censored, 'visit')} was not seen: what was watched of them counts"
            " (Kaplan-Meier), and none is left out."
            if found.censored
            else "Every visit was seen to end."
        )
        steps = [one for one in self.scores.estimates if not math.isnan(one.value)]
        if len(steps) > 1:
            first, last = steps[0], steps[-1]
            said.append(
                f"Satisfied clicks depend on the threshold: {value_of(first)} at {first.metric.parameters['t']:g} s,"
                f" {value_of(last)} at {last.metric.parameters['t']:g} s. A comparison should hold at all of them."
            )
        return tuple(said)

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """Write for a terminal."""
        wide = min(width or _WIDTH, _WIDTH)
        blocks = [lines([words.about(self.scores), *words.rules(self.scores)], wide), lines(self.sentences, wide)]
        tables = (self.curve_table(), self.thresholds_table())
        blocks += [table.text(width=width, colour=colour) for table in tables if table.rows]
        blocks.append(lines(below(self.scores), wide))
        return "\n\n".join(block for block in blocks if block)

    def markdown(self) -> str:
        """Write as Markdown."""
        tables = [table.markdown() for table in (self.curve_table(), self.thresholds_table()) if table.rows]
        said = "\n".join(f"- {one}" for one in (*self.sentences, *below(self.scores)))
        return "\n\n".join([words.about(self.scores), *tables, said])

    def csv(self) -> str:
        """Write one point a row in full precision, both curves one after the other."""
        header = ("curve", "seconds", "value", "low", "high", "error", "units")
        rows = [
            ("survival", (one.at_ms + 1) / 1000, one.value, one.low, one.high, one.error, one.units)
            for one in self.curve
        ]
        rows += [
            ("satisfied", one.metric.parameters["t"] or 0.0, one.value, one.low, one.high, one.error, one.units)
            for one in self.scores.estimates
        ]
        return Table(header, tuple(tuple(full(cell) for cell in row) for row in rows)).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, with the keys of every command: the curve is under ``dwell``."""
        found = self.median
        points = [
            {
                "seconds": (one.at_ms + 1) / 1000,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "error": one.error,
                "units": one.units,
            }
            for one in self.curve
        ]
        whole: dict[str, Any] = {"survival": points, "median": None, "observed": 0, "censored": 0}
        if found is not None:
            limits = {"seconds": found.value / 1000, "low": found.low / 1000, "high": found.high / 1000}
            whole |= {"median": limits, "observed": found.observed, "censored": found.censored}
        return arranged(**{**document(self.scores), "dwell": plain(whole)})

    def chart(self, *, width: int = 460) -> Any:
        """Draw both curves with their intervals.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        from judged.online.curves.charts import dwell_chart

        return dwell_chart(self.curve, self.scores, width=width)

    def __str__(self) -> str:
        return self.text()


def dwell_times(
    log: InteractionLog, *, unit: Unit = "user", level: float = 0.95, settings: FactSettings | None = None
) -> DwellTimes:
    """Give the curve of dwell times of a log, and satisfied clicks by threshold.

    Parameters
    ----------
    log
        The log.
    unit
        What intervals are made over: ``user`` or ``session``.
    level
        Of the intervals.
    settings
        As `online_metrics` takes them.

    Raises
    ------
    InputError
        If the log has no clicks, or no clock.
    """
    from judged.errors import InputError
    from judged.online.estimating.measuring import online_metrics
    from judged.online.estimating.survival import survival_of, survival_quantile
    from judged.online.facts.clicks import click_facts

    names = [f"SatisfiedClicks(t={t})" for t in THRESHOLDS]
    scores = online_metrics(log, names, unit=unit, level=level, settings=settings)
    if not scores.estimates:
        reason = scores.refused[0][1] if scores.refused else "it has no clicks"
        raise InputError(f"this log has no dwell times: {reason}", fix="see 'judged online list SatisfiedClicks'")
    with log.engine.scratch():
        clicks = click_facts(log)
        points = survival_of(clicks, at_ms=[1000 * second - 1 for second in SECONDS], unit=unit, level=level)
        median = survival_quantile(clicks, unit=unit, level=level)
    return DwellTimes(scores, tuple(points), median[0] if median else None)


def _seconds(one: SurvivalEstimate) -> str:
    return f"{(one.at_ms + 1) / 1000:g} s"


def _time(value: float) -> str:
    return NOTHING if math.isnan(value) else "more than was watched" if math.isinf(value) else f"{value / 1000:,.1f} s"
