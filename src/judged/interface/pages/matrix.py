"""The matrix as the answer of a page: that of a run, or of two, and the topics that are selected in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from judged.diagnosis.matrix.matrix import parse_cuts
from judged.errors import MissingExtraError
from judged.interface.pages.answer_pages import (
    NotOpenError,
    answer_page,
    both,
    cut,
    notes_of,
    topic_columns,
    with_conditions,
)
from judged.interface.pages.filters import chosen, link, query
from judged.interface.pages.pagination import LONGEST, Paging, Scored, Trimmed, order_by
from judged.interface.pages.slices import Number, Sliced
from judged.interface.pages.workspace import LEVEL, Opened, remembered
from judged.results import TEXT, Answer, Table, counted
from judged.results.chart_drawings import drawn
from judged.results.charts import PALETTE, specification
from judged.scoring.default_measures import RANKING_AND_CANDIDATES
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.diagnosis.matrix import Matrix
    from judged.interface.pages.workspace import Workspace
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools


Y, X = RANKING_AND_CANDIDATES
Quadrant: TypeAlias = Literal["", "healthy", "ranking problem", "coverage problem", "both problems", "nothing relevant"]
Order: TypeAlias = Literal["query_id", "-query_id", "x", "-x", "y", "-y", "change", "-change"]
Box: TypeAlias = tuple[tuple[float, float], tuple[float, float]]


class AskedMatrix(Sliced, Scored):
    """Topics and slices against two measures, and which topics are selected."""

    run: str = Field("", max_length=LONGEST, description="The run; the best one without it.")
    baseline: str = Field(
        "", max_length=LONGEST, description="The run whose means are the cuts; without it, the run's own."
    )
    cuts: Trimmed = Field("", max_length=100, description="Fixed cuts in place of means: of x and of y, as in 0.8,0.5.")
    x: str = Field(X, max_length=200, description="The measure across: of the candidates.")
    y: str = Field(Y, max_length=200, description="The measure up: of the final ranking.")
    x0: Number = Field(None, description="Topics are selected whose x is at least this,")
    x1: Number = Field(None, description="and at most this;")
    y0: Number = Field(None, description="whose y is at least this,")
    y1: Number = Field(None, description="and at most this.")
    quadrant: Quadrant = Field("", description="Topics of this quadrant alone are selected.")
    sort: Order = Field("y", description="The order of the topics; with - before it, descending.")
    page: Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(lambda given: 1 if given == "" else given)] = Field(
        1, description="Which page of the topics; 0 for all."
    )

    @property
    def bounds(self) -> Box:
        """From and to on x, from and to on y; infinite where nothing is said."""
        return _ends(self.x0, self.x1), _ends(self.y0, self.y1)

    @property
    def selects(self) -> bool:
        """Whether topics are selected at all."""
        return bool(self.quadrant) or any(side is not None for side in (self.x0, self.x1, self.y0, self.y1))


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    """Give both ends, the lower one first."""
    ends = (float("-inf") if low is None else low, float("inf") if high is None else high)
    return (min(ends), max(ends)) if low is not None and high is not None else ends


SIZE = 25
"""Topics of a page."""
SEED = 0


@dataclass(frozen=True, eq=False, repr=False)
class MatrixPage(Answer):
    """Topics and slices of a run against two measures, and the topics that are selected."""

    kind: ClassVar[str] = "matrix"

    asked: AskedMatrix
    run: str
    baseline: str  # empty where there is no other run
    matrix: Matrix
    chosen: Bools  # (T,): the topics that are selected; all of them that have both scores, where nothing is asked
    selected: Table  # of these topics, those of this page
    paging: Paging
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """What the scores rest on."""
        return self.matrix.provenance

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the matrix shows."""
        return self.matrix.sentences

    @property
    def lead(self) -> str:
        """How many topics are in each quadrant."""
        of = f"of {self.run}, by {self.matrix.y} and {self.matrix.x}"
        said = self.matrix.describe_counts(self.run) or "none with both scores"
        return f"{counted(sum(self.matrix.counts(self.run).values()), 'topic')} {of}: {said}."

    def facts(self) -> dict[str, Any]:
        """Give those of the matrix, the runs, and the selection with the means over it."""
        means = self.matrix.scores.over_topics(self.chosen).aggregate() if self.chosen.any() else {}
        selection: dict[str, Any] = {
            f"{axis}_mean{ending}": means[run][str(measure)] if means else None
            for run, ending in ((self.run, ""), (self.baseline, "_baseline"))
            for axis, measure in (("x", self.matrix.x), ("y", self.matrix.y))
            if run
        }
        paging = {"count": self.paging.total, "page": self.paging.page, "pages": self.paging.last}
        return {**self.matrix.facts(), "run": self.run, "baseline": self.baseline, "selection": selection | paging}

    def blocks(self) -> tuple[Block, ...]:
        """Give those of the matrix, the topics that are selected, and what selects the topics of each slice."""
        slices = [with_conditions(self.asked, self.matrix.slicing)] if self.matrix.slicing else []
        return (*self.matrix.blocks(), self.selected, *slices)


