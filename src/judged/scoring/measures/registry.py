"""Every measure by its name, and how one is registered.

A module of measures is imported when one of its measures is asked for: a command uses five measures and the
catalogue has some eighty, and importing all of them would cost every command more than its work does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import get_annotations
from typing import TYPE_CHECKING, Any

from judged.components import find, load, third_party
from judged.errors import MeasureError
from judged.scoring.measures.base import Entry, M, Measure, Properties
from judged.scoring.measures.catalogue import HOMES, MODULES
from judged.scoring.measures.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.measures.aggregates import Aggregate


class Registry(Mapping[str, Entry]):
    """The registered measures; those of this package first, in the order of its table, then others."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.added = 0  # how often one was registered

    def add(self, entry: Entry) -> None:
        """Register a measure; the same class again is its new version: a notebook cell that was run again."""
        ours = f"{__package__}.{HOMES[entry.name]}" if entry.name in HOMES else ""
        known = self._entries.get(entry.name)
        place = (entry.cls.__module__, entry.cls.__qualname__)
        if (known and (known.cls.__module__, known.cls.__qualname__) != place) or (ours and place[0] != ours):
            raise MeasureError(f"two measures are called {entry.name}")
        self._entries[entry.name] = entry
        self.added += 1

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            if name in HOMES:
                importlib.import_module(f"{__package__}.{HOMES[name]}")
            else:
                find("measures", name)  # importing a class registers it
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        for module in MODULES:
            importlib.import_module(f"{__package__}.{module}")
        for component in third_party():
            for place in component.measures.values():
                load(place)
        yield from HOMES
        yield from (name for name in self._entries if name not in HOMES)

    def __len__(self) -> int:
        return sum(1 for _ in self)


REGISTRY = Registry()
"""The one registry."""


def measure(
    *,
    category: str,
    cite: str,
    use: str,
    misleads: str,
    name: str = "",
    aliases: Mapping[str, Mapping[str, Any]] | None = None,
    aggregate: Aggregate = "mean",
    properties: Properties | None = None,
    tools: Mapping[str, str] | None = None,
    at: str = "cutoff",
) -> Callable[[type[M]], type[M]]:
    """Register a measure.

    Parameters
    ----------
    category
        What it stands with in the catalogue: set, ranked, graded, incomplete or count.
    cite
        The paper or tool that defines it.
    use, misleads
        One sentence each: when to take it, and when it deceives.
    name
        Its canonical name, if it cannot be the class's.
    aliases
        Other names that are understood on input, each with the parameters that it stands for.
    aggregate
        How the scores of topics become one number.
    properties
        What is true of every score.
    tools
        What other tools call the same number.
    at
        The parameter that is written behind the ``@``.
    """

    def register(made: type[M]) -> type[M]:
        key = name or made.__name__
        made.entry = Entry(
            made,
            key,
            category,
            dict(aliases or {}),
            aggregate,
            properties or Properties(),
            cite,
            use,
            misleads,
            tools or {},
            at,
            _declared(made, key),
        )
        REGISTRY.add(made.entry)
        return made

    return register


def _declared(made: type[Measure], key: str) -> tuple[Parameter, ...]:
    """Collect the parameters of a class in the order in which they stand, and leave their defaults in their place.

    Those of a registered base come first, those of a base that is none behind the class's own.
    """
    base: Entry | None = getattr(made.__base__, "entry", None)
    found = {parameter.name: parameter for parameter in base.all_parameters} if base else {}
    holders = (made,) if base else made.__mro__[: made.__mro__.index(Measure)]
    for attribute, kind in (item for holder in holders for item in get_annotations(holder).items()):
        declared = getattr(made, attribute, None)
        if isinstance(declared, Parameter):
            found[attribute] = replace(declared, name=attribute)
            if not declared.required:
                setattr(made, attribute, declared.default)
            elif attribute in vars(made):
                delattr(made, attribute)
        elif not str(kind).startswith("ClassVar"):
            raise MeasureError(f"{key}: {attribute} is not a parameter. Fix: write param(Parameter(...))")
    return tuple(found.values())
