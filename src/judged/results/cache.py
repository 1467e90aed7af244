"""What is made once and kept: a property with its object, and the folder of this user for what can be made again."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def cache_folder() -> Path | None:
    """Give the folder, which is made if it is not there; None where nothing can be kept."""
    known = next(filter(None, map(os.environ.get, ("XDG_CACHE_HOME", "LOCALAPPDATA"))), None)
    with suppress(RuntimeError, OSError):  # who runs in a container may have no home, or may not write there
        folder = Path(known or Path.home() / ".cache") / "judged"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None
