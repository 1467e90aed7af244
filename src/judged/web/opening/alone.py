"""One opening of files at a time: whoever comes meanwhile is told so at once, before anything is read or waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from judged.web.problems import answer


@dataclass
class OneAtATime:
    """Refuse to open files while others are opened: an ASGI application around another."""

    app: ASGIApp  # what answers
    paths: frozenset[str]  # where files are opened
    _busy: bool = field(default=False, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in self.paths:
            await self.app(scope, receive, send)
        elif self._busy:
            refusal = answer(
                Request(scope), HTTPStatus.CONFLICT, "other files are being opened", "wait until they are open"
            )
            await refusal(scope, receive, send)
        else:
            self._busy = True
            try:
                await self.app(scope, receive, send)
            finally:
                self._busy = False
