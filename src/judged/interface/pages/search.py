"""One search over all that is open: pages, runs, measures by any tool's name, topics. The palette shows the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.interface.pages.answers import NAVIGATION, PageAnswer, page
from judged.interface.pages.filters import query
from judged.interface.pages.learn.catalogue import AskedCatalogue, catalogue
from judged.interface.pages.problems import PROBLEMS, Parameters
from judged.interface.pages.workspace import Opened
from judged.results import TEXT, Table, beginning, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.interface.pages.workspace import Workspace

MOST = 10
"""Of one kind."""
OTHERS = {
    "/": ("Home", "What is open, and which run is best?"),
    "/choose": ("Choose measures", "Which measures fit a task, and these data?"),
    "/open": ("Open other files", "Look at other judgments and runs."),
    "/api": ("API", "Every page for programs, as JSON."),
}
"""Pages beside those of the navigation."""
router = APIRouter(tags=["What is open"])


class AskedSearch(Parameters):
    """What is looked for."""

    q: str = Field("", max_length=200, description="Words, an id, or the name of a measure in any tool (ndcg_cut_10).")


class Search(PageAnswer):
    """What was found, the nearest first."""

    kind: ClassVar[str] = "search"


class Place(NamedTuple):
    """Something that a reader can go to."""

    kind: str  # page, run, measure, topic
    name: str
    text: str
    address: str


def search(workspace: Workspace, asked: AskedSearch) -> Search:
    """Find pages, runs, measures and topics; without words, pages and runs.

    >>> from judged.interface.pages.workspace import open_sample
    >>> found = search(open_sample(), AskedSearch(q="ndcg_cut_10")).table("found").records()[0]
    >>> found["kind"], found["name"], found["address"]
    ('measure', 'nDCG', '/learn/nDCG')
    """
    typed = asked.q.strip().casefold()
    known = workspace.remember(("places",), lambda: _places(workspace))
    found = {
        kind: [one for one in places if all(word in f"{one.name} {one.text}".casefold() for word in typed.split())]
        for kind, places in known.items()
    }
    found = {"measure": list(_measures(typed)), **found} if typed else {**found, "topic": []}
    first = [place for places in found.values() for place in places[:MOST]]
    names = {place: place.name.casefold() for place in first}
    order = sorted(first, key=lambda place: (names[place] != typed, not names[place].startswith(typed)))
    columns = columns_of(
        order, ("name", TEXT, "Name"), ("kind", TEXT, "What"), ("text", beginning(120), "About"), "address"
    )
    table = Table("found", columns, "What was found").changed("name", links=[place.address for place in order])
    return Search({"q": asked.q, "found": sum(map(len, found.values()))}, (table,))


def _places(workspace: Workspace) -> dict[str, list[Place]]:
    """Give what is found by its words, kind by kind."""
    runs, topics = workspace.run_names, workspace.query_ids
    return {
        "page": [Place("page", name, text, path) for path, (name, text) in {**NAVIGATION, **OTHERS}.items()],
        "run": [Place("run", name, "", f"/topics{query({'runs': name})}") for name in runs],
        "topic": [Place("topic", one, workspace.query(one), f"/topic{query({'topic': one})}") for one in topics],
    }


def _measures(typed: str) -> Iterator[Place]:
    """Give the measures that are called so, here or elsewhere; the one whose name was typed is as near as can be."""
    found = catalogue(AskedCatalogue.model_validate({"q": typed}))
    rows = found.table("measures").records()
    for row in sorted(rows, key=lambda row: row["name"] != found.about["best"]):
        yield Place("measure", row["name"], row["what"], f"/learn/{row['name']}")


@router.get("/search", include_in_schema=False)
def search_page(request: Request, workspace: Opened, asked: Annotated[AskedSearch, Query()]) -> HTMLResponse:
    """Show what was found."""
    return page(request, "search.html", title="Find", asked=asked, answer=search(workspace, asked))


@router.get("/api/v1/search", summary="Find anything", responses=PROBLEMS)
def search_data(workspace: Opened, asked: Annotated[AskedSearch, Query()]) -> dict[str, Any]:
    """Find pages, runs, measures by the name of any tool, and topics by id or words; each with its address."""
    return search(workspace, asked).to_dict()
