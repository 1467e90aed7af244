"""The page of a change, and its twin in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.pagination import LONGEST
from judged.interface.pages.problems import Parameters
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace
from judged.online.pages import ab_test, watched

if TYPE_CHECKING:
    from judged.reports.changes import Change

router = APIRouter(tags=["change"])


class AskedChange(Parameters):
    """The two runs of a change."""

    first: str = Field("", max_length=LONGEST, description="The baseline; without it one called so, or the best.")
    second: str = Field("", max_length=LONGEST, description="The candidate; the best of the others without it.")


@answer_page(router, "change.html", "/change", "The review of a change", "What is known of a change")
@cached_in_workspace
def change(workspace: CurrentWorkspace, asked: Annotated[AskedChange, Query()]) -> Change:
    """Put what is open of a baseline and a candidate on one sheet: scores, slices, A/B test, watch."""
    from judged.reports.changes import review
    from judged.scoring.default_measures import REPORTED_MEASURES

    if len(workspace.run_names) < 2:
        about = "A change needs two runs over the same topics: a baseline and a candidate."
        raise NotOpenError("no two runs are open", about=about)
    first, second = workspace.default_pair(baseline=asked.first, run=asked.second)
    runs = [workspace.judged(name).run for name in (first, second)]
    more: dict[str, Any] = {"watch": watched(workspace)} if "watch" in workspace.parts else {}
    if "log" in workspace.parts:
        test = ab_test(workspace)
        arms = test.assignment.arms
        more |= {"test": test} if second in arms[1:] and first not in arms[1:] else {}
    known: dict[str, Any] = {"queries": workspace.topics, "attributes": workspace.attributes}
    known["comparison"] = workspace.pair_comparison(REPORTED_MEASURES, first, second)
    return review(workspace.qrels, *runs, **known, **more)
