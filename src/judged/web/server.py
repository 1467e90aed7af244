"""Start and end of the workbench's server."""

from __future__ import annotations

import gc
from contextlib import suppress
from ctypes import CDLL
from functools import partial
from ipaddress import ip_address
from sys import setswitchinterval
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import uvicorn

from judged.interface.pages.home import open_data_overview
from judged.interface.pages.leaderboard import LeaderboardQuery, leaderboard
from judged.interface.pages.serving import Listener, uvicorn_config
from judged.interface.pages.workspace import Workspace, open_workspace, remove_unlocked_folders
from judged.results.charts import packed_library
from judged.scoring.measures.registry import REGISTRY
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable


_MAX_PRELOADED_ROWS = 20_000_000  # rows of all runs, which fit into the memory of any current machine
_FIRST_DELAY, _SECOND_DELAY = 1, 3  # seconds, so that preloading does not slow down the first request
_MALLOC_OPTIONS = ((-8, 1), (-3, 1 << 22))  # malloc.h: M_ARENA_MAX (one heap), M_MMAP_THRESHOLD (large arrays)
# Seconds. A fast request waits this long for each of some hundred switches to threads of slow requests.
_SWITCH_INTERVAL = 0.0001


def prepare() -> None:
    """Configure memory, and load chart libraries and code in threads while files are being read."""
    pa.set_memory_pool(pa.system_memory_pool())  # it returns memory to the system; servers run for hours
    # Only glibc has mallopt. By default, each thread would keep the memory that it freed.
    _ignore_errors(lambda: [CDLL(None).mallopt(*option) for option in _MALLOC_OPTIONS])
    for task in (packed_library, _warm_up_code):
        Thread(target=_ignore_errors, args=(task,), daemon=True).start()


def _warm_up_code() -> None:
    """Render the first pages for tiny data, which imports their modules."""
    first = {topic: ["d"] for topic in "abcdefgh"}
    other = {topic: [*"stuvwxyz"[:i], "d"] for i, topic in enumerate(first)}
    workspace = open_workspace({topic: {"d": 1} for topic in first}, {"first": first, "other": other})
    open_data_overview(workspace)
    leaderboard(workspace, LeaderboardQuery.model_validate({"test": "t"})).rendered_figures()
    len(REGISTRY)  # imports all measures


def _ignore_errors(task: Callable[[], Any]) -> None:
    # A request that needs the result of a failed task runs it again, and reports the error.
    with suppress(Exception):
        task()


def serve(workspace: Workspace, listener: Listener, *, ready: Callable[[], Any] = lambda: None) -> None:
    """Serve requests until a signal ends the process; `ready` is called in a thread at the start."""
    remove_unlocked_folders()
    setswitchinterval(_SWITCH_INTERVAL)
    # Without a token, other users of this machine could read files and run plans with the rights of this user.
    is_local = ip_address(listener.socket.getsockname()[0]).is_loopback
    app = make_app(workspace, listener.rules, opens_paths=is_local and listener.token is not None)
    Thread(target=ready, daemon=True).start()
    Thread(target=_preload, args=(workspace,), daemon=True).start()
    try:
        uvicorn.Server(uvicorn_config(app, listener.rules)).run(sockets=[listener.socket])
    finally:
        app.state.holder.close()


def _preload(workspace: Workspace) -> None:
    """Compute the first pages, then data of other pages, such as rows of topics."""
    sleep(_FIRST_DELAY)
    _ignore_errors(lambda: open_data_overview(workspace))
    _ignore_errors(lambda: leaderboard(workspace, LeaderboardQuery.model_validate({})).rendered_figures())
    sleep(_SECOND_DELAY)
    rows = sum(int(judged.returned.sum()) for judged in workspace.lists.values())
    for name in workspace.run_names if rows <= _MAX_PRELOADED_ROWS else ():
        _ignore_errors(partial(workspace.rows, name))
    gc.collect()
    gc.freeze()  # loaded data lives as long as the server; each garbage collection of it would take about 20 ms
