"""What options are called elsewhere: the hint for one that a command does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from judged.results.spelling import OTHER_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNS = ("run", "runs", "qrels", "judgments", "candidate")


def fix_of(error: click.NoSuchOption) -> str:
    """Say which option of the command is meant; empty where nobody can tell."""
    written = error.option_name.lstrip("-").replace("_", "-")
    if error.ctx is None:
        return ""
    parameters = error.ctx.command.params
    found = list(_meant(written, parameters))
    if len(found) == 1:
        return f"write {found[0][0]}"
    if found:
        return "write " + ", or ".join(f"{flag} ({about})" for flag, about in found)
    arguments = [param.make_metavar(error.ctx) for param in parameters if isinstance(param, click.Argument)]
    if written in _RUNS and arguments:
        return f"files stand without an option: {error.ctx.command_path} {' '.join(arguments)}"
    return ""


def _meant(written: str, parameters: list[click.Parameter]) -> Iterator[tuple[str, str]]:
    """Give the options that may be meant, each with the beginning of its help."""
    for param in parameters:
        flag = max(param.opts, key=len)
        name = flag.removeprefix("--")
        if isinstance(param, click.Option) and written in OTHER_NAMES.get(name, "").split():
            takes_it = name == "format" and isinstance(param.type, click.Choice) and written in param.type.choices
            about = re.split(r"[.:;](?:\s|$)", param.help or "")[0]
            yield f"{flag} {written}" if takes_it else flag, about[:1].lower() + about[1:]
