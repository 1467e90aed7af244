"""The page of the matrix, and its twin in JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.results import TEXT
from judged.web.answer_pages import answer_page
from judged.web.desk import Opened
from judged.web.filters import query
from judged.web.links import chosen, link
from judged.web.matrix.answer import AskedMatrix, MatrixPage, figures, matrix_page
from judged.web.slices.attributes import both

if TYPE_CHECKING:
    from judged.web.workspace import Workspace

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
