"""How much a request may send, and how long it may take; and a connection on which none comes is closed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from weakref import ref

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.web.problems import refused

if TYPE_CHECKING:
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
