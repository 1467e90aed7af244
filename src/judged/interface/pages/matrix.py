"""Matrix of one run, or of two, as the answer of a page, with the selected topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query
from pydantic import Field

from judged.diagnosis.matrix.matrix import parse_cuts
from judged.errors import MissingExtraError
from judged.interface.pages.answer_pages import (
    NotOpenError,
    answer_page,
    build_slicing,
    conjunction,
    page_notes,
    slices_with_conditions,
    topic_columns,
)
from judged.interface.pages.filters import link, query_string, shared_choices
from judged.interface.pages.pagination import Number, PageNumber, Paging, ScoredQuery, Trimmed, order_by, shades_of
from judged.interface.pages.problems import text_field
from judged.interface.pages.slices import SlicedQuery
from judged.interface.pages.workspace import LEVEL, CurrentWorkspace, Workspace, cached_in_workspace
from judged.results import TEXT, Answer, Axis, Block, Headline, Status, Table
from judged.results.chart_drawings import draw_charts
from judged.results.charts import PALETTE, specification
from judged.scoring.default_measures import RANKING_AND_CANDIDATES
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.diagnosis.matrix import Matrix
    from judged.results.blocks import Note
    from judged.results.types import Bools


Y, X = RANKING_AND_CANDIDATES
Quadrant: TypeAlias = Literal[
    "", "healthy", "ranking problem", "coverage problem", "both problems", "no relevant documents"
]
SortKey: TypeAlias = Literal["query_id", "-query_id", "x", "-x", "y", "-y", "change", "-change"]
Box: TypeAlias = tuple[tuple[float, float], tuple[float, float]]


class MatrixQuery(SlicedQuery, ScoredQuery):
    """Parameters of the matrix: measures, slices, and which topics are selected."""

    run: str = text_field("Run whose topics are classified. Default: the best run.")
    baseline: str = text_field("Run whose mean scores are the thresholds between low and high. Default: `run`.")
    cuts: Trimmed = text_field("Fixed thresholds of x and y instead of means, such as 0.8,0.5.", limit=100)
    x: str = text_field("Measure of the candidates, on the horizontal axis.", limit=200, default=X)
    y: str = text_field("Measure of the final ranking, on the vertical axis.", limit=200, default=Y)
    x0: Number = Field(None, description="Select only topics with at least this value of the measure `x`.")
    x1: Number = Field(None, description="Select only topics with at most this value of the measure `x`.")
    y0: Number = Field(None, description="Select only topics with at least this value of the measure `y`.")
    y1: Number = Field(None, description="Select only topics with at most this value of the measure `y`.")
    quadrant: Quadrant = Field("", description="Select only topics of this quadrant.")
    sort: SortKey = Field(
        "y",
        description="Column by which the topics are sorted. A minus sign in front of the name means descending order.",
    )
    page: PageNumber = 1

    @property
    def bounds(self) -> Box:
        """Bounds of the selection on x and on y; infinite if not set."""
        return _sorted_bounds(self.x0, self.x1), _sorted_bounds(self.y0, self.y1)

    @property
    def selects(self) -> bool:
        """Whether the query selects topics."""
        return bool(self.quadrant) or any(side is not None for side in (self.x0, self.x1, self.y0, self.y1))


def _sorted_bounds(low: float | None, high: float | None) -> tuple[float, float]:
    ends = (float("-inf") if low is None else low, float("inf") if high is None else high)
    return (min(ends), max(ends)) if low is not None and high is not None else ends


SIZE = 25
"""Number of topics of a page."""
SEED = 0


@dataclass(frozen=True, eq=False, repr=False)
class MatrixPage(Answer):
    """Topics and slices of a run by two measures, and the selected topics."""

    kind: ClassVar[str] = "matrix"

    query: MatrixQuery
    run: str
    baseline: str  # empty without a baseline
    matrix: Matrix
    selected_topics: Bools  # (T,): mask; without a selection, all topics with both scores
    selected: Table  # selected topics of this page
    paging: Paging
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """Provenance of the scores."""
        return self.matrix.provenance

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary of the matrix."""
        return self.matrix.sentences

    @property
    def headline(self) -> Headline:
        """Number of topics with a problem."""
        return self.matrix.headline_of(self.run)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the matrix, the runs, and the selection with its means."""
        means = self.matrix.scores.over_topics(self.selected_topics).aggregate() if self.selected_topics.any() else {}
        selection: dict[str, Any] = {
            f"{axis}_mean{ending}": means[run][str(measure)] if means else None
            for run, ending in ((self.run, ""), (self.baseline, "_baseline"))
            for axis, measure in (("x", self.matrix.x), ("y", self.matrix.y))
            if run
        }
        paging = {"count": self.paging.total, "page": self.paging.page, "pages": self.paging.last}
        return {**self.matrix.facts(), "run": self.run, "baseline": self.baseline, "selection": selection | paging}

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of the matrix, the selected topics, and the conditions of the slices."""
        slices = [slices_with_conditions(self.query, self.matrix.slicing)] if self.matrix.slicing else []
        return (*self.matrix.blocks(), self.selected, *slices)


