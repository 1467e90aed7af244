"""Comparison of two runs, as a page and in the API."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field

from judged.comparison.answer import data_tables
from judged.comparison.compare import compare_scores
from judged.comparison.pair import describe_intervals, verdict_columns
from judged.comparison.slicing import SliceComparison, slice_topics
from judged.comparison.slicing.comparison import difference_title
from judged.interface.pages.answer_pages import NotOpenError, answer_page, conjunction, topic_columns
from judged.interface.pages.filters import blocks, link, probability, query_string, shared_choices
from judged.interface.pages.pagination import PageNumber, Paging, ScoredQuery, Trimmed, contains_words, order_by, shaded
from judged.interface.pages.problems import text_field
from judged.interface.pages.workspace import CurrentWorkspace, Workspace, cached_in_workspace, set_error_field
from judged.results import CHANGE, NUMBER, TEXT, Answer, Axis, Chart, Column, Headline, Section, Sentences, Show, Table
from judged.results import number as digits
from judged.results.charts import PALETTE
from judged.results.decimals import decimal, p_text
from judged.results.types import cached_property
from judged.scoring.default_measures import COMPARED_MEASURES, DEFAULT_MEASURE
from judged.scoring.evaluation import Scores
from judged.scoring.evaluation.evaluate import select_measures
from judged.scoring.measures.grammar import list_measures
from judged.stats.inputs import paired_differences
from judged.stats.sensitivity import LeaveOneTopicOut, leave_one_topic_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.measures.base import Measure


MAX_BARS, MAX_POINTS = 400, 3000
"""Maximum number of topics in a bar chart and in a scatter plot. With more, marks would overlap."""
_COLORS = {"second": PALETTE[0], "first": PALETTE[1], "neither": PALETTE[7]}
_MARKS: dict[str, Any] = {"color": "ahead", "colors": _COLORS, "legend": False}


def figures(page: ComparePage) -> tuple[Chart, ...]:
    """Return both charts; none if no topic differs."""
    scored = np.flatnonzero(~np.isnan(page.gains))
    if not page.gains[scored].any():
        return ()
    order = scored[np.argsort(-page.gains[scored], kind="stable")]
    bars, points = (_evenly_spaced(page, order, limit) for limit in (MAX_BARS, MAX_POINTS))
    return _differences(page, *bars), _scores(page, *points)


def _evenly_spaced(page: ComparePage, order: Ints, max_topics: int) -> tuple[Table, str]:
    """Return up to `max_topics` topics, evenly spaced from largest gain to largest loss, and a sentence on them."""
    # Includes the first and the last topic, which have the extreme differences.
    rows = order[np.linspace(0, len(order) - 1, min(len(order), max_topics)).round().astype(np.int64)].tolist()
    ahead = ["neither" if gain == 0 else "second" if gain > 0 else "first" for gain in page.gains[rows]]
    names = ("query_id", "query", "first", "second", "difference")
    table = page.topics.take(rows).changed("difference", axis=None, statuses=())  # the chart shows them
    table = table.changed("first", kinds=()).changed("second", kinds=())
    table = table.showing(*names[: 1 + (page.workspace.topics is not None)], *names[2:])
    is_crowded = Column("many", [len(rows) > MAX_BARS for _ in rows], only="data")
    columns = (*table.columns, Column("ahead", ahead, only="data"), is_crowded)
    omitted = (
        f" The chart shows {max_topics:,} of {len(order):,} topics, evenly spaced in the order of their differences."
    )
    table = replace(table, name=f"in_chart_{max_topics}", columns=columns, only="people")
    return table, omitted if len(rows) < len(order) else ""


def _differences(page: ComparePage, table: Table, omitted: str) -> Chart:
    first, second = page.comparison.scores.run_names
    ids, differences = table.column("query_id").values, table.column("difference").values
    extremes = [f"topic {ids[row]} ({decimal(differences[row], 3, '+')})" for row in (0, -1)]
    extent = f"from {extremes[0]} to {extremes[1]}" if len(ids) > 1 else extremes[0]
    color_note = f"Blue: {second} is {page.words[0]}. Orange: {first} is {page.words[0]}."
    direction_note = (
        f" Lower {page.measure} is better, so bars below 0 are improvements." if page.lower_is_better else ""
    )
    sentence = (
        f"Score of {second} minus score of {first} on each topic, {extent}. {color_note}{omitted}{direction_note}"
    )
    chart = Chart("differences", "Differences by topic", table, sentence, "columns", "query_id", "difference", **_MARKS)
    return replace(chart, x_title="topics, sorted by difference", y_title=f"difference in {page.measure}")


def _scores(page: ComparePage, table: Table, omitted: str) -> Chart:
    first, second = page.comparison.scores.run_names
    side = "Below" if page.lower_is_better else "Above"
    scores: list[Any] = [*table.column("first").values, *table.column("second").values]
    extent = (min(scores), max(scores))
    sentence = f"One point per topic. {side} the dashed line, {second} is {page.words[0]}.{omitted}"
    chart = Chart("scores", "Scores of both runs", table, sentence, "points", "first", "second", faint="many", **_MARKS)
    x_title, y_title = f"{page.measure} of {first}", f"{page.measure} of {second}"
    return replace(chart, diagonal=True, includes={"x": extent, "y": extent}, x_title=x_title, y_title=y_title)


MEASURES = ", ".join(COMPARED_MEASURES)
MOST = 8
"""Maximum number of measures in the table: every test adds to the chance of a false positive."""

Outcome: TypeAlias = Literal["all", "wins", "losses", "ties"]
_SORTS = "query_id|query|first|second|difference|first_judged|second_judged"
Sort: TypeAlias = Annotated[str, Field(pattern=f"^(-?({_SORTS}))?$")]


class ComparisonQuery(ScoredQuery):
    """Parameters of a comparison: two runs, a measure, and which topics are listed."""

    first: str = text_field("Baseline run. Default: a run whose name contains 'baseline', or else the best run.")
    second: str = text_field("Run to compare with the baseline. Default: the best run except the baseline.")
    measure: Trimmed = text_field("Measure used to score each topic.", limit=300, default=DEFAULT_MEASURE)
    measures: str = text_field(
        f"Measures that are tested together, separated by commas; at most {MOST}.", limit=500, default=MEASURES
    )
    where: Trimmed = text_field("Condition on topic attributes, such as kind == 'law'.", limit=2000)
    outcome: Outcome = Field(
        "all",
        description="Topics to list: all topics, or the topics on which the second run is better, worse, or equal.",
    )
    q: str = text_field("Words that the topic ID or the query must contain.", limit=500)
    sort: Sort = Field(
        "",
        description="Column by which the topics are sorted. A minus sign in front of the name means descending order.",
    )
    page: PageNumber = 1
    by: Trimmed = text_field("Topic attribute to slice by: the runs are compared on each slice.", limit=300)


_MAX_DECIDING, _MAX_MOVING = 10, 5  # listed topics: those that change the verdict, else those that move the mean most
_CUTOFF = 10  # for the share of judged documents, if the measure has no cutoff
_P = Show(probability, "float64")
_MISSING = ("nothing returned", "")


@dataclass(frozen=True, eq=False, repr=False)
class ComparePage(Answer):
    """Comparison of two runs over the same topics."""

    kind: ClassVar[str] = "compare"

    workspace: Workspace
    query: ComparisonQuery  # with the selected runs
    measure: Measure  # the measure whose topics are listed
    comparison: Comparison  # of both runs, by `measure` and those of the table; p is corrected for all open runs
    scores: Scores  # of all open runs, which the correction covers
    by_slice: SliceComparison | None = None
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """Provenance of the scores."""
        return self.comparison.provenance

    @property
    def by_measure(self) -> MeasureComparison:
        """Results of the selected measure."""
        return self.comparison.measure(str(self.measure))

    @property
    def headline(self) -> Headline | None:
        """Status of the selected measure."""
        return self.by_measure.headline(self.pair) if self.pair else None

    @property
    def pair(self) -> Pair | None:
        """Test by the selected measure; None if it is not tested."""
        return next(iter(self.by_measure.pairs), None)

    @property
    def lower_is_better(self) -> bool:
        """Whether lower scores are better."""
        return self.by_measure.lower_is_better

    @property
    def words(self) -> tuple[str, str]:
        """Words for a higher and a lower score of the second run."""
        return ("higher", "lower") if self.by_measure.higher_is_better is None else ("better", "worse")

    @property
    def values(self) -> Floats:
        """Scores of both runs: (2, T), NaN for topics without a score."""
        scores = self.comparison.scores
        return scores.values[:, scores.measure_names.index(str(self.measure))]

    @cached_property
    def differences(self) -> Floats:
        """Second minus first: (T,); exactly 0 if they differ by rounding only, NaN without two scores."""
        differences = self.values[1] - self.values[0]
        # Rounds differences that are rounding errors to 0, so that these topics are ties here and in the tests.
        differences[~np.isnan(differences)] = paired_differences(*self.values)[0]
        return differences

    @property
    def gains(self) -> Floats:
        """Improvement of the second run over the first: (T,)."""
        return -self.differences if self.lower_is_better else self.differences

    @cached_property
    def kinds(self) -> dict[str, Bools]:
        """Masks of the kinds of topics that can be listed: (T,) each."""
        gains = self.gains
        all_topics = np.ones(len(gains), dtype=np.bool_)
        return {"all": all_topics, "wins": gains > 0, "losses": gains < 0, "ties": gains == 0}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, and its sensitivity to single topics."""
        verdict = self.pair.sentence if self.pair else f"{self.by_measure.untested}."
        return (verdict, self._sensitivity_sentence())

    def facts(self) -> dict[str, Any]:
        """Return the selection, the tests, the number of topics of each kind, and the slices."""
        paging, comparison, leave_one_out = self.listed[1], self.comparison, self.leave_one_out
        return {
            **comparison.facts(),
            "first": self.query.first,
            "second": self.query.second,
            "measure": str(self.measure),
            "caption": comparison.pair_caption if comparison.pairs else comparison.caption,
            "lower_is_better": self.lower_is_better,
            "counts": {name: int(mask.sum()) for name, mask in self.kinds.items()},
            "unscored": int(np.isnan(self.gains).sum()),
            "sort": self.sort,
            "paging": {"page": paging.page, "total": paging.total, "size": paging.size},
            "min_removals": leave_one_out and leave_one_out.min_removals,
            "slices": self.by_slice and self.by_slice.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return both runs by measure, deciding topics, charts, listed topics, and all tests as data."""
        parts = (self.measures(), self.deciding(), *figures(self), self.listed[0])
        return (Sentences(self.sentences[:1]), *parts, *data_tables(self.comparison.measures))

    def measures(self) -> Section:
        """Return both runs by every tested measure; each name links to its topics."""
        rows = [(result, next(iter(result.pairs), None)) for result in self.comparison.measures]
        ratio_rows = [row for row in rows if row[1] and row[1].is_ratio]
        groups = [group for group in ([row for row in rows if row not in ratio_rows], ratio_rows) if group]
        family = describe_intervals(self.comparison.pairs, self.comparison.choices, self.by_measure.family)
        intervals_text = f". {family[0].upper()}{family[1:]}" if family else ""
        note = f"Click the name of a measure to see its scores by topic{intervals_text}"
        tables = [self._by_measure(group) for group in groups]
        return Section("measures", "By measure", (*tables[:-1], replace(tables[-1], note=note)))

    def _by_measure(self, rows: Sequence[tuple[MeasureComparison, Pair | None]]) -> Table:
        (first, second), pairs = self.comparison.scores.run_names, [pair for _, pair in rows]
        is_ratio = any(pair and pair.is_ratio for pair in pairs)
        differences = [pair.shown_difference if pair else math.nan for pair in pairs]
        heading = difference_title(second, first, ratio=is_ratio)
        difference, *details = verdict_columns(pairs, differences, heading, "p", "not tested")
        axis = Axis.over(differences, difference.ci or (), "CI", 1.0 if is_ratio else 0.0)
        headlines = [result.headline(pair) if pair else None for result, pair in rows]
        statuses: list[Status] = [headline.status if headline else "unknown" for headline in headlines]
        words = [headline.word if headline else "not tested" for headline in headlines]
        names = [result.name for result, _ in rows]
        directions = ["lower is better" if result.lower_is_better else "" for result, _ in rows]
        links = [f"/compare{query_string(self.query, measure=name, page=None)}" for name in names]
        columns = (
            Column("measure", names, TEXT, "Measure", details=directions, links=links),
            *(
                Column(f"run{i}", [result.estimates[i].value for result, _ in rows], NUMBER, run)
                for i, run in enumerate((first, second))
            ),
            replace(difference, axis=axis, statuses=statuses, mark=()),
            Column("result", words, TEXT, "Result", statuses=statuses),
            *details,
        )
        row_kinds = ["selected" if result.measure == self.measure else "" for result, _ in rows]
        return Table(f"by_{'ratio' if is_ratio else 'difference'}", columns, only="people", kinds=row_kinds)

    @cached_property
    def leave_one_out(self) -> LeaveOneTopicOut | None:
        """Effect of leaving out single topics on the test of the verdict; None for ratios and posteriors."""
        pair = self.pair
        if pair is None or pair.is_ratio or pair.result.posterior is not None:
            return None
        scores, choices = select_measures(self.scores, (self.measure,)), self.comparison.choices

        def p_value(mask: Bools) -> float:
            if not mask.any():
                return math.nan
            return compare_scores(scores.over_topics(mask), choices, "none").pair(pair.first, pair.second).adjusted

        key = ("left out", self.comparison, self.measure)
        first, second = self.values
        return self.workspace.cached(key, lambda: leave_one_topic_out(first, second, p_value, alpha=pair.alpha))

    def deciding(self) -> Section:
        """Return the topics without which the verdict changes; else those that move the mean most."""
        sentences, leave_one_out = Sentences((self._sensitivity_sentence(),)), self.leave_one_out
        table = self._deciding(leave_one_out) if leave_one_out else Table("deciding", (), only="data")
        return Section("deciding", "Influential topics", (sentences, table))

    def _deciding(self, result: LeaveOneTopicOut) -> Table:
        positions = _listed_positions(result)
        topics = [result.topics[i] for i in positions]
        topics_by_effect = (("sign", result.sign_topics), ("significance", result.significance_topics))
        changes = [" and ".join(name for name, changing in topics_by_effect if topic in changing) for topic in topics]
        columns = (
            *self.topics.take(topics).columns[:2],
            Column("difference", self.differences[topics].tolist(), CHANGE, "Difference"),
            Column("without", [result.differences[i] for i in positions], CHANGE, "Mean without"),
            Column("p", [result.p_values[i] for i in positions], _P, "p without"),
            Column("changes", changes, Show(lambda text: text or "none", "string"), "Change"),
        )
        note = (
            "The test and the correction are the same as in the table by measure. Over all topics, p"
            f" {p_text(result.p, result.alpha)}"
        )
        return Table("deciding", columns, "Results if one topic is left out", note, only="" if topics else "data")

    def _sensitivity_sentence(self) -> str:
        if self.leave_one_out:
            return self.leave_one_out.sentence(self.comparison.scores.query_ids)
        return f"The influence of single topics is not shown, because {self.measure} is not an arithmetic mean."

    @property
    def topics(self) -> Table:
        """Both runs on every topic, in byte order of ids."""
        return self.workspace.cached(("topics of two", self.comparison, self.measure), self._topics)

    def _topics(self) -> Table:
        ids, runs = self.comparison.scores.query_ids, self.comparison.scores.run_names
        cutoff = getattr(self.measure, "cutoff", None)
        coverage = f"Judged@{cutoff if isinstance(cutoff, int) else _CUTOFF}"
        judged_shares = self.workspace.scores(coverage, runs, self.query.where, runs[0]).values[:, 0].tolist()
        lists = [self.workspace.judged(run) for run in runs]
        presence = [dict(zip(judged.query_ids, judged.present.tolist(), strict=True)) for judged in lists]
        has_results = [[present_topics.get(topic, False) for topic in ids] for present_topics in presence]
        choices = shared_choices("/compare", self.query) | {"measure": str(self.measure)}
        sides = list(zip(("first", "second"), runs, self.values.tolist(), judged_shares, has_results, strict=True))
        differences = self.differences.tolist()
        axis = Axis.over(differences, (), "", 0.0)
        columns = (
            *topic_columns(self.workspace, ids, [link("/topic", choices, topic=topic) for topic in ids]),
            *(
                Column(side, values, NUMBER, run, details=[_MISSING[has_result] for has_result in has_results])
                for side, run, values, _, has_results in sides
            ),
            Column("difference", differences, CHANGE, "Difference", axis=axis, statuses=self._directions()),
            *(Column(f"{side}_judged", shares, digits(2), f"{coverage} {run}") for side, run, _, shares, _ in sides),
            *(Column(f"{side}_has", has_results, only="data") for side, _, _, _, has_results in sides),
        )
        return shaded(Table("listed", columns, "Topics"), ("first", "second"), lower_is_better=self.lower_is_better)

    def _directions(self) -> list[Status]:
        """Return the color of the difference on each topic: whether the second run gains or loses, without a test."""
        if self.by_measure.higher_is_better is None:
            return ["info"] * len(self.gains)
        return ["better" if gain > 0 else "worse" if gain < 0 else "same" for gain in self.gains.tolist()]

    @property
    def sort(self) -> str:
        """Column by which topics are sorted, with ``-`` in front if descending.

        Default: the largest gain of the second run first, or the largest loss if only losses are listed.
        """
        ascending = self.lower_is_better != (self.query.outcome == "losses")
        return self.query.sort or ("difference" if ascending else "-difference")

    @cached_property
    def listed(self) -> tuple[Table, Paging]:
        """Listed topics: filtered, searched, sorted, and paginated."""
        table, name = self.topics, self.sort.removeprefix("-")
        queries = table.column("query").values
        values = [text.casefold() for text in queries] if name == "query" else table.column(name).values
        order = order_by(values, descending=self.sort.startswith("-"))
        mask = self.kinds[self.query.outcome] & contains_words(self.query.q, table.column("query_id").values, queries)
        rows = [row for row in order if mask[row]]
        paging = Paging.for_page(self.query.page, len(rows))
        return table.take(paging.of(rows)), paging

    def _topics_link(self, where: str) -> str:
        return f"/compare{query_string(self.query, where=where, by=None, page=None)}"

    def slices(self) -> tuple[Block, ...]:
        """Return the differences by slice, each with a link to its topics; empty without `by`."""
        comparison = self.by_slice
        if comparison is None:
            return ()
        conditions = {part.name: conjunction(self.query.where, part.expression) for part in comparison.slicing.slices}
        rows = comparison.with_all()
        links = ["" if row.slice not in conditions else self._topics_link(conditions[row.slice]) for row in rows]
        table = replace(comparison.overview(), note=comparison.caption).changed("slice", links=links)
        notes = tuple(text for text in comparison.warnings if text not in self.warnings)
        return (Sentences(comparison.sentences), table, *([Sentences(notes, "notes", "Notes")] if notes else []))


def _listed_positions(result: LeaveOneTopicOut) -> list[int]:
    """Return positions in the leave-one-out result of the topics to list, largest shift of the mean first."""
    shifts = np.abs(np.array(result.differences) - result.difference)
    by_shift = [i for i in np.argsort(-shifts, kind="stable").tolist() if shifts[i] > 0]
    deciding_topics, tested_topics = {*result.sign_topics, *result.significance_topics}, set(result.tested)
    deciding = [i for i in by_shift if result.topics[i] in deciding_topics][:_MAX_DECIDING]
    return deciding or [i for i in by_shift if result.topics[i] in tested_topics or not tested_topics][:_MAX_MOVING]


router = APIRouter(tags=["runs"])


def compare_page(workspace: Workspace, query: ComparisonQuery) -> ComparePage:
    """Select runs, measures, and topics, and test the difference."""
    if len(workspace.run_names) < 2:
        hint = "".join(f" Open a second run, in addition to {name}." for name in workspace.run_names)
        problem = "only one run is open" if hint else "no run is open"
        raise NotOpenError(problem, about=f"A comparison requires two runs over the same topics.{hint}")
    with set_error_field("measure"):
        measure = query.read(query.measure or DEFAULT_MEASURE)
    with set_error_field("measures"):
        family = (*query.read_all(list_measures(query.measures) or (measure,), MOST), measure)
    with set_error_field("first"):
        first = query.first and workspace.judged(query.first).run.name
    with set_error_field("second"):
        first, second = workspace.default_pair(measure, first, query.second)
    with set_error_field("measure"):
        workspace.scores((measure,), (first, second))
    with set_error_field("measures"):
        comparison = workspace.comparison_of(family, (first, second), query.where)
    by_slice = _by_slice(workspace, comparison, measure, query.by) if query.by else None
    query = query.model_copy(update={"first": first, "second": second})
    notes = workspace.notes_over(len(comparison.scores.query_ids), comparison.notes)
    scores = workspace.scores(family, None, query.where, first)
    return ComparePage(workspace, query, measure, comparison, scores, by_slice, notes)


@set_error_field("by")
@cached_in_workspace
def _by_slice(workspace: Workspace, comparison: Comparison, measure: Measure, by: str) -> SliceComparison:
    scores, first = comparison.scores, comparison.scores.run_names[0]
    slicing = slice_topics(workspace.topic_attributes((by,), first), by, query_ids=scores.query_ids)
    result = scores.compare_slices(slicing, first, measures=(measure,), correction="holm")
    return result.with_overall(comparison)


def _page_values(workspace: Workspace, _: ComparisonQuery, answer: ComparePage | None) -> dict[str, Any]:
    values: dict[str, Any] = {"defaults": {"measure": DEFAULT_MEASURE, "measures": MEASURES}, "figures": ""}
    if answer is not None:
        key = ("figures of two runs", answer.comparison, answer.measure, answer.by_slice)
        charts = workspace.cached(key, lambda: blocks(figures(answer)))
        values |= {"facts": answer.facts(), "query": answer.query, "figures": charts}
        values["keys"] = {column.name: column.name for column in answer.listed[0].shown}
    return values


@answer_page(router, "compare.html", "/compare", "Compare", "Two runs compared", _page_values)
def comparison(workspace: CurrentWorkspace, query: Annotated[ComparisonQuery, Query()]) -> ComparePage:
    """Compare two runs: the verdict, every measure, deciding topics, and a page of the topics."""
    return compare_page(workspace, query)
