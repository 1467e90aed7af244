"""`judged matrix`: slices and topics by two measures, to tell bad candidates from bad ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, POLICIES, shared
from judged.cli.slice_options import SliceOptions, slice_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("matrix", short_help="Tell bad candidates from bad ranking, by slice and topic.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-x", default="R@100", show_default=True, metavar="NAME", help="The horizontal measure, of the candidates."
)
@click.option(
    "-y", default="nDCG@10", show_default=True, metavar="NAME", help="The vertical measure, of the final ranking."
)
@click.option(
    "--baseline",
    metavar="RUN",
    help="The run that the others are compared with, and whose means are the cuts.  [default: the first]",
)
@click.option("--cuts", metavar="X,Y", help="Cuts to use instead of the baseline's means.")
@shared("level", "fdr", "resamples")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the resamples.")
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@click.option("--per-run", is_flag=True, help="Show every run in full, where more than 4 would be summarised.")
@slice_options
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    baseline: str | None,
    cuts: str | None,
    per_topic: bool,
    per_run: bool,
    asked: SliceOptions,
    give: Give,
    **options: Any,
) -> None:
    """Place RUNs, their slices and topics by two measures: one of the candidates, one of the final ranking.

    Low on -y alone: found, but ranked badly. Low on -x alone: not found, or not judged. A slice is called low only if
    its whole interval lies below the cut.
    """
    from judged.diagnosis.matrix.matrix import cuts_of, matrix

    judgments, given = give.inputs(qrels, runs, options, options["documents"], *asked.paths)
    first = next((run for run in given if run.name == baseline), given[0])
    judgments, slicing = asked.applied(judgments, first)
    with inputs.progress_bar(given) as progress:
        how = {"baseline": baseline, "cuts": cuts_of(cuts or ""), "slicing": slicing, "progress": progress}
        answer = matrix(judgments, given, **how, **options)
    unfold = [*(["topics"] if per_topic else []), *(["points", "changes", "sentences"] if per_run else [])]
    table = "topics" if per_topic or answer.slicing is None else "points"
    give(answer, unfold=unfold, table=table, notes=map(str, asked.notes(first)))
