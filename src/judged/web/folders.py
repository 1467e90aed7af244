"""Folders of files that were sent, each locked by its process: what a killed one left is removed at the next start."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a folder is only removed by the process that made it
    fcntl = None

_PREFIX = "judged-sent-"


def new_folder() -> tuple[Path, int | None]:
    """Make a folder that nobody else may look into, and give it with the descriptor that holds its lock."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    return folder, _locked(folder)


def remove_folder(folder: Path, lock: int | None) -> None:
    """Remove a folder with all that is in it, then give up its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def remove_left() -> None:
    """Remove the folders that nobody locks any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if fcntl is not None else ():
        with suppress(OSError):  # it is locked, another user's, or gone
            remove_folder(folder, _locked(folder))


def _locked(folder: Path) -> int | None:
    """Lock a folder as long as this process lives."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
