"""What goes out when something is wrong: for programs as JSON, for people as a page. Never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.errors import JudgedError, MissingExtraError
from judged.interface.pages.answers import Json, page

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.responses import Response

API = "/api/"
_CANNOT = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class Problem(BaseModel):
    """What is wrong, and what to do about it."""

    problem: str = Field(description="What is wrong, as a sentence.")
    fix: str = Field("", description="What to do about it.")


Text = Annotated[str, AfterValidator(lambda text: text.replace("\0", ""))]
"""Text that every database keeps."""


class Parameters(BaseModel):
    """The parameters of an address: one that is not known is refused, as an unknown option is."""

    model_config = ConfigDict(extra="forbid")


class UnknownError(JudgedError):
    """There is nothing of the name that an address has."""


_STATUS: dict[type[JudgedError], HTTPStatus] = {
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
    UnknownError: HTTPStatus.NOT_FOUND,
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "It makes no sense for what is open: no such run, measure or topic."},
    413: {"model": Problem, "description": "More was sent than may be."},
    422: {"model": Problem, "description": "A parameter is missing, or not of its kind."},
}
"""For the description of every route of the API."""


def add_problems(app: FastAPI) -> None:
    """Make an application answer with problems."""

    @app.exception_handler(JudgedError)
    def refused(request: Request, error: JudgedError) -> Response:  # pyright: ignore[reportUnusedFunction]
        status = _STATUS.get(type(error), HTTPStatus.BAD_REQUEST)
        return answer(request, status, *error.parts, error.field)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:  # pyright: ignore[reportUnusedFunction]
        said = "; ".join(_said(request, one) for one in error.errors()[:5])
        field = str(error.errors()[0]["loc"][-1])
        return answer(request, HTTPStatus.UNPROCESSABLE_ENTITY, said, "change it here, or choose again", field)

    @app.exception_handler(HTTPException)
    def refused_by_route(request: Request, error: HTTPException) -> Response:  # pyright: ignore[reportUnusedFunction]
        there_is_none = error.status_code == HTTPStatus.NOT_FOUND and error.detail == "Not Found"
        said = f"there is no page {request.url.path}" if there_is_none else str(error.detail)
        return answer(request, HTTPStatus(error.status_code), said, "")


def answer(request: Request, status: HTTPStatus, problem: str, fix: str, field: str = "") -> Response:
    """Tell what is wrong, in the form in which the answer was expected; of a page with all that was typed."""
    if request.url.path.startswith(API):
        return Json({"problem": problem, "fix": fix}, status_code=status)
    return page(
        request,
        "problem.html",
        status=status,
        title="This cannot be shown" if status in _CANNOT else status.phrase,
        problem=problem,
        fix=fix,
        field=field,
    )


def refused(scope: Scope, status: HTTPStatus, problem: str, fix: str) -> Response:
    """Tell why, without a page: whoever is refused learns nothing of what is open."""
    if scope["path"].startswith(API):
        return Json({"problem": problem, "fix": fix}, status_code=status)
    text = f"{problem}. Fix: {fix}." if fix else f"{problem}."
    return PlainTextResponse(f"judged: {text}\n", status_code=status)


def _said(request: Request, error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"][1:]) or "the request"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg']}"
    (known,) = (given.field_info.annotation for given in request.scope["route"].dependant.query_params)
    names = [field.alias or name for name, field in known.model_fields.items()]
    return f"no parameter '{place}'; there are: {', '.join(names)}"


_LOG = logging.getLogger("judged.web")
_SAID = "something went wrong in judged itself; what you asked for is not to blame"
_FIX = "ask for something else; what the terminal of 'judged serve' says belongs in a report of the bug"


def faultless(app: ASGIApp) -> ASGIApp:
    """Answer where an unexpected exception would end a request: an ASGI application around another."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await app(scope, receive, sending)
        except Exception:
            if scope["type"] != "http":
                raise
            _LOG.exception("%s %s failed", scope["method"], ascii(scope["path"]))
            if not begun:
                await _answer(scope)(scope, receive, send)

    return answering


def _answer(scope: Scope) -> Response:
    try:
        return answer(Request(scope), HTTPStatus.INTERNAL_SERVER_ERROR, _SAID, _FIX)
    except Exception:  # noqa: BLE001  the page itself may be what is broken
        _LOG.exception("nor could the page be made that says so")
        return PlainTextResponse(f"judged: {_SAID}. Fix: {_FIX}.\n", status_code=500)