def matrix_page(workspace: Workspace, query: MatrixQuery) -> MatrixPage:
    """Compute the matrix of a run by two measures, and the selected topics."""
    if not workspace.lists:
        about = (
            "The matrix classifies the topics of a run by two measures: recall of the candidates, and ranking quality."
        )
        raise NotOpenError("no run is open", about=about)
    run = query.run or _default_run(workspace, query.y, query.baseline)
    for name in (run, *([query.baseline] if query.baseline else [])):
        workspace.judged(name)
    baseline = "" if query.baseline == run else query.baseline
    matrix = _matrix(workspace, query, (baseline, run) if baseline else (run,))
    selected_topics = _selected_topics(matrix, run, query)
    sort = query.sort if baseline else query.sort.replace("change", "y")
    table = _sorted_topics(workspace, matrix, run, selected_topics, sort)
    paging = Paging.for_page(query.page, len(table), SIZE)
    return MatrixPage(
        query=query,
        run=run,
        baseline=baseline,
        matrix=matrix,
        selected_topics=selected_topics,
        selected=table.take(paging.of(range(len(table)))),
        paging=paging,
        notes=page_notes(workspace, query, len(matrix.scores.query_ids), matrix.notes),
    )


@cached_in_workspace
def _default_run(workspace: Workspace, measure: str, baseline: str) -> str:
    return workspace.default_pair(parse(measure), baseline)[bool(baseline)]


def _matrix(workspace: Workspace, query: MatrixQuery, names: tuple[str, ...]) -> Matrix:
    """Compute the matrix of the run and its baseline, or return the cached one."""

    def compute() -> Matrix:
        axes = query.read(query.x), query.read(query.y)
        mask = workspace.mask(query.where)
        scores = workspace.scores(tuple(dict.fromkeys((*axes, parse("Judged@10")))), names, query.where)
        matrix = scores.matrix(
            x=axes[0],
            y=axes[1],
            slicing=build_slicing(workspace, query) if query.names else None,
            baseline=names[0],
            cuts=parse_cuts(query.cuts),
            level=LEVEL,
            seed=SEED,
        )
        if names[1:]:
            matrix = matrix.with_overall(workspace.comparison_of(axes, names, query.where))
        rel = max(float(getattr(axis, "rel", query.rel or 1)) for axis in axes)
        return replace(matrix, no_relevant=workspace.judged(names[-1]).num_relevant(rel)[mask] == 0)

    topics_key = (query.rel, query.names, query.where.strip(), query.tested_size)
    key = ("matrix", names, query.x, query.y, query.cuts, topics_key)
    return workspace.cached(key, compute)


