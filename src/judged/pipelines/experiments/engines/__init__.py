"""Engines that experiments run: each an adapter of four methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.pipelines.experiments.engines.base import Engine

_CLASSES = {
    "sqlite": "sqlite:SqliteFts5",
    "bm25s": "bm25s:Bm25s",
    "tantivy": "tantivy:Tantivy",
    "postgresql": "postgresql:PostgreSql",
    "dense": "dense:Dense",
    "function": "function:Function",
    "http": "http:Http",
}
"""Where the adapter of each engine stands: nothing of it is imported before it is asked for."""
ENGINES = tuple(_CLASSES)


def engine_named(name: str) -> type[Engine]:
    """Give the adapter of an engine.

    >>> sorted(engine_named("sqlite").settings)
    ['stemmer', 'title_weight', 'tokens']

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in _CLASSES:
        raise InputError(f"no engine {name!r}", fix=f"use one of {', '.join(ENGINES)}")
    module, _, adapter = _CLASSES[name].partition(":")
    return getattr(import_module(f"judged.pipelines.experiments.engines.{module}"), adapter)
