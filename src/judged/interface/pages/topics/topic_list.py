"""List of topics as the answer of a page: scores and counts of judgments, sorted and paginated."""

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
from judged.interface.pages.filters import query_string
from judged.interface.pages.pagination import PageNumber, Paging, ScoredQuery, contains_words, natural_key, order_by
from judged.interface.pages.problems import LONGEST, Parameters, text_field
from judged.interface.pages.workspace import Workspace, cached_in_workspace, set_error_field
from judged.results import COUNT, NUMBER, Chart, Column, Headline, Table, counted
from judged.results.blocks import Note, first_few
from judged.results.decimals import decimal
from judged.results.table import best_first_order
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.measures.base import Measure

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints


class TopicOrderQuery(ScoredQuery):
    """Which topics a list has, and their order. Pages of single topics keep these parameters, for next and previous."""

    measure: str = text_field("Measure used to score each topic.", limit=300, default=DEFAULT_MEASURE)
    sort: str = text_field(
        "Column by which the topics are sorted: query_id, query, relevant, judged, mean, spread, or"
        " run:NAME. A minus sign in front of the name means descending order.",
        limit=1000,
        default="query_id",
    )
    q: str = text_field("Words that the topic ID or the query must contain.", limit=500)
    where: str = text_field("Condition on topic attributes, such as kind == 'law'.", limit=2000)
    runs: list[str] = text_field(
        "Runs whose scores are shown. The mean and the spread of each topic are computed over these"
        " runs. Default: the best 12.",
        limit=200,
        default=[],
    )

    @property
    def order(self) -> TopicOrderQuery:
        """The parameters of the order alone."""
        return TopicOrderQuery(**self.model_dump(include=set(TopicOrderQuery.model_fields)))


class TopicListQuery(TopicOrderQuery):
    """Parameters of the list of topics."""

    page: PageNumber = 1


class TopicQuery(TopicOrderQuery):
    """Parameters of the page of a topic."""

    topic: str = Field(max_length=LONGEST, description="Topic ID.")
    first: str | None = text_field("Run on the left. Default: the baseline, or else the best run.", default=None)
    second: str | None = text_field(
        "Run on the right. If empty, only the run on the left is shown. Default: none if"
        " `first` is set, otherwise the best run except the run on the left.",
        default=None,
    )
    cutoff: int = Field(10, ge=1, le=100, description="Number of documents of each list to show.")
    explain: str = text_field("Measure to explain. Default: `measure`.", limit=300)
    tools: bool = Field(default=False, description="Whether to show the scores of other tools.")
    doc_id: str = text_field("Document whose grade is changed, to see the effect on the scores.")
    grade: float | None = Field(
        None, allow_inf_nan=False, description="Changed grade of the document. The changed grade is not saved."
    )
    saved: bool = Field(default=False, description="Whether the changed grade was just saved as a label.")


class ExplanationQuery(Parameters):
    """Parameters of the explanation of a score."""

    topic: str = Field(max_length=LONGEST, description="Topic ID.")
    run: str = Field(max_length=LONGEST, description="Run.")
    measure: str = text_field("Measure.", limit=300, default=DEFAULT_MEASURE)


class TopicDocumentQuery(Parameters):
    """Parameters of the text of a document."""

    doc_id: str = Field(max_length=LONGEST, description="Document ID.")
    topic: str = text_field("Topic whose query words are highlighted.")
    length: int = Field(4000, ge=1, le=10_000_000, description="Maximum number of characters of the text.")


MAX_BARS = 400
"""Maximum number of bars in the chart of means."""
MAX_RUNS = 12
"""Maximum number of runs in the table."""
POSITIVE = float(np.nextafter(0, 1))
"""Lowest relevant grade of measures without `rel`: any grade above 0."""
_MAX_HARDEST = 5
_MAX_SIMILAR, _MAX_COMPARED_LENGTH = 5, 60


class TopicList(PageAnswer):
    """One page of the list of topics."""

    kind: ClassVar[str] = "topics"


def measure_facts(measure: Measure, level: float | None = None) -> dict[str, Any]:
    """Return what pages need of a measure: names, direction, and the lowest relevant grade."""
    rel = rel_of(measure, level)
    return {
        "measure": str(measure),
        "family": measure.entry.name,
        "lower_is_better": measure.properties.higher_is_better is False,
        "relevant_from": None if rel == POSITIVE else rel,  # None: any grade above 0
    }


