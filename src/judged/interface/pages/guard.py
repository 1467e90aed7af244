"""Middleware: allowed hosts and origins, tokens, limits of request size and time, and security headers.

Any page in the user's browser can send requests to a server on their machine. So the host of a request must be an
allowed name (which prevents DNS rebinding to 127.0.0.1), other sites may neither change nor embed anything, and a
server that is reachable from other machines requires a token.
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
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.interface.pages.problems import add_problem_handlers, catch_exceptions, refusal_response
from judged.interface.pages.shared_files import VERSION, add_files
from judged.interface.pages.workspace import JUDGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fastapi import APIRouter, FastAPI


_MIN_RATE = 1 << 20  # bytes per second, averaged over a request


class _RefusedError(Exception):
    """The request was refused before its body was complete."""


def limit_requests(app: ASGIApp, max_bytes: int, patience: float) -> ASGIApp:
    """Wrap an ASGI application: refuse requests with more than `max_bytes`, whatever their headers claim.

    `patience` is the maximum number of seconds without data. Requests slower than 1 MB/s are refused after it.
    """

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        received, is_incomplete, has_started = 0, True, False
        refusal: Response | None = None
        end = asyncio.get_running_loop().time() + patience + max_bytes / _MIN_RATE

        async def receive_message() -> Message:
            nonlocal received, is_incomplete, refusal
            timeout = min(patience, end - asyncio.get_running_loop().time())
            try:
                message = await asyncio.wait_for(receive(), timeout if is_incomplete else None)
            except TimeoutError:
                problem, fix = "the rest of the request was not received in time", "send the request again"
                refusal = refusal_response(scope, HTTPStatus.REQUEST_TIMEOUT, problem, fix)
                refusal.headers["Connection"] = "close"
                raise _RefusedError from None
            received, is_incomplete = received + len(message.get("body", b"")), bool(message.get("more_body"))
            if received > max_bytes:
                refusal = too_large_response(scope, max_bytes)
                raise _RefusedError
            return message

        async def send_message(message: Message) -> None:
            nonlocal has_started
            if refusal is not None and not has_started:
                return  # the response to half a request is useless
            has_started = True
            await send(message)

        try:
            with suppress(_RefusedError):
                await app(scope, receive_message, send_message)
        except asyncio.CancelledError:  # the server shuts down, and no caller handles this
            status = HTTPStatus.SERVICE_UNAVAILABLE
            refusal = refusal_response(scope, status, "the server is shutting down", "start 'judged serve' again")
        if refusal is not None and not has_started:
            await refusal(scope, receive, send)

    return middleware


def too_large_response(scope: Scope, max_bytes: int) -> Response:
    """Return the refusal of a request that is too large."""
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    problem = f"the request must have at most {max_bytes:,} bytes"
    return refusal_response(scope, status, problem, "send smaller files, or use 'judged serve QRELS RUN'")


def timeout_protocol(patience: float) -> Any:
    """Return a uvicorn protocol factory that closes connections idle for `patience` seconds."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    def build_protocol(**options: Any) -> Any:
        protocol: Any = AutoHTTPProtocol(**options)
        asyncio.get_running_loop().call_later(patience, _close_if_idle, ref(protocol), patience)
        return protocol

    return build_protocol


def _close_if_idle(connection: ref[Any], patience: float) -> None:
    """Close a connection that was idle at two successive checks. The weak reference does not keep it alive."""
    protocol = connection()
    if protocol is None or protocol.transport.is_closing():
        return
    cycle = protocol.cycle  # of the last request, if any
    if cycle is None or getattr(cycle, "was_idle", False):
        protocol.transport.close()
    else:
        cycle.was_idle = cycle.response_complete
        asyncio.get_running_loop().call_later(patience, _close_if_idle, connection, patience)


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names of the local machine."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
COOKIE = "judged_token"
JUDGE_COOKIE = "judged_judge"
"""Name of the cookie with a judge token, which only gives access to the judging page."""
NAME_COOKIE = "judged_name"
"""Name of the cookie with the name of a judge who needs no token."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser would send our own forms with "Origin: null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_FILES = ("/static/", "/shared/", f"{VERSION}/")
_JUDGING_PATHS = ("/judging", "/api/v1/judging")
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]/@\s]+))(?::\d{1,5})?", re.IGNORECASE)
_DEFAULT_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Rules:
    """Which requests the workbench accepts.

    >>> Rules(hosts=LOOPBACK).admits("localhost:8642"), Rules(hosts=LOOPBACK).admits("evil.example:8642")
    (True, False)
    """

    # allowed host names, without a port; None allows any, for example behind a proxy
    hosts: frozenset[str] | None = None
    # whether any IP address is allowed too; DNS rebinding needs a host name
    addresses: bool = False
    token: str | None = field(default=None, repr=False)  # required for every request
    # maps a judge token to the judge's name
    judge_of: Callable[[str], str | None] | None = field(default=None, repr=False)
    body: int = _DEFAULT_MAX_BYTES  # maximum bytes of a request
    bodies: Mapping[str, int] = field(default_factory=dict[str, int])  # the same for single paths
    patience: float = 20  # maximum seconds without data in a request, or between requests

    def admits(self, host: str) -> bool:
        """Return whether a Host header is allowed. Ports are ignored, because tunnels change them."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["v6"] or match["name"]).lower()
        return self.hosts is None or name in self.hosts or (self.addresses and _is_address(name))

    def max_bytes(self, path: str) -> int:
        """Return the maximum number of bytes of a request to a path."""
        return self.bodies.get(path, self.body)


