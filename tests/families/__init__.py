"""What the tests of all measures need to know of each: one module a family, put together here.

A module may define these tables, and need not define all:

ORACLE
    ``name: (written, grades in rank order, grades of judged documents not returned, value, where it is from)``,
    one for each measure. What else `Measure.of_list` takes may follow as a dict.
NEEDED, VARIED, VALUES, WITH
    By parameter, or by ``Measure.parameter`` where a parameter means different things: a value for one that has
    no default; values to vary it by; a strategy for any value; what else must be given with it.
SETS
    By measure that needs no ranking: its score where ``a`` and ``z`` are relevant, ``c`` is judged not relevant,
    and the run is the set of ``a``, ``b`` and ``c``.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]


def _together(table: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for module in _MODULES:
        for key, value in getattr(module, table, {}).items():
            if key in made and repr(made[key]) != repr(value):
                raise ValueError(f"{module.__name__}.{table} says something else of {key} than another family")
            made[key] = value
    return made


ORACLE, NEEDED, VARIED, VALUES, WITH, SETS = map(_together, ("ORACLE", "NEEDED", "VARIED", "VALUES", "WITH", "SETS"))


def lookup(table: dict[str, Any], measure: str, parameter: str) -> Any:
    """Find what a table says of a measure's parameter."""
    key = f"{measure}.{parameter}"
    return table[key if key in table else parameter]
