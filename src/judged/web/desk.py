"""What the running workbench has open, and how a request gets at it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from judged.web.folders import new_folder, remove_folder
from judged.web.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path


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
        """Open another workspace; the files of the one before are removed when nobody looks at it any more."""
        if folder is not None:
            weakref.finalize(workspace, self.remove, folder)
        self.workspace, self.folder = workspace, folder

    def remove(self, folder: Path) -> None:
        """Remove a folder that was made here, if it is still there."""
        if folder in self._folders:
            remove_folder(folder, self._folders.pop(folder))

    def close(self) -> None:
        """Remove all files that are kept, also those that are being read."""
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
