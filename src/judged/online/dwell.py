"""Kaplan-Meier curve of dwell times, and satisfied clicks by threshold."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.online.findings import describe_log, describe_method, describe_missing
from judged.online.layout import AMOUNT, UNITS, estimate_column, format_estimate, percent, unit_show
from judged.results import NUMBER, TEXT, Answer, Chart, Column, Sentences, Show, Table, columns_of, counted

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.estimation.survival import SurvivalEstimate
    from judged.online.facts.pages import FactSettings
    from judged.online.log import InteractionLog
    from judged.online.scores import OnlineScores
    from judged.results import Block
    from judged.results.blocks import Note

SECONDS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 300, 600)
"""Times at which the curve is evaluated."""
THRESHOLDS = tuple(range(5, 65, 5))
"""Compared thresholds of a satisfied click, in seconds."""
_TIME = Show("{:g} s".format, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class DwellTimes(Answer):
    """Kaplan-Meier curve of dwell times, and satisfied clicks by threshold.

    Attributes
    ----------
    scores : OnlineScores
        ``SatisfiedClicks(t=...)`` for each threshold, and the description of the log.
    curve : tuple of SurvivalEstimate
        Share of visits that are at least as long as each time.
    median : SurvivalEstimate or None
        Median dwell time; None if there are no visits.
    """

    kind: ClassVar[str] = "dwell"
    stacked: ClassVar[bool] = True

    scores: OnlineScores
    curve: tuple[SurvivalEstimate, ...]
    median: SurvivalEstimate | None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return "Dwell time of clicked results"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Median dwell time, censoring, and effect of the threshold."""
        if self.median is None:
            return ("No click of this log has a dwell time.",)
        median = self.median
        visits = counted(median.observed + median.censored, "visit")
        value, low, high = map(_format_time, (median.value, median.low, median.high))
        interval = "" if math.isnan(median.low) else f", {percent(self.scores.level)} CI [{low}, {high}]"
        return (
            f"The median dwell time of {visits} is {value}{interval}."
            if math.isfinite(median.value)
            else f"The median dwell time of {visits} is unknown: the median exceeds all observed dwell times.",
            f"The end of {counted(median.censored, 'visit')} was not observed: these visits are censored"
            " (Kaplan-Meier), not excluded."
            if median.censored
            else "The end of every visit was observed.",
            *self._threshold_sentences(),
        )

    def _threshold_sentences(self) -> tuple[str, ...]:
        valid = [estimate for estimate in self.scores.estimates if not math.isnan(estimate.value)]
        if len(valid) < 2:
            return ()
        first, last = (f"{format_estimate(row)} at {row.metric.parameters['t']:g} s" for row in (valid[0], valid[-1]))
        return (
            (
                f"The share of satisfied clicks depends on the threshold: {first}, {last}. Check whether your"
                " conclusions hold at all thresholds."
            ),
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, both curves as charts and tables, and the background."""
        return (
            Sentences(describe_log(self.scores)),
            Sentences(self.sentences, "summary"),
            *self.curves(),
            Sentences((*describe_missing(self.scores), f"{describe_method(self.scores)}."), "method"),
            *self.scores.background(),
        )

    def curves(self) -> tuple[Chart | Table, ...]:
        """Return both curves as charts and tables."""
        if self.median is None:
            return ()
        visits, thresholds, captions = self._visits(), self._thresholds(), self.sentences
        options: Any = {"kind": "lines", "y": "value", "percent": "y", "includes": {"y": (0.0,)}, "height": 200}
        title = "Satisfied clicks by threshold"
        survival = Chart("dwell", self.title, visits, " ".join(captions[:2]), x="seconds", spread="amount", **options)
        threshold_chart = Chart("thresholds", title, thresholds, captions[-1], x="threshold", **options)
        return survival, visits, threshold_chart, thresholds

    def facts(self) -> dict[str, Any]:
        """Return the log, the options, and the median in seconds."""
        median, counts = None, {"observed": 0, "censored": 0}
        if self.median is not None:
            median = {name: getattr(self.median, name) / 1000 for name in ("value", "low", "high")}
            counts = {name: getattr(self.median, name) for name in counts}
        return {**self.scores.facts(), "median": median, **counts}

    def _visits(self) -> Table:
        """Build the table of the survival curve, one row per time."""
        limits = [None if math.isnan(point.low) else (point.low, point.high) for point in self.curve]
        share = unit_show("share")
        survival = Column(
            "value", [point.value for point in self.curve], share, "share of visits this long or longer", limits
        )
        return Table(
            "survival",
            (
                Column("seconds", [(point.at_ms + 1) / 1000 for point in self.curve], _TIME),
                replace(survival, each=[share] * len(self.curve)),
                Column("error", [point.error for point in self.curve], NUMBER, only="data"),
                *columns_of(self.curve, ("units", UNITS, f"{self.scores.over}s")),
            ),
        )

    def _thresholds(self) -> Table:
        """Build the table of satisfied clicks, one row per threshold."""
        estimates = self.scores.estimates
        return Table(
            "thresholds",
            (
                Column("threshold", [float(estimate.metric.parameters["t"] or 0) for estimate in estimates], _TIME),
                Column("metric", [str(estimate.metric) for estimate in estimates], TEXT, only="data"),
                estimate_column(estimates, "value", "satisfied clicks"),
                Column("error", [estimate.error for estimate in estimates], NUMBER, only="data"),
                *columns_of(estimates, ("numerator", AMOUNT, "satisfied"), ("denominator", AMOUNT, "clicks")),
                *columns_of(estimates, "units", "method"),
            ),
        )


def dwell_times(
    log: InteractionLog,
    *,
    where: str | None = None,
    unit: Unit = "user",
    level: float = 0.95,
    settings: FactSettings | None = None,
) -> DwellTimes:
    """Estimate the survival curve of dwell times of a log, and satisfied clicks by threshold.

    Parameters
    ----------
    log
        The log.
    unit
        Independent unit of the confidence intervals: ``user`` or ``session``.
    level
        Confidence level.
    where, settings
        See `online_metrics`.

    Raises
    ------
    InputError
        If the log has no clicks, or no timestamps.
    """
    from judged.online.estimation.online_metrics import online_metrics
    from judged.online.estimation.survival import CurveStatistic, estimate_survival, select_visits
    from judged.online.facts.reformulation import click_facts
    from judged.online.slicing import pages_where

    names = [f"SatisfiedClicks(t={t})" for t in THRESHOLDS]
    scores = online_metrics(log, names, where=where, unit=unit, level=level, settings=settings)
    if not scores.estimates:
        reason = scores.refused[0][1] if scores.refused else "no clicks are logged"
        raise InputError(f"the log has no dwell times: {reason}", fix="see 'judged online list SatisfiedClicks'")
    with log.engine.scratch():
        selection = None if where is None else pages_where(log, where)[0]
        clicks = select_visits(click_facts(log), None, selection)
        # A visit of exactly `second` seconds lasts "as long", so the curve is read just below.
        readings = [
            CurveStatistic("quantile", 0.5),
            *(CurveStatistic("share", 1000 * second - 1) for second in SECONDS),
        ]
        median, *points = estimate_survival(clicks, readings, unit=unit, level=level)
    curve = tuple(itertools.chain.from_iterable(points))
    return DwellTimes(scores, curve, next(iter(median), None), scores.notes)


def _format_time(value: float) -> str:
    return "-" if math.isnan(value) else "not reached" if math.isinf(value) else f"{value / 1000:,.1f} s"
