"""`judged tradeoff`: what runs gain against what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.giving import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.giving import Give


@click.command("tradeoff", short_help="Set what RUNs gain against what they cost.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores", metavar="FILE", help="In place of QRELS and RUNs: what 'judged evaluate -o FILE.parquet' saved."
)
@click.option("--costs", required=True, metavar="FILE", help="A column run, and a column of numbers for each cost.")
@click.option("-m", "--measure", metavar="NAME", help="A measure.  [default: nDCG@10; with --scores: their first]")
@click.option("--baseline", metavar="RUN", help="Compare with this run.  [default: the cheapest]")
@click.option("--cost", multiple=True, metavar="NAME", help="This cost counts. Repeat for more.  [default: all]")
@click.option(
    "--higher-is-better", multiple=True, metavar="NAME", help="A cost of which more is better, as throughput."
)
@shared("rel")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of intervals.")
@click.option("--resamples", type=int, default=10_000, show_default=True, help="Resamples of the paired test.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: str | None,
    rel: float | None,
    costs: str,
    measure: str | None,
    cost: tuple[str, ...],
    give: Give,
    **options: Any,
) -> None:
    """Set what RUNs gain against what they cost: intervals, gain for each unit of cost, and the Pareto front.

    COSTS is CSV, TSV, JSON, JSONL or Parquet. Less cost is better; what is not known stays unknown.
    """
    from judged.evaluation import Scores, evaluate

    give.keep(costs, scores, qrels)
    if bool(scores) == bool(qrels):
        problem = "QRELS and RUNs, or --scores, say what is compared"
        raise InputError(problem, fix="give one of the two")
    if scores and rel is not None:
        raise InputError("--rel cannot change scores that were already made", fix="give it to 'judged evaluate'")
    formats = {name: options.pop(name) for name in FORMATS}
    judgments, given = give.inputs(qrels, runs, formats) if qrels else (None, [])
    if qrels and not given:
        raise InputError("no run is given", fix="name two runs or more behind QRELS")
    with inputs.scoring(given) as progress:
        ranked = judgments, given, measure or "nDCG@10"
        table = Scores.load(scores) if scores else evaluate(*ranked, rel=rel, progress=progress)
    give(table.tradeoff(costs, measure=measure, cost=cost or None, **options))
