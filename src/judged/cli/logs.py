"""`judged logs`: whether an interaction log is fit to be measured on, and logs made ready for it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from judged.online.log import InteractionLog

_FORMS = ("table", "json", "markdown")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json"}


def log_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options with which logs are read."""
    options = (
        click.option(
            "--layout",
            metavar="NAME",
            help="ubi, wscd, trec-session or open-bandit.  [default: found from the first bytes]",
        ),
        click.option("--mapping", metavar="FILE", help="TOML that says which columns of another log mean what."),
        click.option(
            "--session-gap",
            type=click.FloatRange(0, min_open=True),
            default=30.0,
            show_default=True,
            metavar="MINUTES",
            help="Inactivity that ends a session, where the log names none.",
        ),
        click.option(
            "--bots",
            type=click.Choice(["exclude", "keep"]),
            default="exclude",
            show_default=True,
            help="What to do with users who are programs: by a flag, by the user agent, or by their rate.",
        ),
        click.option(
            "--bot-pages",
            type=click.IntRange(1),
            default=100,
            show_default=True,
            help="A user with more pages than this in one session, or in --bot-minutes, is a program.",
        ),
        click.option(
            "--bot-minutes",
            type=click.FloatRange(0, min_open=True),
            default=60.0,
            show_default=True,
            help="See --bot-pages.",
        ),
        click.option(
            "--rank-base",
            type=click.Choice(["0", "1"]),
            help="What the log calls the first position.  [default: found for each application]",
        ),
        click.option("--memory", metavar="SIZE", help="The most that the database may take, such as 4GB."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def open_log(paths: tuple[str, ...], **options: Any) -> InteractionLog:
    """Read a log as the options say, with a progress line on a terminal."""
    from judged.online.opening import read_log

    base = options.pop("rank_base")
    with progress_line() as progress:
        return read_log(
            paths, rank_base=None if base is None else 0 if base == "0" else 1, progress=progress, **options
        )


@contextmanager
def progress_line() -> Generator[Callable[[str, float | None], None] | None]:
    """Show how far a log is read, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda step, share: bar.update(
            task, description=step, total=None if share is None else 1.0, completed=share or 0.0
        )


@click.group("logs", short_help="Check interaction logs, and make them ready for metrics.")
def command() -> None:
    """Check interaction logs, and make them ready for metrics."""


@command.command("check", short_help="Say what is wrong with a LOG, what was done, and what it can tell.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@log_options
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
def check(paths: tuple[str, ...], form: str | None, out: Path | None, **options: Any) -> None:
    """Say what is wrong with a LOG, what was done about it, and what it can tell.

    Exit code 0: fit for metrics; 1: numbers of it would be wrong, since more than 5 % of the queries or events are left
    out or lost, or less than 95 % of the events that name a page are on one; 2: it cannot be read at all.
    """
    from judged.online.checking import check_log
    from judged.online.engine import within_memory

    inputs.keep_inputs(out, paths)
    chosen = form or inputs.form_of(out, _SUFFIX)
    with within_memory():
        found = check_log(open_log(paths, **options))
    if chosen == "json":
        import json

        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    else:
        text = found.markdown() if chosen == "markdown" else found.text(width=output.width() if out is None else None)
    output.write(text, out)
    raise SystemExit(1 if found.doubts else 0)


@command.command("convert", short_help="Write a LOG as typed Parquet tables, which open in a moment.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Where to.")
@log_options
def convert(paths: tuple[str, ...], folder: Path, **options: Any) -> None:
    """Write a LOG as four typed Parquet tables into a FOLDER, which every command reads as a log.

    What was found is kept beside them in log.json: 'judged logs check FOLDER' says it again.
    """
    from judged.online.engine import within_memory
    from judged.online.storage import store_log

    with within_memory():
        files = store_log(open_log(paths, **options), folder)
    click.echo(f"{folder}: " + ", ".join(f"{one.name} {one.stat().st_size:,} bytes" for one in files))
