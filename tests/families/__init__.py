"""Test data of all measures, with one module per family of measures.

Each module can define these tables:

ORACLE
    ``name: (written, grades in rank order, grades of judged documents not returned, value, where it is from)``,
    one for each measure. A dict with further arguments of `Measure.of_list` can follow.
NEEDED, VARIED, VALUES, WITH
    By parameter, or by ``Measure.parameter`` if the parameter differs between measures: a value, if there is no
    default; other values; a strategy for any value; other required arguments.
SETS
    By measure that needs no ranking: its score if ``a`` and ``z`` are relevant, ``c`` is judged not relevant,
    and the run is the set of ``a``, ``b`` and ``c``.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]


def _merged_tables(table: str) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for module in _MODULES:
        for key, value in getattr(module, table, {}).items():
            if key in tables and repr(tables[key]) != repr(value):
                raise ValueError(f"{module.__name__}.{table} says something else of {key} than another family")
            tables[key] = value
    return tables


ORACLE, NEEDED, VARIED, VALUES, WITH, SETS = map(
    _merged_tables, ("ORACLE", "NEEDED", "VARIED", "VALUES", "WITH", "SETS")
)


def lookup(table: dict[str, Any], measure: str, parameter: str) -> Any:
    """Return the entry of a table for a measure's parameter."""
    key = f"{measure}.{parameter}"
    return table[key if key in table else parameter]
