"""Names for the array types that the layers exchange, and what keeps arrays as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Hashes: TypeAlias = NDArray[np.uint64]

    # pyarrow ships no types. These aliases say what is meant; pyright sees Any.
    Table: TypeAlias = Any
    Batch: TypeAlias = Any
    Strings: TypeAlias = Any


class ReadOnly:
    """A data class with arrays that nobody can write to."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
