"""Names of array types; data classes with read-only arrays; properties that are computed once."""

from __future__ import annotations

import functools
import sys
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


if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """A property that is computed when it is first read.

        That of Python 3.11 computes it for one object at a time: whoever reads it of another one waits.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute it; from then on the object has it, and nobody comes here."""
            if instance is None:
                return self
            made = instance.__dict__[self.attrname] = self.func(instance)
            return made
