"""What the running workbench has open, and how a request gets at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from judged.web.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Desk:
    """The one thing that changes while the workbench runs: which workspace is open.

    Attributes
    ----------
    workspace : Workspace
    folder : Path or None
        Where the files of a workspace that was uploaded are kept; None for one that was opened by name.
    """

    workspace: Workspace
    folder: Path | None = None


def desk_of(request: Request) -> Desk:
    """Give the desk of the application that a request goes to."""
    desk: Desk = request.app.state.desk
    return desk


def _opened(request: Request) -> Workspace:
    return desk_of(request).workspace


Opened = Annotated[Workspace, Depends(_opened)]
"""The workspace that is open: what routes take as an argument."""