def _selected_topics(matrix: Matrix, run: str, query: MatrixQuery) -> Bools:
    """Return which topics with both scores are selected by the bounds and the quadrant."""
    values = matrix.values(run)
    mask = np.asarray(~np.isnan(values).any(axis=0), dtype=np.bool_)
    for row, (low, high) in zip(values, query.bounds, strict=True):
        mask = np.logical_and(mask, (row >= low) & (row <= high))
    if query.quadrant:
        mask = np.logical_and(mask, [name == query.quadrant for name in matrix.topics(run)])
    return mask


def _sorted_topics(workspace: Workspace, matrix: Matrix, run: str, selected_topics: Bools, sort: str) -> Table:
    """Return the selected topics in order; ties are sorted by the other measure, then by id."""
    table, selected_ids = matrix.topics_table(run), set(compress(matrix.scores.query_ids, selected_topics.tolist()))
    table = table.take([row for row, topic in enumerate(table.column("query_id").values) if topic in selected_ids])
    # Sorting is stable, so the last column sorted by is the most significant one.
    table = table.take(order_by(table.column("query_id").values, descending=False))
    sort_column, descending = sort.removeprefix("-"), sort.startswith("-")
    columns = {"query_id": ["query_id"], "x": ["y", "x"], "y": ["x", "y"], "change": ["x", "y", "y_change"]}
    for name in columns[sort_column]:
        table = table.take(order_by(table.column(name).values, descending=descending))
    table = replace(table, name="selected", folded=False, only="data")
    for column in (table.column("x_change"), table.column("y_change")):
        table = table.changed(column.name, mark=(), details=["lost" if mark else "" for mark in column.mark])
    table = table.changed("query_id", title="Topic")
    return replace(table, columns=(*table.columns, topic_columns(workspace, table.column("query_id").values)[1]))


_GRAY = "#7F7F7F"
_GRID_STEPS = 400  # grid cells along an axis: topics of one cell are one dot
_DOT_AREA, _MAX_DOT_AREA = 34.0, 800.0  # square pixels of a single topic, and at most of many
TOPICS, BRUSH = "topics", "brush"
"""Names of the dots and of the rectangle in Vega."""


def figures(workspace: Workspace, page: MatrixPage) -> dict[str, dict[str, Any] | None]:
    """Return the charts of the run and the baseline by role; None if the chart library is not installed."""
    charts: dict[str, dict[str, Any] | None] = {}
    for role, name in {"run": page.run, **({"baseline": page.baseline} if page.baseline else {})}.items():
        chart = _chart_without_topics(workspace, page.matrix, name, brush=role == "run")
        charts[role] = chart and _add_topics(chart, page, name)
    return charts


