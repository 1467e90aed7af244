"""Search over pages, runs, topics, and measures by the names of any tool; the command palette uses it too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.interface.pages.answers import NAVIGATION, PageAnswer, page
from judged.interface.pages.filters import query_string
from judged.interface.pages.learn.catalog import CatalogQuery, catalog
from judged.interface.pages.problems import PROBLEMS, Parameters
from judged.interface.pages.workspace import CurrentWorkspace
from judged.results import TEXT, Table, columns_of, truncated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.interface.pages.workspace import Workspace

MAX_RESULTS = 10
"""Maximum number of results of one kind."""
OTHER_PAGES = {
    "/": ("Home", "Which data are open, and which run is best?"),
    "/choose": ("Choose measures", "Which measures fit a task and the data?"),
    "/open": ("Open other files", "Open other judgments and runs."),
    "/api": ("API", "The data of each page as JSON."),
}
"""Pages that are not in the navigation bar."""
router = APIRouter(tags=["open data"])


class SearchQuery(Parameters):
    """Parameter of the search."""

    q: str = Field("", max_length=200, description="Words, an ID, or the name of a measure in any tool (ndcg_cut_10).")


class Search(PageAnswer):
    """Results of a search, the best match first."""

    kind: ClassVar[str] = "search"


class SearchResult(NamedTuple):
    """A page, run, measure, or topic with its address."""

    kind: str  # page, run, measure, topic
    name: str
    text: str
    address: str

    def matches(self, text: str) -> bool:
        """Return whether all words of a casefolded text are in the name or the text of the result."""
        return all(word in f"{self.name} {self.text}".casefold() for word in text.split())


def search(workspace: Workspace, query: SearchQuery) -> Search:
    """Find pages, runs, measures, and topics; without words, all pages and runs.

    >>> from judged.interface.pages.workspace import open_sample
    >>> result = search(open_sample(), SearchQuery(q="ndcg_cut_10")).table("matches").records()[0]
    >>> result["kind"], result["name"], result["address"]
    ('measure', 'nDCG', '/learn/nDCG')
    """
    text = query.q.strip().casefold()
    searchable = workspace.cached(("places",), lambda: _searchable(workspace))
    results = {kind: [result for result in rows if result.matches(text)] for kind, rows in searchable.items()}
    results = {"measure": list(_measures(text)), **results} if text else {**results, "topic": []}
    top_results = [result for candidates in results.values() for result in candidates[:MAX_RESULTS]]
    names = {result: result.name.casefold() for result in top_results}
    order = sorted(top_results, key=lambda result: (names[result] != text, not names[result].startswith(text)))
    columns = columns_of(
        order, ("name", TEXT, "Name"), ("kind", TEXT, "Type"), ("text", truncated(120), "Description"), "address"
    )
    table = Table("matches", columns, "Search results").changed("name", links=[result.address for result in order])
    return Search({"q": query.q, "n_matches": sum(map(len, results.values()))}, (table,))


def _searchable(workspace: Workspace) -> dict[str, list[SearchResult]]:
    """Return everything that is found by its words, by kind."""
    runs, topics = workspace.run_names, workspace.query_ids
    pages = {**NAVIGATION, **OTHER_PAGES}
    return {
        "page": [SearchResult("page", name, text, path) for path, (name, text) in pages.items()],
        "run": [SearchResult("run", name, "", f"/topics{query_string({'runs': name})}") for name in runs],
        "topic": [
            SearchResult("topic", topic, workspace.query(topic), f"/topic{query_string({'topic': topic})}")
            for topic in topics
        ],
    }


def _measures(search_text: str) -> Iterator[SearchResult]:
    """Yield the measures with a matching name, here or in another tool; an exact match is first."""
    matches = catalog(CatalogQuery.model_validate({"q": search_text}))
    rows = matches.table("measures").records()
    for row in sorted(rows, key=lambda row: row["name"] != matches.about["best"]):
        yield SearchResult("measure", row["name"], row["description"], f"/learn/{row['name']}")


@router.get("/search", include_in_schema=False)
def search_page(request: Request, workspace: CurrentWorkspace, query: Annotated[SearchQuery, Query()]) -> HTMLResponse:
    """Show the results of a search."""
    return page(request, "search.html", title="Search", query=query, answer=search(workspace, query))


@router.get("/api/v1/search", summary="Search", responses=PROBLEMS)
def search_data(workspace: CurrentWorkspace, query: Annotated[SearchQuery, Query()]) -> dict[str, Any]:
    """Find pages, runs, topics by ID or words, and measures by their name in any tool. Each match has an address."""
    return search(workspace, query).to_dict()
