"""`judged rag calibrate`: the verdicts of models against people's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import shared
from judged.cli.rag_inputs import MEASURES, RESPONSES, responses_at

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("calibrate", short_help="Set verdicts of models against people's: may a judge be believed?")
@RESPONSES
@click.option("--people", multiple=True, required=True, metavar="JUDGE", help="A judge who is a person; repeatable.")
@MEASURES
@click.option("--labelled", metavar="FILE", help="Topics that people judged fully, one a line.  [default: all theirs]")
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="A bias that does not matter.",
)
@shared("level")
@answer_options()
def command(
    responses: tuple[str, ...],
    people: tuple[str, ...],
    measure: tuple[str, ...],
    labelled: str | None,
    give: Give,
    **options: Any,
) -> None:
    """Say of each model that gave verdicts in RESPONSES whether its means may be reported as if people had judged.

    Means of systems are corrected by the topics that people judged, which are taken to be chosen at random and judged
    fully. Of topics that were judged twice it says how much of a mean's variance is the judge's own
    (docs/rag-judges.md).
    """
    from judged.data import files
    from judged.pipelines.rag.judge_error import calibrate

    give.keep(*responses, labelled)
    topics = None if labelled is None else files.text(labelled, labelled).split()
    give(calibrate(responses_at(responses), people, measure or None, labelled=topics, **options))
