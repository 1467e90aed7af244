"""Array type aliases, data classes with read-only arrays, and cached properties."""

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

    # pyarrow has no type stubs: these aliases document the type, and pyright sees Any
    Table: TypeAlias = Any
    Batch: TypeAlias = Any
    Strings: TypeAlias = Any


class ReadOnly:
    """Base class of data classes with read-only arrays."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """Property that is computed when it is first read, without the lock of Python 3.11.

        That lock is shared by all objects, so that threads wait for the properties of other objects.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute the value and store it in the instance, which then bypasses this descriptor."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