@cached_in_workspace
def _chart_without_topics(_: Workspace, matrix: Matrix, run: str, *, brush: bool) -> dict[str, Any] | None:
    """Return the Vega-Lite chart of one run without its topics, which `_add_topics` adds."""
    # Topics of one grid cell are one dot; its area shows their number. With `brush`, the user can draw a rectangle: the
    # parameter `BRUSH`. The dots are the data set `TOPICS` with `x_score`, `y_score`, `topics`, `selected`,
    # and `query_id` if there is one topic, else the corners `from` and `to`.
    chart = matrix.run_chart(run)
    slices = [row for row, is_faint in enumerate(chart.table.column("faint").values) if not is_faint]
    try:
        spec = specification(draw_charts(replace(chart, table=chart.table.take(slices), width=480, height=420)))
    except MissingExtraError:
        return None
    del spec["title"]
    encoding = next(layer["encoding"] for layer in spec["layer"] if "tooltip" in layer["encoding"])
    x, y = {**encoding["x"], "field": "x_score"}, {**encoding["y"], "field": "y_score"}
    max_topics = max((dot["topics"] for dot in _dots(matrix, run, (x, y), None)), default=1)
    areas = [_DOT_AREA, min(_DOT_AREA * math.sqrt(max_topics), _MAX_DOT_AREA)]
    scale = {"type": "pow", "exponent": 0.5, "domain": [1, max(max_topics, 2)], "range": areas}
    legend_values = sorted({*(10**power for power in range(len(str(max_topics)))), max_topics})
    legend = {"title": "topics", "orient": "bottom", "values": legend_values, "format": ",d"}
    legend |= {"symbolFillColor": _GRAY, "symbolStrokeWidth": 0}
    size = {"type": "quantitative", "scale": scale, "legend": legend if max_topics > 1 else None}
    tooltip = [
        {"field": "query_id", "type": "nominal"},
        {"field": "topics", "type": "quantitative"},
        *({"field": axis["field"], "title": axis["title"], "format": ".4f"} for axis in (x, y)),
    ]
    gray = {"color": _GRAY, "opacity": 0.55}
    highlighted = {"color": PALETTE[4], "opacity": 0.9, "stroke": "#333", "strokeWidth": 0.6}
    dots: list[dict[str, Any]] = [
        {
            "data": {"name": TOPICS, "values": []},
            "transform": [{"filter": f"datum.{field} > 0"}],
            "mark": {"type": "circle", "cursor": "pointer", **mark},
            "encoding": {"x": x, "y": y, "size": {"field": field, **size}, "tooltip": tooltip},
        }
        for field, mark in (("topics", gray), ("selected", highlighted))
    ]
    dots[0]["name"] = TOPICS
    rectangle = {"name": BRUSH, "select": {"type": "interval", "encodings": ["x", "y"]}, "views": [TOPICS]}
    return {**spec, "layer": [*dots, *spec["layer"]], **({"params": [rectangle]} if brush else {})}


def _add_topics(chart: Mapping[str, Any], page: MatrixPage, run: str) -> dict[str, Any]:
    """Return a copy of the chart of a run with topics, selected ones in color, and the rectangle."""
    query = page.query
    layers: list[dict[str, Any]] = chart["layer"]
    axes = layers[0]["encoding"]["x"], layers[0]["encoding"]["y"]
    data = {"name": TOPICS, "values": _dots(page.matrix, run, axes, page.selected_topics if query.selects else None)}
    spec = {**chart, "layer": [*({**layer, "data": data} for layer in layers[:2]), *layers[2:]]}
    if "params" in chart and any(bound is not None for bound in (query.x0, query.x1, query.y0, query.y1)):
        # an infinite bound is drawn at the edge of the chart
        bounds_by_axis = zip("xy", axes, query.bounds, strict=True)
        value = {name: np.clip(bounds, *axis["scale"]["domain"]).tolist() for name, axis, bounds in bounds_by_axis}
        spec["params"] = [{**chart["params"][0], "value": value}]
    return spec


def _dots(
    matrix: Matrix, run: str, axes: tuple[dict[str, Any], dict[str, Any]], selected_topics: Bools | None
) -> list[dict[str, Any]]:
    """Merge topics of one grid cell into a dot with their bounding box: many scores are (nearly) equal."""
    x, y = matrix.values(run)
    is_visible = np.array([bool(name) for name in matrix.topics(run)], dtype=np.bool_)
    selected = np.zeros(len(x), dtype=np.int64) if selected_topics is None else selected_topics.astype(np.int64)
    topics: dict[str, Any] = {"query_id": matrix.scores.query_ids, "x": x, "y": y, "selected": selected}
    for name, axis in zip("xy", axes, strict=True):
        low, high = axis["scale"]["domain"]
        topics[f"{name}_step"] = np.round((topics[name] - low) / (high - low) * _GRID_STEPS)
    aggregates = [("query_id", "first"), ("query_id", "count"), ("selected", "sum")]
    aggregates += [(name, function) for name in "xy" for function in ("first", "min", "max")]
    visible = pa.table(topics).filter(is_visible)
    cells = visible.group_by(["x_step", "y_step"], use_threads=False).aggregate(aggregates)
    return [
        {"x_score": round(dot["x_first"], 6), "y_score": round(dot["y_first"], 6)}
        | {"topics": dot["query_id_count"], "selected": dot["selected_sum"]}
        | (
            {"query_id": dot["query_id_first"]}
            if dot["query_id_count"] == 1
            else {"from": [dot["x_min"], dot["y_min"]], "to": [dot["x_max"], dot["y_max"]]}
        )
        for dot in cells.to_pylist()
    ]


