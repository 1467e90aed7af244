"""`judged study`: several people try the same tasks on each of several systems."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_COMMANDS: tuple[str, ...] = ("init", "check", "plan", "links", "run", "export", "report")
"""Each is the `command` of a module `judged.cli.study_NAME`, imported when it is run."""


@click.group("study", cls=Group, names=_COMMANDS, short_help="User studies: people try the same tasks on each system.")
def command() -> None:
    """Plan and run a user study, in which several people do the same tasks with each of several systems.

    DESIGN is a TOML file: systems, tasks, questionnaires, groups of people, their order (docs/user-studies.md).
    """
