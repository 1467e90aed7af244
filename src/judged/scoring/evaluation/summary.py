"""Summaries of scores: aggregates with confidence intervals and ranges, as tables for people and for data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_args

import numpy as np

from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Show, Table, columns_of, number
from judged.results.decimals import counted, decimal, listed, percent
from judged.results.spelling import use_one_of
from judged.results.table import best_first_order
from judged.scoring.evaluation.facts import AggregateRange, TopicRanges
from judged.scoring.judging import TiePolicy
from judged.scoring.measures.aggregates import aggregate, logarithms
from judged.scoring.measures.grammar import find as find_measures

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
    from judged.scoring.uncertainty.ratio import Exactness, ScoreRange
    from judged.stats.interval import IntervalMethod


_COVERAGE_MEASURES = {"Judged", "Unjudged", "Hole", "RBPResidual"}


class SampledTopics(NamedTuple):
    """Number of topics whose score is the mean of a sample of orders, and the largest standard error."""

    n: int = 0
    error: float = 0.0


@dataclass(frozen=True)
class RangeOptions:
    """Options for ties and unjudged documents, which may require ranges in addition to scores."""

    ties: TieTreatment  # `expected` changes the scores, `bounds` adds ranges to them
    unjudged: bool  # whether to compute ranges over all possible grades of unjudged returned documents
    depth: int | None  # number of documents per topic that count
    seed: int  # seed of the samples of orders

    def __post_init__(self) -> None:
        if self.ties not in (allowed := (*get_args(TiePolicy), "expected", "bounds")):
            raise InputError(f"unknown value of `ties`: {self.ties!r}", fix=use_one_of(allowed))
        if self.unjudged and self.ties == "expected":
            raise InputError(
                "score ranges for unjudged documents require one order of tied documents, but ties=expected averages"
                " over all orders",
                fix="use ties=docid or ties=bounds with unjudged",
            )

    @property
    def of_ties(self) -> bool:
        """Whether all orders of tied documents count."""
        return self.ties in {"expected", "bounds"}

    def judging(self) -> dict[str, Any]:
        """Return ties and depth for `judge`; if all orders count, the list must not be truncated before."""
        order: TiePolicy = "docid" if self.of_ties else self.ties  # type: ignore[assignment]
        return {"ties": order, "depth": None if self.of_ties else self.depth}

    def truncate(self, judged: Judged) -> Judged:
        """Truncate a list at the depth, if it was judged without one."""
        if not self.of_ties or self.depth is None:
            return judged
        from judged.scoring.judging.unjudged import truncate

        return truncate(judged, self.depth)

    def score(self, judged: Judged, measure: Measure) -> tuple[Floats, SampledTopics]:
        """Score every topic, (T,), and count the topics whose score is the mean of a sample."""
        if self.ties != "expected":
            return measure(self.truncate(judged)), SampledTopics()
        from judged.scoring.uncertainty.ties import tie_expected

        expected = tie_expected(judged, measure, depth=self.depth, seed=self.seed)
        is_sampled = expected.kind == "sampled"
        error = float(expected.standard_error[is_sampled].max(initial=0.0))
        return expected.values, SampledTopics(int(is_sampled.sum()), error)

    def ranges(self) -> list[tuple[str, Callable[[Judged, Measure], ScoreRange]]]:
        """Return the reasons for which scores may vary, each with the function that computes the range."""
        ranges: list[tuple[str, Callable[[Judged, Measure], ScoreRange]]] = []
        if self.ties == "bounds":
            from judged.scoring.uncertainty.ties import tie_range

            ranges.append(
                ("ties", lambda judged, measure: tie_range(judged, measure, depth=self.depth, seed=self.seed))
            )
        if self.unjudged:
            from judged.scoring.uncertainty.unjudged import unjudged_range

            ranges.append(("unjudged", lambda judged, measure: unjudged_range(self.truncate(judged), measure)))
        return ranges


def all_ranges(
    options: RangeOptions, lists: Sequence[Judged], measures: Sequence[Measure], query_ids: Sequence[str]
) -> tuple[TopicRanges, ...]:
    """Compute the ranges of all runs and measures over the topics of all runs."""
    column_of = {query_id: column for column, query_id in enumerate(query_ids)}
    shape = (len(lists), len(measures), len(query_ids))
    ranges: list[TopicRanges] = []
    for reason, compute_range in options.ranges():
        low, high = np.full(shape, np.nan), np.full(shape, np.nan)
        kind, shares = np.full(shape, "exact", dtype="<U7"), np.full(shape[:2], np.nan)
        for run, judged in enumerate(lists):
            columns = [column_of[query_id] for query_id in judged.query_ids]
            for row, measure in enumerate(measures):
                if reason == "unjudged" and _measures_coverage(measure):
                    continue
                bounds, cells = compute_range(judged, measure), (run, row, columns)
                low[cells], high[cells], kind[cells] = bounds.low, bounds.high, bounds.kind
                if reason == "unjudged" and judged.ranked:
                    share = find_measures("Judged")[0].cls(cutoff=getattr(measure, "cutoff", None))
                    shares[run, row] = np.mean(share(options.truncate(judged)))
        ranges.append(TopicRanges(reason, low, high, kind, shares))
    return tuple(ranges)


def _measures_coverage(measure: Measure) -> bool:
    """Return whether a measure depends on which documents are judged: its range over grades means nothing."""
    return measure.entry.name in _COVERAGE_MEASURES or getattr(measure, "residual", False) is True


def aggregate_range(ranges: TopicRanges, cell: tuple[int, int], scores: Floats, kind: Aggregate) -> AggregateRange:
    """Aggregate the ranges of one run and measure over its topics."""
    from judged.scoring.uncertainty.ratio import combine_kinds

    # A topic may be left out now (`undefined=skip`), but count with other grades. It is included in an end of the range
    # only if it moves this end outwards.
    low, high = ranges.low[cell], ranges.high[cell]
    counts, joins = ~np.isnan(scores), np.isnan(scores) & ~np.isnan(low)
    low = np.where(np.isnan(low), scores, low)
    high = np.where(np.isnan(high), scores, high)
    return AggregateRange(
        ranges.reason,
        aggregate(kind, np.append(low[counts], _values_to_include(kind, low[counts], np.sort(low[joins]), 1.0))),
        aggregate(kind, np.append(high[counts], _values_to_include(kind, high[counts], -np.sort(-high[joins]), -1.0))),
        combine_kinds(ranges.kind[cell][counts | joins]),
        float(ranges.judged[cell]),
    )


def _values_to_include(kind: Aggregate, values: Floats, candidates: Floats, sign: float) -> Floats:
    """Select the candidates that move the aggregate of `values` down (sign 1) or up (-1); they are sorted outwards.

    >>> _values_to_include("mean", np.array([1.0, 0.5]), np.array([0.2, 0.6, 0.9]), 1.0).tolist()
    [0.2]
    """
    if kind in {"sum", "count"}:
        return candidates[sign * candidates < 0]
    included = 0
    terms, present = (logarithms(part) if kind == "geometric mean" else part for part in (candidates, values))
    total, count = float(present.sum()), len(present)
    for term in terms.tolist():
        mean = total / count if count else math.inf * sign
        if sign * term >= sign * mean:
            break
        total, count, included = total + term, count + 1, included + 1
    return candidates[:included]


ESTIMATE = ("run", TEXT), ("measure", TEXT), ("aggregate", TEXT), ("value", NUMBER), ("n", COUNT, "topics")
"""Columns of an estimate in tables."""
_TEXT_WIDTH = 40
_MAX_CHART_RUNS = 40
_COUNT_NUMBER = Show(COUNT.write, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Answer):
    """Report of scores; its main table has one number per row."""

    kind: ClassVar[str] = "scores"
    main: ClassVar[str] = "results"

    scores: Scores
    estimates: tuple[Estimate, ...]  # ordered by run, then measure
    provenance: Provenance
    notes: tuple[Note, ...]
    per_topic: bool = False  # whether every topic is shown
    further: tuple[Block, ...] = ()  # shown below the scores

    def blocks(self) -> tuple[Block, ...]:
        """Return a table for people, of the runs or of every topic, all numbers as data, and a chart."""
        chart = leaderboard_chart(self.scores.measures[0], self.estimates[:: len(self.scores.measures)])
        folded_chart = replace(chart, table=replace(chart.table, only="people"), folded=True)
        return (self.topics() if self.per_topic else self.runs(), self._results(), folded_chart, *self.further)

    def facts(self) -> dict[str, Mapping[str, str]]:
        """Return the texts of topics, if there are any."""
        return {} if self.scores.queries is None else {"queries": self.scores.queries}

    def table(self, name: str | None = None) -> Table:
        """Return a table by its name; ``topics``, which JSON has in ``results``, holds every score.

        Raises
        ------
        InputError
            If there is no table with this name.
        """
        return self.scores.table("topics") if name == "topics" else super().table(name)

    def runs(self) -> Table:
        """Build a table with one row per run, one column per measure."""
        columns = [Column("run", self.scores.run_names, TEXT)]
        for row, measure in enumerate(self.scores.measures):
            estimates = self.estimates[row :: len(self.scores.measures)]
            show = _COUNT_NUMBER if measure.entry.aggregate in {"sum", "count"} else NUMBER
            ranges = [estimate.ranges for estimate in estimates] if self.scores.ranges else []
            range_texts = [
                " ".join(
                    _format_range(bounds.reason, bounds.kind, bounds.low, bounds.high, bounds.judged)
                    for bounds in run_ranges
                    if bounds.judged < 1 or bounds.low < bounds.high or bounds.reason != "unjudged"
                )
                for run_ranges in ranges
            ]
            limits = [estimate.ci for estimate in estimates]
            values = [estimate.value for estimate in estimates]
            columns.append(Column(str(measure), values, show, ci=limits, details=range_texts))
        note = describe_rules(self.scores, self.provenance.interval)
        return Table("summary", tuple(columns), note=note, only="people")

    def topics(self) -> Table:
        """Build a table with one row per topic and run, one column per measure."""
        scores, texts, names = self.scores, self.scores.queries, self.scores.run_names
        topics, runs = np.nonzero(scores.counted.T)
        query_ids = [scores.query_ids[topic] for topic in topics.tolist()]
        columns = [Column("query_id", query_ids, TEXT)]
        if texts is not None:
            columns.append(Column("query", [_shorten(texts.get(query_id, "")) for query_id in query_ids], TEXT))
        if len(names) > 1:
            columns.append(Column("run", [names[run] for run in runs.tolist()], TEXT))
        labels = len(columns)
        for row, measure in enumerate(scores.measure_names):
            cells = (runs, row, topics)
            texts_by_reason = [
                [
                    "" if math.isnan(low) else _format_range(bounds.reason, kind, low, high)
                    for kind, low, high in zip(
                        bounds.kind[cells].tolist(), bounds.low[cells], bounds.high[cells], strict=True
                    )
                ]
                for bounds in scores.ranges
            ]
            range_texts = [" ".join(filter(None, parts)) for parts in zip(*texts_by_reason, strict=True)]
            columns.append(Column(measure, scores.values[cells].tolist(), NUMBER, details=range_texts))
        note = describe_rules(scores, self.provenance.interval)
        return Table("summary", tuple(columns), note=note, labels=labels, only="people")

    def _results(self) -> Table:
        """Build a table with one number per row."""
        columns = [*columns_of(self.estimates, *ESTIMATE)]
        for topic_ranges in self.scores.ranges:
            reason = topic_ranges.reason
            ranges = [
                next((bounds for bounds in estimate.ranges if bounds.reason == reason), None)
                for estimate in self.estimates
            ]
            for part, show in (("low", number()), ("high", number()), ("kind", TEXT), ("judged", number())):
                values = [bounds and getattr(bounds, part) for bounds in ranges]
                if part != "judged" or reason == "unjudged":
                    columns.append(Column(f"{reason}_{part}", values, show))
        if self.per_topic:
            by_topic = self.scores.per_topic()
            values = [by_topic[estimate.run][estimate.measure] for estimate in self.estimates]
            columns.append(Column("per_topic", values, only="json"))
        return Table("results", tuple(columns), labels=3, only="data")


def leaderboard_chart(lead: Measure, estimates: Sequence[Estimate], emphasized: Sequence[str] = ()) -> Chart:
    """Build a chart of one measure of every run, best first, with intervals; highlight the best and the emphasized."""
    order = best_first_order(
        [estimate.value for estimate in estimates], lower_is_better=lead.properties.higher_is_better is False
    )
    ranked = [estimates[run] for run in order if not math.isnan(estimates[run].value)]
    charted = ranked[:_MAX_CHART_RUNS]
    charted += [estimate for estimate in ranked[_MAX_CHART_RUNS:] if estimate.run in emphasized]
    show = _COUNT_NUMBER if lead.entry.aggregate in {"sum", "count"} else number()
    topics = {estimate.n for estimate in charted}
    over = f" over {counted(topics.pop(), 'topic')}" if len(topics) == 1 else ""
    sentence = f"{lead} of {counted(len(charted), 'run')}{over}."
    if len(ranked) > 1:
        best, last = ranked[0], ranked[-1]
        sentence = f"{best.run} is first with {lead} {show.write(best.value)}{over}"
        if best.ci:
            within = sum(best.ci[0] <= estimate.value <= best.ci[1] for estimate in ranked[1:])
            sentence += (
                f"; the means of {within} of {counted(len(ranked) - 1, 'other run')} are within the confidence"
                f" interval of {best.run}"
            )
        sentence += f". {last.run} is last with {show.write(last.value)}."
    sentence += (
        f" The chart shows the best {_MAX_CHART_RUNS} of {len(ranked)} runs." if len(ranked) > _MAX_CHART_RUNS else ""
    )
    loud = tuple(dict.fromkeys([ranked[0].run, *emphasized])) if ranked else ()
    sentence += f" Highlighted: {listed(loud)}." if len(ranked) > len(loud) else ""
    columns = columns_of(charted, ("run", TEXT), ("value", show, str(lead)), ("n", COUNT, "topics"))
    title, table = f"{lead} by run, best first", Table("best_first", tuple(columns))
    return Chart("leaderboard", title, table, sentence, y="run", color="run", highlighted=loud, legend=False)


def describe_rules(scores: Scores, interval: IntervalMethod | None = None, over: str = "") -> str:
    """Describe the rules of the numbers: topics, ties, depth, intervals."""
    rules = scores.rules(over)
    for row, measure in enumerate(scores.measures):
        if measure.where:
            topics = int((~np.isnan(scores.values[:, row])).any(axis=0).sum())
            rules += f"; {measure}: mean over {topics} of these topics"
    if interval is None:
        return rules
    caption = scores.interval_caption(interval)
    return f"{rules}; [{caption}]" if caption else f"{rules}; no intervals"


def _format_range(reason: str, kind: Exactness, low: float, high: float, judged: float = math.nan) -> str:
    """Format a range; bounds that may be too wide, or too narrow, are marked."""
    mark = {"exact": "", "outer": " at most", "sampled": " at least"}[kind]
    share = "" if math.isnan(judged) else f" ({percent(judged)} judged)"
    return f"{reason}{mark} {decimal(low, 3)}-{decimal(high, 3)}{share}"


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"
