"""`judged logs`, and the options and the reading of logs for all commands."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options, bar
from judged.interface.options import Choice, shared, with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from judged.interface.arguments import OutputOptions
    from judged.online.log import InteractionLog

    Tell: TypeAlias = Callable[[str, float | None], None]

_LAYOUT_FIX = "use --layout NAME, or --mapping FILE for another layout (see 'judged logs check --help')"
READING = ("layout", "mapping", "session_gap", "bots", "bot_pages", "bot_minutes", "rank_base", "memory", "threads")
"""The options with which logs are read."""


paths = click.argument("paths", nargs=-1, required=True, metavar="LOG...")
"""Argument with the files of a log."""

interval = with_options(
    click.option(
        "--unit",
        type=Choice("judged.online.estimation.online_metrics:Unit"),
        default="user",
        show_default=True,
        help="Intervals are made over these: what one of them does is not independent.",
    ),
    shared("confidence"),
)
"""Options of confidence intervals."""


where = shared("where", help="Count only pages that match, such as \"device == 'mobile' and page == 1\".")
"""Option that filters pages."""

tables = click.option(
    "--tables",
    metavar="ADDRESS",
    help="Where on Spark the tables of a converted LOG are: sc://HOST:PORT/SCHEMA (see docs/any-size.md).",
)
"""Option of commands that are tested on Spark."""


log_options = with_options(
    click.option(
        "--layout",
        metavar="NAME",
        help="ubi, wscd, trec-session, open-bandit, or clickmodels, which has to be named."
        "  [default: found from the first bytes]",
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
        type=Choice("judged.online.preparation.work:Bots"),
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
        type=Choice(("0", "1")),
        help="What the log calls the first position.  [default: found for each application]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="The most that the process may take, such as 1GB.  [default: 2.5GB, or a tenth of the machine's]",
    ),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="At most so many.  [default: all cores]"),
)
"""The options with which logs are read."""


def open_log(paths: tuple[str, ...], **options: Any) -> InteractionLog:
    """Read a log with the options of the command, with a progress line on a terminal."""
    from judged.online.log import check_has_records
    from judged.online.storage import read_log

    base = options.pop("rank_base")
    with layout_errors(_LAYOUT_FIX), progress_line() as progress:
        # The base is a choice of strings on the command line.
        log = read_log(paths, rank_base=None if base is None else 0 if base == "0" else 1, progress=progress, **options)
    check_has_records(log)
    return log


@contextmanager
def opened(paths: tuple[str, ...], output: OutputOptions, options: dict[str, Any]) -> Generator[InteractionLog]:
    """Read a log within the memory limit, with progress on a terminal; remove the reading options from `options`."""
    with opened_with_progress(paths, output, options) as (log, _):
        yield log


@contextmanager
def opened_with_progress(
    paths: tuple[str, ...], output: OutputOptions, options: dict[str, Any], step: str = "counting"
) -> Generator[tuple[InteractionLog, Tell | None]]:
    """Read a log like `opened`, and yield it with a function that reports progress."""
    from judged.online.engine import translate_memory_errors

    reading_options = {name: options.pop(name) for name in (*READING, "tables") if name in options}
    output.keep(*paths, reading_options["mapping"], options.get("documents"))
    with translate_memory_errors():
        log = open_log(paths, **reading_options)
        with progress_line(step) as tell:
            yield log, tell


@contextmanager
def layout_errors(fix: str) -> Generator[None]:
    """Replace the fix of errors about unknown layouts, which is written for Python, by one for the command line."""
    from judged.online.readers.files import UnknownLayoutError

    try:
        yield
    except UnknownLayoutError as error:
        raise InputError(error.problem, fix=fix, path=error.path) from None


def by(help: str, metavar: str = "SLICE") -> Callable[..., Any]:
    """Return the option of one slicing attribute."""
    return shared("by", callback=once, metavar=metavar, help=help)


def once(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
    """Return the value of an option that may be used only once."""
    del ctx
    if len(value) > 1:
        flag = max(param.opts, key=len)
        raise InputError(f"{flag} is used {len(value)} times", fix="use it once, and run the command for each value")
    return value[0] if value else None


@contextmanager
def progress_line(step: str = "reading") -> Generator[Tell | None]:
    """Yield a function that reports the current step and the finished share, or None without a terminal."""
    with bar(step, 1000) as tell:
        if tell is None:
            yield None
            return
        position = 0

        def report(step: str, share: float | None) -> None:
            nonlocal position
            # The progress bar counts in thousandths.
            steps = None if share is None else round(1000 * share) - position
            tell(step, steps)
            position += steps or 0

        yield report


pages = click.option(
    "--pages",
    type=Choice("judged.online.offline.page_topics:PageSelection"),
    default="first",
    show_default=True,
    help="Of each result list its first page, or later ones too.",
)
"""Option that selects the pages of a result list."""

dwell = click.option("--dwell", type=float, default=30.0, show_default=True, help="Seconds that satisfy.")
"""Option for the threshold of a satisfied click."""


@click.group("logs")
def logs() -> None:
    """Check interaction logs, and make them ready for metrics."""


@logs.command("check", short_help="Say what is wrong with a LOG, what was done, and what it can tell.")
@paths
@log_options
@tables
@answer_options()
def check(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Say what is wrong with a LOG, what was done about it, and what it can tell.

    Exit code 0: fit for metrics; 1: numbers of it would be wrong, since more than 5 % of the queries or events are left
    out, lost or repaired, or less than 95 % of the events that name a page are on one; 2: it cannot be read at all, or
    is empty.
    Rows that a track publishes beside its pages (current-query, withheld-clicks) do not count here.
    """
    from judged.online.check import check_log

    with opened(paths, output, options) as log:
        result = check_log(log)
    output(result)
    raise SystemExit(1 if result.doubts else 0)


@logs.command("convert", short_help="Write a LOG as typed Parquet tables, which open in a moment.")
@paths
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Where to.")
@log_options
def convert(paths: tuple[str, ...], folder: Path, **options: Any) -> None:
    """Write a LOG as four typed Parquet tables into a FOLDER, which every command reads as a log.

    What was found is kept beside them in log.json: 'judged logs check FOLDER' says it again.
    """
    from judged.online.engine import translate_memory_errors
    from judged.online.storage import store_log

    with translate_memory_errors():
        log = open_log(paths, **options)
        with progress_line("writing"):
            files = store_log(log, folder)
    click.echo(f"{folder}: " + ", ".join(f"{file.name} {file.stat().st_size:,} bytes" for file in files))


@logs.command("draft", short_help="Write a first mapping of a log from its data.")
@click.argument("path", metavar="FILE")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="MAPPING", help="Where to.  [default: print it]")
def draft(path: str, out: Path | None) -> None:
    """Write a first mapping of a log in FILE: TOML for --mapping, in which a person puts right what is in doubt.

    Which column is what is told from names and values of the first 2,000 records; what cannot be told is a comment.
    """
    from judged.interface.arguments import write_result
    from judged.online.readers.draft import draft_mapping

    arguments.keep_inputs(out, [path])
    write_result(draft_mapping(path).rstrip("\n"), out)
