"""Error responses: JSON for programs, a page for people, and never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.errors import JudgedError, MissingExtraError
from judged.interface.pages.answers import Json, page

API = "/api/"
_INVALID_REQUEST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class Problem(BaseModel):
    """An error and its fix."""

    problem: str = Field(description="The problem, as a sentence.")
    fix: str = Field("", description="How to fix the problem.")


Text = Annotated[str, AfterValidator(lambda text: text.replace("\0", ""))]
"""Text without NUL characters, which some databases cannot store."""


LONGEST = 8192
"""Maximum number of characters of an ID or the name of a run."""


def text_field(description: str, *, limit: int = LONGEST, default: Any = "") -> Any:
    """Return a parameter that is a text, or a list of texts, with at most `limit` characters or items."""
    return Field(default, max_length=limit, description=description)


class Parameters(BaseModel):
    """Parameters of an address. Unknown ones are an error, like unknown options of a command."""

    model_config = ConfigDict(extra="forbid")


class UnknownError(JudgedError):
    """No object has the name in the address."""


_STATUS: dict[type[JudgedError], HTTPStatus] = {
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
    UnknownError: HTTPStatus.NOT_FOUND,
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {
        "model": Problem,
        "description": "The request does not fit the open files. Example: the run, measure, or topic does not exist.",
    },
    413: {"model": Problem, "description": "The request is too large."},
    422: {"model": Problem, "description": "A parameter is missing, or has an invalid value."},
}
"""Error responses in the API description of every route."""


def add_problem_handlers(app: FastAPI) -> None:
    """Register exception handlers that respond with problems."""

    @app.exception_handler(JudgedError)
    def input_error(request: Request, error: JudgedError) -> Response:  # pyright: ignore[reportUnusedFunction]
        status = _STATUS.get(type(error), HTTPStatus.BAD_REQUEST)
        return problem_response(request, status, *error.parts, error.field)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:  # pyright: ignore[reportUnusedFunction]
        problem = "; ".join(_describe_invalid(request, detail) for detail in error.errors()[:5])
        field = str(error.errors()[0]["loc"][-1])
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return problem_response(request, status, problem, "correct the parameter", field)

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:  # pyright: ignore[reportUnusedFunction]
        is_unknown_path = error.status_code == HTTPStatus.NOT_FOUND and error.detail == "Not Found"
        problem = f"there is no page {request.url.path}" if is_unknown_path else str(error.detail)
        return problem_response(request, HTTPStatus(error.status_code), problem, "")


def problem_response(request: Request, status: HTTPStatus, problem: str, fix: str, field: str = "") -> Response:
    """Return an error as JSON for the API, else as a page with the submitted parameters."""
    if request.url.path.startswith(API):
        return Json({"problem": problem, "fix": fix}, status_code=status)
    title = "Invalid request" if status in _INVALID_REQUEST else status.phrase
    return page(request, "problem.html", status=status, title=title, problem=problem, fix=fix, field=field)


def refusal_response(scope: Scope, status: HTTPStatus, problem: str, fix: str) -> Response:
    """Return an error without rendering a page, because a page shows names of open data."""
    if scope["path"].startswith(API):
        return Json({"problem": problem, "fix": fix}, status_code=status)
    text = f"{problem}. Fix: {fix}." if fix else f"{problem}."
    return PlainTextResponse(f"judged: {text}\n", status_code=status)


def _describe_invalid(request: Request, error: Any) -> str:
    parameter = ".".join(str(part) for part in error["loc"][1:]) or "the request"
    if error["type"] != "extra_forbidden":
        return f"{parameter}: {error['msg']}"
    (query,) = request.scope["route"].dependant.query_params
    model = query.field_info.annotation
    names = [field.alias or name for name, field in model.model_fields.items()]
    return f"there is no parameter '{parameter}'. Parameters are {', '.join(names)}"


_LOG = logging.getLogger("judged.web")
_FAULT = "an internal error occurred"
_FIX = "report the bug, with the output of 'judged serve' in the terminal"


def catch_exceptions(app: ASGIApp) -> ASGIApp:
    """Wrap an ASGI application: respond with an error if it raises an unexpected exception."""

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def send_message(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await app(scope, receive, send_message)
        except Exception:
            if scope["type"] != "http":
                raise
            _LOG.exception("%s %s failed", scope["method"], ascii(scope["path"]))
            if not has_started:
                await _fault_response(scope)(scope, receive, send)

    return middleware


def _fault_response(scope: Scope) -> Response:
    try:
        return problem_response(Request(scope), HTTPStatus.INTERNAL_SERVER_ERROR, _FAULT, _FIX)
    except Exception:  # noqa: BLE001  the page itself may be what is broken
        _LOG.exception("the error page cannot be rendered")
        return PlainTextResponse(f"judged: {_FAULT}. Fix: {_FIX}.\n", status_code=500)
