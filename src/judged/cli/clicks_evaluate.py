"""`judged clicks evaluate`: scores by judgments that are uncertain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli import inputs
from judged.cli.clicks_options import level
from judged.cli.formats import answer_options
from judged.cli.options import shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("evaluate", short_help="Score runs by uncertain judgments, and allow for that.")
@click.argument("qrels", metavar="JUDGMENTS")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared("measures")
@level
@click.option("--resamples", type=click.IntRange(100), default=200, show_default=True, help="How often noise is drawn.")
@shared("seed")
@answer_options()
@shared("run_format")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    level: float,
    resamples: int,
    seed: int,
    run_format: str | None,
    give: Give,
) -> None:
    """Score RUNs by JUDGMENTS that are uncertain: a table with query_id, doc_id, grade, value and se.

    'judged clicks judge LOG -o JUDGMENTS.csv' writes one. Intervals hold what topics and what judgments add, and it is
    said how much each does; means are corrected for noise, which makes an ideal ranking look better than it is. The
    first RUN is what the others are compared with.
    """
    from judged.online.clicks import evaluate_uncertain

    given = inputs.runs_at(runs, run_format)
    give.keep(qrels, *(run.where for run in given))
    give(evaluate_uncertain(qrels, given, measure or None, level=level, resamples=resamples, seed=seed))
