"""The registry of measures, and the decorator that registers a measure.

A module of measures is imported when one of its measures is used. A command uses about five of eighty measures, and
importing all of them would take longer than the command itself.
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
from judged.scoring.measures.catalog import MODULE_BY_MEASURE, MODULES
from judged.scoring.measures.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.measures.aggregates import Aggregate


class Registry(Mapping[str, Entry]):
    """Registered measures by name: those of this package in the order of the catalog, then others."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.added = 0  # number of registrations, for caches that depend on the registry

    def add(self, entry: Entry) -> None:
        """Register a measure. A class with the same qualified name replaces the earlier one, as in a notebook."""
        own_module = f"{__package__}.{MODULE_BY_MEASURE[entry.name]}" if entry.name in MODULE_BY_MEASURE else ""
        registered = self._entries.get(entry.name)
        location = (entry.cls.__module__, entry.cls.__qualname__)
        # A module that is imported again, or a notebook cell that is run again, creates a new class of the same name.
        is_other_class = registered and (registered.cls.__module__, registered.cls.__qualname__) != location
        if is_other_class or (own_module and location[0] != own_module):
            raise MeasureError(f"two measures are called {entry.name}. Fix: rename one of the measures")
        self._entries[entry.name] = entry
        self.added += 1

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            if name in MODULE_BY_MEASURE:
                importlib.import_module(f"{__package__}.{MODULE_BY_MEASURE[name]}")
            else:
                find("measures", name)  # importing a class registers it
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        for module in MODULES:
            importlib.import_module(f"{__package__}.{module}")
        for component in third_party():
            for location in component.measures.values():
                load(location)
        yield from MODULE_BY_MEASURE
        yield from (name for name in self._entries if name not in MODULE_BY_MEASURE)

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
    cutoff_name: str = "cutoff",
) -> Callable[[type[M]], type[M]]:
    """Register a measure.

    Parameters
    ----------
    category
        Family in the catalog, such as ``graded`` or ``set``.
    cite
        Paper or tool that defines the measure.
    use, misleads
        One sentence each: when to use the measure, and its pitfall.
    name
        Canonical name, if it differs from the name of the class.
    aliases
        Other names that are accepted, each with the parameters that it implies.
    aggregate
        How the scores of topics are aggregated.
    properties
        Properties that hold for every score.
    tools
        Names of the same number in other tools.
    cutoff_name
        Parameter that is written after the ``@``.

    Returns
    -------
    callable
        Class decorator.

    Examples
    --------
    >>> @measure(category="set", cite="...", use="...", misleads="...")  # doctest: +SKIP
    ... class Hits(Measure): ...
    """

    def register(cls: type[M]) -> type[M]:
        key = name or cls.__name__
        cls.entry = Entry(
            cls,
            key,
            category,
            dict(aliases or {}),
            aggregate,
            properties or Properties(),
            cite,
            use,
            misleads,
            tools or {},
            cutoff_name,
            _collect_parameters(cls, key),
        )
        REGISTRY.add(cls.entry)
        return cls

    return register


def _collect_parameters(cls: type[Measure], name: str) -> tuple[Parameter, ...]:
    """Collect the declared parameters of a class in order, and replace each attribute by its default.

    The parameters of a registered base come first. Those of an unregistered base follow those of the class.
    """
    base: Entry | None = getattr(cls.__base__, "entry", None)
    parameters = {parameter.name: parameter for parameter in base.all_parameters} if base else {}
    declaring_classes = (cls,) if base else cls.__mro__[: cls.__mro__.index(Measure)]
    for declaring_class in declaring_classes:
        for attribute, annotation in get_annotations(declaring_class).items():
            declared = getattr(cls, attribute, None)
            if isinstance(declared, Parameter):
                parameters[attribute] = replace(declared, name=attribute)
                if not declared.required:
                    setattr(cls, attribute, declared.default)
                elif attribute in vars(cls):
                    delattr(cls, attribute)
            elif not str(annotation).startswith("ClassVar"):
                raise MeasureError(f"{name}: {attribute} is not a parameter. Fix: write param(Parameter(...))")
    return tuple(parameters.values())
