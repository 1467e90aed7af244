"""Topics and slices against two measures, for the page and for its JSON."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.matrix import performance_matrix
from judged.errors import InputError
from judged.measures import parse
from judged.notes import Note, lines
from judged.web.matrix.data import MatrixAxis, MatrixChange, MatrixData, MatrixSlice
from judged.web.matrix.selecting import selection
from judged.web.slices.attributes import both, cut, draws, notes_of, query_ids_where
from judged.web.workspace import LEVEL

if TYPE_CHECKING:
    from judged.diagnosis.matrix import Matrix
    from judged.diagnosis.matrix.points import Axis
    from judged.web.matrix.asked import AskedMatrix
    from judged.web.workspace import Workspace

SEED = 0


def matrix(workspace: Workspace, asked: AskedMatrix) -> MatrixData:
    """Set topics and slices of a run against two measures, and give the topics that are selected."""
    run, against = chosen_runs(workspace, asked)
    found = made(workspace, asked)
    whole = next(point for point in found.points if point.run == run)
    return MatrixData(
        run=run,
        against=against,
        x=str(found.x),
        y=str(found.y),
        cuts=found.cuts,
        by=asked.names,
        where=asked.where.strip(),
        minimum=asked.least,
        topics=whole.topics,
        slices=_slices(found, run, asked.where),
        changes=_changes(found, run),
        counts=found.counts(run),
        selection=selection(workspace, found, run, against, asked),
        caption=found.table("points").note,
        changes_caption=found.table("changes").note if found.changes else "",
        sentences=found.sentences,
        warnings=lines(
            notes_of(
                workspace,
                asked,
                len(query_ids_where(workspace, asked.where)),
                tuple(Note("matrix", text) for text in found.warnings),
            )
        ),
    )


def chosen_runs(workspace: Workspace, asked: AskedMatrix) -> tuple[str, str]:
    """Name the run, and the one that it is compared with; that is empty without one."""
    if not workspace.lists:
        raise InputError("no run is open", fix="open one: judged serve QRELS RUN")
    run = asked.run or workspace.run_names[0]
    for name in (run, *([asked.against] if asked.against else [])):
        workspace.judged(name)
    return run, "" if asked.against == run else asked.against


def made(workspace: Workspace, asked: AskedMatrix) -> Matrix:
    """Make the matrix of the run, and of the one it is compared with, or take the one that was made before."""
    run, against = chosen_runs(workspace, asked)
    names = (against, run) if against else (run,)
    axes = parse(asked.x), parse(asked.y)

    def make() -> Matrix:
        kept = query_ids_where(workspace, asked.where)
        scores = workspace.scores(tuple(dict.fromkeys((*axes, parse("Judged@10")))), names)
        wanted = set(kept)
        mask = np.array([query in wanted for query in scores.query_ids])
        found = performance_matrix(
            scores.over_topics(mask), x=axes[0], y=axes[1], slicing=cut(workspace, asked), baseline=names[0],
            level=LEVEL, resamples=draws(len(kept)), seed=SEED,
        )  # fmt: skip
        level = max(float(getattr(one, "rel", 1)) for one in axes)
        return replace(found, barren=workspace.judged(run).num_relevant(level)[mask] == 0)

    key = ("matrix", names, axes, asked.names, asked.where.strip(), asked.least)
    return workspace.remember(key, make)


def _slices(found: Matrix, run: str, where: str) -> tuple[MatrixSlice, ...]:
    expressions = {} if found.slicing is None else {one.name: one.expression for one in found.slicing.slices}
    order = sorted(found.points, key=lambda point: point.run != run)
    return tuple(
        MatrixSlice(
            run=point.run,
            slice=point.slice,
            expression=where.strip() if point.every else both(where, expressions[point.slice]),
            topics=point.topics,
            small=point.small,
            quadrant=point.quadrant,
            x=_axis(point.x),
            y=_axis(point.y),
            judged=point.judged,
        )
        for point in order
    )


def _axis(axis: Axis) -> MatrixAxis:
    return MatrixAxis(axis.value, None if math.isnan(axis.low) else (axis.low, axis.high), axis.side)


def _changes(found: Matrix, run: str) -> tuple[MatrixChange, ...]:
    rows: list[Any] = [one for one in found.changes if one.system == run]
    return tuple(
        MatrixChange(
            slice=one.slice,
            measure=one.part,
            topics=one.found.n,
            difference=one.found.difference,
            ci=one.found.interval,
            p=one.found.decisive_p,
            significant=one.significant,
            small=one.small,
        )
        for one in rows
    )
