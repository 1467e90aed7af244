"""Page of a change, and its JSON endpoint."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.errors import InputError
from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace
from judged.online.pages import ab_test, watched

if TYPE_CHECKING:
    from judged.reports.changes import Change

router = APIRouter(tags=["change"])


class ChangeQuery(Parameters):
    """Query parameters of the page: the two runs."""

    first: str = text_field("Baseline run. Default: the run named `baseline`, or else the best run.")
    second: str = text_field("Candidate run. Default: the best of the other runs.")


def _details(_: Any, __: Any, answer: Change | None) -> dict[str, Any]:
    """Return the tables behind the answers."""
    return {} if answer is None else {"blocks": answer.blocks()[2:]}


@answer_page(router, "change.html", "/change", "Change", "Review a change", _details)
@cached_in_workspace
def change(workspace: CurrentWorkspace, parameters: Annotated[ChangeQuery, Query()]) -> Change:
    """Compare the candidate with the baseline, using the open files: scores, slices, A/B test, monitoring."""
    from judged.reports.changes import review
    from judged.scoring.default_measures import REPORTED_MEASURES

    if len(workspace.run_names) < 2:
        requirement = "A change needs two runs over the same topics: a baseline and a candidate."
        raise NotOpenError("fewer than two runs are open", about=requirement)
    first, second = workspace.default_pair(baseline=parameters.first, run=parameters.second)
    runs = [workspace.judged(name).run for name in (first, second)]
    online_results: dict[str, Any] = {"watch": watched(workspace)} if "watch" in workspace.parts else {}
    if "log" in workspace.parts:
        with suppress(InputError):  # a log without an A/B test
            test = ab_test(workspace)
            arms = test.assignment.arms
            online_results |= {"test": test} if second in arms[1:] and first not in arms[1:] else {}
    topic_data: dict[str, Any] = {"queries": workspace.topics, "attributes": workspace.attributes}
    topic_data["comparison"] = workspace.comparison_of(REPORTED_MEASURES, (first, second))
    return review(workspace.qrels, *runs, **topic_data, **online_results)
