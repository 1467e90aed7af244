"""Options that have the same default in all functions of the product."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

USUAL: Mapping[str, Any] = {"level": 0.95, "alpha": 0.05, "power": 0.8, "seed": 0}


def unusual(modules: Iterable[ModuleType], **more: Any) -> list[tuple[str, str, Any]]:
    """Return the functions and methods with an unusual default: their name, the option, and its default.

    `more` has options with their usual defaults, in addition to `USUAL`.
    """
    usual = {**USUAL, **more}
    return [
        (function.__qualname__, name, parameter.default)
        for module in modules
        for owner in (module, *(value for value in vars(module).values() if inspect.isclass(value)))
        for _, function in inspect.getmembers(owner, inspect.isfunction)
        if function.__module__ == module.__name__
        for name, parameter in inspect.signature(function).parameters.items()
        if name in usual and parameter.default is not parameter.empty and parameter.default != usual[name]
    ]
