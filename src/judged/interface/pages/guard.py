"""What stands before every request: who may ask, how much they may send, and the headers of every answer.

A server on the reader's own machine can be reached by any page that their browser opens. So the name in the address
must be ours (a foreign name that was bound to 127.0.0.1 is refused), other sites may not change anything or embed
anything, and whoever listens beyond the machine itself needs a token.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from secrets import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode
from weakref import ref

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.interface.pages.problems import add_problems, faultless, refused
from judged.interface.pages.shared_files import VERSION, add_files
from judged.interface.pages.workspace import JUDGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fastapi import APIRouter, FastAPI
    from starlette.responses import Response


_SLOWEST = 1 << 20  # bytes a second, over the whole of a request


class _RefusedError(Exception):
    """The rest of a request is not waited for."""


def bounded(app: ASGIApp, most: int, patience: float) -> ASGIApp:
    """Take no more bytes of a request than `most`, whatever it says about its length, and wait no longer.

    `patience` is how many seconds nothing may come. It is an ASGI application around another.
    """

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        taken, more, begun = 0, True, False
        refusal: Response | None = None
        end = asyncio.get_running_loop().time() + patience + most / _SLOWEST

        async def receiving() -> Message:
            nonlocal taken, more, refusal
            left = min(patience, end - asyncio.get_running_loop().time())
            try:
                message = await asyncio.wait_for(receive(), left if more else None)
            except TimeoutError:
                status = HTTPStatus.REQUEST_TIMEOUT
                refusal = refused(scope, status, "the rest of the request did not come", "send it again")
                refusal.headers["Connection"] = "close"
                raise _RefusedError from None
            taken, more = taken + len(message.get("body", b"")), bool(message.get("more_body"))
            if taken > most:
                refusal = too_much(scope, most)
                raise _RefusedError
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            if refusal is not None and not begun:
                return  # what was made of half a request is not worth sending
            begun = True
            await send(message)

        try:
            with suppress(_RefusedError):
                await app(scope, receiving, sending)
        except asyncio.CancelledError:  # the server ends, and nobody above wants to hear of it
            refusal = refused(scope, HTTPStatus.SERVICE_UNAVAILABLE, "the workbench is ending", "start it again")
        if refusal is not None and not begun:
            await refusal(scope, receive, send)

    return answering


def too_much(scope: Scope, most: int) -> Response:
    """Refuse a request that is too long."""
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return refused(scope, status, f"more than {most:,} bytes were sent", "send less, or open the files by name")


def watched(patience: float) -> Any:
    """Make uvicorn's protocol close a connection on which no request begins for a while, or only half of one."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    def made(**given: Any) -> Any:
        protocol: Any = AutoHTTPProtocol(**given)
        asyncio.get_running_loop().call_later(patience, _watch, ref(protocol), patience)
        return protocol

    return made


