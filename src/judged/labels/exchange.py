"""Labels read from files, and written for other tools."""

from __future__ import annotations

from pathlib import Path

from judged.errors import InputError
from judged.labels.labels import Labels


def read_labels(path: str | Path) -> Labels:
    """Read labels: a store, or a table as CSV, JSON Lines or Parquet."""
    from judged.labels.store import LabelStore

    text = str(path)
    if "://" in text or Path(text).read_bytes()[:15] == b"SQLite format 3":
        return LabelStore.open(text).labels()
    raise InputError("only stores are read so far", path=text)
