"""Scores as they are reported: every number with its interval over topics, as tables for people and for data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_args

import numpy as np

from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Show, Table, columns_of, number
from judged.results.decimals import counted, decimal, listed, percent
from judged.results.table import order_of
from judged.scoring.evaluation.facts import Reach, TopicRanges
from judged.scoring.judging import TiePolicy
from judged.scoring.measures.aggregates import aggregate, logarithms
from judged.scoring.measures.grammar import find

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats
    from judged.scoring.evaluation.facts import Estimate, Provenance, TieTreatment
    from judged.scoring.evaluation.scores import Scores
    from judged.scoring.judging import Judged
    from judged.scoring.measures.aggregates import Aggregate
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import Exactness, Range
    from judged.stats.interval import IntervalMethod


_ABOUT_JUDGING = {"Judged", "Unjudged", "Hole", "RBPResidual"}


class Sampled(NamedTuple):
    """In how many topics a score is the mean of a sample, and the largest standard error."""

    n: int = 0
    error: float = 0.0


@dataclass(frozen=True)
class Movement:
    """What is wanted beyond one number per topic."""

    ties: TieTreatment  # how ties are treated; `expected` changes the scores, `bounds` adds ranges to them
    unjudged: bool  # whether the returned documents without a judgment are given every grade that they could have
    depth: int | None  # how many documents of each topic count
    seed: int  # of the samples that are drawn where there are too many orders

    def __post_init__(self) -> None:
        if self.ties not in (known := (*get_args(TiePolicy), "expected", "bounds")):
            raise InputError(f"no tie policy {self.ties!r}", fix=f"use one of {', '.join(known)}")
        if self.unjudged and self.ties == "expected":
            raise InputError(
                "the range that unjudged documents leave open is that of one order of the ties, not of their mean",
                fix="choose ties=docid or ties=bounds with unjudged",
            )

    @property
    def of_ties(self) -> bool:
        """Whether all orders of tied documents count."""
        return self.ties in {"expected", "bounds"}

    def judging(self) -> dict[str, Any]:
        """Give ties and depth for `judge`; where all orders count, no tied document may be cut off before."""
        order: TiePolicy = "docid" if self.of_ties else self.ties  # type: ignore[assignment]
        return {"ties": order, "depth": None if self.of_ties else self.depth}

    def cut(self, judged: Judged) -> Judged:
        """Cut a list that was judged whole at the depth."""
        if not self.of_ties or self.depth is None:
            return judged
        from judged.scoring.judging.unjudged import cut

        return cut(judged, self.depth)

    def score(self, whole: Judged, measure: Measure) -> tuple[Floats, Sampled]:
        """Score every topic, and say how far the numbers are samples: (T,)."""
        if self.ties != "expected":
            return measure(self.cut(whole)), Sampled()
        from judged.scoring.uncertainty.ties import tie_expected

        expected = tie_expected(whole, measure, depth=self.depth, seed=self.seed)
        sampled = expected.kind == "sampled"
        return expected.values, Sampled(int(sampled.sum()), float(expected.standard_error[sampled].max(initial=0.0)))

    def ranges(self) -> list[tuple[str, Callable[[Judged, Measure], Range]]]:
        """Give the reasons why scores could move that were asked about, each with what computes the range."""
        ranges: list[tuple[str, Callable[[Judged, Measure], Range]]] = []
        if self.ties == "bounds":
            from judged.scoring.uncertainty.ties import tie_range

            ranges.append(("ties", lambda whole, measure: tie_range(whole, measure, depth=self.depth, seed=self.seed)))
        if self.unjudged:
            from judged.scoring.uncertainty.unjudged import unjudged_range

            ranges.append(("unjudged", lambda whole, measure: unjudged_range(self.cut(whole), measure)))
        return ranges


def all_ranges(
    movement: Movement, lists: Sequence[Judged], measures: Sequence[Measure], query_ids: Sequence[str]
) -> tuple[TopicRanges, ...]:
    """Lay out the ranges of all runs and measures over the topics of all runs."""
    column_of = {name: at for at, name in enumerate(query_ids)}
    shape = (len(lists), len(measures), len(query_ids))
    made: list[TopicRanges] = []
    for reason, of in movement.ranges():
        low, high = np.full(shape, np.nan), np.full(shape, np.nan)
        kind, shares = np.full(shape, "exact", dtype="<U7"), np.full(shape[:2], np.nan)
        for at, judged in enumerate(lists):
            columns = [column_of[name] for name in judged.query_ids]
            for row, measure in enumerate(measures):
                if reason == "unjudged" and _about_judging(measure):
                    continue
                span, place = of(judged, measure), (at, row, columns)
                low[place], high[place], kind[place] = span.low, span.high, span.kind
                if reason == "unjudged" and judged.ranked:
                    share = find("Judged")[0].cls(cutoff=getattr(measure, "cutoff", None))
                    shares[at, row] = np.mean(share(movement.cut(judged)))
        made.append(TopicRanges(reason, low, high, kind, shares))
    return tuple(made)


def _about_judging(measure: Measure) -> bool:
    """Whether a measure says how much is judged: once all were judged, there would be nothing to say."""
    return measure.entry.name in _ABOUT_JUDGING or getattr(measure, "residual", False) is True


def reach(ranges: TopicRanges, at: tuple[int, int], scores: Floats, kind: Aggregate) -> Reach:
    """Aggregate the ranges of one run and measure over its topics."""
    from judged.scoring.uncertainty.ratio import weakest

    # A topic that the measure leaves out today (`undefined=skip`), but that would count with other grades, joins a mean
    # only where that moves the end further out.
    low, high = ranges.low[at], ranges.high[at]
    counts, joins = ~np.isnan(scores), np.isnan(scores) & ~np.isnan(low)
    low = np.where(np.isnan(low), scores, low)
    high = np.where(np.isnan(high), scores, high)
    return Reach(
        ranges.reason,
        aggregate(kind, np.append(low[counts], _joining(kind, low[counts], np.sort(low[joins]), 1.0))),
        aggregate(kind, np.append(high[counts], _joining(kind, high[counts], -np.sort(-high[joins]), -1.0))),
        weakest(ranges.kind[at][counts | joins]),
        float(ranges.judged[at]),
    )


def _joining(kind: Aggregate, here: Floats, others: Floats, sign: float) -> Floats:
    """Choose the topics, in this order, that move the mean of those here further; all for a sum that they move.

    >>> _joining("mean", np.array([1.0, 0.5]), np.array([0.2, 0.6, 0.9]), 1.0).tolist()
    [0.2]
    """
    if kind in {"sum", "count"}:
        return others[sign * others < 0]
    joined = 0
    worth, all_worth = (logarithms(part) if kind == "geometric mean" else part for part in (others, here))
    total, count = float(all_worth.sum()), len(all_worth)
    for value in worth.tolist():
        mean = total / count if count else math.inf * sign
        if sign * value >= sign * mean:
            break
        total, count, joined = total + value, count + 1, joined + 1
    return others[:joined]


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
