"""Two runs compared: the page, and its twin in the API."""

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
from judged.comparison.slicing import slice_topics
from judged.comparison.slicing.comparison import difference_title
from judged.errors import InputError
from judged.interface.pages.answer_pages import NotOpenError, answer_page, both, topic_columns
from judged.interface.pages.filters import blocks, chosen, link, probability, query
from judged.interface.pages.pagination import LONGEST, Paging, Scored, Trimmed, holding, order_by
from judged.interface.pages.workspace import Opened, concerning, remembered
from judged.results import CHANGE, NUMBER, TEXT, Answer, Chart, Column, Section, Sentences, Show, Table
from judged.results import number as digits
from judged.results.charts import PALETTE
from judged.results.decimals import decimal, p_text
from judged.results.types import cached_property
from judged.scoring.default_measures import COMPARED_MEASURES, DEFAULT_MEASURE
from judged.scoring.evaluation import measures_of
from judged.scoring.evaluation.evaluate import select_measures
from judged.scoring.measures.grammar import list_measures
from judged.stats.inputs import paired_differences
from judged.stats.sensitivity import leave_one_topic_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.comparison.slicing import SliceComparison
    from judged.interface.pages.workspace import Workspace
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.sensitivity import LeaveOneTopicOut


DRAWN, DOTS = 400, 3000
"""Topics that can still be told apart in a chart of bars, and of points: more are small and grey."""
_COLOURS = {"second": PALETTE[0], "first": PALETTE[1], "neither": PALETTE[7]}


def figures(page: ComparePage) -> tuple[Chart, ...]:
    """Draw both charts; nothing where no topic differs."""
    known = np.flatnonzero(~np.isnan(page.gains))
    if not page.gains[known].any():
        return ()
    order = known[np.argsort(-page.gains[known], kind="stable")]
    return _differences(page, *_drawn(page, order, DRAWN)), _scores(page, *_drawn(page, order, DOTS))


def _drawn(page: ComparePage, order: Ints, most: int) -> tuple[Table, str]:
    """Lay out some topics, from the largest gain to the largest loss, and say which they are."""
    rows = order[np.linspace(0, len(order) - 1, min(len(order), most)).round().astype(np.int64)].tolist()
    ahead = ["neither" if gain == 0 else "second" if gain > 0 else "first" for gain in page.gains[rows]]
    shown = ("query_id", "query", "first", "second", "difference")
    table = page.topics.take(rows).showing(*shown[: 1 + (page.workspace.topics is not None)], *shown[2:])
    many = Column("many", [len(rows) > DRAWN for _ in rows], only="data")
    columns = (*table.columns, Column("ahead", ahead, only="data"), many)
    cut = "" if len(rows) == len(order) else f" Of {len(order):,} topics, sorted by difference, {most:,} are drawn."
    return replace(table, name=f"drawn_{most}", columns=columns, only="people"), cut


def _differences(page: ComparePage, table: Table, cut: str) -> Chart:
    first, second = page.comparison.scores.run_names
    ids, differences = table.column("query_id").values, table.column("difference").values
    ends = [f"topic {ids[at]} ({decimal(differences[at], 3, '+')})" for at in (0, -1)]
    which = f"from {ends[0]} to {ends[1]}" if len(ids) > 1 else ends[0]
    colours = f"Blue: {second} is {page.words[0]}; orange: {first} is."
    lower = " Lower is better here: a bar downwards is good." if page.lower_is_better else ""
    return Chart(
        name="differences",
        title="Differences by topic",
        table=table,
        sentence=f"{second} minus {first} on each topic, {which}. {colours}{cut}{lower}",
        kind="columns",
        x="query_id",
        y="difference",
        colour="ahead",
        colours=_COLOURS,
        legend=False,
        x_title="topics, sorted by difference",
        y_title=f"difference in {page.measure}",
    )


