"""What the running workbench has open, and how a request gets at it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from judged.web.workspace import Workspace

if TYPE_CHECKING:
    from judged.labels.store import LabelStore

try:
    import fcntl
except ImportError:  # Windows, where a folder is only removed by the process that made it
    fcntl = None

JUDGE = "judged.judge"
"""Where a request says which judge made it, who was let in by nothing but a token of their own."""
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


@dataclass(eq=False)
class Desk:
    """The one thing that changes while the workbench runs: which workspace is open."""

    workspace: Workspace
    # where the files of a workspace that was uploaded are kept; None for one that was opened by name
    folder: Path | None = None
    _folders: dict[Path, int | None] = field(default_factory=dict["Path", "int | None"], repr=False)

    def new_folder(self) -> Path:
        """Make a folder for files."""
        folder, lock = new_folder()
        self._folders[folder] = lock
        return folder

    def replace(self, workspace: Workspace, folder: Path | None = None) -> None:
        """Open another workspace beside the same labels; the files of the one before go when nobody looks at it."""
        workspace = replace(workspace, labels=self.workspace.labels)
        if folder is not None:
            weakref.finalize(workspace, self.remove, folder)
        self.workspace, self.folder = workspace, folder

    def label(self, store: LabelStore) -> None:
        """Open a store of labels beside what is open."""
        before, self.workspace = self.workspace, replace(self.workspace, labels=store)
        weakref.finalize(self.workspace, id, before)  # files that were uploaded go with the workspace they came for

    def remove(self, folder: Path) -> None:
        """Remove a folder that was made here, if it is still there."""
        if folder in self._folders:
            remove_folder(folder, self._folders.pop(folder))

    def close(self) -> None:
        """Remove all files that are kept, also those that are being read, and close engines and labels."""
        if self.workspace.trials is not None:
            self.workspace.trials.close()
        if self.workspace.labels is not None:
            self.workspace.labels.close()
        for folder in list(self._folders):
            self.remove(folder)


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
