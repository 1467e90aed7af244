"""`judged leave-one-out`: how fair the pool is to a run that did not contribute to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("leave-one-out")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared("measures")
@click.option(
    "--pool-depth",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many documents of each run were judged for each topic.",
)
@click.option(
    "--group",
    multiple=True,
    metavar="RUN=GROUP",
    help="Leave out the runs of one group together, since they find the same documents. Repeat for more.",
)
@shared("depth", "rel")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    group: tuple[str, ...],
    give: Give,
    **options: Any,
) -> None:
    """Score each RUN as if it had not contributed to the pool.

    The judgments of documents that only this run has among its first documents are removed. What the run loses shows
    by how much a new run, which contributed nothing, is undervalued.
    """
    from judged.results.notes import lines
    from judged.scoring.evaluation.inputs import measures_of
    from judged.scoring.evaluation.notes import origin_notes
    from judged.scoring.uncertainty.pools import leave_one_out

    wanted = measures_of(measure or ("nDCG@10", "AP"), rel=options.pop("rel"))

    judgments, given = give.inputs(qrels, runs, options)
    notes = lines(origin_notes(judgments.origin))
    give(leave_one_out(judgments, given, wanted, groups=groups_of(group), **options), notes=notes)


def groups_of(texts: tuple[str, ...]) -> dict[str, str] | None:
    """Read RUN=GROUP, given several times."""
    found: dict[str, str] = {}
    for text in texts:
        run, equals, group = text.partition("=")
        if not equals or not run or not group:
            raise InputError(f"{text!r} does not name a run and its group", fix="write --group RUN=GROUP")
        found[run] = group
    return found or None