def _scores(page: ComparePage, table: Table, cut: str) -> Chart:
    first, second = page.comparison.scores.run_names
    side = "below" if page.lower_is_better else "above"
    scores: list[Any] = [*table.column("first").values, *table.column("second").values]
    ends = (min(scores), max(scores))
    return Chart(
        name="scores",
        title="One run against the other",
        table=table,
        sentence=f"One point per topic; {side} the dashed line {second} is {page.words[0]}.{cut}",
        kind="points",
        x="first",
        y="second",
        colour="ahead",
        colours=_COLOURS,
        legend=False,
        faint="many",
        diagonal=True,
        reach={"x": ends, "y": ends},
        x_title=f"{page.measure} of {first}",
        y_title=f"{page.measure} of {second}",
    )


MEASURES = ", ".join(COMPARED_MEASURES)
MOST = 8
"""Measures of one table: every one that is tested is another chance to find something by luck."""

Outcome: TypeAlias = Literal["all", "wins", "losses", "ties"]
_SORTS = "query_id|query|first|second|difference|first_judged|second_judged"
Sort: TypeAlias = Annotated[str, Field(pattern=f"^(-?({_SORTS}))?$")]


class AskedComparison(Scored):
    """Two runs, a measure, and which topics are listed."""

    first: str = Field("", max_length=LONGEST, description="The baseline; without it one called so, or the best.")
    second: str = Field("", max_length=LONGEST, description="The other run; the best of the others without it.")
    measure: Trimmed = Field(DEFAULT_MEASURE, max_length=300, description="The measure whose topics are shown.")
    measures: str = Field(
        MEASURES, max_length=500, description=f"Measures that are tested together, with commas between; {MOST} at most."
    )
    where: Trimmed = Field("", max_length=2000, description="Only topics that satisfy it, such as kind == 'law'.")
    outcome: Outcome = Field(
        "all", description="Which topics are listed: where the second run is better, worse, or equal."
    )
    q: str = Field("", max_length=500, description="Only list topics with this in their id or query.")
    sort: Sort = Field("", description="The column by which topics are sorted; descending with - before it.")
    page: int = Field(1, ge=0, le=1_000_000, description="Which page of the topics; 0 for all.")
    by: Trimmed = Field(
        "", max_length=300, description="An attribute of the topics: compare the two on each slice of it."
    )


