"""What the running workbench has open, and how a request gets at it."""

from __future__ import annotations

import shutil
import weakref
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from judged.web.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(eq=False)
class Desk:
    """The one thing that changes while the workbench runs: which workspace is open.

    Attributes
    ----------
    workspace : Workspace
    folder : Path or None
        Where the files of a workspace that was uploaded are kept; None for one that was opened by name.
    opening : Lock
        Held while another workspace is opened: one after the other.
    """

    workspace: Workspace
    folder: Path | None = None
    opening: Lock = field(default_factory=Lock, repr=False)
    _removal: Any = field(default=None, repr=False)

    def replace(self, workspace: Workspace, folder: Path | None = None) -> None:
        """Open another workspace; the files of the one before are removed when nobody looks at it any more.

        Parameters
        ----------
        workspace
            What is open from now on.
        folder
            Where its files are kept; it is removed with the workspace, whose runs are read when they are asked for.
        """
        self._removal = None if folder is None else weakref.finalize(workspace, _remove, folder)
        self.workspace, self.folder = workspace, folder

    def close(self) -> None:
        """Remove the files that are kept."""
        if self._removal is not None:
            self._removal()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


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
