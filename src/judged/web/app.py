"""The application: every page and every route of the API in one place."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

import judged
from judged.components import all_components, load
from judged.interface.pages.answers import Json, downloads
from judged.interface.pages.guard import Rules, framed
from judged.interface.pages.workspace import Desk
from judged.web.api_page import router as api_page
from judged.web.uploads import API_OPEN, OPEN, Limits, one_at_a_time
from judged.web.uploads import router as opening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from judged.interface.pages.workspace import Workspace

ROUTERS = (
    opening,
    api_page,
    *(load(page.router) for component in all_components() for page in component.pages),
)
"""Every page, and every route of the API."""

_ABOUT = "Everything that the workbench shows, as JSON: each page has a twin here, made from the same data."
_FRAME = 1 << 20  # bytes of a form beside its files


def make_app(workspace: Workspace, rules: Rules | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the workbench over what is open.

    >>> from judged.interface.pages.workspace import open_sample
    >>> make_app(open_sample()).title
    'judged'
    """
    app = FastAPI(
        title="judged",
        version=judged.__version__,
        description=_ABOUT,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
        default_response_class=Json,
        lifespan=_until_closed,
    )
    app.state.desk, app.state.limits = Desk(workspace), limits or Limits()
    uploads = dict.fromkeys((OPEN, API_OPEN), app.state.limits.total + _FRAME)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=1)  # this holds up other pages: the least work
    app.add_middleware(downloads)
    app.add_middleware(one_at_a_time)
    judge_of = None if workspace.labels is None else workspace.labels.judge_of
    return framed(app, ROUTERS, replace(rules or Rules(), bodies=uploads, judge_of=judge_of))


@asynccontextmanager
async def _until_closed(app: FastAPI) -> AsyncGenerator[None]:
    """Remove what was uploaded when the server ends."""
    yield
    app.state.desk.close()
