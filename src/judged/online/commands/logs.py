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

    Progress: TypeAlias = Callable[[str, float | None], None]

_LAYOUT_FIX = (
    "use --layout NAME; for your own layout, run 'judged logs draft FILE -o mapping.toml', then use"
    " --mapping mapping.toml"
)
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
        help="Independent unit of the confidence intervals.",
    ),
    shared("confidence"),
)
"""Options of confidence intervals."""


where = shared("where", help="Condition that selects pages, such as \"device == 'mobile' and page == 1\".")
"""Option that filters pages."""

tables = click.option(
    "--tables",
    metavar="ADDRESS",
    help="Spark schema with the tables of a converted LOG: sc://HOST:PORT/SCHEMA (see docs/any-size.md).",
)
"""Option of commands that are tested on Spark."""


columns = shared(
    "columns",
    help="For a log without a mapping file: the column that contains each field, such as"
    " time=when,query=search_text,clicks=clicked.",
)
"""Option that names the columns of a log."""

log_options = with_options(
    click.option(
        "--layout",
        metavar="NAME",
        help="Layout of the log: ubi, ga4, snowplow, algolia, wscd, trec-session, open-bandit, or clickmodels."
        "  [default: detected from the first bytes, except clickmodels]",
    ),
    click.option("--mapping", metavar="FILE", help="TOML file that maps the columns of a log with another layout."),
    columns,
    click.option(
        "--session-gap",
        type=click.FloatRange(0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="MINUTES",
        help="Minutes of inactivity that end a session, if the log has no session IDs.",
    ),
    click.option(
        "--bots",
        type=Choice("judged.online.preparation.work:Bots"),
        default="exclude",
        show_default=True,
        help="Exclude or keep users that are bots according to a flag, the user agent, or the number of pages.",
    ),
    click.option(
        "--bot-pages",
        type=click.IntRange(1),
        default=100,
        show_default=True,
        help="Users with more pages than this number in one session, or within --bot-minutes, are bots.",
    ),
    click.option(
        "--bot-minutes",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Time window of --bot-pages.",
    ),
    click.option(
        "--rank-base",
        type=Choice(("0", "1")),
        help="Position of the first result in the log.  [default: detected for each application in the log]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="Memory limit of the process, such as 1GB.  [default: 2.5GB, or a tenth of the machine's memory if that is"
        " more]",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1),
        metavar="N",
        help="Number of threads.  [default: all cores, but with --memory at most one thread per 250 MB]",
    ),
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
) -> Generator[tuple[InteractionLog, Progress | None]]:
    """Read a log like `opened`, and yield it with a function that reports progress."""
    from judged.online.engine import translate_memory_errors

    reading_options = {name: options.pop(name) for name in (*READING, "tables") if name in options}
    output.keep(*paths, reading_options["mapping"], options.get("documents"))
    with translate_memory_errors():
        log = open_log(paths, **reading_options)
        with progress_line(step) as report:
            yield log, report


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
        raise InputError(
            f"{flag} is used {len(value)} times", fix=f"use {flag} once, and run the command for each value"
        )
    return value[0] if value else None


@contextmanager
def progress_line(step: str = "reading") -> Generator[Progress | None]:
    """Yield a function that reports the current step and the finished share, or None without a terminal."""
    with bar(step, 1000) as advance:
        if advance is None:
            yield None
            return
        position = 0

        def report(step: str, share: float | None) -> None:
            nonlocal position
            # The progress bar counts in thousandths.
            steps = None if share is None else round(1000 * share) - position
            advance(step, steps)
            position += steps or 0

        yield report


pages = click.option(
    "--pages",
    type=Choice("judged.online.offline.page_topics:PageSelection"),
    default="first",
    show_default=True,
    help="first: use only the first page of each result list; all: use all pages.",
)
"""Option that selects the pages of a result list."""

dwell = click.option(
    "--dwell", type=float, default=30.0, show_default=True, help="Minimum dwell time of a satisfied click in seconds."
)
"""Option for the threshold of a satisfied click."""


@click.group("logs")
def logs() -> None:
    """Check, convert, and map interaction logs."""


@logs.command("check", short_help="Check a LOG: its problems, how they are handled, and which metrics it supports.")
@paths
@log_options
@tables
@answer_options()
def check(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Check a LOG for errors, show how judged handles each error, and list the data that metrics need.

    Exit code 0: the log is fit for metrics. 1: metrics would be wrong, because more than 5% of the queries or events
    are excluded or lost, a rule repairs more than 5% of the rows it applies to, or less than 95% of the events with a
    query_id belong to a valid page. 2: the log cannot be read, or is empty. Records that are excluded by the rules
    current-query and withheld-clicks do not count toward the limit of 5%. In some log formats, such records have no
    results or no clicks on purpose.
    """
    from judged.online.check import check_log

    with opened(paths, output, options) as log:
        result = check_log(log)
    output(result)
    raise SystemExit(1 if result.unfit_reasons else 0)


@logs.command("convert", short_help="Convert a LOG to Parquet tables, which judged opens faster than the original log.")
@paths
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Output folder.")
@log_options
def convert(paths: tuple[str, ...], folder: Path, **options: Any) -> None:
    """Convert a LOG to four Parquet tables in a FOLDER, which every command reads as a log.

    The findings are stored in log.json. To print the findings, use 'judged logs check FOLDER'.
    """
    from judged.online.engine import translate_memory_errors
    from judged.online.storage import store_log

    with translate_memory_errors():
        log = open_log(paths, **options)
        with progress_line("writing"):
            files = store_log(log, folder)
    click.echo(f"{folder}: " + ", ".join(f"{file.name} {file.stat().st_size:,} bytes" for file in files))


@logs.command("draft", short_help="Draft a mapping of a log from its data.")
@click.argument("path", metavar="FILE")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="MAPPING", help="Output file.  [default: print]")
@columns
def draft(path: str, out: Path | None) -> None:
    """Draft a mapping of the log in FILE: TOML for --mapping, to be checked and corrected.

    Columns are recognized by their names and the values of the first 2,000 records. Comments mark uncertain lines, and
    list columns that are not used.
    """
    from judged.interface.arguments import write_result
    from judged.online.readers.draft import draft_log
    from judged.online.readers.files import find_log_files
    from judged.online.readers.unmapped import log_columns
    from judged.results import counted

    arguments.keep_inputs(out, [path])
    log_draft = draft_log(find_log_files([path])[0], log_columns())
    mapping = log_draft.text.rstrip("\n")
    write_result(mapping, out)
    click.echo(f"{path}: {log_draft.describe()}", err=True)
    if out is not None:
        marks = counted(mapping.count("# CHECK:"), "comment")
        click.echo(f"{out}: {marks} to check. Next: judged logs check {path} --mapping {out}", err=True)
