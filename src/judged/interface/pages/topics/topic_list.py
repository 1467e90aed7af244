"""The list of topics as an answer: scores and counts of judgments, in an order, a page of it."""

from __future__ import annotations

import bisect
import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from judged.errors import InputError, MeasureError
from judged.interface.pages.answer_pages import topic_columns
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.filters import query
from judged.interface.pages.pagination import LONGEST, Paging, Scored, holding, natural, order_by
from judged.interface.pages.problems import Parameters
from judged.interface.pages.workspace import concerning, remembered
from judged.results import COUNT, NUMBER, Chart, Column, Table, counted
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.results.table import order_of
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.measures.base import Measure

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace
    from judged.results.types import Floats, Ints


class Order(Scored):
    """Which topics a list has, and in which order: kept in the address of each topic that is opened from it."""

    measure: str = Field(DEFAULT_MEASURE, max_length=300, description="The measure of the scores.")
    sort: str = Field(
        "query_id",
        max_length=1000,
        description="query_id, query, relevant, judged, mean, spread, or run:NAME; with - before it, descending.",
    )
    q: str = Field("", max_length=500, description="Words that id or query text must hold.")
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    runs: list[str] = Field(
        [], max_length=200, description="The runs whose scores make columns, mean and spread; the best 12 without it."
    )

    @property
    def order(self) -> Order:
        """Which topics, and in which order, without what else is asked."""
        return Order(**self.model_dump(include=set(Order.model_fields)))


class AskedList(Order):
    """The list of topics."""

    page: int = Field(1, ge=0, le=1_000_000, description="Which page of the list; 0 for all.")


class AskedTopic(Order):
    """One topic."""

    topic: str = Field(max_length=LONGEST, description="The topic's id.")
    first: str | None = Field(
        None, max_length=LONGEST, description="The run on the left; without it the baseline, or the best."
    )
    second: str | None = Field(
        None, max_length=LONGEST, description="The run on the right; another one without both, none where it is empty."
    )
    cutoff: int = Field(10, ge=1, le=100, description="How many documents of each list are shown.")
    explain: str = Field("", max_length=300, description="The measure that is explained; the chosen one without it.")
    tools: bool = Field(default=False, description="Whether to ask what other tools report.")
    doc_id: str = Field(
        "", max_length=LONGEST, description="A document that is given another grade, to see what it does."
    )
    grade: float | None = Field(None, allow_inf_nan=False, description="Its other grade; nothing is saved.")
    saved: bool = Field(default=False, description="Whether that grade was just saved as a label.")


class AskedExplanation(Parameters):
    """How one score comes about."""

    topic: str = Field(max_length=LONGEST, description="The topic's id.")
    run: str = Field(max_length=LONGEST, description="The run.")
    measure: str = Field(DEFAULT_MEASURE, max_length=300, description="The measure.")


class AskedDocument(Parameters):
    """The text of one document."""

    doc_id: str = Field(max_length=LONGEST, description="The document's id.")
    topic: str = Field("", max_length=LONGEST, description="The topic whose words are to be marked.")
    length: int = Field(4000, ge=1, le=10_000_000, description="So many characters of the text at most.")


DRAWN = 400
"""Topics that can still be told apart in a chart of bars."""
MOST_RUNS = 12
"""Columns of scores that a table shows at once."""
POSITIVE = float(np.nextafter(0, 1))
"""The least relevant grade for measures that have no level of their own: any above 0."""
_NEAR, _SHORT = 5, 60


class TopicList(PageAnswer):
    """A page of the list of topics."""

    kind: ClassVar[str] = "topics"


def facts_of(measure: Measure, level: float | None = None) -> dict[str, Any]:
    """Say what a page must know of a measure: its name, that of its family, and which values and grades are good."""
    rel = rel_of(measure, level)
    return {
        "measure": str(measure),
        "family": measure.entry.name,
        "lower_is_better": measure.properties.higher_is_better is False,
        "relevant_from": None if rel == POSITIVE else rel,  # None: any grade above 0
    }


def rel_of(measure: Measure, level: float | None = None) -> float:
    """Give the least grade that is relevant to a measure; to one without a level, what is given."""
    return float(getattr(measure, "rel", POSITIVE if level is None else level))


def topics(workspace: Workspace, asked: AskedList) -> TopicList:
    """Give a page of the list of topics."""
    with concerning("measure"):
        measure = asked.read(asked.measure)
    runs = shown_runs(workspace, asked)
    table, notes = _all_topics(workspace, measure, runs, asked.rel)
    order = ordered(workspace, asked.order)
    paging = Paging.at(asked.page, len(order))
    about = {
        **facts_of(measure, asked.rel),
        "runs": runs,
        "other_runs": [name for name in workspace.run_names if name not in runs],
        "total": paging.total,
        "of": len(table),  # without search and expression
        "page": paging.page,
        "pages": paging.last,
    }
    about["sentence"], *charts = _picture(table.take(np.sort(order).tolist()), measure, runs) if runs else ("",)
    return TopicList(about, (table.take(paging.of(order.tolist())), *charts), notes)


