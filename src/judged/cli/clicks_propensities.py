"""`judged clicks propensities`: how often users look at each rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.clicks_options import depth, level
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("propensities", short_help="How often each rank is looked at, without a model of clicks.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("--stratum", metavar="COLUMN", help="Estimate each value of this column apart: device, layout, ...")
@click.option(
    "--randomised/--all",
    "randomised",
    default=None,
    help="Count only results that were put where they are by chance, or all.  [default: the former, where logged]",
)
@click.option("--by", metavar="COLUMN", help="What tells queries apart.  [default: the column topic, or texts]")
@depth
@logs.where
@level
@logs.log_options
@answer_options()
def command(paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Estimate how often users look at each rank, against rank 1, from results that stood at several ranks.

    As CSV or JSON it is a file for --propensities. Ranks that no result joins are refused: then swap results on a share
    of pages, or look at fewer ranks.
    """
    from judged.online.clicks import propensities

    with logs.opened(paths, give, options) as log:
        found = propensities(log, **options)
    give(found)
