"""`judged clicks off-policy`: what a ranker that users did not see would have got, from logged propensities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.clicks_options import depth, level, topics
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("off-policy", short_help="What another ranker would have got, by how likely each result was shown.")
@click.argument("path", metavar="LOG")
@click.argument("run", metavar="RUN")
@topics
@depth
@click.option("--clip", type=float, default=10.0, show_default=True, metavar="W", help="Of the clipped estimate.")
@click.option("--independent-ranks", is_flag=True, help="The table of RUN fills each rank independently of the others.")
@level
@logs.log_options
@answer_options()
def command(path: str, run: str, give: Give, **options: Any) -> None:
    """Estimate the clicks a page that RUN would have got, from a LOG that knows how likely each result was shown.

    RUN is a run, or a table with rank, doc_id and probability, if the ranker does not depend on the query. LOG, or its
    mapping, declares what the logged probabilities are: see docs/off-policy.md. Exit code 0: some estimator gives an
    interval; 1: only the direct one, or none; 2: wrong input.
    """
    from judged.online.clicks import off_policy

    give.keep(run, options["topics"])
    with logs.opened((path,), give, options) as log:
        found = off_policy(log, run, **options)
    give(found)
    if not found.overlaps:
        raise SystemExit(1)
