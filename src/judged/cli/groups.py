"""A group of commands, each of which is imported when it is run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from judged.cli.options import checked

if TYPE_CHECKING:
    from collections.abc import Mapping


class Group(click.Group):
    """A group whose commands may stand in other modules.

    Parameters
    ----------
    *args, **more
        As of `click.Group`.
    commands
        The module of each command that stands elsewhere. It is called there as it is here, or with `_command` behind,
        where a hyphen is an underscore. They come behind those of this module, in this order.
    """

    def __init__(self, *args: Any, commands: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.modules = dict(commands or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return [*(name for name in self.commands if name not in self.modules), *self.modules]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported where that is needed."""
        del ctx
        if cmd_name in self.modules and cmd_name not in self.commands:
            module, name = importlib.import_module(self.modules[cmd_name]), cmd_name.replace("-", "_")
            self.add_command(checked(getattr(module, f"{name}_command", None) or getattr(module, name)), cmd_name)
        return self.commands.get(cmd_name)
