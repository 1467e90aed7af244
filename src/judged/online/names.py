"""Online metrics and subcommands in the index of names."""

from __future__ import annotations

import click

from judged.online.commands.online import online
from judged.online.metrics import ONLINE_METRICS, synonyms_of
from judged.scoring.names import Name, command_name


def names() -> list[Name]:
    """Return the names of all online metrics, and of the subcommands of ``judged online``."""
    context, metrics = click.Context(online), ONLINE_METRICS.values()
    commands = ((name, online.get_command(context, name)) for name in online.list_commands(context))
    return [
        *(
            Name("metric", row.name, row.title, f"/users?measure={row.name}", (row.title, *synonyms_of(row.name)))
            for row in metrics
        ),
        *(command_name(f"online {name}", command.get_short_help_str(200)) for name, command in commands if command),
    ]
