"""`judged clicks coec`: clicks over those that ranks let expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.clicks_options import depth, dwell, level, propensities
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("coec", short_help="Clicks over those that ranks let expect, by query and document.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--counting",
    type=click.Choice(["clicks", "satisfied", "purchases"]),
    default="clicks",
    show_default=True,
    help="What counts as a click.",
)
@dwell
@propensities
@click.option("--by", metavar="COLUMN", help="What tells queries apart.  [default: the column topic, or texts]")
@click.option("--stratum", metavar="COLUMN", help="Expect clicks by the ranks of each value of this column.")
@depth
@logs.where
@level
@logs.log_options
@answer_options()
def command(paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Count clicks of each query and document against what the ranks that it was shown at let expect."""
    from judged.online.clicks import coec

    give.keep(options["propensities"])
    with logs.opened(paths, give, options) as log:
        found = coec(log, **options)
    give(found)
