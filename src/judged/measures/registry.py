"""Every measure by its name. A module of measures is imported when one of its measures is asked for.

A command uses five measures and the catalogue has some eighty: importing all of them would cost every
command more than its work does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from judged._catalogue import HOMES, MODULES
from judged.errors import MeasureError

if TYPE_CHECKING:
    from judged.measures.base import Entry


class Registry(Mapping[str, "Entry"]):
    """The registered measures; those of this package first, in the order of its table, then others."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Register a measure; the same class again is its new version: a notebook cell that was run again.

        Raises
        ------
        MeasureError
            If another measure has its name.
        """
        ours = f"{__package__}.{HOMES[entry.name]}" if entry.name in HOMES else ""
        known = self._entries.get(entry.name)
        place = (entry.cls.__module__, entry.cls.__qualname__)
        if (known and (known.cls.__module__, known.cls.__qualname__) != place) or (ours and place[0] != ours):
            raise MeasureError(f"two measures are called {entry.name}")
        self._entries[entry.name] = entry

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries and name in HOMES:
            importlib.import_module(f"{__package__}.{HOMES[name]}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        for module in MODULES:
            importlib.import_module(f"{__package__}.{module}")
        yield from HOMES
        yield from (name for name in self._entries if name not in HOMES)

    def __len__(self) -> int:
        return sum(1 for _ in self)


REGISTRY = Registry()
"""The one registry."""
