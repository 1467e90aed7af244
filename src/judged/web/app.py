"""The application: every page and every route of the API in one place."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

import judged
from judged.web.answers import Json, downloads
from judged.web.api_page import router as api_page
from judged.web.change import router as change
from judged.web.clicks import router as clicks
from judged.web.compare.routes import router as comparing
from judged.web.evaluator.routes import router as evaluator
from judged.web.experiment import router as experiment
from judged.web.guard import Rules, framed
from judged.web.home import router as home
from judged.web.judging import router as judging
from judged.web.labels import router as labels
from judged.web.leaderboard import router as leaderboard
from judged.web.learn.routes import router as learning
from judged.web.matrix import router as matrix
from judged.web.rag import router as rag
from judged.web.search import router as search
from judged.web.slices import router as slices
from judged.web.topics.routes import router as topics
from judged.web.traces import router as traces
from judged.web.uploads import API_OPEN, OPEN, Limits, one_at_a_time
from judged.web.uploads import router as opening
from judged.web.users import router as users
from judged.web.workspace import Desk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from judged.web.workspace import Workspace

ROUTERS = (
    home,
    opening,
    api_page,
    evaluator,
    leaderboard,
    comparing,
    topics,
    matrix,
    slices,
    traces,
    rag,
    clicks,
    users,
    change,
    experiment,
    judging,
    labels,
    learning,
    search,
)
"""Every page, and every route of the API."""

_ABOUT = "Everything that the workbench shows, as JSON: each page has a twin here, made from the same data."
_FRAME = 1 << 20  # bytes of a form beside its files


def make_app(workspace: Workspace, rules: Rules | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the workbench over what is open.

    >>> from judged.web.workspace import open_sample
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
