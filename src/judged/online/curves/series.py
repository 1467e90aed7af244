"""A metric over time as people read it: what is usual, what is not, and when its level changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.estimating.over_time import written_start
from judged.online.showing import words
from judged.online.showing.document import arranged, document
from judged.online.showing.layout import full, percent, ranks_table
from judged.online.showing.numbers import counted, decimals_of, number, span
from judged.online.showing.text import below, lines
from judged.stats.control import FEWEST
from judged.tables import Table

if TYPE_CHECKING:
    from judged.online.estimating.over_time import OverTime
    from judged.online.result import OnlineScores
    from judged.stats.control import Signal

_WIDTH = 100
_MOST = 6  # decimals


@dataclass(frozen=True)
class Series:
    """A metric over time beside its value over the whole log.

    Parameters
    ----------
    scores
        The metric over the whole log, with CTR by rank and what the log is.
    found
        The metric by period.
    """

    scores: OnlineScores
    found: OverTime

    @property
    def decimals(self) -> int:
        """As many as the periods deserve that are known best."""
        known = [decimals_of(one.estimate) for one in self.found.points if not math.isnan(one.estimate.value)]
        return min(max(known, default=1), _MOST)

    def table(self) -> Table:
        """Lay out one row a period: value, interval, what is usual, and what is not."""
        unit, places, noted = self.found.metric.unit, self.decimals, self.notes
        width = max((len(note) for note in noted), default=0)
        header = (f"{self.found.every} (UTC)", str(self.found.metric), f"{percent(self.scores.level)} interval",
                  "usual", f"{self.scores.over}s", "note".ljust(width))  # fmt: skip
        rows = tuple(
            (
                written_start(one.start_ms, self.found.every),
                number(one.estimate.value, unit, places),
                span(one.estimate.low, one.estimate.high, unit, places),
                span(one.low_limit, one.high_limit, unit, places),
                f"{one.estimate.units:,}",
                note.ljust(width),
            )
            for one, note in zip(self.found.points, noted, strict=True)
        )
        return Table(header, rows)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is usual, what is not, and what changed; a series that is too short for that says so."""
        found, unit, places = self.found, self.found.metric.unit, self.decimals
        if math.isnan(found.centre):
            return (f"No limits: {self._why_no_limits()}.",)
        usual = (
            f"{found.metric} is usually {number(found.centre, unit, places)}, the mean of {found.base} {found.every}s"
        )
        scatter = f"{found.every}s differ {found.sigma_z:.1f} times as much as users within one would have them"
        said = [f"{usual}; {scatter}, and the limits allow for that."]
        unusual = sorted({one.point for one in found.signals})
        times = ", ".join(written_start(found.points[at].start_ms, found.every) for at in unusual[:5])
        more = f" and {len(unusual) - 5} more" if len(unusual) > 5 else ""
        said.append(f"Not usual: {times}{more}." if unusual else "Nothing lies outside of what is usual.")
        for one in found.changes:
            start = written_start(found.points[one.point].start_ms, found.every)
            said.append(
                f"The level changed at {start}: {number(one.before, unit, places)} before,"
                f" {number(one.after, unit, places)} after."
            )
        return tuple(said)

    def _why_no_limits(self) -> str:
        """Say what limits lack: periods, errors of them, or anything that varies."""
        found, every = self.found, f"complete {self.found.every}s"
        whole = [one.estimate for one in found.points if one.complete and not math.isnan(one.estimate.value)]
        if len(whole) < FEWEST:
            return f"they take at least {FEWEST} {every}, and there are {len(whole)}"
        if not any(one.error > 0 for one in whole):
            return f"they are made of errors, and in none of {len(whole)} {every} two {self.scores.over}s differ"
        if found.base < FEWEST:
            return f"they take at least {FEWEST} {every} at the beginning, and {found.base} of these have a value"
        return f"{found.metric} is the same in all of {found.base} {every}"

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """Write for a terminal; CTR by rank stands below where the metric depends on rank."""
        wide = min(width or _WIDTH, _WIDTH)
        blocks = [
            lines([words.about(self.scores), *words.rules(self.scores)], wide),
            self.table().text(width=width, colour=colour),
            lines(self.sentences, wide),
        ]
        if words.is_biased(self.scores):
            blocks.append(lines([words.bias(self.scores)], wide))
            blocks.append(ranks_table(self.scores, bars=True).text(width=width, colour=colour))
        blocks.append(lines(below(self.scores), wide))
        return "\n\n".join(block for block in blocks if block)

    def markdown(self) -> str:
        """Write as Markdown."""
        biased = [words.bias(self.scores).replace("*", r"\*"), ranks_table(self.scores).markdown()]
        said = "\n".join(f"- {one}" for one in (*self.sentences, *below(self.scores)))
        blocks = [words.about(self.scores), self.table().markdown(), said]
        return "\n\n".join([*blocks, *(biased if words.is_biased(self.scores) else [])])

    def csv(self) -> str:
        """Write one period a row in full precision."""
        header = ("start", "complete", "metric", "value", "low", "high", "error", "numerator", "denominator", "units",
                  "low_limit", "high_limit", "note")  # fmt: skip
        rows = tuple(
            tuple(
                full(cell)
                for cell in (
                    written_start(one.start_ms, self.found.every),
                    str(one.complete).lower(),
                    str(self.found.metric),
                    one.estimate.value,
                    one.estimate.low,
                    one.estimate.high,
                    one.estimate.error,
                    one.estimate.numerator,
                    one.estimate.denominator,
                    one.estimate.units,
                    one.low_limit,
                    one.high_limit,
                    note,
                )
            )
            for one, note in zip(self.found.points, self.notes, strict=True)
        )
        return Table(header, rows).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, with the keys of every command: the periods are under ``series``."""
        return arranged(**{**document(self.scores), "series": self.found.to_dict()})

    def chart(self, *, width: int = 460) -> Any:
        """Draw the periods with their intervals, the limits, and changes of level.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        from judged.online.curves.charts import series_chart

        return series_chart(self.found, self.notes, self.scores.level, width=width)

    @property
    def notes(self) -> list[str]:
        """Say of each period what is to be said."""
        found = self.found
        notes: list[list[str]] = [[] if one.complete else ["incomplete"] for one in found.points]
        for signal in found.signals:
            notes[signal.point].append(_said(signal))
        for change in found.changes:
            before, after = (number(one, found.metric.unit, self.decimals) for one in (change.before, change.after))
            notes[change.point].append(f"level {before} to {after}")
        return ["; ".join(note) for note in notes]

    def __str__(self) -> str:
        return self.text()


def _said(signal: Signal) -> str:
    if signal.rule == "nelson-1":
        return f"{signal.side} what is usual"
    return f"{counted(signal.point - signal.first + 1, 'period')} {signal.side} the mean"
