"""`judged rag explain`: how the score of one answer comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options
from judged.cli.rag_inputs import QRELS, RESPONSES, responses_at

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("explain", short_help="Show the pieces that the score of one answer is made of.")
@RESPONSES
@click.option("-t", "--topic", metavar="ID", required=True, help="The topic.")
@click.option("-m", "--measure", metavar="NAME", required=True, help="A measure, such as NuggetRecall.")
@QRELS
@answer_options()
def command(responses: tuple[str, ...], topic: str, measure: str, qrels: str | None, give: Give) -> None:
    """Show nugget by nugget, sentence by sentence or citation by citation how the score of one answer comes about.

    RESPONSES is a folder or a file; NAME=PATH takes the system NAME.
    """
    from judged.rag import explain

    given = responses_at(responses)
    give.keep(*responses, qrels)
    give(explain(given, measure, topic=topic, qrels=qrels))
