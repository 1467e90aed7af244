"""What goes out when the workbench itself is at fault. The traceback goes to the log, and to nobody else."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judged.web.problems import answer

if TYPE_CHECKING:
    from fastapi.responses import Response

_LOG = logging.getLogger("judged.web")
_SAID = "something went wrong in judged itself; what you asked for is not to blame"
_FIX = "ask for something else; what the terminal of 'judged serve' says belongs in a report of the bug"


@dataclass(frozen=True)
class Faults:
    """Answer where an unexpected exception would end a request: an ASGI application around another."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception:
            if scope["type"] != "http":
                raise
            _LOG.exception("%s %s failed", scope["method"], ascii(scope["path"]))
            if not begun:
                await _answer(scope)(scope, receive, send)


def _answer(scope: Scope) -> Response:
    try:
        return answer(Request(scope), HTTPStatus.INTERNAL_SERVER_ERROR, _SAID, _FIX)
    except Exception:  # noqa: BLE001  the page itself may be what is broken
        _LOG.exception("nor could the page be made that says so")
        return PlainTextResponse(f"judged: {_SAID}. Fix: {_FIX}.\n", status_code=500)