def matrix_page(workspace: Workspace, asked: AskedMatrix) -> MatrixPage:
    """Set topics and slices of a run against two measures, and give the topics that are selected."""
    if not workspace.lists:
        about = "The matrix places the topics of a run by two measures: whether what is relevant was found, and whether"
        raise NotOpenError("no run is open", about=f"{about} it is ranked at the top.")
    run = asked.run or _default_run(workspace, asked.y, asked.baseline)
    for name in (run, *([asked.baseline] if asked.baseline else [])):
        workspace.judged(name)
    baseline = "" if asked.baseline == run else asked.baseline
    matrix = _matrix(workspace, asked, (baseline, run) if baseline else (run,))
    chosen = _chosen(matrix, run, asked)
    table = _ordered(workspace, matrix, run, chosen, asked.sort if baseline else asked.sort.replace("change", "y"))
    paging = Paging.at(asked.page, len(table), SIZE)
    return MatrixPage(
        asked=asked,
        run=run,
        baseline=baseline,
        matrix=matrix,
        chosen=chosen,
        selected=table.take(paging.of(range(len(table)))),
        paging=paging,
        notes=notes_of(workspace, asked, len(matrix.scores.query_ids), matrix.notes),
    )


@remembered
def _default_run(workspace: Workspace, measure: str, baseline: str) -> str:
    """Return the run that is shown where none is named."""
    return workspace.usual_pair(parse(measure), baseline)[bool(baseline)]


def _matrix(workspace: Workspace, asked: AskedMatrix, names: tuple[str, ...]) -> Matrix:
    """Make the matrix of the run, and of the one it is compared with, or take the one that was made before."""

    def _make() -> Matrix:
        axes = asked.read(asked.x), asked.read(asked.y)
        mask = workspace.mask(asked.where)
        scores = workspace.scores(tuple(dict.fromkeys((*axes, parse("Judged@10")))), names, asked.where)
        made = scores.matrix(
            x=axes[0],
            y=axes[1],
            slicing=cut(workspace, asked) if asked.names else None,
            baseline=names[0],
            cuts=parse_cuts(asked.cuts),
            level=LEVEL,
            seed=SEED,
        )
        rel = max(float(getattr(axis, "rel", asked.rel or 1)) for axis in axes)
        return replace(made, no_relevant=workspace.judged(names[-1]).num_relevant(rel)[mask] == 0)

    key = ("matrix", names, asked.x, asked.y, asked.rel, asked.names, asked.where.strip(), asked.least, asked.cuts)
    return workspace.remember(key, _make)


def _chosen(matrix: Matrix, run: str, asked: AskedMatrix) -> Bools:
    """Mark the topics that are selected, of those that have both scores: by the rectangle and the quadrant."""
    values = matrix.values(run)
    mask = np.asarray(~np.isnan(values).any(axis=0), dtype=np.bool_)
    for row, (low, high) in zip(values, asked.bounds, strict=True):
        mask = np.logical_and(mask, (row >= low) & (row <= high))
    if asked.quadrant:
        mask = np.logical_and(mask, [name == asked.quadrant for name in matrix.topics(run)])
    return mask


def _ordered(workspace: Workspace, matrix: Matrix, run: str, chosen: Bools, sort: str) -> Table:
    """Lay out the topics that are selected, in order; ties by the other measure, then by id."""
    table, picked = matrix.topics_table(run), set(compress(matrix.scores.query_ids, chosen.tolist()))
    table = table.take([row for row, topic in enumerate(table.column("query_id").values) if topic in picked])
    table = table.take(order_by(table.column("query_id").values, falling=False))
    by, falling = sort.removeprefix("-"), sort.startswith("-")
    for name in {"query_id": ["query_id"], "x": ["y", "x"], "y": ["x", "y"], "change": ["x", "y", "y_change"]}[by]:
        table = table.take(order_by(table.column(name).values, falling=falling))
    table = replace(table, name="selected", folded=False, only="data")
    for column in (table.column("x_change"), table.column("y_change")):
        table = table.changed(column.name, mark=(), beside=["lost" if mark else "" for mark in column.mark])
    table = table.changed("query_id", title="Topic")
    return replace(table, columns=(*table.columns, topic_columns(workspace, table.column("query_id").values)[1]))


