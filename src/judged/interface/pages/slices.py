"""Scores and differences by slice (`by_slice` and `compare_slices`), as the answer of a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from judged.comparison.slicing.class_measures import parse_class_measures
from judged.comparison.slicing.parts import ALL
from judged.comparison.slicing.scores import with_tests
from judged.comparison.slicing.topic_slices import DEFAULT_MIN_TOPICS
from judged.errors import InputError
from judged.interface.pages.answer_pages import (
    answer_page,
    attributes,
    build_slicing,
    conditions,
    default_attribute,
    page_notes,
    slices_with_conditions,
)
from judged.interface.pages.filters import blocks, query_string
from judged.interface.pages.pagination import ScoredQuery, Trimmed, blank_to_none, shades_of
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.workspace import LEVEL, CurrentWorkspace, Workspace, cached_in_workspace, set_error_field
from judged.results import COUNT, TEXT, Answer, Block, Chart, Column, Headline, Table, columns_of
from judged.scoring.default_measures import DEFAULT_MEASURE, RANKING_AND_CANDIDATES
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markupsafe import Markup

    from judged.comparison.slicing import SliceComparison, SlicedScores, Slicing
    from judged.results.blocks import Note


Count: TypeAlias = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, BeforeValidator(blank_to_none)]
"""Optional number of topics; an empty field is None."""


class SlicingQuery(Parameters):
    """Parameter with the attributes to slice by."""

    by: str = text_field("Topic attributes, separated by commas. Each value is a slice.", limit=500)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(dict.fromkeys(name for part in self.by.split(",") if (name := part.strip())))


class SlicedQuery(SlicingQuery):
    """Parameters that select topics and slice them."""

    where: str = text_field("Condition on topic attributes, such as kind == 'law'.", limit=2000)
    min_topics: Count = Field(None, description="Minimum number of topics of a slice that is tested. Default: 10.")

    @property
    def tested_size(self) -> int:
        """Minimum number of topics of a slice that is tested."""
        return DEFAULT_MIN_TOPICS if self.min_topics is None else self.min_topics


class SlicesQuery(SlicedQuery, ScoredQuery):
    """Parameters of the scores or differences by slice."""

    class_measures: Trimmed = text_field(
        "Own measures of classes, such as law=P@5,news=R@100. Other classes use the first measure.", limit=2000
    )

    measures: str = text_field(
        "Measures, separated by commas; at most six.", limit=500, default=",".join(RANKING_AND_CANDIDATES)
    )
    run: str = text_field("Run, or * for all runs. Default: all runs, or the best run if the data are large.")
    baseline: str = text_field("Baseline run that other runs are compared with on each slice.")


MAX_MEASURES = 6
"""Maximum number of measures on the page."""
SEED = 0
_DETAILS = ("share", "difference", "p")  # omitted on the page of several runs
_MAX_TESTED = 30_000  # topics times runs: above it, only the best run is tested by default


@dataclass(frozen=True, eq=False, repr=False)
class SlicePage(Answer):
    """Slices of the topics, and the scores of runs on each."""

    kind: ClassVar[str] = "slices"

    query: SlicesQuery  # with the attributes to slice by
    runs: tuple[str, ...]  # shown on the page
    measures: tuple[str, ...]
    is_every_run: bool  # whether `runs` are all open runs
    slicing: Slicing
    scores: SlicedScores | None  # None without a run
    comparison: SliceComparison | None  # None without a baseline
    attributes: Table  # that topics can be sliced by
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """Provenance of the scores."""
        return self.scores and self.scores.provenance

    @property
    def headline(self) -> Headline | None:
        """The slice with the largest loss against the baseline; without a baseline, the weakest slice."""
        result = self.comparison or self.scores
        return result and result.headline

    @property
    def sentences(self) -> tuple[str, ...]:
        """The slices that differ, after the reason if nothing can be tested."""
        slicing, sentences = self.slicing, self.scores.sentences if self.scores else ()
        if bool((slicing.n == len(slicing.query_ids)).any()) and len(slicing) == 1:
            text = f"All topics are in one slice, `{slicing.names[0]}`, so there are no other topics to compare with."
            return (text, *sentences)
        if slicing.small.all():
            text = "No slice has enough topics to be tested. Set a smaller minimum number of topics to test slices."
            return (text, *sentences)
        return sentences

    def facts(self) -> dict[str, Any]:
        """Return the attributes, the number of topics, the measures, and the comparison."""
        return {
            **(self.scores.facts() if self.scores else {}),
            "by": self.query.names,
            "n": len(self.slicing.query_ids),
            "measures": self.measures,
            "every_run": self.is_every_run,
            "caption": self.scores.caption if self.scores else "",
            "comparison": self.comparison and self.comparison.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return the scores by slice, the slices with their conditions, and the attributes."""
        scored = self.scores.blocks() if self.scores else ()
        slices = slices_with_conditions(self.query, self.slicing)
        return (
            *(block for block in scored if block.name != slices.name),
            slices,
            replace(self.attributes, only="data"),
        )

    def page_tables(self) -> Iterator[Table]:
        """Yield the tables of the page: one with a column per measure, or one per measure with a column per run."""
        scores, by_class = self.scores, bool(self.query.class_measures)
        has_several_runs = any((by_class, len(self.runs) > 1))
        if scores is None:
            sizes = [Column("size", self.slicing.n.tolist(), COUNT, "topics")]
            yield self._add_conditions("Slices", self.slicing.names, sizes)
            return
        lower = [str(measure) for measure in scores.scores.measures if measure.properties.higher_is_better is False]
        titles = self.measures if has_several_runs else (f"{self.runs[0]} by slice",)
        for title in titles[: 1 if by_class else None]:
            one_run = [(self.runs[0], name) for name in self.measures]
            pairs = [(run, title) for run in self.runs] if has_several_runs else one_run
            table = scores.overview(title if has_several_runs else None)
            for run, measure in pairs:
                rows = scores.displayed_estimates(run, measure)
                name = run if has_several_runs else measure
                if by_class:  # rows have different measures: no number is compared with that of another row
                    table = table.changed(name, ci=[row.ci for row in rows])
                    continue
                if (run, measure) == pairs[0]:
                    table = with_tests(table, name, rows)
                    continue
                shades = shades_of([row.value for row in rows], lower_is_better=measure in lower)
                table = table.changed(name, ci=None, kinds=shades)
            if len(pairs) > 1 and has_several_runs:  # leaves room for the scores of the other runs
                table = replace(table, columns=tuple(column for column in table.columns if column.name not in _DETAILS))
            names = [row.part for row in scores.displayed_estimates(*pairs[0])]
            yield self._add_conditions("Classes by their own measures" if by_class else title, names, table.columns[1:])

    def _add_conditions(self, title: str, names: Sequence[str], columns: Iterable[Column]) -> Table:
        """Return a table of slices with their conditions; averages are the last rows."""
        all_topics: dict[str, Any] = {"where": self.query.where.strip(), "min_topics": 1, "small": False}
        slices = slices_with_conditions(self.query, self.slicing).records()
        values = {ALL: all_topics} | {row["name"]: row for row in slices}
        unknown = dict.fromkeys(all_topics)
        rows: list[dict[str, Any]] = [{"slice": name, **values.get(name, unknown)} for name in names]
        kinds = ["small" if row["small"] else "average" if row["where"] is None else "" for row in rows]
        slice_columns = columns_of(rows, ("slice", TEXT, "Slice"), *all_topics)
        hidden_columns = (replace(column, only="data") for column in slice_columns[1:])
        return Table(title, (slice_columns[0], *columns, *hidden_columns), title, kinds=kinds)


