"""`judged labels`: judgments of several people and models, kept with who gave them."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_COMMANDS: tuple[str, ...] = (
    "new",
    "judges",
    "tasks",
    "status",
    "import",
    "qrels",
    "export",
    "topics",
    "ask",
    "questions",
    "quality",
    "next",
    "estimate",
    "calibrate",
)
"""Each is the `command` of a module `judged.cli.labels_NAME`, imported when it is run."""


@click.group(
    "labels", cls=Group, names=_COMMANDS, short_help="Judgments of several people and models, and the qrels they make."
)
def command() -> None:
    """Collect judgments of several people and models, measure how far they agree, and make qrels of them.

    STORE is a file of SQLite, or the address of a PostgreSQL database: postgresql://user@host/name (docs/labels.md).
    """
