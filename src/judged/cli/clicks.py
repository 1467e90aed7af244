"""`judged clicks`: what clicks tell of documents, once position and what stood above are taken out."""

from __future__ import annotations

import importlib

import click

from judged.cli.options import checked

_COMMANDS: tuple[str, ...] = (
    "propensities",
    "coec",
    "ips",
    "judge",
    "evaluate",
    "against",
)
"""Each is the `command` of a module `judged.cli.clicks_NAME`, imported when it is run."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them in the order of the help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one."""
        del ctx
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            self.add_command(checked(importlib.import_module(f"judged.cli.clicks_{cmd_name}").command), cmd_name)
        return self.commands.get(cmd_name)


@click.group("clicks", cls=_Commands, short_help="Models of how users click, and judgments made of clicks.")
def command() -> None:
    """Learn from the clicks of LOG what users find attractive, apart from where it stood.

    LOG is read as by 'judged online': UBI, a click-model log, a TREC session file, or a table with a --mapping.
    """