def rel_of(measure: Measure, level: float | None = None) -> float:
    """Return the lowest grade that is relevant to a measure; `level` if the measure has no `rel`."""
    return float(getattr(measure, "rel", POSITIVE if level is None else level))


def topics(workspace: Workspace, query: TopicListQuery) -> TopicList:
    """Return a page of the list of topics."""
    with set_error_field("measure"):
        measure = query.read(query.measure)
    runs = visible_runs(workspace, query)
    table, notes = _all_topics(workspace, measure, runs, query.rel)
    order = ordered_topics(workspace, query.order)
    paging = Paging.for_page(query.page, len(order))
    about = {
        **measure_facts(measure, query.rel),
        "runs": runs,
        "other_runs": [name for name in workspace.run_names if name not in runs],
        "total": paging.total,
        "all_topics": len(table),  # without search and expression
        "page": paging.page,
        "pages": paging.last,
    }
    key = ("overview of topics", measure, runs, query.rel, query.where.strip(), query.q)  # of all pages, in any order
    selected = np.sort(order).tolist()
    overview = workspace.cached(key, lambda: _overview(table.take(selected), measure, runs)) if runs else (None,)
    return TopicList(about, (table.take(paging.of(order.tolist())), *overview[1:]), notes, overview[0])


def _overview(table: Table, measure: Measure, runs: tuple[str, ...]) -> tuple[Headline, Table, Chart]:
    """Return the hardest topics as a headline and as a table, and a chart of the mean scores, best first."""
    lower_is_better = measure.properties.higher_is_better is False
    means, query_ids = np.array(table.column("mean").values, dtype=np.float64), table.column("query_id").values
    scored = np.flatnonzero(~np.isnan(means))
    order = scored[best_first_order(means[scored].tolist(), lower_is_better=lower_is_better)]
    subject = runs[0] if len(runs) == 1 else f"{len(runs)} runs"
    is_neutral = measure.properties.higher_is_better is None
    bottom, top = ("lowest", "highest") if is_neutral else ("hardest", "best")
    name = str(measure)
    label = f"{'mean ' * (len(runs) > 1)}{name} of {subject}"
    worst_first = scored[best_first_order(means[scored].tolist(), lower_is_better=not lower_is_better)]
    headline = Headline("unknown", "no scores", f"None of {counted(len(table), 'topic')} has a score by {measure}.")
    if len(order):
        best, worst = (f"{decimal(float(means[row]), 3)} on {query_ids[row]}" for row in order[[0, -1]])
        zeros = [query_ids[row] for row in order if means[row] == 0 and not lower_is_better]
        topics = counted(len(order), "topic")
        headline = Headline("info", f"{bottom} topic", f"Scores range from {best} to {worst}, over {topics}.")
        value, show = float(means[order[-1]]), NUMBER
        if zeros:
            sentence = f"Score 0 on {first_few(zeros, 3)}; the {top} score is {best}."
            headline = Headline("info", f"{counted(len(zeros), 'topic')} with score 0", sentence)
            label, value, show = f"of {topics}, by {label}", len(zeros), COUNT
        headline = replace(headline, label=label, value=value, show=show)
    bar_rows = order[np.linspace(0, len(order) - 1, min(len(order), MAX_BARS)).round().astype(np.int64)]
    table = table.showing("query_id", *["query"] * (table.column("query").only == ""), "mean")
    urls = [f"/topic{query_string({'topic': query_id, 'measure': name})}" for query_id in query_ids]
    table = table.changed("query_id", links=urls)
    hardest = replace(
        table.take(worst_first[:_MAX_HARDEST].tolist()), name="hardest", title=f"{bottom.capitalize()} topics"
    )
    table = replace(table.take(bar_rows.tolist()), only="people")
    note = f"Each bar shows the {'score' if len(runs) == 1 else 'mean score'} of {subject} on one topic."
    note += f" The chart shows {MAX_BARS} of {len(order):,} topics." * (len(order) > MAX_BARS)
    title, x_title = f"{measure} by topic, best first", "topics, best first"
    chart = Chart("means", title, table, note, "columns", "query_id", "mean", x_title=x_title, y_title=str(measure))
    return headline, hardest, replace(chart, height=160)


