"""Options of `judged serve` for labels, and what they open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from judged.errors import InputError

OPTIONS = (
    click.option("--labels", metavar="STORE", help="Labels to be judged in the browser: a file, or postgresql://..."),
)
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `open_workspace`: the store of labels."""
    from judged.labels.store import LabelStore

    where = options["labels"]
    if where is not None and "://" not in where and not Path(where).is_file():
        raise InputError("there is no such store", fix=f"make it: judged labels new {where}", path=where)
    return {} if where is None else {"labels": LabelStore.open(where)}


def sample_parts() -> dict[str, Any]:
    """Return the parts of the sample: none."""
    return {}
