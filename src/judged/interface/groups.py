"""A group of commands, each of which is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.components import load
from judged.interface.options import checked

if TYPE_CHECKING:
    from collections.abc import Mapping


class Group(click.Group):
    """A group whose commands may stand in other modules.

    Parameters
    ----------
    *args, **more
        As of `click.Group`.
    places
        Where other commands stand, as ``module:name``, by their names. The help lists them behind those of the group's
        own module, in this order.
    """

    def __init__(self, *args: Any, places: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return [*(name for name in self.commands if name not in self.places), *self.places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported where that is needed."""
        del ctx
        if cmd_name in self.places and cmd_name not in self.commands:
            self.add_command(checked(load(self.places[cmd_name])), cmd_name)
        return self.commands.get(cmd_name)
