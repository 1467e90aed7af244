"""`judged power`: which differences the topics at hand could show, and how many topics a difference takes."""

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


@click.command("power", short_help="Show which differences between runs these topics could detect.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@shared("measures")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Significance level of the two-sided paired t-test."
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    help="Probability of detecting a true difference.",
)
@click.option(
    "--difference", type=float, metavar="D", help="Also show how many topics it takes to detect a true difference of D."
)
@click.option(
    "--n",
    type=click.IntRange(1),
    metavar="N",
    help="Plan for N topics, instead of the number that the runs have scores for.",
)
@click.option(
    "--sd",
    type=float,
    metavar="S",
    help="Instead of QRELS and RUNs: the standard deviation of the differences by topic.",
)
@click.option("--pairs", is_flag=True, help="Show every pair of runs.")
@shared(*CHOICE)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    n: int | None,
    sd: float | None,
    pairs: bool,
    give: Give,
    **asked: Any,
) -> None:
    """Show which differences between runs these topics could detect.

    How much the difference between two RUNs varies from topic to topic decides which true difference a test would
    detect; the observed mean difference plays no part. Without files, give --sd and --n.
    """
    from judged.comparison.plans import Plans
    from judged.scoring.evaluation import evaluate
    from judged.stats.plans import plan_of_sd

    formats = {name: asked.pop(name) for name in FORMATS}
    chooses = {name: asked.pop(name) for name in CHOICE}
    if qrels is None and (chosen := [f"--{name}" for name, value in chooses.items() if value]):
        raise InputError(f"{chosen[0]} goes with QRELS and RUNs", fix="leave it out")
    if sd is not None:
        if qrels is not None or n is None:
            raise InputError("--sd replaces QRELS and RUNs, and needs --n", fix="give --sd S --n N, and no files")
        give(Plans({"(given)": plan_of_sd(sd, n, **asked)}))
        return
    if qrels is None or not runs:
        raise InputError("QRELS and RUNs are missing", fix="name the files, or give --sd and --n")
    judgments, given = give.inputs(qrels, runs, formats, chooses["queries"], chooses["attributes"])
    if len(given) < 2:
        raise InputError(
            "with one run there are no differences to plan from", fix="give at least two runs, or --sd and --n"
        )
    wanted = measure or ("nDCG@10", "AP")
    judgments, known = narrowed(judgments, given, **chooses, measures=wanted)
    with inputs.scoring(given) as progress:
        scores = evaluate(judgments, given, wanted, attributes=known, progress=progress)
    give(scores.power(n=n, **asked), unfold=["pairs"] if pairs else (), table="pairs" if pairs else None)
