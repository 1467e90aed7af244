"""`judged labels estimate`: what full judgments of a pool would say, from a sample of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("estimate", short_help="Estimate scores from judgments of a sample.")
@click.argument("pool")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Measure: repeatable.  [default: P@10, R@100, AP]",
)
@shared("level")
@answer_options()
@shared(*FORMATS)
def command(
    pool: str, qrels: str, runs: tuple[str, ...], measures: tuple[str, ...], give: Give, **options: Any
) -> None:
    """Estimate what judgments of the whole pool would give RUNs, from QRELS of the sample POOL.

    POOL is a CSV file of 'judged pool --sample'. Sums over documents are estimated without bias, R and AP nearly so.
    """
    from judged.labels import Pool, estimate

    judgments, given = give.inputs(qrels, runs, options, pool)
    give(estimate(Pool.read(pool), judgments, given, measures or ("P@10", "R@100", "AP"), **options))
