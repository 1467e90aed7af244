"""`judged tradeoff`: what runs gain against what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import CHOICE, FORMATS, shared
from judged.cli.slice_options import narrowed
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("tradeoff", short_help="Weigh what RUNs gain against what they cost.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="Instead of QRELS and RUNs: scores saved by 'judged evaluate -o FILE.parquet'. Repeat for other runs.",
)
@click.option(
    "--costs", required=True, metavar="FILE", help="Table with a column run, and a column of numbers for each cost."
)
@click.option("-m", "--measure", metavar="NAME", help="A measure.  [default: nDCG@10, or the first of --scores]")
@click.option("--baseline", metavar="RUN", help="Compare with this run.  [default: the cheapest]")
@click.option("--cost", multiple=True, metavar="NAME", help="A cost to use. Repeat for more.  [default: all]")
@click.option(
    "--higher-is-better",
    multiple=True,
    metavar="NAME",
    help="A cost of which more is better, such as throughput. Repeat for more.",
)
@shared("rel")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option(
    "--resamples", type=int, default=10_000, show_default=True, help="Number of resamples for the paired test."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the resamples.")
@shared(*CHOICE)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    rel: float | None,
    costs: str,
    measure: str | None,
    cost: tuple[str, ...],
    give: Give,
    **options: Any,
) -> None:
    """Weigh what RUNs gain against what they cost: intervals, gain per unit of cost, and the Pareto front.

    The table of costs is CSV, TSV, JSON, JSONL or Parquet. Lower costs are better; an unknown cost stays unknown.
    """
    from judged.scoring.evaluation import Scores, evaluate

    give.keep(costs, *scores, qrels)
    if bool(scores) == bool(qrels):
        problem = "either QRELS and RUNs or --scores must say what to compare"
        raise InputError(problem, fix="give one of the two")
    chooses = {name: options.pop(name) for name in CHOICE}
    if not qrels and (chosen := [f"--{name}" for name, value in chooses.items() if value]):
        raise InputError(f"{chosen[0]} goes with QRELS and RUNs", fix="leave it out")
    if scores and rel is not None:
        raise InputError("--rel cannot change scores that are already computed", fix="give it to 'judged evaluate'")
    formats = {name: options.pop(name) for name in FORMATS}
    if qrels:
        judgments, given = give.inputs(qrels, runs, formats, chooses["queries"], chooses["attributes"])
        if not given:
            raise InputError("no run is given", fix="name two or more runs after QRELS")
        wanted, measure = [measure or "nDCG@10"], None  # the only one, at the level of --rel
        judgments, known = narrowed(judgments, given, **chooses, baseline=options["baseline"], measures=wanted)
        with inputs.scoring(given) as progress:
            table = evaluate(judgments, given, wanted, rel=rel, attributes=known, progress=progress)
    else:
        saved = [Scores.load(path) for path in scores]
        table = saved[0].join(*saved[1:])
    give(table.tradeoff(costs, measure=measure, cost=cost or None, **options))
