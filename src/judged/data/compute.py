"""Arrow's compute functions, and the few of NumPy's that would import its masked arrays for nothing.

``pa.array``, ``take`` and ``np.unique`` import ``numpy.ma`` when they first meet a NumPy array, which costs a
short command a thirtieth of its time. What every evaluation passes goes through here instead.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import _compute as _arrow  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged.results.types import Ints, Strings, Table

Scalar = TypeVar("Scalar", bound=np.generic)

_DIRECT = {
    "any": ("any", 1, None),
    "binary_length": ("binary_length", 1, None),
    "index_in": ("index_in", 1, "SetLookupOptions"),
    "run_end_encode": ("run_end_encode", 1, None),
    "sort_indices": ("sort_indices", 1, "SortOptions"),
    "starts_with": ("starts_with", 1, "MatchSubstringOptions"),
    "take": ("take", 2, None),
    "unique": ("unique", 1, None),
}
"""What every evaluation of a file calls: the name in Arrow, how many arguments are data, and what holds the others."""


class _Functions:
    """Arrow's compute functions by name. Methods of arrays (``take``, ``cast``, ``filter``) import the module."""

    # ``pyarrow.compute`` writes a wrapper with its documentation for each of some 300 functions when it is imported,
    # which takes a quarter of a small command's time. Those of every evaluation are called without it.
    def __getattr__(self, name: str) -> Any:
        if name in _DIRECT:
            made = partial(_call, *_DIRECT[name])
        else:
            import pyarrow.compute

            made = getattr(pyarrow.compute, name)
        setattr(self, name, made)
        return made


def _call(function: str, data: int, holder: str | None, *given: Any, **named: Any) -> Any:
    options = getattr(_arrow, holder)(*given[data:], **named) if holder and (named or given[data:]) else None
    return _arrow.call_function(function, list(given[:data]), options)


pc: Any = _Functions()
"""The compute functions as a value of type Any: no type checker sees them."""


def int_array(values: Ints) -> Any:
    """Give an Arrow array on the memory of a NumPy array.

    >>> int_array(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Give the different values, rising.

    >>> distinct(np.array([2.0, 0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def unescaped(table: Table) -> Table:
    """Return the texts of which `judged.results.escaping.csv_cell` made the cells of a table that was read from CSV."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = pc.replace_substring_regex(table[at], pattern="^'([=+\\-@'\t\r])", replacement=r"\1")
            table = table.set_column(at, field, column)
    return table


def codes_of(column: Any, values: Strings) -> Ints:
    """Give each entry of a column its position among these values."""
    return np.asarray(pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False), dtype=np.int64)
