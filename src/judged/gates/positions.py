"""Where in its file each part of a configuration stands, so that errors can say it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

Part = TypeVar("Part")
Made = TypeVar("Made")


class SettingError(InputError):
    """A value of a configuration that makes no sense, with its key."""

    def __init__(self, key: str, problem: str, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.key = key


@dataclass(frozen=True)
class Places:
    """The file of a configuration, and the line of every table and key.

    A place is a table, which of its name, and a key; the key of a table's header is empty, and so is the table of what
    stands above all of them.

    >>> places = Places("gate.toml", {("check", 0, ""): 5})
    >>> with places.part("check", 0):
    ...     raise InputError("no slice 'od'", fix="write odd")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: gate.toml:5: [[check]] 1: no slice 'od'. Fix: write odd.
    """

    path: str = ""
    lines: Mapping[tuple[str, int, str], int] = field(default_factory=dict[tuple[str, int, str], int])

    @contextmanager
    def part(self, table: str = "", at: int = 0) -> Generator[None]:
        """Say of what is wrong in here in which part it is, and on which line."""
        try:
            yield
        except InputError as error:
            if error.line is not None or (error.path and self.path in {"", error.path}):
                raise
            key = error.key if isinstance(error, SettingError) else ""
            tried = [(table, at, key), ("gate", 0, key), ("", 0, key), (key, 0, ""), (table, at, "")]
            line = next((self.lines[place] for place in tried if place in self.lines), None)
            head = {"": "", "gate": "[gate]: "}.get(table, f"[[{table}]] {at + 1}: ")
            head += f"{error.path}: " if error.path else ""
            raise InputError(head + error.problem, fix=error.fix, path=self.path, line=line) from None

    def each(self, table: str, parts: Iterable[Part], make: Callable[[Part], Made]) -> list[Made]:
        """Make something of each part of a table; of what is wrong it is said in which part it is."""
        made: list[Made] = []
        for at, part in enumerate(parts):
            with self.part(table, at):
                made.append(make(part))
        return made