def slices(workspace: Workspace, query: SlicesQuery) -> SlicePage:
    """Slice the topics, and score the runs on each slice."""
    if not query.names:
        query = query.model_copy(update={"by": default_attribute(workspace)})
    slicing, runs = build_slicing(workspace, query), visible_runs(workspace, query)
    names = list_measures(query.measures) or [DEFAULT_MEASURE]
    if query.class_measures:
        slicing = _classes(workspace, query)
        names = list(filter(None, slicing.class_measures))
    measures = tuple(map(str, query.read_all(names, MAX_MEASURES)))
    scores = None
    if runs:
        scores_of_topics = workspace.scores(measures, runs, query.where)
        key = ("by slice", scores_of_topics, slicing)
        scores = workspace.cached(key, lambda: scores_of_topics.by_slice(slicing, level=LEVEL, seed=SEED))
    return SlicePage(
        query=query,
        runs=runs,
        measures=measures,
        is_every_run=len(runs) == len(workspace.lists),
        slicing=slicing,
        scores=scores,
        comparison=_comparison(workspace, query, measures, runs, slicing) if query.baseline else None,
        attributes=attributes(workspace),
        notes=page_notes(workspace, query, len(slicing.query_ids), scores.notes if scores else ()),
    )


@cached_in_workspace
def _classes(workspace: Workspace, query: SlicesQuery) -> Slicing:
    """Return the slices with their own measures, and the first measure of the page for the others."""
    default = str((list_measures(query.measures) or [DEFAULT_MEASURE])[0])
    with set_error_field("class_measures"):
        return build_slicing(workspace, query).with_measures(parse_class_measures(query.class_measures), default)


