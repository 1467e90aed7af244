"""`judged clicks ips`: what logged clicks say of rankings that nobody saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, logs
from judged.cli.clicks_options import depth, level, topics
from judged.cli.formats import answer_options
from judged.cli.options import shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("ips", short_help="What logged clicks say of runs that users did not see.")
@click.argument("path", metavar="LOG")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--propensities",
    metavar="FILE",
    help="How often ranks are looked at: CSV or JSON with rank and value.  [default: estimated from LOG]",
)
@click.option("-m", "--measure", multiple=True, metavar="NAME", help="DCG@k, P@k or RBP.  [default: DCG@10, P@10]")
@click.option(
    "--clip", type=click.FloatRange(1), metavar="W", help="The largest weight of a click.  [default: none is cut]"
)
@topics
@click.option("--stratum", metavar="COLUMN", help="The column whose values the propensities are of.")
@depth
@logs.where
@level
@logs.log_options
@answer_options()
@shared("run_format")
def command(
    path: str, runs: tuple[str, ...], propensities: str | None, measure: tuple[str, ...], give: Give, **options: Any
) -> None:
    """Score RUNs by the clicks of LOG, each weighted by the inverse of how often its rank is looked at.

    The first RUN is what the others are compared with. What was never shown has no clicks. Intervals allow for the
    error of propensities that are estimated from LOG, and take others as known.
    """
    from judged.online.clicks import ips

    given = inputs.runs_at(runs, options.pop("run_format"))
    give.keep(propensities, options["topics"], *(run.where for run in given))
    asked = {"measures": measure} if measure else {}
    with logs.opened((path,), give, options) as log:
        found = ips(log, given, propensities, **asked, **options)
    give(found)
