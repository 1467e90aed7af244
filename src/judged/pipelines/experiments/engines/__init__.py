"""Engines that experiments run: each an adapter of four methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.components import all_components, find
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.pipelines.experiments.engines.base import Engine

ENGINES = tuple(name for component in all_components() for name in component.engines)
"""The names of all engines, those of other packages too."""


def engine_named(name: str) -> type[Engine]:
    """Return the adapter of an engine; other packages may add engines (`judged.components`).

    >>> sorted(engine_named("sqlite").settings)
    ['stemmer', 'title_weight', 'tokens']

    Raises
    ------
    InputError
        If there is none.
    """
    engine = find("engines", name)
    if engine is None:
        raise InputError(f"no engine {name!r}", fix=f"use one of {', '.join(ENGINES)}")
    return engine
