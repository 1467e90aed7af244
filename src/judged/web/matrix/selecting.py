"""Which topics of a matrix are selected: by a rectangle, a quadrant, or both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.web.matrix.data import MatrixTopic, Selection
from judged.web.paging import Paging

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.diagnosis.matrix import Matrix
    from judged.web.matrix.asked import AskedMatrix
    from judged.web.workspace import Workspace

SIZE = 25
"""Topics of a page."""


def selected(found: Matrix, run: str, asked: AskedMatrix) -> Bools:
    """Mark the topics that are selected, of those that have both scores: (T,); all of them, where nothing is asked."""
    values = found.values(run)
    mask = np.asarray(~np.isnan(values).any(axis=0), dtype=np.bool_)
    for row, (low, high) in zip(values, asked.bounds, strict=True):
        mask = np.logical_and(mask, (row >= low) & (row <= high))
    if asked.quadrant:
        mask = np.logical_and(mask, [name == asked.quadrant for name in found.topics(run)])
    return mask


def selection(workspace: Workspace, found: Matrix, run: str, against: str, asked: AskedMatrix) -> Selection:
    """Give the topics that are selected, a page of them, and the means over them."""
    mask = selected(found, run, asked)
    places = np.flatnonzero(mask)
    places = places[_order(found, run, against, places, asked.sort)]
    paging = Paging.at(asked.page, len(places), SIZE)
    mine, theirs = _means(found, mask, run), _means(found, mask, against)
    return Selection(
        asked=asked.selects,
        x0=asked.x0, x1=asked.x1, y0=asked.y0, y1=asked.y1,
        quadrant=asked.quadrant,
        count=len(places),
        x_mean=math.nan if mine is None else mine[0],
        y_mean=math.nan if mine is None else mine[1],
        x_mean_against=None if theirs is None else theirs[0],
        y_mean_against=None if theirs is None else theirs[1],
        page=paging.page,
        pages=paging.last,
        topics=_rows(workspace, found, run, against, list(paging.of(places.tolist()))),
    )  # fmt: skip


def _order(found: Matrix, run: str, against: str, places: np.ndarray, sort: str) -> np.ndarray:
    """Put topics in order; ties by the other measure, then by id."""
    x, y = found.values(run)[:, places]
    name = sort.removeprefix("-")
    keys: tuple[Floats, ...] = (x, y)
    if name == "query_id":
        keys = (places.astype(np.float64),)
    elif name == "x":
        keys = (y, x)
    elif name == "change" and against:
        keys = (x, y, (found.values(run) - found.values(against))[1, places])
    falling = sort.startswith("-")
    return np.lexsort(tuple(-key if falling else key for key in keys))


def _means(found: Matrix, mask: Bools, run: str) -> tuple[float, float] | None:
    """Give the means of a run over the topics that are selected."""
    if not run or not mask.any():
        return None
    table = found.scores.over_topics(mask).aggregate()[run]
    return table[str(found.x)], table[str(found.y)]


def _rows(workspace: Workspace, found: Matrix, run: str, against: str, places: list[int]) -> tuple[MatrixTopic, ...]:
    values, classes = found.values(run), found.topics(run)
    changes = values - found.values(against) if against else None
    lost = found.lost.get(run, {})
    return tuple(
        MatrixTopic(
            query_id=found.scores.query_ids[at],
            query=workspace.query(found.scores.query_ids[at]),
            x=float(values[0, at]),
            y=float(values[1, at]),
            quadrant=classes[at],
            x_change=None if changes is None else float(changes[0, at]),
            y_change=None if changes is None else float(changes[1, at]),
            lost=tuple(axis for axis, one in lost.items() if one.mask[at]),
        )
        for at in places
    )
