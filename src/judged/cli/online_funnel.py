"""`judged online funnel`: how far searches come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import interval, log_options, once, opened, tables, where

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("funnel", short_help="From search to click, cart and purchase, by slice.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--row", type=click.Choice(["session", "page"]), default="session", show_default=True, help="What is followed."
)
@click.option("--by", multiple=True, callback=once, metavar="SLICE", help="Slice by this: device, variant, ...")
@interval
@where
@log_options
@tables
@answer_options()
def command(paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Follow the searches of LOG to a click, to the cart and to a purchase, as far as the log holds these."""
    from judged.online.funnel import funnel

    with opened(paths, give, options) as log:
        found = funnel(log, **options)
    give(found)
