"""How long opened results are looked at, and what that says about the threshold of a satisfied click."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.online import findings as words
from judged.online.layout import AMOUNT, UNITS, in_unit, percent, value_of, values
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
"""The times at which the curve is taken."""
THRESHOLDS = tuple(range(5, 65, 5))
"""The thresholds of a satisfied click that are held against one another, in seconds."""
_TIME = Show("{:g} s".format, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class DwellTimes(Answer):
    """The Kaplan-Meier curve of dwell times, and satisfied clicks by threshold.

    Attributes
    ----------
    scores : OnlineScores
        ``SatisfiedClicks(t=...)`` at each threshold, and what the log is.
    curve : tuple of SurvivalEstimate
        The share of visits that last so many seconds or more.
    median : SurvivalEstimate or None
        The time by which half of the visits have ended; None where there are no visits.
    """

    kind: ClassVar[str] = "dwell"
    stacked: ClassVar[bool] = True

    scores: OnlineScores
    curve: tuple[SurvivalEstimate, ...]
    median: SurvivalEstimate | None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return "How long opened results are looked at"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the curves say, and what they do not."""
        if self.median is None:
            return ("No click of this log has a dwell time.",)
        median = self.median
        visits = counted(median.observed + median.censored, "visit")
        level, (half, low, high) = percent(self.scores.level), map(_time, (median.value, median.low, median.high))
        limits = "" if math.isnan(median.low) else f" ({level} interval {low} to {high})"
        return (
            f"Half of {visits} last longer than {half}{limits}."
            if math.isfinite(median.value)
            else f"More than half of {visits} go on for longer than any was watched.",
            f"The end of {counted(median.censored, 'visit')} was not seen: what was watched of them counts"
            " (Kaplan-Meier), and none is left out."
            if median.censored
            else "Every visit was seen to end.",
            *self._on_thresholds(),
        )

    def _on_thresholds(self) -> tuple[str, ...]:
        known = [one for one in self.scores.estimates if not math.isnan(one.value)]
        if len(known) < 2:
            return ()
        first, last = (f"{value_of(one)} at {one.metric.parameters['t']:g} s" for one in (known[0], known[-1]))
        return (f"Satisfied clicks depend on the threshold: {first}, {last}. A comparison should hold at all of them.",)

    def blocks(self) -> tuple[Block, ...]:
        """Give what is said, both curves with their charts, and what the log is."""
        return (
            Sentences(words.about(self.scores)),
            Sentences(self.sentences, "said"),
            *self.curves(),
            Sentences((*words.missing(self.scores), f"{words.made(self.scores)}."), "made"),
            *self.scores.background(),
        )

    def curves(self) -> tuple[Chart | Table, ...]:
        """Give both curves, drawn and as tables."""
        if self.median is None:
            return ()
        visits, thresholds, said = self._visits(), self._thresholds(), self.sentences
        how: Any = {"kind": "lines", "y": "value", "percent": "y", "reach": {"y": (0.0,)}, "height": 200}
        title = "Satisfied clicks by threshold"
        last = Chart("dwell", self.title, visits, " ".join(said[:2]), x="seconds", spread="amount", **how)
        by = Chart("thresholds", title, thresholds, said[-1], x="threshold", **how)
        return last, visits, by, thresholds

    def facts(self) -> dict[str, Any]:
        """Give what the log is, what was chosen, and the median in seconds."""
        median, seen = None, {"observed": 0, "censored": 0}
        if self.median is not None:
            median = {name: getattr(self.median, name) / 1000 for name in ("value", "low", "high")}
            seen = {name: getattr(self.median, name) for name in seen}
        return {**self.scores.facts(), "median": median, **seen}

    def _visits(self) -> Table:
        """Lay out one row a time: the share of visits that last as long."""
        limits = [None if math.isnan(one.low) else (one.low, one.high) for one in self.curve]
        share = in_unit("share")
        lasting = Column("value", [one.value for one in self.curve], share, "last as long", limits)
        return Table(
            "survival",
            (
                Column("seconds", [(one.at_ms + 1) / 1000 for one in self.curve], _TIME),
                replace(lasting, each=[share] * len(self.curve)),
                Column("error", [one.error for one in self.curve], NUMBER, only="data"),
                *columns_of(self.curve, ("units", UNITS, f"{self.scores.over}s")),
            ),
        )

    def _thresholds(self) -> Table:
        """Lay out one row a threshold: the share of clicks that count as satisfied by it."""
        estimates = self.scores.estimates
        return Table(
            "thresholds",
            (
                Column("threshold", [float(one.metric.parameters["t"] or 0) for one in estimates], _TIME),
                Column("metric", [str(one.metric) for one in estimates], TEXT, only="data"),
                values(estimates, "value", "satisfied clicks"),
                Column("error", [one.error for one in estimates], NUMBER, only="data"),
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
    """Give the curve of dwell times of a log, and satisfied clicks by threshold.

    Parameters
    ----------
    log
        The log.
    unit
        What intervals are made over: ``user`` or ``session``.
    level
        Of the intervals.
    where, settings
        As `online_metrics` takes them.

    Raises
    ------
    InputError
        If the log has no clicks, or no clock.
    """
    from judged.online.estimation.online_metrics import online_metrics
    from judged.online.estimation.survival import CurveStatistic, estimate_survival, select_visits
    from judged.online.facts.reformulation import click_facts
    from judged.online.slicing import pages_where

    names = [f"SatisfiedClicks(t={t})" for t in THRESHOLDS]
    scores = online_metrics(log, names, where=where, unit=unit, level=level, settings=settings)
    if not scores.estimates:
        reason = scores.refused[0][1] if scores.refused else "it has no clicks"
        raise InputError(f"this log has no dwell times: {reason}", fix="see 'judged online list SatisfiedClicks'")
    with log.engine.scratch():
        chosen = None if where is None else pages_where(log, where)[0]
        clicks = select_visits(click_facts(log), None, chosen)
        wanted = [CurveStatistic("quantile", 0.5), *(CurveStatistic("share", 1000 * second - 1) for second in SECONDS)]
        median, *points = estimate_survival(clicks, wanted, unit=unit, level=level)
    return DwellTimes(scores, tuple(one for each in points for one in each), next(iter(median), None), scores.notes)


def _time(value: float) -> str:
    return "-" if math.isnan(value) else "more than was watched" if math.isinf(value) else f"{value / 1000:,.1f} s"
