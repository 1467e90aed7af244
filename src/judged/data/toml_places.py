"""Where in its file each part of a configuration stands, so that errors can say it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Self, TypeVar

from judged.errors import InputError
from judged.results.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

_HEADER = re.compile(r"^\s*\[(\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")

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

    @classmethod
    def of(cls, text: str, path: str = "") -> Self:
        """Find the line of every table and key in a text; `path` is what messages call it."""
        found: dict[tuple[str, int, str], int] = {}
        table, which, inside = "", 0, ""
        counts: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if inside:  # a text over several lines
                inside = "" if inside in line else inside
                continue
            if header := _HEADER.match(line):
                table = header[2]
                which = counts[table] = counts.get(table, -1) + 1
                found[table, which, ""] = number
            elif key := _KEY.match(line):
                found.setdefault((table, which, key[1]), number)
                inside = next((mark for mark in ('"""', "'''") if line.count(mark) == 1), "")
        return cls(path, found)

    @contextmanager
    def part(self, table: str = "", at: int | None = None) -> Generator[None]:
        """Say of what is wrong in here in which part it is, and on which line."""
        try:
            yield
        except InputError as error:
            if error.line is not None or (error.path and self.path in {"", error.path}):
                raise
            key = error.key if isinstance(error, SettingError) else ""
            which = at or 0
            tried = [(table, which, key), ("gate", 0, key), ("", 0, key), (key, 0, ""), (table, which, "")]
            line = next((self.lines[place] for place in tried if place in self.lines), None)
            head = "" if not table else f"[{table}]: " if at is None else f"[[{table}]] {at + 1}: "
            head += f"{error.path}: " if error.path else ""
            raise InputError(head + error.problem, fix=error.fix, path=self.path, line=line) from None

    def each(self, table: str, parts: Iterable[Part], make: Callable[[Part], Made]) -> list[Made]:
        """Make something of each part of a table; of what is wrong it is said in which part it is."""
        made: list[Made] = []
        for at, part in enumerate(parts):
            with self.part(table, at):
                made.append(make(part))
        return made


_MARGINS = {"at_most_ratio", "delta", "max_drop", "max_loss", "max_regression", "threshold", "tolerance"}
"""What a margin is called elsewhere."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was meant, or all of them.

    >>> nearest("margn", ["margin", "slice"]), nearest("x", ["margin", "slice"])
    ('write margin', 'use one of margin, slice')
    """
    names = list(known)
    if (right := spelled(name, names)) in names:
        return f"write {right}"
    if "margin" in names and name in _MARGINS:
        return "write margin"
    away = {"least": "most", "min": "most", "most": "least", "max": "least"}  # the other side is not what is meant
    sides = [other for side, other in away.items() if side in name.split("_")]
    close = get_close_matches(name, [one for one in names if not set(sides) & set(one.split("_"))], 1, 0.5)
    return f"write {close[0]}" if close else f"use one of {', '.join(names)}"
