"""Open the port of the workbench, and configure uvicorn."""

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
from judged.interface.pages.guard import LOOPBACK, Rules, timeout_protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI

HOST, PORT = "127.0.0.1", 8642
"""Default address of the workbench."""

_TRIES = 50
_TOKEN = re.compile(r"[A-Za-z0-9_~.-]{8,200}")


@dataclass(frozen=True)
class Listener:
    """Listening socket of a workbench."""

    socket: socket.socket  # already listening: clients wait until the server runs
    host: str  # as passed to `open_listener`
    token: str | None  # required for every request

    @property
    def port(self) -> int:
        """Port number."""
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """URL for the browser."""
        bound = ip_address(self.socket.getsockname()[0])
        name = socket.gethostname() if bound.is_unspecified else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/{f'?token={self.token}' if self.token else ''}"

    @property
    def rules(self) -> Rules:
        """Rules that allow the names and addresses of this listener."""
        bound = ip_address(self.socket.getsockname()[0])
        hosts = {self.host.lower(), str(bound)}
        if bound.is_unspecified:
            machine = socket.gethostname().lower()
            return Rules(LOOPBACK | {machine, f"{machine}.local"}, addresses=True, token=self.token)
        return Rules(frozenset(hosts) | LOOPBACK if bound.is_loopback else frozenset(hosts), token=self.token)


def open_listener(host: str = HOST, port: int | None = None, token: str | None = None) -> Listener:
    """Listen on a port. Create a token if other machines can reach it and none was passed."""
    if token is not None and not _TOKEN.fullmatch(token):
        raise InputError("the token is invalid", fix="use 8 to 200 letters, digits, or any of - _ . ~")
    if not host:
        raise InputError("`host` must not be empty", fix=f"omit --host to use {HOST}, or pass an address")
    listening_socket = _listen(host, (port,) if port is not None else range(PORT, PORT + _TRIES))
    is_public = not ip_address(listening_socket.getsockname()[0]).is_loopback
    return Listener(listening_socket, host, secrets.token_urlsafe(24) if is_public and token is None else token)


def _listen(host: str, ports: Sequence[int]) -> socket.socket:
    """Listen on the first free port."""
    for port in ports:
        try:
            family, _, _, _, (name, *_) = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            server_socket = socket.create_server((str(name), port), family=family, backlog=128)
        except (OSError, UnicodeError, OverflowError) as error:
            if getattr(error, "errno", None) != errno.EADDRINUSE:
                reason = getattr(error, "strerror", None) or str(error)
                fix = "set --host to an address of this machine, and --port to a port that you may use"
                raise InputError(f"cannot listen on {host!r}, port {port} ({reason})", fix=fix) from None
        else:
            # Without it, Nagle's algorithm delays the last packet of a response by up to 40 ms.
            server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return server_socket
    if len(ports) == 1:
        raise InputError(f"port {ports[0]} is in use", fix="use --port with another port, or omit --port")
    raise InputError(f"the ports {ports[0]} to {ports[-1]} are in use", fix="use --port with another port")


def uvicorn_config(app: FastAPI, rules: Rules) -> uvicorn.Config:
    """Return the uvicorn configuration of the application."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=timeout_protocol(rules.patience),
        timeout_graceful_shutdown=2,
    )
