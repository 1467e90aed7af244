"""Adapters of the search engines that experiments run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.components import all_components, find
from judged.errors import InputError
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.pipelines.experiments.engines.base import Engine

ENGINES = tuple(name for component in all_components() for name in component.engines)
"""Names of all engines, including those that other packages add."""


def find_engine(name: str) -> type[Engine]:
    """Return the adapter class of an engine; other packages may add engines (`judged.components`).

    >>> sorted(find_engine("sqlite").settings)
    ['stemmer', 'title_weight', 'tokens']

    Raises
    ------
    InputError
        If no engine has this name.
    """
    engine = find("engines", name)
    if engine is None:
        raise InputError(f"no engine {name!r}", fix=use_one_of(ENGINES))
    return engine