def _watch(connection: ref[Any], patience: float) -> None:
    """Close a connection that is idle since it was looked at; one that is gone already is not held."""
    protocol = connection()
    if protocol is None or protocol.transport.is_closing():
        return
    last = protocol.cycle  # its last request, if there was one
    if last is None or getattr(last, "was_idle", False):
        protocol.transport.close()
    else:
        last.was_idle = last.response_complete
        asyncio.get_running_loop().call_later(patience, _watch, connection, patience)


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine for itself."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
COOKIE = "judged_token"
JUDGE_COOKIE = "judged_judge"
"""Holds the token of a judge, which opens the judging page and nothing else."""
NAME_COOKIE = "judged_name"
"""Holds the name that somebody chose who needs no token."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser would send our own forms with "Origin: null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FILES = ("/static/", "/shared/", f"{VERSION}/")
_JUDGING = ("/judging", "/api/v1/judging")
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]/@\s]+))(?::\d{1,5})?", re.IGNORECASE)
_LARGE = 1 << 20


@dataclass(frozen=True)
class Rules:
    """Whom the workbench answers.

    >>> Rules(hosts=LOOPBACK).admits("localhost:8642"), Rules(hosts=LOOPBACK).admits("evil.example:8642")
    (True, False)
    """

    # the names by which it may be addressed, without a port; None for any, where something else looks after that
    hosts: frozenset[str] | None = None
    # whether any IP address will do as well: a page of somebody else cannot have one as its name
    addresses: bool = False
    token: str | None = field(default=None, repr=False)  # what everybody must show who asks for anything
    judge_of: Callable[[str], str | None] | None = field(
        default=None, repr=False
    )  # whose token it is, for judging alone
    body: int = _LARGE  # the most bytes of a request
    bodies: Mapping[str, int] = field(default_factory=dict[str, int])  # the same for single paths
    patience: float = 20  # the most seconds in which nothing comes of a request that has begun, or none begins

    def admits(self, host: str) -> bool:
        """Tell whether the workbench may be addressed so; ports do not matter, as a tunnel has its own."""
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = (found["v6"] or found["name"]).lower()
        return self.hosts is None or name in self.hosts or (self.addresses and _is_address(name))

    def most(self, path: str) -> int:
        """Give the most bytes of a request to a path."""
        return self.bodies.get(path, self.body)


def guarded(app: ASGIApp, rules: Rules) -> ASGIApp:
    """Refuse what the rules do not allow, and put the headers on every answer: an ASGI application around another.

    HEAD is answered as GET, without the body.
    """

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # there are none here
            return
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path, head = scope["path"], scope["method"] == "HEAD"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(path, message)
            await send({**message, "body": b""} if head and message["type"] == "http.response.body" else message)

        answer = _refusal(scope, rules) or bounded(app, rules.most(path), rules.patience)
        await answer({**scope, "method": "GET"} if head else scope, receive, sending)

    return answering


def framed(app: FastAPI, routers: Iterable[APIRouter], rules: Rules) -> FastAPI:
    """Give an application its routes and the files of pages; problems are answered, and nobody gets past the rules."""
    app.add_middleware(faultless)
    app.add_middleware(guarded, rules=rules)
    add_problems(app)
    for router in routers:
        app.include_router(router)
    add_files(app)
    return app


def judge_of(request: Request, store: Any) -> str:
    """Tell who is logged in: by their own token, or by a name where none is needed; empty if nobody is."""
    if JUDGE in request.scope:
        return request.scope[JUDGE]
    own = store.judge_of(request.cookies.get(JUDGE_COOKIE, ""))
    return own or unquote(request.cookies.get(NAME_COOKIE, "")).replace("\0", "")


def _refusal(scope: Scope, rules: Rules) -> Response | None:
    """Give the answer to a request that may not be answered; None for one that may."""
    headers = Headers(scope=scope)
    host = headers.getlist("host")
    if len(host) != 1 or not rules.admits(host[0]):
        return refused(
            scope,
            HTTPStatus.MISDIRECTED_REQUEST,
            "the workbench does not go by the name in this address",
            "use the address that 'judged serve' printed, or start it with --host",
        )
    if _from_elsewhere(scope, headers, host[0]):
        return refused(
            scope,
            HTTPStatus.FORBIDDEN,
            "this request was made by another site",
            "open the address of the workbench itself",
        )
    if rules.token is not None and (asked := _without_token(scope, headers, rules.token, rules)) is not None:
        return asked
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        return refused(scope, HTTPStatus.BAD_REQUEST, "the length of the request is not a number", "")
    return too_much(scope, rules.most(scope["path"])) if int(length) > rules.most(scope["path"]) else None


def _from_elsewhere(scope: Scope, headers: Headers, host: str) -> bool:
    """Tell whether a page of another site made a request that only our own pages may make."""
    # A link may lead here from anywhere. Programs that are not browsers name no origin.
    site, safe = headers.get("sec-fetch-site"), scope["method"] in _SAFE
    if safe:
        return site in {"cross-site", "same-site"} and headers.get("sec-fetch-mode") != "navigate"
    origin = headers.get("origin")
    ours = {f"http://{host}".lower(), f"https://{host}".lower()}
    return site not in {None, "same-origin"} or (origin is not None and origin.lower() not in ours)


def _without_token(scope: Scope, headers: Headers, token: str, rules: Rules) -> Response | None:
    """Give what is answered to a request that shows no token, or shows it in its address."""
    path, query = scope["path"], parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    shown = dict(query).get("token")
    if scope["method"] in {"GET", "HEAD"} and shown is not None and _same(shown, token):
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        place = "/" + quote(path.lstrip("/\\"))  # two slashes would lead to another host
        answer = RedirectResponse(f"{place}?{rest}" if rest else place, HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
        return answer
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and _same(bearer.strip(), token):
        return None
    cookies = Request(scope).cookies
    if _same(cookies.get(COOKIE, ""), token):
        return None
    if rules.judge_of is not None and (
        path in _JUDGING or path.startswith((*(f"{one}/" for one in _JUDGING), *_FILES))
    ):
        for own in filter(None, (dict(query).get("as"), cookies.get(JUDGE_COOKIE), bearer.strip())):
            if (judge := rules.judge_of(own)) is not None:
                scope[JUDGE] = judge
                return None
    answer = refused(
        scope,
        HTTPStatus.UNAUTHORIZED,
        "this workbench wants its token",
        "open the address with ?token=... that 'judged serve' printed, or send 'Authorization: Bearer ...'",
    )
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def _same(shown: str, token: str) -> bool:
    return compare_digest(shown.encode(), token.encode())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _add_headers(path: str, message: Message) -> None:
    headers = MutableHeaders(scope=message)
    headers.update(_HEADERS)
    kept = "no-cache" if path.startswith(_FILES) else "no-store"
    if path.startswith(f"{VERSION}/") and message["status"] == HTTPStatus.OK:
        kept = "private, max-age=31536000, immutable"
    headers.setdefault("Cache-Control", kept)
