"""`judged rag explain`: how the score of one answer comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options
from judged.cli.rag_inputs import QRELS, RESPONSES, responses_at

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("explain", short_help="Show one answer, or the pieces of its score.")
@RESPONSES
@click.option("-t", "--topic", metavar="ID", required=True, help="The topic.")
@click.option("-m", "--measure", metavar="NAME", help="The measure; without one, the answer itself.")
@QRELS
@answer_options()
def command(responses: tuple[str, ...], topic: str, measure: str | None, qrels: str | None, give: Give) -> None:
    """Show how the score of one answer comes about, nugget by nugget, sentence by sentence or citation by citation.

    Without a measure: what it says, what supports that, what it was given, and what it should say. NAME=PATH takes one
    of several systems.
    """
    from judged.pipelines.rag import explain

    given = responses_at(responses)
    give.keep(*responses, qrels)
    give(explain(given, measure, topic=topic, qrels=qrels))
