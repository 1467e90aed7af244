"""The application: every page and every route of the API in one place."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

import judged
from judged.web.answers import Json
from judged.web.desk import Desk
from judged.web.problems import add_problems
from judged.web.shared_files import router as shared_files

if TYPE_CHECKING:
    from judged.web.workspace import Workspace

_ABOUT = "Everything that the workbench shows, as JSON: each page has a twin here, made from the same data."


def make_app(workspace: Workspace) -> FastAPI:
    """Make the workbench over what is open.

    Parameters
    ----------
    workspace
        What is open.

    Examples
    --------
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
    )
    app.state.desk = Desk(workspace)
    add_problems(app)
    app.include_router(shared_files)
    app.mount("/static", StaticFiles(directory=str(files("judged.web").joinpath("static"))), name="static")
    return app