@cached_in_workspace
def run_scores(workspace: Workspace, measure: Measure, run: str) -> tuple[Floats, str]:
    """Return the scores of a run on all topics, (T,); or NaN, and the reason."""
    judged = workspace.judged(run)
    try:
        return measure(judged), ""  # `score_lists` would add notes, but takes ten times as long
    except (InputError, MeasureError) as error:
        return np.full(len(judged), np.nan), str(error)


@cached_in_workspace
def _all_topics(
    workspace: Workspace, measure: Measure, runs: tuple[str, ...], level: float | None
) -> tuple[Table, tuple[Note, ...]]:
    """Return the table of all topics: scores of the runs and counts of judgments, in the order of the qrels."""
    scores_and_problems = {run: run_scores(workspace, measure, run) for run in runs}
    ids, index, rel = workspace.query_ids, workspace.qrels.index, rel_of(measure, level)
    scores = np.ma.masked_invalid([values for values, _ in scores_and_problems.values()] or [np.full(len(ids), np.nan)])
    mean, spread = scores.mean(axis=0).filled(np.nan), np.ptp(scores, axis=0).filled(np.nan)
    relevant = index.topic[(index.grade >= rel) & (index.grade >= 0)]
    counts = [np.bincount(codes, minlength=len(ids)).tolist() for codes in (relevant, index.topic)]
    only = "data" if len(runs) < 2 else ""  # the mean of a single run is its score
    columns = (
        *topic_columns(workspace, ids),
        Column("relevant", counts[0], COUNT, "Relevant"),
        Column("judged", counts[1], COUNT, "Judged"),
        Column("mean", mean.tolist(), NUMBER, "Mean", only=only),
        Column("spread", spread.tolist(), NUMBER, "Spread", only=only),  # highest minus lowest score
        *(Column(f"run:{run}", values.tolist(), NUMBER, run) for run, (values, _) in scores_and_problems.items()),
    )
    notes = dict.fromkeys(Note("no-scores", reason) for _, reason in scores_and_problems.values() if reason)
    return Table("topics", columns, "Table of topics"), tuple(notes)


def visible_runs(workspace: Workspace, query: TopicOrderQuery) -> tuple[str, ...]:
    """Return the runs of the columns: the selected ones, or the best ones."""
    requested = tuple(dict.fromkeys(name for name in query.runs if name))
    run_names = requested or workspace.ranked_run_names(query.read(query.measure))
    for name in run_names:
        workspace.judged(name)
    return run_names[:MAX_RUNS]


@cached_in_workspace
def ordered_topics(workspace: Workspace, query: TopicOrderQuery) -> Ints:
    """Return the positions of the topics of a list, in its order."""
    measure, runs = query.read(query.measure), visible_runs(workspace, query)
    table, _ = _all_topics(workspace, measure, runs, query.rel)
    mask = workspace.mask(query.where) if workspace.lists or query.where else np.ones(len(table), dtype=np.bool_)
    columns = {column.name: column.values for column in table.columns}
    mask = mask & contains_words(query.q, columns["query_id"], columns["query"])
    falling, name = query.sort.startswith("-"), query.sort.removeprefix("-")
    if name not in columns:
        raise InputError(f"there is no column {name!r}", fix=f"sort by one of {', '.join(columns)}")
    values = [text.casefold() for text in columns[name]] if name == "query" else columns[name]
    order = np.array(order_by(values, descending=falling), dtype=np.int64)  # missing scores are last in both directions
    return order[mask[order]]


def similar_ids(ids: tuple[str, ...], unknown_id: str) -> list[str]:
    """Return a few existing ids similar to an unknown one: by spelling first, then its neighbors in order.

    >>> similar_ids(("q1", "q2", "t1"), "q11"), similar_ids(("q04", "q40"), "q4")
    (['q1', 'q2', 't1'], ['q04', 'q40'])
    """
    is_short = len(unknown_id) <= _MAX_COMPARED_LENGTH
    equivalent = [topic for topic in ids if natural_key(topic) == natural_key(unknown_id)] if is_short else []
    similar = difflib.get_close_matches(unknown_id, ids, _MAX_SIMILAR, 0.7) if is_short else []
    position = bisect.bisect(ids, unknown_id)
    positions = range(max(0, position - _MAX_SIMILAR), min(len(ids), position + _MAX_SIMILAR))
    neighbors = sorted(positions, key=lambda i: abs(i - position + 0.4))
    return list(dict.fromkeys([*equivalent, *similar, *(ids[i] for i in neighbors)]))[:_MAX_SIMILAR]
