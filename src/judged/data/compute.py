"""Arrow's compute functions, and the few of NumPy's that would import its masked arrays for nothing.

``pa.array``, ``take`` and ``np.unique`` import ``numpy.ma`` when they first meet a NumPy array, which costs a
short command a thirtieth of its time. What every evaluation passes goes through here instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged._types import Ints, Strings

Scalar = TypeVar("Scalar", bound=np.generic)

pc: Any = pyarrow.compute
"""The compute functions as a value of type Any: they are made at import, so no type checker sees them."""


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


def codes_of(column: Any, values: Strings) -> Ints:
    """Give each entry of a column its position among these values."""
    return np.asarray(pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False), dtype=np.int64)
