"""Where the workbench listens, whom it answers there, and how it begins and ends."""

from __future__ import annotations

import errno
import gc
import re
import secrets
import socket
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from sys import setswitchinterval
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import uvicorn

from judged.errors import InputError
from judged.results.charts import packed_library
from judged.scoring.measures.registry import REGISTRY
from judged.web.app import make_app
from judged.web.guard import LOOPBACK, Rules, watched
from judged.web.home import what_is_open
from judged.web.leaderboard import AskedLeaderboard, leaderboard
from judged.web.workspace import open_workspace, remove_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import FastAPI

    from judged.web.workspace import Workspace

HOST, PORT = "127.0.0.1", 8642
"""Where the workbench listens if nobody says otherwise."""

_TRIES = 50
_MAY_WARM = 20_000_000  # rows of all runs: what fits into memory without a thought
_ALONE, _BEFORE_THE_REST = 1, 3  # seconds in which a first page is not held up by what is made ahead for later ones
_HEAP = ((-8, 1), (-3, 1 << 22))  # M_ARENA_MAX, M_MMAP_THRESHOLD in malloc.h: one heap, large arrays beside it
_TURN = 0.0001  # seconds: a quick page gives way to slow ones some hundred times, and waits so long each time
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


def prepare() -> None:
    """Make what draws charts while files are still being read; what is not installed is said when it is asked for."""
    pa.set_memory_pool(pa.system_memory_pool())  # which gives memory back: a server is there for hours
    _quietly(lambda: [CDLL(None).mallopt(*one) for one in _HEAP])  # glibc's own way: else threads keep what they freed
    for make in (packed_library, _rehearse):
        Thread(target=_quietly, args=(make,), daemon=True).start()


def _rehearse() -> None:
    """Make first pages of next to nothing, so that those of the files do not wait for what they are made with."""
    first = {topic: ["d"] for topic in "abcdefgh"}
    other = {topic: [*"stuvwxyz"[:at], "d"] for at, topic in enumerate(first)}
    workspace = open_workspace({topic: {"d": 1} for topic in first}, {"first": first, "other": other})
    what_is_open(workspace)
    leaderboard(workspace, AskedLeaderboard.model_validate({"test": "t"})).drawn()
    len(REGISTRY)  # it imports all measures


def _quietly(make: Callable[[], Any]) -> None:
    with suppress(Exception):
        make()


def serve(workspace: Workspace, where: Place, *, ready: Callable[[], Any] = lambda: None) -> None:
    """Answer until the process is told to end."""
    remove_left()
    setswitchinterval(_TURN)
    app = make_app(workspace, where.rules)
    Thread(target=ready, daemon=True).start()
    Thread(target=_warm, args=(workspace,), daemon=True).start()
    try:
        uvicorn.Server(configured(app, where.rules)).run(sockets=[where.socket])
    finally:
        app.state.desk.close()


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


def _warm(workspace: Workspace) -> None:
    """Make the first pages, then what others need, such as rows of topics; what cannot be read is said when asked."""
    sleep(_ALONE)
    _quietly(lambda: what_is_open(workspace))
    _quietly(lambda: leaderboard(workspace, AskedLeaderboard.model_validate({})).drawn())
    sleep(_BEFORE_THE_REST)
    rows = sum(int(judged.returned.sum()) for judged in workspace.lists.values())
    for name in workspace.run_names if rows <= _MAY_WARM else ():
        _quietly(partial(workspace.rows, name))
    gc.collect()
    gc.freeze()  # what is there now stays: looking for garbage in it would hold up answers for some 20 ms
