"""Names that a package exports, imported when they are first used: importing judged costs next to nothing.

Modules of the package are imported in the same way: after ``import judged``, ``judged.uncertainty.tie_range`` works.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def lazily(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package, where `homes` are names by module.

    A name may be that of a module; the package itself is called "".
    """
    home = {name: module for module, names in homes.items() for name in names}

    def imported(name: str) -> Any:
        if name not in home:
            if name.startswith("_") or importlib.util.find_spec(f"{package}.{name}") is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return importlib.import_module(f"{package}.{name}")
        if home[name] and hasattr(module := importlib.import_module(home[name]), name):
            return getattr(module, name)
        return importlib.import_module(f"{home[name] or package}.{name}")

    return list(home), imported, lambda: sorted(home)
