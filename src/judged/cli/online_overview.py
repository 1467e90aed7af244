"""`judged online overview`: the numbers that matter against the period before, with what moved them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import interval, log_options, opened, tables, where

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("overview", short_help="The numbers that matter against the period before, and what moved them.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME", help="A ratio.  [default: five that matter]")
@click.option("--since", metavar="DATE", help="When the later period begins.  [default: a week before the log's end]")
@click.option("--by", default="query_norm", show_default=True, metavar="COLUMN", help="What tells queries apart.")
@interval
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Significance: what is said to change.")
@where
@log_options
@tables
@answer_options()
def command(paths: tuple[str, ...], give: Give, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare five numbers of LOG with the period before, and say whether other queries moved them, or the same ones.

    A number over pages changes because other queries are asked, or because queries fare otherwise: both parts have
    intervals.
    """
    from judged.online.overview import overview

    with opened(paths, give, options) as log:
        found = overview(log, metrics or None, **options)
    give(found)
