"""`judged rag nuggets`: a model lists what answers should say, from the documents that were judged relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.rag_filling import filled, filling_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("nuggets", short_help="Have a model list what answers should say.")
@filling_options("queries", "texts", verdicts=False)
@click.option("--qrels", required=True, metavar="QRELS", help="Judgments: nuggets are made from relevant documents.")
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="GRADE", help="The lowest relevant grade.")
@click.option("--depth", type=click.IntRange(1), default=10, show_default=True, help="So many documents of a topic.")
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, help="The most nuggets of a topic.")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Have a model list the nuggets of each topic of RESPONSES that has none: facts of 1 to 12 words, vital or okay.

    They are made from the documents that QRELS call relevant, of which those that address the judge are left out. First
    it says what will be sent, where to, and what that may cost. The exit code is 1 if something is left
    (docs/rag-judges.md).
    """
    from judged.rag.asking import prepare_nuggets

    filled(context, give, prepare_nuggets, paths, options)
