"""Option of `judged serve` for a history, and the store that it opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

OPTIONS = (
    click.option(
        "--history", metavar="STORE", help="Store of 'judged history': an SQLite file or postgresql://..."
    ),
)  # fmt: skip
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `open_workspace`: a function that returns the store."""
    from judged.history.store import HistoryStore

    if not options["history"]:
        return {"parts": {}}
    store = HistoryStore.open(options["history"])
    return {"parts": {"history": lambda: store}}


def sample_parts() -> dict[str, Any]:
    """Return the history of the sample, which is written when it is first needed."""
    from judged.history.sample import sample_history

    return {"history": sample_history}
