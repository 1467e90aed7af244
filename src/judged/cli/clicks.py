"""`judged clicks`: what clicks tell of documents, once position and what stood above are taken out."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_COMMANDS: tuple[str, ...] = (
    "models",
    "fit",
    "propensities",
    "coec",
    "ips",
    "off-policy",
    "judge",
    "evaluate",
    "against",
)
"""Each is the `command` of a module `judged.cli.clicks_NAME`, imported when it is run."""


@click.group(
    "clicks", cls=Group, names=_COMMANDS, short_help="Models of how users click, and judgments made of clicks."
)
def command() -> None:
    """Learn from the clicks of LOG what users find attractive, apart from where it stood.

    LOG is read as by 'judged online': UBI, a click-model log, a TREC session file, or a table with a --mapping.
    """
