"""What a page says in its place when something that was asked of it makes no sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.errors import InputError, JudgedError
from judged.web.slices.attributes import query_ids_where

if TYPE_CHECKING:
    from judged.web.workspace import Workspace


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and what to do about it."""

    problem: str
    fix: str
    where: bool  # whether it is the expression over attributes


def wrong_of(workspace: Workspace, error: JudgedError, where: str) -> Wrong:
    """Part what is wrong from what to do about it."""
    if isinstance(error, InputError):
        return Wrong(error.problem, error.fix, _refused(workspace, where))
    return Wrong(*error.parts, where=False)


def _refused(workspace: Workspace, where: str) -> bool:
    try:
        query_ids_where(workspace, where)
    except InputError:
        return True
    return False
