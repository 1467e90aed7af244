"""Values as JSON has them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


def plain(value: Any) -> Any:
    """Turn a value into what JSON has: NaN and infinities become None, tuples lists, data classes objects.

    >>> plain({"a": (1.0, float("nan"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value