_GREY = "#7F7F7F"
_STEPS = 400  # places along an axis: topics of one place are one dot
_DOT, _LARGEST = 34.0, 800.0  # square pixels of one topic, and at most of many
TOPICS, BRUSH = "topics", "brush"
"""What the dots and the rectangle are called in Vega."""


def figures(
    workspace: Workspace, asked: AskedMatrix, matrix: Matrix, run: str, baseline: str, chosen: Bools
) -> dict[str, dict[str, Any] | None]:
    """Draw the run, and the one it is compared with, by place; None, where what draws them is not installed."""
    charts: dict[str, dict[str, Any] | None] = {}
    for place, name in {"run": run, **({"baseline": baseline} if baseline else {})}.items():
        frame = _frame(workspace, matrix, name, brush=place == "run")
        charts[place] = frame and _with_topics(frame, asked, matrix, name, chosen)
    return charts


@remembered
def _frame(_: Workspace, matrix: Matrix, run: str, *, brush: bool) -> dict[str, Any] | None:
    """Draw one run as Vega-Lite, without the topics: `_with_topics` puts them in."""
    # Topics of one place will be one dot, as large as they are many. With `brush`, a rectangle can be drawn: it is the
    # parameter `BRUSH`. The dots are the data `TOPICS`: `across`, `up`, `topics`, `chosen`; of a topic alone its
    # `query_id`, of several the corners `from` and `to`.
    chart = matrix.run_chart(run)
    slices = [at for at, faint in enumerate(chart.table.column("faint").values) if not faint]
    try:
        spec = specification(drawn(replace(chart, table=chart.table.take(slices), width=480, height=420)))
    except MissingExtraError:
        return None
    del spec["title"]
    seen = next(layer["encoding"] for layer in spec["layer"] if "tooltip" in layer["encoding"])
    x, y = {**seen["x"], "field": "across"}, {**seen["y"], "field": "up"}
    most = max((dot["topics"] for dot in _dots(matrix, run, (x, y), None)), default=1)
    scale = {
        "type": "pow",
        "exponent": 0.5,
        "domain": [1, max(most, 2)],
        "range": [_DOT, min(_DOT * math.sqrt(most), _LARGEST)],
    }
    shown = sorted({*(10**power for power in range(len(str(most)))), most})
    legend = {
        "title": "topics",
        "orient": "bottom",
        "symbolFillColor": _GREY,
        "symbolStrokeWidth": 0,
        "values": shown,
        "format": ",d",
    }
    sized = {"type": "quantitative", "scale": scale, "legend": legend if most > 1 else None}
    tooltip = [
        {"field": "query_id", "type": "nominal"},
        {"field": "topics", "type": "quantitative"},
        *({"field": axis["field"], "title": axis["title"], "format": ".4f"} for axis in (x, y)),
    ]
    grey = {"color": _GREY, "opacity": 0.55}
    coloured = {"color": PALETTE[4], "opacity": 0.9, "stroke": "#333", "strokeWidth": 0.6}
    dots: list[dict[str, Any]] = [
        {
            "data": {"name": TOPICS, "values": []},
            "transform": [{"filter": f"datum.{field} > 0"}],
            "mark": {"type": "circle", "cursor": "pointer", **mark},
            "encoding": {"x": x, "y": y, "size": {"field": field, **sized}, "tooltip": tooltip},
        }
        for field, mark in (("topics", grey), ("chosen", coloured))
    ]
    dots[0]["name"] = TOPICS
    rectangle = {"name": BRUSH, "select": {"type": "interval", "encodings": ["x", "y"]}, "views": [TOPICS]}
    return {**spec, "layer": [*dots, *spec["layer"]], **({"params": [rectangle]} if brush else {})}


def _with_topics(
    frame: Mapping[str, Any], asked: AskedMatrix, matrix: Matrix, run: str, chosen: Bools
) -> dict[str, Any]:
    """Put the topics of a run into a chart, those selected in colour, and the rectangle; the chart stays as it is."""
    layers: list[dict[str, Any]] = frame["layer"]
    axes = layers[0]["encoding"]["x"], layers[0]["encoding"]["y"]
    data = {"name": TOPICS, "values": _dots(matrix, run, axes, chosen if asked.selects else None)}
    spec = {**frame, "layer": [*({**layer, "data": data} for layer in layers[:2]), *layers[2:]]}
    if "params" in frame and any(side is not None for side in (asked.x0, asked.x1, asked.y0, asked.y1)):
        # a side that is left open lies on the edge of the chart
        ends = zip("xy", axes, asked.bounds, strict=True)
        value = {name: np.clip(bounds, *axis["scale"]["domain"]).tolist() for name, axis, bounds in ends}
        spec["params"] = [{**frame["params"][0], "value": value}]
    return spec


