"""`judged labels next`: which labels would decide between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("next", short_help="List the labels that would decide which of two runs is better.")
@click.argument("qrels")
@click.argument("first")
@click.argument("second")
@click.option(
    "-m",
    "--measure",
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="P, CG, DCG, RBP, nDCG or NCG, with a cutoff.",
)
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, metavar="N", help="List at most so many."
)
@click.option("--highest", type=float, metavar="GRADE", help="The highest grade of the scale.  [default: the qrels']")
@click.option(
    "--topics",
    type=click.Choice(["qrels", "run", "both"]),
    default="qrels",
    show_default=True,
    help="Which topics count: all in the qrels, those in a run, or those in both.",
)
@shared("order")
@answer_options()
@shared(*FORMATS)
def command(qrels: str, first: str, second: str, give: Give, **options: Any) -> None:
    """Say whether the labels in QRELS decide which of the runs FIRST and SECOND is better, and which to give next.

    It is decided if no grades of the unjudged documents among their first could turn it.
    """
    from judged.labels.deciding import decide

    judgments, (one, other) = give.inputs(qrels, (first, second), options)
    give(decide(judgments, one, other, **options))
