"""What the running workbench has open, and how a request gets at it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from judged.web.workspace import Workspace

try:
    import fcntl
except ImportError:  # Windows, where a folder is only removed by the process that made it
    fcntl = None

JUDGE = "judged.judge"
"""Where a request says which judge made it, who was let in by nothing but a token of their own."""
_PREFIX = "judged-sent-"


class Folder:
    """A folder that nobody else may look into; it is locked until it goes: with this, or by `remove`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.remove = weakref.finalize(self, _removed, self.path, _locked(self.path))


def remove_left() -> None:
    """Remove the folders that nobody locks any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if fcntl is not None else ():
        with suppress(OSError):  # it is locked, another user's, or gone
            _removed(folder, _locked(folder))


def _removed(folder: Path, lock: int | None) -> None:
    """Remove a folder with all that is in it, then give up its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


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


@dataclass(eq=False)
class Desk:
    """The one thing that changes while the workbench runs: which workspace is open."""

    workspace: Workspace
    trial: Folder | None = None  # where labels to try judging with are

    def replace(self, workspace: Workspace) -> Workspace:
        """Open another workspace beside the same labels; the files of the one before go when nobody looks at it."""
        self.workspace = replace(workspace, labels=self.workspace.labels)
        return self.workspace

    def close(self) -> None:
        """Close engines and labels, and remove all files that are kept."""
        for one in (self.workspace.trials, self.workspace.labels):
            if one is not None:
                one.close()
        for folder in (self.workspace.sent, self.trial):
            if folder is not None:
                folder.remove()


def desk_of(request: Request) -> Desk:
    """Give the desk of the application that a request goes to."""
    desk: Desk = request.app.state.desk
    return desk


def opened(request: Request) -> Workspace:
    """Give the workspace that is open: one and the same for all of a request, whatever is opened meanwhile."""
    workspace: Workspace = request.scope.setdefault("judged.workspace", desk_of(request).workspace)
    return workspace


Opened = Annotated[Workspace, Depends(opened)]
"""The workspace that is open: what routes take as an argument."""
