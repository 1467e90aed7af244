"""`judged labels`: judgments of several people and models, kept with who gave them."""

from __future__ import annotations

import importlib

import click

from judged.cli.options import checked

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


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them in the order of the help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one."""
        del ctx
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            self.add_command(checked(importlib.import_module(f"judged.cli.labels_{cmd_name}").command), cmd_name)
        return self.commands.get(cmd_name)


@click.group("labels", cls=_Commands, short_help="Judgments of several people and models, and the qrels they make.")
def command() -> None:
    """Collect judgments of several people and models, measure how far they agree, and make qrels of them.

    STORE is a file of SQLite, or the address of a PostgreSQL database: postgresql://user@host/name (docs/labels.md).
    """
