"""Engines that experiments run: each an adapter of four methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.components import all_components, find
from judged.errors import InputError
from judged.pipelines.component import COMPONENT

if TYPE_CHECKING:
    from judged.pipelines.experiments.engines.base import Engine

ENGINES = tuple(COMPONENT.engines)
"""The engines of judged itself."""


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
        known = [engine for component in all_components() for engine in component.engines]
        raise InputError(f"no engine {name!r}", fix=f"use one of {', '.join(known)}")
    return engine
