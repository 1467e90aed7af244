"""The matrix as the answer of a page: that of a run, or of two, and the topics that are selected in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.answer import TEXT, Answer, Column, Table
from judged.diagnosis.matrix import performance_matrix
from judged.errors import InputError
from judged.measures import parse
from judged.web.paging import Paging
from judged.web.slices.attributes import cut, draws, notes_of, where_column
from judged.web.workspace import LEVEL

if TYPE_CHECKING:
    from judged._types import Bools
    from judged.answer import Block
    from judged.diagnosis.matrix import Matrix
    from judged.notes import Note
    from judged.web.matrix.asked import AskedMatrix
    from judged.web.workspace import Workspace

SIZE = 25
"""Topics of a page."""
SEED = 0


@dataclass(frozen=True, eq=False, repr=False)
class MatrixPage(Answer):
    """Topics and slices of a run against two measures, and the topics that are selected."""

    kind: ClassVar[str] = "matrix"

    asked: AskedMatrix
    run: str
    against: str  # empty where there is no other run
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

    def facts(self) -> dict[str, Any]:
        """Give those of the matrix, what was asked, and the selection with the means over it."""
        asked = self.asked
        sides = {name: getattr(asked, name) for name in ("x0", "x1", "y0", "y1", "quadrant")}
        means = {**self._means(self.run), **(self._means(self.against, "_against") if self.against else {})}
        paging = {"count": self.paging.total, "page": self.paging.page, "pages": self.paging.last}
        return {
            **self.matrix.facts(),
            "run": self.run,
            "against": self.against,
            "by": asked.names,
            "where": asked.where.strip(),
            "minimum": asked.least,
            "selection": {"asked": asked.selects, **sides, **means, **paging},
        }

    def _means(self, run: str, ending: str = "") -> dict[str, float | None]:
        """Give the means of a run over the topics that are selected."""
        axes = {"x": str(self.matrix.x), "y": str(self.matrix.y)}
        if not self.chosen.any():
            return {f"{axis}_mean{ending}": None for axis in axes}
        means = self.matrix.scores.over_topics(self.chosen).aggregate()[run]
        return {f"{axis}_mean{ending}": means[name] for axis, name in axes.items()}

    def blocks(self) -> tuple[Block, ...]:
        """Give those of the matrix, the topics that are selected, and what selects the topics of each slice."""
        slicing, blocks = self.matrix.slicing, (*self.matrix.blocks(), self.selected)
        if slicing is None:
            return blocks
        slices = slicing.table()
        return (*blocks, replace(slices, columns=(*slices.columns, where_column(self.asked, slicing))))


def matrix_page(workspace: Workspace, asked: AskedMatrix) -> MatrixPage:
    """Set topics and slices of a run against two measures, and give the topics that are selected."""
    if not workspace.lists:
        raise InputError("no run is open", fix="open one: judged serve QRELS RUN")
    run = asked.run or workspace.run_names[0]
    for name in (run, *([asked.against] if asked.against else [])):
        workspace.judged(name)
    against = "" if asked.against == run else asked.against
    matrix = _matrix(workspace, asked, (against, run) if against else (run,))
    chosen = _chosen(matrix, run, asked)
    table = _ordered(workspace, matrix, run, chosen, asked.sort if against else asked.sort.replace("change", "y"))
    paging = Paging.at(asked.page, len(table), SIZE)
    return MatrixPage(
        asked=asked,
        run=run,
        against=against,
        matrix=matrix,
        chosen=chosen,
        selected=table.take(paging.of(range(len(table)))),
        paging=paging,
        notes=notes_of(workspace, asked, len(matrix.scores.query_ids), matrix.notes),
    )


def _matrix(workspace: Workspace, asked: AskedMatrix, names: tuple[str, ...]) -> Matrix:
    """Make the matrix of the run, and of the one it is compared with, or take the one that was made before."""
    axes = parse(asked.x), parse(asked.y)

    def _make() -> Matrix:
        mask = workspace.mask(asked.where)
        scores = workspace.scores(tuple(dict.fromkeys((*axes, parse("Judged@10")))), names, asked.where)
        made = performance_matrix(
            scores, x=axes[0], y=axes[1], slicing=cut(workspace, asked) if asked.names else None, baseline=names[0],
            level=LEVEL, resamples=draws(int(mask.sum())), seed=SEED,
        )  # fmt: skip
        level = max(float(getattr(axis, "rel", 1)) for axis in axes)
        return replace(made, barren=workspace.judged(names[-1]).num_relevant(level)[mask] == 0)

    key = ("matrix", names, axes, asked.names, asked.where.strip(), asked.least)
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
    ids, table = matrix.scores.query_ids, matrix.topics_table(run)
    at = {topic: place for place, topic in enumerate(ids) if chosen[place]}
    table = table.take([row for row, topic in enumerate(table.column("query_id").values) if topic in at])
    x, y, change = (np.array(table.column(name).values, dtype=np.float64) for name in ("x", "y", "y_change"))
    place = np.array([at[topic] for topic in table.column("query_id").values], dtype=np.float64)
    keys = {"query_id": (), "x": (y, x), "y": (x, y), "change": (x, y, change)}[sort.removeprefix("-")]
    sign = -1 if sort.startswith("-") else 1
    order = np.lexsort((place if keys else sign * place, *(sign * key for key in keys)))
    table = replace(table.take(order.tolist()), name="selected", folded=False, only="data")
    for column in (table.column("x_change"), table.column("y_change")):
        table = table.changed(column.name, mark=(), beside=["lost" if mark else "" for mark in column.mark])
    texts = Column("query", [workspace.query(topic) for topic in table.column("query_id").values], TEXT, "Query")
    return replace(table, columns=(*table.columns, texts))
