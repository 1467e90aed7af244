"""`judged trajectories`: agents that search several times for one question."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options
from judged.interface.options import Choice, with_options
from judged.pipelines.commands.traces import ID_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.interface.arguments import OutputOptions
    from judged.pipelines.trajectories import Trajectories

    Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("trajectories")
def trajectories() -> None:
    """Evaluate agents: their searches, opened documents, and answers.

    TRAJECTORIES are files or folders: JSON lines with one trial each, records of BrowseComp, logs of chat messages with
    tool calls, or spans of OpenInference or OpenTelemetry (docs/trajectories.md). Files without a name are combined;
    folders are separate. If PATH has several systems, NAME=PATH selects the system NAME. If PATH has one system,
    NAME=PATH renames this system to NAME.
    """


def read_named_trajectories(texts: Sequence[str], **options: Any) -> Trajectories:
    """Read TRAJECTORIES: files without a name together, folders and NAME=PATH separately."""
    from judged.data.sources import split_name
    from judged.pipelines.trajectories.reading import read_trajectories, with_run_name
    from judged.pipelines.trajectories.trajectories import join

    named_paths = [split_name(text) for text in texts]
    files = [path for name, path in named_paths if not name and not Path(path).is_dir()]
    parts = [read_trajectories(files, **options)] if files else []
    for name, path in named_paths:
        if name:
            parts.append(with_run_name(read_trajectories(path, **options), name))
        elif path not in files:
            parts.append(read_trajectories(path, **options))
    return join(parts)


def trajectory_options(command: Command) -> Command:
    """Add TRAJECTORIES to a command, with the options to read them.

    The command gets the parameters `read` (trajectories) and `paths` (files that its output must not replace).
    """

    @wraps(command)
    def read_options(
        paths: tuple[str, ...],
        trajectories_format: str | None,
        tools: tuple[str, ...],
        query_texts: str | None,
        **options: Any,
    ) -> None:
        reading = {name: options.pop(name) for name in ("topic_from", "id_from")}
        kinds = dict(map(_parse_tool, tools))
        read = read_named_trajectories(paths, format=trajectories_format, tools=kinds, topics=query_texts, **reading)
        command(read=read, paths=(*paths, query_texts), **options)

    return with_options(  # pyright: ignore[reportReturnType]
        click.argument("paths", nargs=-1, required=True, metavar="TRAJECTORIES..."),
        click.option(
            "--trajectories-format",
            type=Choice("judged.pipelines.trajectories.reading:Format"),
            help="Format of the trajectories.  [default: detected from the content]",
        ),
        click.option(
            "--tool",
            "tools",
            multiple=True,
            metavar="NAME=KIND",
            help="Kind of step of the tool NAME: search, open, reason, answer, or other. Repeat for more tools."
            "  [default: by the words in the name of the tool]",
        ),
        ID_OPTIONS,
    )(read_options)


def _parse_tool(text: str) -> tuple[str, str]:
    name, equals, kind = text.rpartition("=")
    if not equals or not name:
        raise InputError(f"--tool must be NAME=KIND, got {text!r}", fix="write NAME=KIND, such as find_papers=search")
    return name, kind


@trajectories.command("check", short_help="Count trials and steps, and report unreadable records.")
@trajectory_options
@answer_options()
def check(read: Trajectories, paths: tuple[str | None, ...], output: OutputOptions) -> None:
    """Count the trials of each system, and their steps by kind and tool, and report unreadable records."""
    from judged.pipelines.trajectories import check_trajectories

    output.keep(*paths)
    output(check_trajectories(read))