def _picture(table: Table, measure: Measure, runs: tuple[str, ...]) -> tuple[str, Chart]:
    """Say how scores are spread over the topics, and draw the mean of each topic, best first."""
    means = np.array(table.column("mean").values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(means))
    order = known[order_of(means[known].tolist(), lower_is_better=measure.properties.higher_is_better is False)]
    who = runs[0] if len(runs) == 1 else f"the mean over {len(runs)} runs"
    said = f"{counted(len(table), 'topic')}; none has a score by {measure}."
    if len(order):
        top, low = (f"{decimal(float(means[at]), 3)} on {table.column('query_id').values[at]}" for at in order[[0, -1]])
        none = int((means[known] == 0).sum())
        zeros = f"; it is 0 on {none:,}" if none else ""
        said = f"{measure} of {counted(len(order), 'topic')}, {who}, goes from {top} to {low}{zeros}."
    drawn = order[np.linspace(0, len(order) - 1, min(len(order), DRAWN)).round().astype(np.int64)]
    table = replace(table.changed("mean", only="").take(drawn.tolist()), only="people")
    links = [f"/topic{query({'topic': name, 'measure': str(measure)})}" for name in table.column("query_id").values]
    table = table.changed("query_id", links=links).showing("query_id", "query", "mean")
    note = f"One bar per topic: {who}." + f" {DRAWN} of {len(order):,} are drawn." * (len(order) > DRAWN)
    title, across = f"{measure} by topic, best first", "topics, best first"
    chart = Chart("means", title, table, note, "columns", "query_id", "mean", x_title=across, y_title=str(measure))
    return said, replace(chart, height=160)


@remembered
def run_scores(workspace: Workspace, measure: Measure, run: str) -> tuple[Floats, str]:
    """Give the scores of a run on all topics, (T,); or NaN, and why it has none."""
    judged = workspace.judged(run)
    try:
        return measure(judged), ""  # without the notes of `score_lists`, which cost ten times as much
    except (InputError, MeasureError) as error:
        return np.full(len(judged), np.nan), str(error)


@remembered
def _all_topics(
    workspace: Workspace, measure: Measure, runs: tuple[str, ...], level: float | None
) -> tuple[Table, tuple[Note, ...]]:
    """Score the runs, and count judgments, of all topics in the order of the qrels."""
    made = {run: run_scores(workspace, measure, run) for run in runs}
    ids, index, rel = workspace.query_ids, workspace.qrels.index, rel_of(measure, level)
    scores = np.ma.masked_invalid([values for values, _ in made.values()] or [np.full(len(ids), np.nan)])
    mean, spread = scores.mean(axis=0).filled(np.nan), np.ptp(scores, axis=0).filled(np.nan)
    relevant = index.topic[(index.grade >= rel) & (index.grade >= 0)]
    counts = [np.bincount(which, minlength=len(ids)).tolist() for which in (relevant, index.topic)]
    one_run = "data" if len(runs) < 2 else ""  # its mean is its score
    columns = (
        *topic_columns(workspace, ids),
        Column("relevant", counts[0], COUNT, "Relevant"),
        Column("judged", counts[1], COUNT, "Judged"),
        Column("mean", mean.tolist(), NUMBER, "Mean", only=one_run),
        Column("spread", spread.tolist(), NUMBER, "Spread", only=one_run),  # the largest score less the smallest
        *(Column(f"run:{run}", values.tolist(), NUMBER, run) for run, (values, _) in made.items()),
    )
    notes = dict.fromkeys(Note("no-scores", why) for _, why in made.values() if why)
    return Table("topics", columns, "Table of topics"), tuple(notes)


def shown_runs(workspace: Workspace, asked: Order) -> tuple[str, ...]:
    """Give the runs that are columns: those that were chosen, or the best ones."""
    chosen = tuple(dict.fromkeys(name for name in asked.runs if name)) or workspace.ranked(asked.read(asked.measure))
    for name in chosen:
        workspace.judged(name)
    return chosen[:MOST_RUNS]


@remembered
def ordered(workspace: Workspace, asked: Order) -> Ints:
    """Give the positions of the topics that a list has, in its order."""
    measure, runs = asked.read(asked.measure), shown_runs(workspace, asked)
    table, _ = _all_topics(workspace, measure, runs, asked.rel)
    kept = workspace.mask(asked.where) if workspace.lists or asked.where else np.ones(len(table), dtype=np.bool_)
    columns = {column.name: column.values for column in table.columns}
    kept = kept & holding(asked.q, columns["query_id"], columns["query"])
    falling, name = asked.sort.startswith("-"), asked.sort.removeprefix("-")
    if name not in columns:
        raise InputError(f"topics cannot be sorted by {name!r}", fix=f"use one of {', '.join(columns)}")
    values = [text.casefold() for text in columns[name]] if name == "query" else columns[name]
    order = np.array(order_by(values, falling=falling), dtype=np.int64)  # no score comes last either way
    return order[kept[order]]


def near_ids(ids: tuple[str, ...], wanted: str) -> list[str]:
    """Give a few ids that are like one that does not exist: those spelled like it, then its neighbours by order.

    >>> near_ids(("q1", "q2", "t1"), "q11"), near_ids(("q04", "q40"), "q4")
    (['q1', 'q2', 't1'], ['q04', 'q40'])
    """
    short = len(wanted) <= _SHORT
    same = [topic for topic in ids if natural(topic) == natural(wanted)] if short else []
    similar = difflib.get_close_matches(wanted, ids, _NEAR, 0.7) if short else []
    at = bisect.bisect(ids, wanted)
    around = sorted(range(max(0, at - _NEAR), min(len(ids), at + _NEAR)), key=lambda place: abs(place - at + 0.4))
    return list(dict.fromkeys([*same, *similar, *(ids[place] for place in around)]))[:_NEAR]
