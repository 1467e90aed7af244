"""Scores as they are reported: every number with its interval over topics, as tables for people and for data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Show, Table, columns_of, number
from judged.results.decimals import counted, decimal, listed, percent
from judged.results.table import order_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.results import Block
    from judged.results.notes import Note
    from judged.scoring.evaluation.facts import Estimate, Provenance
    from judged.scoring.evaluation.scores import Scores
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import Exactness
    from judged.stats.interval import IntervalMethod

ESTIMATE = ("run", TEXT), ("measure", TEXT), ("aggregate", TEXT), ("value", NUMBER), ("n", COUNT, "topics")
"""What tables show of an estimate."""
_TEXT_WIDTH = 40
_DRAWN = 40  # runs of the chart
_WHOLE = Show(COUNT.write, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Answer):
    """Scores as they are reported; its main table has one number a row."""

    kind: ClassVar[str] = "scores"
    main: ClassVar[str] = "results"

    scores: Scores
    estimates: tuple[Estimate, ...]  # run by run, and for each measure by measure
    provenance: Provenance
    notes: tuple[Note, ...]
    per_topic: bool = False  # whether every topic is shown

    def blocks(self) -> tuple[Block, ...]:
        """Give a table for people, of the runs or of every topic, all numbers as data, and a chart."""
        chart = best_first(self.scores.measures[0], self.estimates[:: len(self.scores.measures)])
        drawn = replace(chart, table=replace(chart.table, only="people"), folded=True)
        return (self.topics() if self.per_topic else self.runs(), self._results(), drawn)

    def facts(self) -> dict[str, Mapping[str, str]]:
        """Give the texts of topics, where they are known."""
        return {} if self.scores.queries is None else {"queries": self.scores.queries}

    def table(self, name: str | None = None) -> Table:
        """Give a table by its name; ``topics``, which JSON has in ``results``, holds every score.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        return self.scores.table("topics") if name == "topics" else super().table(name)

    def runs(self) -> Table:
        """Lay out one row per run, one column per measure."""
        columns = [Column("run", self.scores.run_names, TEXT)]
        for row, measure in enumerate(self.scores.measures):
            estimates = self.estimates[row :: len(self.scores.measures)]
            show = _WHOLE if measure.entry.aggregate in {"sum", "count"} else NUMBER
            reaches = [estimate.reaches for estimate in estimates] if self.scores.ranges else []
            beside = [
                " ".join(
                    _reach(reach.reason, reach.kind, reach.low, reach.high, reach.judged)
                    for reach in several
                    if reach.judged < 1 or reach.low < reach.high or reach.reason != "unjudged"
                )
                for several in reaches
            ]
            limits = [estimate.ci for estimate in estimates]
            columns.append(
                Column(str(measure), [estimate.value for estimate in estimates], show, ci=limits, beside=beside)
            )
        return Table("summary", tuple(columns), note=basis(self.scores, self.provenance.interval), only="people")

    def topics(self) -> Table:
        """Lay out one row per topic and run, one column per measure."""
        scores, texts, names = self.scores, self.scores.queries, self.scores.run_names
        topics, runs = np.nonzero(scores.counted.T)
        shown = [scores.query_ids[topic] for topic in topics.tolist()]
        columns = [Column("query_id", shown, TEXT)]
        if texts is not None:
            columns.append(Column("query", [_short(texts.get(topic, "")) for topic in shown], TEXT))
        if len(names) > 1:
            columns.append(Column("run", [names[run] for run in runs.tolist()], TEXT))
        labels = len(columns)
        for row, measure in enumerate(scores.measure_names):
            at = (runs, row, topics)
            reaches = [
                [
                    "" if math.isnan(low) else _reach(span.reason, kind, low, high)
                    for kind, low, high in zip(span.kind[at].tolist(), span.low[at], span.high[at], strict=True)
                ]
                for span in scores.ranges
            ]
            beside = [" ".join(filter(None, parts)) for parts in zip(*reaches, strict=True)]
            columns.append(Column(measure, scores.values[at].tolist(), NUMBER, beside=beside))
        note = basis(scores, self.provenance.interval)
        return Table("summary", tuple(columns), note=note, labels=labels, only="people")

    def _results(self) -> Table:
        """Lay out one number a row."""
        columns = [*columns_of(self.estimates, *ESTIMATE)]
        for span in self.scores.ranges:
            reaches = [
                next((reach for reach in estimate.reaches if reach.reason == span.reason), None)
                for estimate in self.estimates
            ]
            for part, show in (("low", number()), ("high", number()), ("kind", TEXT), ("judged", number())):
                values = [reach and getattr(reach, part) for reach in reaches]
                if part != "judged" or span.reason == "unjudged":
                    columns.append(Column(f"{span.reason}_{part}", values, show))
        if self.per_topic:
            by_topic = self.scores.per_topic()
            values = [by_topic[estimate.run][estimate.measure] for estimate in self.estimates]
            columns.append(Column("per_topic", values, only="json"))
        return Table("results", tuple(columns), labels=3, only="data")


