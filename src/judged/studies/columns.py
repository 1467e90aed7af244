"""Column types that the tables of a study share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("position", "started", "ended", "time", "page", "rank", "items"), pa.int64()),
    **dict.fromkeys(("value", "grade", "weight", "score", "low", "high", "sus"), pa.float64()),
    "practice": pa.bool_(),
    "shown": pa.list_(pa.string()),
}


def columns(*names: str) -> Any:
    """Return the schema of a table with these columns; the default type is string."""
    return pa.schema({name: _TYPES.get(name, pa.string()) for name in names})
