"""The page of the matrix, and its twin in JSON."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.answer import TEXT
from judged.errors import JudgedError, MissingExtraError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import pairs, query
from judged.web.links import chosen, link
from judged.web.matrix.answer import PARTS, AskedMatrix, figures, matrix_page
from judged.web.problems import PROBLEMS
from judged.web.slices.attributes import attributes, both, problem_of

if TYPE_CHECKING:
    from judged.web.workspace import Workspace

router = APIRouter()
CUTS = ("0.5,0.5", "0.8,0.5", "0.8,0.8")
"""Fixed cuts that are offered beside means; every other pair can be typed."""
_ALL = dict.fromkeys(("x0", "x1", "y0", "y1", "quadrant", "page"))  # what an address leaves out that selects nothing


@router.get("/api/v1/matrix", tags=["diagnosis"], summary="Topics and slices by two measures", responses=PROBLEMS)
def matrix_as_json(workspace: Opened, asked: Annotated[AskedMatrix, Query()]) -> dict[str, Any]:
    """Set topics and slices of a run against two measures: one of the candidates, one of the final ranking.

    ``x0``, ``x1``, ``y0``, ``y1`` and ``quadrant`` select topics; these come a page at a time, as ``selected``.
    """
    return matrix_page(workspace, asked).to_dict()


@router.get("/matrix", include_in_schema=False)
def show_matrix(request: Request, workspace: Opened, asked: Annotated[AskedMatrix, Query()]) -> HTMLResponse:
    """Show them."""
    values: dict[str, Any] = {"data": False, "problem": None, "attributes": [], "offered": CUTS}
    try:
        if asked.selects and workspace.lists:
            values |= _shown(workspace, asked)
        elif workspace.lists:  # what most people see first; every rectangle would take the place of other results
            values |= workspace.remember(("matrix page", *asked), lambda: _shown(workspace, asked))
    except MissingExtraError:
        raise
    except JudgedError as error:
        values |= {"problem": problem_of(workspace, error, asked.where), "attributes": attributes(workspace).records()}
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "matrix.html", status=status, title="Matrix", asked=asked, pairs=dict(pairs(asked)), **values)


def _shown(workspace: Workspace, asked: AskedMatrix) -> dict[str, Any]:
    """Give what the page shows, in its own words: tables with links, charts, and facts as texts and numbers."""
    answer = matrix_page(workspace, asked)
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
        "x": str(matrix.x),
        "y": str(matrix.y),
        "counts": matrix.counts(run),
        "answer": answer,
        "paging": answer.paging,
        "data": True,
        "n": next(point.n for point in matrix.points if point.run == run),
        "parts": PARTS,
        "attributes": attributes(workspace).records(),
        "points": points,
        "changes": changes and changes.take([at for at, row in enumerate(changes.records()) if row["run"] == run]),
        "selected": selected.changed("query_id", links=topics),
        "charts": figures(workspace, asked, matrix, run, baseline, answer.chosen),
        "ways": {"slices": slices, "topic": link("/topic", known)},
    }
