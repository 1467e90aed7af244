"""`judged online difference`: two slices, or two periods, each difference tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import interval, log_options, once, opened, tables, where

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("difference", short_help="Slices or periods side by side, each difference tested.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME", help="A ratio.  [default: five that matter]")
@click.option("--by", multiple=True, callback=once, metavar="SLICE", help="Slice by this: variant, device, ...")
@click.option("--baseline", metavar="NAME", help="The slice that the others are compared with.  [default: the first]")
@click.option("--since", metavar="DATE", help="Without --by: when the later period begins.")
@interval
@click.option("--correction", default="holm", show_default=True, metavar="NAME", help="Of the p-values.")
@where
@log_options
@tables
@answer_options()
def command(paths: tuple[str, ...], give: Give, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare slices of LOG with a baseline, or, without --by, what came later with what was before.

    Users may be on both sides. Slices of their own making are not an experiment.
    """
    from judged.online.difference import difference

    with opened(paths, give, options) as log:
        found = difference(log, metrics or None, **options)
    give(found)