_DECIDING, _MOVING = 10, 5  # topics that are listed: those that change the answer, else those that move the mean most
_CUTOFF = 10  # of the share of judged documents, where the measure has none
_P = Show(probability, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class ComparePage(Answer):
    """Two runs over the same topics, topic by topic where that is asked for."""

    kind: ClassVar[str] = "compare"

    workspace: Workspace
    asked: AskedComparison  # with the runs that were chosen
    measure: Measure  # the one whose topics are looked at
    comparison: Comparison  # of the two, by this measure and those of the table; p is corrected for all open runs
    scores: Scores  # of all open runs: those that the correction allows for
    by_slice: SliceComparison | None = None
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """What the scores rest on."""
        return self.comparison.provenance

    @property
    def by_measure(self) -> MeasureComparison:
        """What was found by the measure that is looked at."""
        return self.comparison.measure(str(self.measure))

    @property
    def pair(self) -> Pair | None:
        """The test by this measure; None where it is not tested."""
        return next(iter(self.by_measure.pairs), None)

    @property
    def lower_is_better(self) -> bool:
        """Whether the lower score is the better one."""
        return self.by_measure.lower_is_better

    @property
    def words(self) -> tuple[str, str]:
        """What the second run is where it is ahead, and where it is behind."""
        return ("higher", "lower") if self.by_measure.higher_is_better is None else ("better", "worse")

    @property
    def values(self) -> Floats:
        """The scores of the first and of the second: (2, T), NaN where a topic has none."""
        scores = self.comparison.scores
        return scores.values[:, scores.measure_names.index(str(self.measure))]

    @cached_property
    def differences(self) -> Floats:
        """Second minus first: (T,), exactly 0 where they are equal but for rounding, NaN where one has no score."""
        made = self.values[1] - self.values[0]
        made[~np.isnan(made)] = paired_differences(*self.values)[0]
        return made

    @property
    def gains(self) -> Floats:
        """How much better the second run is: (T,)."""
        return -self.differences if self.lower_is_better else self.differences

    @cached_property
    def kinds(self) -> dict[str, Bools]:
        """The topics of each kind that can be listed: (T,) each."""
        gains = self.gains
        every = np.ones(len(gains), dtype=np.bool_)
        return {"all": every, "wins": gains > 0, "losses": gains < 0, "ties": gains == 0}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, and what it rests on."""
        verdict = self.pair.sentence if self.pair else f"{self.by_measure.untested}."
        return (verdict, self._rests_on())

    def facts(self) -> dict[str, Any]:
        """Give what was chosen, how it was tested, how many topics there are of each kind, and the slices."""
        paging, comparison, left_out = self.listed[1], self.comparison, self.left_out
        return {
            **comparison.facts(),
            "first": self.asked.first,
            "second": self.asked.second,
            "measure": str(self.measure),
            "caption": comparison.pair_caption if comparison.pairs else comparison.caption,
            "lower_is_better": self.lower_is_better,
            "counts": {name: int(mask.sum()) for name, mask in self.kinds.items()},
            "without_a_score": int(np.isnan(self.gains).sum()),
            "sort": self.sort,
            "paging": {"page": paging.page, "total": paging.total, "size": paging.size},
            "min_removals": left_out and left_out.min_removals,
            "slices": self.by_slice and self.by_slice.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give both runs by measure, the topics that decide, those that are listed, charts, and all tests as data."""
        parts = (self.measures(), self.deciding(), *figures(self), self.listed[0])
        return (Sentences(self.sentences[:1]), *parts, *data_tables(self.comparison.measures))

    def measures(self) -> Section:
        """Give both runs by every measure that is tested; each leads to its topics."""
        rows = [(found, next(iter(found.pairs), None)) for found in self.comparison.measures]
        ratios = [row for row in rows if row[1] and row[1].is_ratio]
        parts = [part for part in ([row for row in rows if row not in ratios], ratios) if part]
        family = describe_intervals(self.comparison.pairs, self.comparison.choices, self.by_measure.family)
        note = f"a measure's name links to its topics{f'; {family}' if family else ''}"
        tables = [self._by_measure(part) for part in parts]
        return Section("measures", "By measure", (*tables[:-1], replace(tables[-1], note=note)))

    def _by_measure(self, rows: Sequence[tuple[MeasureComparison, Pair | None]]) -> Table:
        (first, second), pairs = self.comparison.scores.run_names, [pair for _, pair in rows]
        ratio = any(pair and pair.is_ratio for pair in pairs)
        differences = [pair.shown_difference if pair else math.nan for pair in pairs]
        head = difference_title(second, first, ratio=ratio)
        columns = (
            Column(
                "measure",
                [found.name for found, _ in rows],
                TEXT,
                "Measure",
                beside=["lower is better" if found.lower_is_better else "" for found, _ in rows],
                links=[f"/compare{query(self.asked, measure=found.name, page=None)}" for found, _ in rows],
            ),
            *(
                Column(f"run{at}", [found.estimates[at].value for found, _ in rows], NUMBER, run)
                for at, run in enumerate((first, second))
            ),
            *verdict_columns(pairs, differences, head, "p", "not tested"),
            Column("better", [(pair.better or "neither") if pair else "" for pair in pairs], TEXT),
        )
        kinds = ["chosen" if found.measure == self.measure else "" for found, _ in rows]
        return Table(f"by_{'ratio' if ratio else 'difference'}", columns, only="people", kinds=kinds)

    @cached_property
    def left_out(self) -> LeaveOneTopicOut | None:
        """Effect of leaving out single topics, by the test and correction of the verdict; None for ratios."""
        pair = self.pair
        if pair is None or pair.is_ratio or pair.result.posterior is not None:
            return None
        scores, choices = select_measures(self.scores, (self.measure,)), self.comparison.choices

        def p_value(kept: Bools) -> float:
            if not kept.any():
                return math.nan
            return compare_scores(scores.over_topics(kept), choices, "none").pair(pair.first, pair.second).adjusted

        key = ("left out", self.comparison, self.measure)
        first, second = self.values
        return self.workspace.remember(key, lambda: leave_one_topic_out(first, second, p_value, alpha=pair.alpha))

    def deciding(self) -> Section:
        """Give the topics without which the answer changes; else those that move the mean most."""
        said, found = Sentences((self._rests_on(),)), self.left_out
        table = self._deciding(found) if found else Table("deciding", (), only="data")
        return Section("deciding", "Topics that decide", (said, table))

    def _deciding(self, found: LeaveOneTopicOut) -> Table:
        chosen = _chosen(found)
        topics = [found.topics[at] for at in chosen]
        rests = (("sign", found.sign_topics), ("significance", found.significance_topics))
        columns = (
            *self.topics.take(topics).columns[:2],
            Column("difference", self.differences[topics].tolist(), CHANGE, "Difference"),
            Column("without", [found.differences[at] for at in chosen], CHANGE, "Mean without"),
            Column("p", [found.p_values[at] for at in chosen], _P, "p without"),
            Column(
                "changes",
                [" and ".join(name for name, those in rests if at in those) for at in topics],
                Show(lambda text: text or "nothing", "string"),
                "Changes",
            ),
        )
        note = f"By the test and correction of the verdict: p {p_text(found.p, found.alpha)} over all topics"
        return Table("deciding", columns, "Without single topics", note, only="" if topics else "data")

    def _rests_on(self) -> str:
        """Say what rests on single topics, or why that is not known."""
        if self.left_out:
            return self.left_out.sentence(self.comparison.scores.query_ids)
        return f"{self.measure} is not an arithmetic mean, so the influence of single topics is not shown."

    @property
    def topics(self) -> Table:
        """Both runs on every topic, in byte order of ids."""
        return self.workspace.remember(("topics of two", self.comparison, self.measure), self._topics)

    def _topics(self) -> Table:
        ids, runs = self.comparison.scores.query_ids, self.comparison.scores.run_names
        cutoff = getattr(self.measure, "cutoff", None)
        share = f"Judged@{cutoff if isinstance(cutoff, int) else _CUTOFF}"
        judged = self.workspace.scores(share, runs, self.asked.where, runs[0]).values[:, 0].tolist()
        lists = [self.workspace.judged(run) for run in runs]
        present = [dict(zip(each.query_ids, each.present.tolist(), strict=True)) for each in lists]
        has = [[known.get(topic, False) for topic in ids] for known in present]
        known = chosen("/compare", self.asked) | {"measure": str(self.measure)}
        sides = list(zip(("first", "second"), runs, self.values.tolist(), judged, has, strict=True))
        columns = (
            *topic_columns(self.workspace, ids, [link("/topic", known, topic=topic) for topic in ids]),
            *(
                Column(side, values, NUMBER, run, beside=["" if there else "nothing returned" for there in known])
                for side, run, values, _, known in sides
            ),
            Column("difference", self.differences.tolist(), CHANGE, "Difference"),
            *(Column(f"{side}_judged", shares, digits(2), f"{share} {run}") for side, run, _, shares, _ in sides),
            *(Column(f"{side}_has", known, only="data") for side, _, _, _, known in sides),
        )
        return Table("listed", columns, "Topics")

    @property
    def sort(self) -> str:
        """By what the topics are sorted, falling with ``-`` before it: unless asked, the best of the second run first.

        Where only topics are listed on which it is worse, the worst is first.
        """
        rising = self.lower_is_better != (self.asked.outcome == "losses")
        return self.asked.sort or ("difference" if rising else "-difference")

    @cached_property
    def listed(self) -> tuple[Table, Paging]:
        """The topics that are listed: filtered, searched, sorted, a page at a time."""
        table, name = self.topics, self.sort.removeprefix("-")
        queries = table.column("query").values
        values = [text.casefold() for text in queries] if name == "query" else table.column(name).values
        order = order_by(values, falling=self.sort.startswith("-"))
        kept = self.kinds[self.asked.outcome] & holding(self.asked.q, table.column("query_id").values, queries)
        rows = [row for row in order if kept[row]]
        paging = Paging.at(self.asked.page, len(rows))
        return table.take(paging.of(rows)), paging

    def slices(self) -> tuple[Block, ...]:
        """Give the differences by slice, each slice as a link to its topics; nothing where that was not asked for."""
        found = self.by_slice
        if found is None:
            return ()
        where = {part.name: both(self.asked.where, part.expression) for part in found.slicing.slices}
        rows = found.with_all()
        links = [
            "" if row.slice not in where else f"/compare{query(self.asked, where=where[row.slice], by=None, page=None)}"
            for row in rows
        ]
        table = replace(found.overview(), note=found.caption).changed("slice", links=links)
        notes = tuple(text for text in found.warnings if text not in self.warnings)
        return (Sentences(found.sentences), table, *([Sentences(notes, "notes", "Notes")] if notes else []))


def _chosen(found: LeaveOneTopicOut) -> list[int]:
    """Choose topics, by their place among those that were left out; those that move the mean most come first."""
    moved = np.abs(np.array(found.differences) - found.difference)
    moving = [at for at in np.argsort(-moved, kind="stable").tolist() if moved[at] > 0]
    rests, tested = {*found.sign_topics, *found.significance_topics}, set(found.tested)
    deciding = [at for at in moving if found.topics[at] in rests][:_DECIDING]
    return deciding or [at for at in moving if found.topics[at] in tested or not tested][:_MOVING]


router = APIRouter(tags=["runs"])


def compare_page(workspace: Workspace, asked: AskedComparison) -> ComparePage:
    """Choose the runs, the measures and the topics, and test the difference."""
    if len(workspace.run_names) < 2:
        beside = "".join(f" Open a second one beside {name}." for name in workspace.run_names)
        is_open = "only one run is open" if beside else "no run is open"
        raise NotOpenError(is_open, about=f"A comparison needs two runs over the same topics.{beside}")
    with concerning("measure"):
        measure = asked.read(asked.measure or DEFAULT_MEASURE)
    with concerning("measures"):
        family = tuple(
            dict.fromkeys((*measures_of(list_measures(asked.measures) or (measure,), rel=asked.rel), measure))
        )
        if len(family) > MOST + 1:
            raise InputError(f"{len(family)} measures are too many for one table", fix=f"name at most {MOST}")
    with concerning("first"):
        first = asked.first and workspace.judged(asked.first).run.name
    with concerning("second"):
        first, second = workspace.usual_pair(measure, first, asked.second)
    with concerning("measure"):
        workspace.scores((measure,), (first, second))
    with concerning("measures"):
        comparison = workspace.pair_comparison(family, first, second, asked.where)
    by_slice = _by_slice(workspace, comparison.scores, measure, asked.by) if asked.by else None
    asked = asked.model_copy(update={"first": first, "second": second})
    notes = workspace.notes_over(len(comparison.scores.query_ids), comparison.notes)
    scores = workspace.scores(family, None, asked.where, first)
    return ComparePage(workspace, asked, measure, comparison, scores, by_slice, notes)


@concerning("by")
@remembered
def _by_slice(workspace: Workspace, scores: Scores, measure: Measure, by: str) -> SliceComparison:
    """Compare the two on each slice of an attribute."""
    first, _ = scores.run_names
    slicing = slice_topics(workspace.known((by,), first), by, query_ids=scores.query_ids)
    return scores.compare_slices(slicing, first, measures=(measure,), correction="holm")


def _shown(workspace: Workspace, _asked: AskedComparison, answer: ComparePage | None) -> dict[str, Any]:
    """Show two runs side by side."""
    values: dict[str, Any] = {"usual": {"measure": DEFAULT_MEASURE, "measures": MEASURES}, "figures": ""}
    if answer is not None:
        key = ("figures of two runs", answer.comparison, answer.measure, answer.by_slice)
        charts = workspace.remember(key, lambda: blocks(figures(answer), ["drawn"]))
        values |= {"facts": answer.facts(), "asked": answer.asked, "figures": charts}
        values["keys"] = {column.name: column.name for column in answer.listed[0].shown}
    return values


@answer_page(router, "compare.html", "/compare", "Compare", "Two runs compared", _shown)
def comparison(workspace: Opened, asked: Annotated[AskedComparison, Query()]) -> ComparePage:
    """Compare two runs: the verdict, every measure, what rests on single topics, and the topics, a page at a time."""
    return compare_page(workspace, asked)
