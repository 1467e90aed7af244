"""Search over pages, runs, topics, and measures by the names of any tool; the command palette uses it too."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.interface.pages.answers import PageAnswer, page
from judged.interface.pages.filters import query_string
from judged.interface.pages.problems import PROBLEMS, Parameters, text_field
from judged.interface.pages.workspace import CurrentWorkspace, Workspace
from judged.results import TEXT, Table, columns_of, truncated
from judged.scoring.names import Name, find_names, name_index

MAX_RESULTS = 10
"""Maximum number of results of one kind."""
router = APIRouter(tags=["open data"])


class SearchQuery(Parameters):
    """Parameter of the search."""

    q: str = text_field("Words, an ID, or the name of a measure in any tool (ndcg_cut_10).", limit=200)


class Search(PageAnswer):
    """Results of a search, the best match first."""

    kind: ClassVar[str] = "search"


def search(workspace: Workspace, query: SearchQuery) -> Search:
    """Find pages, runs, measures, metrics, commands, and topics; without words, all pages and runs.

    >>> from judged.interface.pages.workspace import open_sample
    >>> result = search(open_sample(), SearchQuery(q="ndcg_cut_10")).table("matches").records()[0]
    >>> result["kind"], result["name"], result["address"]
    ('measure', 'nDCG', '/learn/nDCG')
    """
    names = workspace.cached(("names",), lambda: _names(workspace))
    is_shown = ("page", "run") if not query.q.strip() else ()  # without words, all pages and runs
    results = [name for name in names if name.kind in is_shown] if is_shown else find_names(query.q, names)
    counts = Counter[str]()
    order: list[Name] = []
    for result in results:
        counts[result.kind] += 1
        order += [result] if counts[result.kind] <= MAX_RESULTS else []
    columns = columns_of(
        order, ("name", TEXT, "Name"), ("kind", TEXT, "Type"), ("text", truncated(120), "Description"), "address"
    )
    table = Table("matches", columns, "Search results").changed("name", links=[result.address for result in order])
    return Search({"q": query.q, "n_matches": len(results)}, (table,))


def _names(workspace: Workspace) -> list[Name]:
    """Return everything that can be found: runs and topics before names of the program."""
    runs = (Name("run", run, "", f"/topics{query_string({'runs': run})}") for run in workspace.run_names)
    topics = (
        Name("topic", topic, workspace.query(topic), f"/topic{query_string({'topic': topic})}")
        for topic in workspace.query_ids
    )
    return [*runs, *topics, *name_index()]


@router.get("/search", include_in_schema=False)
def search_page(request: Request, workspace: CurrentWorkspace, query: Annotated[SearchQuery, Query()]) -> HTMLResponse:
    """Show the results of a search."""
    return page(request, "search.html", title="Search", query=query, answer=search(workspace, query))


@router.get("/api/v1/search", summary="Search", responses=PROBLEMS)
def search_data(workspace: CurrentWorkspace, query: Annotated[SearchQuery, Query()]) -> dict[str, Any]:
    """Find pages, runs, topics by ID or words, and measures by their name in any tool. Each match has an address."""
    return search(workspace, query).to_dict()