def enforce_rules(app: ASGIApp, rules: Rules) -> ASGIApp:
    """Wrap an ASGI application: refuse requests that break the rules, and add security headers to all responses.

    HEAD is handled as GET without the body.
    """

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # not supported
            return
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path, is_head = scope["path"], scope["method"] == "HEAD"

        async def send_message(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(path, message)
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        handler = _refusal(scope, rules) or limit_requests(app, rules.max_bytes(path), rules.patience)
        await handler({**scope, "method": "GET"} if is_head else scope, receive, send_message)

    return middleware


def configure_app(app: FastAPI, routers: Iterable[APIRouter], rules: Rules) -> FastAPI:
    """Add middleware, problem handlers, routes, and static files to an application."""
    app.add_middleware(catch_exceptions)
    app.add_middleware(enforce_rules, rules=rules)
    add_problem_handlers(app)
    for router in routers:
        app.include_router(router)
    add_files(app)
    return app


def judge_of(request: Request, store: Any) -> str:
    """Return the judge who is logged in by token or name, or an empty string."""
    if JUDGE in request.scope:
        return request.scope[JUDGE]
    judge = store.judge_with_token(request.cookies.get(JUDGE_COOKIE, ""))
    return judge or unquote(request.cookies.get(NAME_COOKIE, "")).replace("\0", "")


def _refusal(scope: Scope, rules: Rules) -> Response | None:
    """Return the refusal of a request, or None if it is allowed."""
    headers = Headers(scope=scope)
    host = headers.getlist("host")
    if len(host) != 1 or not rules.admits(host[0]):
        fix = "use the address that 'judged serve' printed, or start it with --host"
        problem = "the host name in this address is not allowed"
        return refusal_response(scope, HTTPStatus.MISDIRECTED_REQUEST, problem, fix)
    if _is_cross_site(scope, headers, host[0]):
        problem, fix = "the request was sent by another site", "open the address that 'judged serve' printed"
        return refusal_response(scope, HTTPStatus.FORBIDDEN, problem, fix)
    if rules.token is not None and (refusal := _token_refusal(scope, headers, rules.token, rules)) is not None:
        return refusal
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        return refusal_response(scope, HTTPStatus.BAD_REQUEST, "the Content-Length header must be a number", "")
    max_bytes = rules.max_bytes(scope["path"])
    return too_large_response(scope, max_bytes) if int(length) > max_bytes else None


def _is_cross_site(scope: Scope, headers: Headers, host: str) -> bool:
    """Return whether a page of another site sent a request that only our own pages may send."""
    # Links from other sites are allowed. Clients other than browsers send no Origin header.
    site, is_safe = headers.get("sec-fetch-site"), scope["method"] in _SAFE_METHODS
    if is_safe:
        return site in {"cross-site", "same-site"} and headers.get("sec-fetch-mode") != "navigate"
    origin = headers.get("origin")
    own_origins = {f"http://{host}".lower(), f"https://{host}".lower()}
    return site not in {None, "same-origin"} or (origin is not None and origin.lower() not in own_origins)


def _token_refusal(scope: Scope, headers: Headers, token: str, rules: Rules) -> Response | None:
    """Return the response to a request without a valid cookie or header; a token in the URL becomes a cookie."""
    path, parameters = scope["path"], parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    url_token = dict(parameters).get("token")
    # The redirect removes the token from the address, so that it is not shared by copying the address.
    if scope["method"] in {"GET", "HEAD"} and url_token is not None and _is_same_token(url_token, token):
        remaining = urlencode([(name, value) for name, value in parameters if name != "token"])
        location = "/" + quote(path.lstrip("/\\"))  # two slashes would redirect to another host
        response = RedirectResponse(f"{location}?{remaining}" if remaining else location, HTTPStatus.SEE_OTHER)
        response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
        return response
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and _is_same_token(bearer.strip(), token):
        return None
    cookies = Request(scope).cookies
    if _is_same_token(cookies.get(COOKIE, ""), token):
        return None
    if rules.judge_of is not None and (
        path in _JUDGING_PATHS or path.startswith((*(f"{prefix}/" for prefix in _JUDGING_PATHS), *_FILES))
    ):
        for judge_token in filter(None, (dict(parameters).get("as"), cookies.get(JUDGE_COOKIE), bearer.strip())):
            if (judge := rules.judge_of(judge_token)) is not None:
                scope[JUDGE] = judge
                return None
    fix = "open the address with ?token=... that 'judged serve' printed, or send 'Authorization: Bearer ...'"
    response = refusal_response(scope, HTTPStatus.UNAUTHORIZED, "this workbench requires a token", fix)
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _is_same_token(candidate: str, token: str) -> bool:
    return compare_digest(candidate.encode(), token.encode())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _add_headers(path: str, message: Message) -> None:
    headers = MutableHeaders(scope=message)
    headers.update(_HEADERS)
    cache_control = "no-cache" if path.startswith(_FILES) else "no-store"
    if path.startswith(f"{VERSION}/") and message["status"] == HTTPStatus.OK:
        cache_control = "private, max-age=31536000, immutable"
    headers.setdefault("Cache-Control", cache_control)
