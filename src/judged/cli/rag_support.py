"""`judged rag support`: a model says how far sentences are supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.rag_filling import filled, filling_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("support", short_help="Have a model say how far sentences are supported by what they cite.")
@filling_options("texts")
@click.option("--context", "context_", is_flag=True, help="By all of the context together, not by what they cite.")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], give: Give, context_: bool, **options: Any) -> None:
    """Have a model say how far each sentence is supported by each document that it cites, or by its context.

    A reply in any other form than support, partial, not or contradicts is failed, and no verdict. First it says what
    will be sent, where to, and what that may cost. The exit code is 1 if something is left (docs/rag-judges.md).
    """
    from judged.rag.asking import prepare_support

    filled(context, give, prepare_support, paths, {**options, "context": context_})
