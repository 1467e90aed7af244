"""Options of `judged serve` for labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from judged.errors import InputError

OPTIONS = (
    click.option(
        "--labels", metavar="STORE", help="Store of labels for judging in the browser: a file, or postgresql://..."
    ),
)
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `open_workspace`: the store of labels."""
    from judged.labels.store import LabelStore

    address = options["labels"]
    if address is not None and "://" not in address and not Path(address).is_file():
        raise InputError("this store does not exist", fix=f"create it: judged labels new {address}", path=address)
    return {} if address is None else {"labels": LabelStore.open(address)}


def sample_parts() -> dict[str, Any]:
    """Return the parts of the sample: none."""
    return {}
