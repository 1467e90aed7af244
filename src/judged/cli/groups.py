"""Groups of commands, of which only the one that is run is imported."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from judged.cli.options import checked

if TYPE_CHECKING:
    from collections.abc import Mapping

_APART: Mapping[str, str] = MappingProxyType({})


class Group(click.Group):
    """A group whose commands are each the `command` of a module ``judged.cli.GROUP_NAME``, in the order of the help.

    Those that stand in a module `together`, ``judged.cli.GROUP_MODULE``, have their own names there.
    """

    def __init__(
        self, *args: Any, names: tuple[str, ...] = (), together: Mapping[str, str] = _APART, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._names, self._together = names, together

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them in the order of the help."""
        del ctx
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one."""
        del ctx
        if cmd_name in self._names and cmd_name not in self.commands:
            name = self._together.get(cmd_name, cmd_name).replace("-", "_")
            module = importlib.import_module(f"judged.cli.{self.name}_{name}")
            made = getattr(module, cmd_name if cmd_name in self._together else "command")
            self.add_command(checked(made), cmd_name)
        return self.commands.get(cmd_name)
