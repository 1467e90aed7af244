"""How the workbench starts and ends."""

from __future__ import annotations

import gc
from contextlib import suppress
from ctypes import CDLL
from functools import partial
from sys import setswitchinterval
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import uvicorn

from judged.interface.pages.home import open_data_overview
from judged.interface.pages.leaderboard import LeaderboardQuery, leaderboard
from judged.interface.pages.serving import uvicorn_config
from judged.interface.pages.workspace import open_workspace, remove_unlocked_folders
from judged.results.charts import packed_library
from judged.scoring.measures.registry import REGISTRY
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.pages.serving import Listener
    from judged.interface.pages.workspace import Workspace

_MAY_WARM = 20_000_000  # rows of all runs: what fits into memory without a thought
_ALONE, _BEFORE_THE_REST = 1, 3  # seconds in which a first page is not held up by what is made ahead for later ones
_HEAP = ((-8, 1), (-3, 1 << 22))  # M_ARENA_MAX, M_MMAP_THRESHOLD in malloc.h: one heap, large arrays beside it
_TURN = 0.0001  # seconds: a quick page gives way to slow ones some hundred times, and waits so long each time


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
    open_data_overview(workspace)
    leaderboard(workspace, LeaderboardQuery.model_validate({"test": "t"})).rendered_figures()
    len(REGISTRY)  # it imports all measures


def _quietly(make: Callable[[], Any]) -> None:
    with suppress(Exception):
        make()


def serve(workspace: Workspace, where: Listener, *, ready: Callable[[], Any] = lambda: None) -> None:
    """Answer until the process is told to end."""
    remove_unlocked_folders()
    setswitchinterval(_TURN)
    app = make_app(workspace, where.rules)
    Thread(target=ready, daemon=True).start()
    Thread(target=_warm, args=(workspace,), daemon=True).start()
    try:
        uvicorn.Server(uvicorn_config(app, where.rules)).run(sockets=[where.socket])
    finally:
        app.state.holder.close()


def _warm(workspace: Workspace) -> None:
    """Make the first pages, then what others need, such as rows of topics; what cannot be read is said when asked."""
    sleep(_ALONE)
    _quietly(lambda: open_data_overview(workspace))
    _quietly(lambda: leaderboard(workspace, LeaderboardQuery.model_validate({})).rendered_figures())
    sleep(_BEFORE_THE_REST)
    rows = sum(int(judged.returned.sum()) for judged in workspace.lists.values())
    for name in workspace.run_names if rows <= _MAY_WARM else ():
        _quietly(partial(workspace.rows, name))
    gc.collect()
    gc.freeze()  # what is there now stays: looking for garbage in it would hold up answers for some 20 ms
