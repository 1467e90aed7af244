"""`judged online queries`: the queries that somebody should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import log_options, opened, tables, where

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("queries", short_help="Queries that find nothing, are left, are asked again, rise or fall.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--list",
    "lists",
    multiple=True,
    metavar="NAME",
    help="zero, left, again, low-ctr, slow, new, rising or falling.  [default: all]",
)
@click.option("--by", default="query_norm", show_default=True, metavar="COLUMN", help="What tells queries apart.")
@click.option("--since", metavar="DATE", help="When the later period begins.  [default: a week before the log's end]")
@click.option("--min-users", type=click.IntRange(1), default=2, show_default=True, help="Fewer are not listed.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Rows of each list; 0: all.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--fdr", type=float, default=0.1, show_default=True, help="Share of false discoveries, on average.")
@where
@log_options
@tables
@answer_options()
def command(paths: tuple[str, ...], give: Give, lists: tuple[str, ...], limit: int, **options: Any) -> None:
    """List the queries of LOG that find nothing, are left, are asked again, get few clicks, are slow, rise or fall.

    Each with how many users, a share and its interval; restricted to what can be told. CSV and Parquet hold one list:
    name it with --list.
    """
    from judged.online.query_lists import queries

    with opened(paths, give, options) as log:
        found = queries(log, lists or None, limit=limit or None, **options)
    give(found)