def visible_runs(workspace: Workspace, query: SlicesQuery) -> tuple[str, ...]:
    """Return the selected run or all runs; the best one if there are too many scores to test."""
    ranked_names = workspace.ranked_run_names((list_measures(query.measures) or [DEFAULT_MEASURE])[0])
    if query.run == "*":
        return ranked_names
    if query.run:
        workspace.judged(query.run)
        return (query.run,)
    return ranked_names if len(ranked_names) * len(workspace.query_ids) <= _MAX_TESTED else ranked_names[:1]


def _comparison(
    workspace: Workspace, query: SlicesQuery, measures: tuple[str, ...], runs: tuple[str, ...], slicing: Slicing
) -> SliceComparison:
    """Compare the visible runs with the baseline on each slice."""
    others = tuple(name for name in runs if name != query.baseline)
    if not others and not query.run:  # the baseline is the only visible run
        others = workspace.default_pair(measures[0], query.baseline)[1:]
    if not others:
        raise InputError(f"{query.baseline!r} cannot be compared with itself", fix="choose two different runs")
    scores = workspace.scores(measures, (query.baseline, *others), query.where)
    options: dict[str, Any] = {"alpha": 1 - LEVEL, "seed": SEED}
    key = ("slices compared", scores, slicing)
    result = workspace.cached(key, lambda: scores.compare_slices(slicing, query.baseline, **options))
    if query.class_measures:  # nothing is tested over all topics
        return result
    overall = workspace.comparison_of(measures, scores.run_names, query.where)
    return workspace.cached((*key, overall), lambda: result.with_overall(overall))


router = APIRouter(tags=["diagnosis"])


def _page_values(workspace: Workspace, query: SlicesQuery, answer: SlicePage | None) -> dict[str, Any]:
    """Return links from attributes and runs to their pages, the tables, and the charts."""
    table = attributes(workspace)
    rows = table.records()
    addresses = [query_string(query, by=row["name"], class_measures=None) if row["slices"] else "" for row in rows]
    attribute_links = [f"/slices{address}" if address else "" for address in addresses]
    values: dict[str, Any] = {"attribute_table": table.changed("name", links=attribute_links), "figures": ""}
    if answer is not None:
        links = {run: f"/slices{query_string(query, run=run)}" for run in answer.runs if len(answer.runs) > 1}
        for name in answer.measures[1:]:  # a click makes this measure the tested one
            names = dict.fromkeys((name, *answer.measures))
            links[name] = f"/slices{query_string(query, measures=','.join(names))}"
        values |= {"links": links, "figures": _figures(workspace, answer), "tables": list(answer.page_tables())}
    return values


def _figures(workspace: Workspace, answer: SlicePage) -> Markup:
    """Render the charts of scores and of differences, once."""
    charts: list[Chart] = []
    highlighted = tuple(name for name in (answer.query.baseline, answer.query.run) if name in workspace.lists)
    for part, name in ((answer.scores, "scores"), (answer.comparison, "changes")):
        part_charts = part.charts().values() if part else ()
        for i, chart in enumerate(part_charts):
            loud = tuple(dict.fromkeys((*chart.highlighted, *highlighted))) if chart.highlighted else ()
            charts.append(replace(chart, name=f"{name}-{i}", highlighted=loud))
    return workspace.cached(("slices figures", answer.scores, answer.comparison, highlighted), lambda: blocks(charts))


@answer_page(router, "slices.html", "/slices", "Slices", "Scores and differences by slice", _page_values)
def scores_by_slice(workspace: CurrentWorkspace, query: Annotated[SlicesQuery, Query()]) -> SlicePage:
    """Slice the topics by attributes, and score the runs on each slice.

    Each slice is tested against the other topics, with Holm correction. Slices with few topics are not tested.
    With ``class_measures``, each class has only its own measure, and is not tested against other topics.
    With ``baseline``, runs are compared on each slice by a paired randomization test.
    """
    return slices(workspace, query)


@router.get("/api/v1/conditions", summary="Conditions that select topics")
def conditions_as_json(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return conditions for ``where``: one per slice, and one without a number for each numeric attribute."""
    return {"conditions": conditions(workspace).records()}
