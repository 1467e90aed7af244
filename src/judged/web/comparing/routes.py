"""Two runs compared: the page, and its twin in the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.web.answers import page
from judged.web.comparing.asked import MEASURE, MEASURES, Asked, RefusedError
from judged.web.comparing.figures import figures
from judged.web.comparing.result import Compared, compared
from judged.web.comparing.two import two_runs
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS

router = APIRouter()


@router.get("/compare", include_in_schema=False)
def comparison_page(request: Request, workspace: Opened, asked: Annotated[Asked, Query()]) -> Response:
    """Show two runs side by side."""
    found, wrong, drawn, state, status = None, None, None, _state(asked), HTTPStatus.OK
    if len(workspace.run_names) > 1:
        try:
            found = compared(workspace, asked)
            drawn = figures(workspace, two_runs(workspace, asked))
            state |= {"first": found.first, "second": found.second}
        except RefusedError as error:
            wrong, status = error, HTTPStatus.BAD_REQUEST
    return page(
        request,
        "compare.html",
        status=status,
        title="Compare",
        asked=asked,
        state=state,
        usual={"measure": MEASURE, "measures": MEASURES},
        data=found,
        wrong=wrong,
        figures=drawn,
    )


@router.get("/api/v1/compare", tags=["runs"], summary="Two runs compared", responses=PROBLEMS)
def comparison(workspace: Opened, asked: Annotated[Asked, Query()]) -> Compared:
    """Compare two runs: the verdict, every measure, what rests on single topics, and the topics, a page at a time."""
    return compared(workspace, asked)


def _state(asked: Asked) -> dict[str, object]:
    """Give what is not as it is without being asked, for an address."""
    return asked.model_dump(exclude_defaults=True)
