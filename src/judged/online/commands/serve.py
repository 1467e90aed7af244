"""Options of `judged serve` for logs, and the files that they open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

OPTIONS = (
    click.option(
        "--log",
        "log",
        multiple=True,
        metavar="LOG",
        help="Interaction log that 'judged clicks' can read. Repeat for more files.",
    ),
    click.option("--watch", metavar="CONFIG", help="Configuration file of 'judged watch'."),
)
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `open_workspace`: paths of logs, and of the configuration of a watch."""
    return {"parts": {name: options[name] for name in ("log", "watch") if options[name]}}


def sample_parts() -> dict[str, Any]:
    """Return the parts of the sample."""
    from judged.data import sample

    return {"log": (str(sample.LOG),)}
