"""`judged change`: what is known of a change of the system, and what follows."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_COMMANDS: tuple[str, ...] = ("review",)
"""Each is the `command` of a module `judged.cli.change_NAME`, imported when it is run."""


@click.group("change", cls=Group, names=_COMMANDS, short_help="What is known of a change, and may it ship?")
def command() -> None:
    """Put together what is known of a change of the system: baseline and candidate."""
