"""Arrow compute functions, and replacements of functions that are slow to import.

``pa.array``, ``take`` and ``np.unique`` import ``numpy.ma`` when they first process a NumPy array, which takes 3% of
the time of a short command. Code that runs in every evaluation uses the functions in this module.
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
"""Functions that every evaluation calls: name in Arrow, number of data arguments, and class of the options."""


class _Functions:
    """Arrow compute functions by name."""

    # When ``pyarrow.compute`` is imported, it creates documented wrappers of about 300 functions, which takes 25% of
    # the time of a short command. The functions in `_DIRECT` are called without this import. Methods of arrays (`take`,
    # `cast`, `filter`) import it, too.
    def __getattr__(self, name: str) -> Any:
        if name in _DIRECT:
            function = partial(_call, *_DIRECT[name])
        else:
            import pyarrow.compute

            function = getattr(pyarrow.compute, name)
        setattr(self, name, function)
        return function


def _call(function: str, n_data: int, options_class: str | None, *args: Any, **kwargs: Any) -> Any:
    option_args = args[n_data:]
    options = (
        getattr(_arrow, options_class)(*option_args, **kwargs) if options_class and (kwargs or option_args) else None
    )
    return _arrow.call_function(function, list(args[:n_data]), options)


pc: Any = _Functions()
"""Arrow compute functions. The type is Any, as pyarrow has no type annotations for them."""


def int_array(values: Ints) -> Any:
    """Return an Arrow array that shares the memory of a NumPy array.

    >>> int_array(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the distinct values in ascending order.

    >>> distinct(np.array([2.0, 0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def unescape_csv(table: Table) -> Table:
    """Undo the escaping of `judged.results.escaping.csv_cell` in a table that was read from CSV."""
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = pc.replace_substring_regex(table[position], pattern="^'([=+\\-@'\t\r])", replacement=r"\1")
            table = table.set_column(position, field, column)
    return table


def encode_column(column: Any, values: Strings) -> Ints:
    """Encode each value of a column as its position in `values`."""
    return np.asarray(pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False), dtype=np.int64)
