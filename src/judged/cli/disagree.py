"""`judged disagree`: where two measures prefer different systems, and what they see there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, POLICIES, shared
from judged.cli.slice_options import SliceOptions, slice_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("disagree", short_help="Show where two measures prefer different systems, and why.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="The two measures: give -m twice.  [default: nDCG@10, R@100]"
)
@click.option(
    "--pair",
    nargs=2,
    metavar="NAME NAME",
    help="The two systems, by run name.  [default: the two that the measures disagree on most]",
)
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, help="How many topics to look into.")
@slice_options
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str, runs: tuple[str, ...], measure: tuple[str, ...], asked: SliceOptions, give: Give, **options: Any
) -> None:
    """Show where two measures prefer different systems: on which topics, on what evidence, and why.

    On the topics that pull the two means furthest apart, the judged documents are compared, to show what one measure
    sees and the other does not.
    """
    from judged.diagnosis.disagreement.disagree import disagree

    if len(measure) not in {0, 2}:
        many = "only one measure is given" if len(measure) == 1 else f"{len(measure)} measures are given"
        raise InputError(many, fix="name two, such as -m nDCG@10 -m R@100")
    documents, pair = options["documents"], options["pair"]
    judgments, given = give.inputs(qrels, runs, options, documents, *asked.paths)
    first = next((run for run in given if pair and run.name == pair[0]), given[0])
    judgments, slicing = asked.applied(judgments, first, documents)
    with inputs.progress_bar(given) as progress:
        how = {"slicing": slicing, "queries": asked.queries, "progress": progress}
        answer = disagree(judgments, given, measure or ("nDCG@10", "R@100"), **how, **options)
    give(answer, notes=map(str, asked.notes(first)))
