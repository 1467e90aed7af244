"""Groups of commands, of which only the one that is run is imported."""

from __future__ import annotations

import importlib
from typing import Any

import click

from judged.cli.options import checked


class Group(click.Group):
    """A group whose commands are each the `command` of a module ``judged.cli.GROUP_NAME``, in the order of the help."""

    def __init__(self, *args: Any, names: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self._names = names

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them in the order of the help."""
        del ctx
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one."""
        del ctx
        if cmd_name in self._names and cmd_name not in self.commands:
            self.add_command(checked(importlib.import_module(f"judged.cli.{self.name}_{cmd_name}").command), cmd_name)
        return self.commands.get(cmd_name)