def _dots(
    matrix: Matrix, run: str, axes: tuple[dict[str, Any], dict[str, Any]], chosen: Bools | None
) -> list[dict[str, Any]]:
    """Put topics of one place together, with the rectangle around them: scores of many are the same, or nearly."""
    x, y = matrix.values(run)
    shown = np.array([bool(name) for name in matrix.topics(run)], dtype=np.bool_)
    topics: dict[str, Any] = {"query_id": matrix.scores.query_ids, "x": x, "y": y}
    topics["chosen"] = np.zeros(len(x), dtype=np.int64) if chosen is None else chosen.astype(np.int64)
    for name, axis in zip("xy", axes, strict=True):
        low, high = axis["scale"]["domain"]
        topics[f"{name}_step"] = np.round((topics[name] - low) / (high - low) * _STEPS)
    parts = [("query_id", "first"), ("query_id", "count"), ("chosen", "sum")]
    parts += [(name, how) for name in "xy" for how in ("first", "min", "max")]
    places = pa.table(topics).filter(shown).group_by(["x_step", "y_step"], use_threads=False).aggregate(parts)
    return [
        {"across": round(dot["x_first"], 6), "up": round(dot["y_first"], 6)}
        | {"topics": dot["query_id_count"], "chosen": dot["chosen_sum"]}
        | (
            {"query_id": dot["query_id_first"]}
            if dot["query_id_count"] == 1
            else {"from": [dot["x_min"], dot["y_min"]], "to": [dot["x_max"], dot["y_max"]]}
        )
        for dot in places.to_pylist()
    ]


router = APIRouter(tags=["diagnosis"])
CUTS = ("0.5,0.5", "0.8,0.5", "0.8,0.8")
"""Fixed cuts that are offered beside means; every other pair can be typed."""
_ALL = dict.fromkeys(("x0", "x1", "y0", "y1", "quadrant", "page"))  # what an address leaves out that selects nothing


def _shown(workspace: Workspace, asked: AskedMatrix, answer: MatrixPage | None) -> dict[str, Any]:
    """Give what the page shows, in its own words: tables with links, charts, and facts as texts and numbers."""
    if answer is None:
        return {"offered": CUTS}
    matrix, run, baseline, selected = answer.matrix, answer.run, answer.baseline, answer.selected
    known = chosen("/matrix", asked) | {"measure": str(matrix.y), "baseline": baseline or run, "run": baseline and run}
    topics = [link("/topic", known, topic=name) for name in selected.column("query_id").values]
    parts = matrix.slicing.slices if matrix.slicing else ()
    slices = {part.name: f"/matrix{query(asked, where=both(asked.where, part.expression), **_ALL)}" for part in parts}
    changes, points = answer.tables().get("changes"), answer.table("points")
    runs = points.column("run").values
    points = points.take(sorted(range(len(points)), key=lambda row: runs[row] != run))
    titles = {"slice": "Slice", "run": "Run", "quadrant": "Shown", "n": "Topics", "judged": "Judged@10"}
    for name, title in titles.items():
        points = points.changed(name, title=title)
    kinds = ["small" if small else "" for small in points.column("small").values]
    points = replace(points.changed("quadrant", show=TEXT).changed("n", beside=()), kinds=kinds)
    points = points.showing("slice", *(["run"] if baseline else []), "quadrant", "n", "x", "y", "judged")
    return {
        **answer.facts(),
        "offered": CUTS,
        "counts": matrix.counts(run),
        "paging": answer.paging,
        "points": points,
        "changes": changes and changes.take([at for at, row in enumerate(changes.records()) if row["run"] == run]),
        "selected": selected.changed("query_id", links=topics),
        "charts": figures(workspace, asked, matrix, run, baseline, answer.chosen),
        "ways": {"slices": slices, "topic": link("/topic", known)},
    }


@answer_page(router, "matrix.html", "/matrix", "Matrix", "Topics and slices by two measures", _shown)
def matrix(workspace: Opened, asked: Annotated[AskedMatrix, Query()]) -> MatrixPage:
    """Set topics and slices of a run against two measures: one of the candidates, one of the final ranking.

    ``x0``, ``x1``, ``y0``, ``y1`` and ``quadrant`` select topics; these come a page at a time, as ``selected``.
    """
    return matrix_page(workspace, asked)
