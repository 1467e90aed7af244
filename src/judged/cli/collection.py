"""`judged collection check`: what a test collection can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.group("collection", short_help="What a test collection can tell, and what it cannot.")
def command() -> None:
    """Look at judgments and the runs that they were made from as a test collection."""


@command.command("check", short_help="Say how far judgments reach, to whom they are fair, and what they can detect.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="By which runs are compared."
)
@click.option("--cutoff", type=click.IntRange(1), default=10, show_default=True, help="Of documents to be judged.")
@click.option(
    "--pool-depth",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many documents of each run were judged for each topic.",
)
@click.option("--group", multiple=True, metavar="RUN=GROUP", help="Leave out runs of one group together.")
@click.option("--labels", metavar="LABELS", help="Who gave the judgments: a store of labels, or a table of them.")
@answer_options()
@shared(*FORMATS)
def check(qrels: str, runs: tuple[str, ...], group: tuple[str, ...], give: Give, **options: Any) -> None:
    """Say what QRELS can tell about RUNs like those that they were made from.

    How many documents are judged, what a run loses that was not pooled, how far judges agree, what labels cost,
    and which difference could be found.
    """
    from judged.cli.leave_one_out import groups_of
    from judged.labels.collection import check_collection

    labels = options["labels"]
    judgments, given = give.inputs(qrels, runs, options, labels if labels and "://" not in labels else None)
    give(check_collection(judgments, given, groups=groups_of(group), **options))