def best_first(lead: Measure, estimates: Sequence[Estimate], emphasised: Sequence[str] = ()) -> Chart:
    """Draw one measure of every run, best first, with intervals; the best and those that are emphasised stand out."""
    order = order_of(
        [estimate.value for estimate in estimates], lower_is_better=lead.properties.higher_is_better is False
    )
    known = [estimates[run] for run in order if not math.isnan(estimates[run].value)]
    shown = known[:_DRAWN] + [estimate for estimate in known[_DRAWN:] if estimate.run in emphasised]
    show = _WHOLE if lead.entry.aggregate in {"sum", "count"} else number()
    topics = {estimate.n for estimate in shown}
    over = f" over {counted(topics.pop(), 'topic')}" if len(topics) == 1 else ""
    sentence = f"{lead} of {counted(len(shown), 'run')}{over}."
    if len(known) > 1:
        best, last = known[0], known[-1]
        sentence = f"{best.run} is first with {lead} {show.write(best.value)}{over}"
        if best.ci:
            within = sum(best.ci[0] <= estimate.value <= best.ci[1] for estimate in known[1:])
            sentence += f"; the means of {within} of {counted(len(known) - 1, 'other run')} lie within its interval"
        sentence += f". {last.run} is last with {show.write(last.value)}."
    sentence += f" The best {_DRAWN} of {len(known)} are drawn." if len(known) > _DRAWN else ""
    loud = tuple(dict.fromkeys([known[0].run, *emphasised])) if known else ()
    sentence += f" In colour: {listed(loud)}." if len(known) > len(loud) else ""
    columns = columns_of(shown, ("run", TEXT), ("value", show, str(lead)), ("n", COUNT, "topics"))
    title, table = f"{lead} of every run, best first", Table("best_first", tuple(columns))
    return Chart("leaderboard", title, table, sentence, y="run", colour="run", loud=loud, legend=False)


def basis(scores: Scores, interval: IntervalMethod | None = None, over: str = "") -> str:
    """Say by which rules numbers were made: topics, ties, depth, intervals."""
    rules = scores.rules(over)
    for row, measure in enumerate(scores.measures):
        if measure.where:
            rules += f"; {measure}: over {int((~np.isnan(scores.values[:, row])).any(axis=0).sum())} of them"
    if interval is None:
        return rules
    words = scores.interval_words(interval)
    return f"{rules}; [{words}]" if words else f"{rules}; no intervals"


def _reach(reason: str, kind: Exactness, low: float, high: float, judged: float = math.nan) -> str:
    """Write how far a number could move; bounds that may be too wide, or too narrow, are marked."""
    mark = {"exact": "", "outer": " at most", "sampled": " at least"}[kind]
    share = "" if math.isnan(judged) else f" ({percent(judged)} judged)"
    return f"{reason}{mark} {decimal(low, 3)}-{decimal(high, 3)}{share}"


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"