router = APIRouter(tags=["diagnosis"])
FIXED_CUTS = ("0.5,0.5", "0.8,0.5", "0.8,0.8")
"""Suggested thresholds other than the means."""
_STATUSES: dict[str, Status] = {"below": "worse", "above": "better"}  # of an interval by its side of a threshold
_NO_SELECTION = dict.fromkeys(("x0", "x1", "y0", "y1", "quadrant", "page"))  # removes the selection from an address


def _page_values(workspace: Workspace, query: MatrixQuery, answer: MatrixPage | None) -> dict[str, Any]:
    """Return the values of the template: tables with links, charts, and formatted facts."""
    if answer is None:
        return {"suggested_cuts": FIXED_CUTS}
    matrix, run, baseline, selected = answer.matrix, answer.run, answer.baseline, answer.selected
    runs = {"baseline": baseline or run, "run": baseline and run}
    choices = shared_choices("/matrix", query) | {"measure": str(matrix.y)} | runs
    topics = [link("/topic", choices, topic=name) for name in selected.column("query_id").values]
    slices_of_matrix = matrix.slicing.slices if matrix.slicing else ()
    conditions = {part.name: conjunction(query.where, part.expression) for part in slices_of_matrix}
    slices = {name: f"/matrix{query_string(query, where=where, **_NO_SELECTION)}" for name, where in conditions.items()}
    changes, points = answer.tables().get("changes"), answer.table("points")
    runs = points.column("run").values
    points = points.take(sorted(range(len(points)), key=lambda row: runs[row] != run))
    titles = {"slice": "Slice", "run": "Run", "quadrant": "Quadrant", "n": "Topics", "judged": "Judged@10"}
    for name, title in titles.items():
        points = points.changed(name, title=title)
    kinds = ["small" if small else "" for small in points.column("small").values]
    points = replace(points.changed("quadrant", show=TEXT).changed("n", details=()), kinds=kinds)
    for name, cut in zip("xy", matrix.cuts, strict=True):
        column, sides = points.column(name), points.column(f"{name}_side").values
        axis = Axis.over(column.values, column.ci or (), "CI", cut)
        points = points.changed(name, axis=axis, statuses=[_STATUSES.get(side, "same") for side in sides], mark=())
        selected = selected.changed(name, kinds=shades_of(selected.column(name).values))
    points = points.showing("slice", *(["run"] if baseline else []), "quadrant", "n", "x", "y", "judged")
    return {
        **answer.facts(),
        "suggested_cuts": FIXED_CUTS,
        "counts": matrix.counts(run),
        "paging": answer.paging,
        "points": points,
        "changes": changes and changes.take([i for i, row in enumerate(changes.records()) if row["run"] == run]),
        "selected": selected.changed("query_id", links=topics),
        "charts": figures(workspace, answer),
        "links": {"slices": slices, "topic": link("/topic", choices)},
    }


@answer_page(router, "matrix.html", "/matrix", "Matrix", "Topics and slices by two measures", _page_values)
def matrix(workspace: CurrentWorkspace, query: Annotated[MatrixQuery, Query()]) -> MatrixPage:
    """Score each topic and slice of a run by two measures: one of the candidates, one of the final ranking.

    ``x0``, ``x1``, ``y0``, ``y1`` and ``quadrant`` select topics, returned as ``selected``, a page at a time.
    """
    return matrix_page(workspace, query)
