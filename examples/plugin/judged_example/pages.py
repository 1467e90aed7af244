"""A page and its JSON version at ``/api/v1/longest``."""

from __future__ import annotations

from fastapi import APIRouter

from judged.interface.pages.answer_pages import answer_page
from judged.interface.pages.workspace import CurrentWorkspace
from judged_example.longest import Longest
from judged_example.longest import longest as longest_ranking

router = APIRouter(tags=["example"])


@answer_page(router, "answer.html", "/longest", "Longest rankings", "The longest ranking of each run")
def longest(workspace: CurrentWorkspace) -> Longest:
    """Show the longest ranking of each open run."""
    return longest_ranking(judged.run for judged in workspace.lists.values())
