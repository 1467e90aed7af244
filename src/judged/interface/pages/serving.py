"""Where pages are served, and whom they answer there."""

from __future__ import annotations

import errno
import re
import secrets
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

import uvicorn

from judged.errors import InputError
from judged.interface.pages.guard import LOOPBACK, Rules, watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI

HOST, PORT = "127.0.0.1", 8642
"""Where the workbench listens if nobody says otherwise."""

_TRIES = 50
_TOKEN = re.compile(r"[A-Za-z0-9_~.-]{8,200}")


@dataclass(frozen=True)
class Place:
    """Where a workbench listens."""

    socket: socket.socket  # bound, and listening already: who asks now is answered as soon as the server runs
    host: str  # as it was given
    token: str | None  # what everybody must show

    @property
    def port(self) -> int:
        """The port."""
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """What is typed into a browser."""
        bound = ip_address(self.socket.getsockname()[0])
        name = socket.gethostname() if bound.is_unspecified else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/{f'?token={self.token}' if self.token else ''}"

    @property
    def rules(self) -> Rules:
        """Whom it answers: those who call it by a name that is ours."""
        bound = ip_address(self.socket.getsockname()[0])
        ours = {self.host.lower(), str(bound)}
        if bound.is_unspecified:
            machine = socket.gethostname().lower()
            return Rules(LOOPBACK | {machine, f"{machine}.local"}, addresses=True, token=self.token)
        return Rules(frozenset(ours) | LOOPBACK if bound.is_loopback else frozenset(ours), token=self.token)


def place(host: str = HOST, port: int | None = None, token: str | None = None) -> Place:
    """Take a port."""
    if token is not None and not _TOKEN.fullmatch(token):
        raise InputError("this token cannot be used", fix="use 8 to 200 letters, digits, or any of - _ . ~")
    if not host:
        raise InputError("no host is given", fix=f"leave --host out, which means {HOST}, or name an address")
    listening = _listening(host, (port,) if port is not None else range(PORT, PORT + _TRIES))
    beyond = not ip_address(listening.getsockname()[0]).is_loopback
    return Place(listening, host, secrets.token_urlsafe(24) if beyond and token is None else token)


def _listening(host: str, ports: Sequence[int]) -> socket.socket:
    """Listen on the first of some ports that no other program has."""
    for port in ports:
        try:
            family, _, _, _, (name, *_) = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            made = socket.create_server((str(name), port), family=family, backlog=128)
        except (OSError, UnicodeError, OverflowError) as error:
            if getattr(error, "errno", None) != errno.EADDRINUSE:
                said = getattr(error, "strerror", None) or str(error)
                fix = "give --host an address of this machine, and --port one that you may use"
                raise InputError(f"nobody can listen on {host!r}, port {port} ({said})", fix=fix) from None
        else:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else the last part of an answer may wait 40 ms
            return made
    if len(ports) == 1:
        raise InputError(f"port {ports[0]} is taken", fix="name another with --port, or leave it out")
    raise InputError(f"no port from {ports[0]} to {ports[-1]} is free", fix="name one with --port")


def configured(app: FastAPI, rules: Rules) -> uvicorn.Config:
    """Say how uvicorn is to serve the application."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=watched(rules.patience),
        timeout_graceful_shutdown=2,
    )
