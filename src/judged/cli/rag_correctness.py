"""`judged rag correctness`: a model says how far answers agree with right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.rag_filling import filled, filling_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("correctness", short_help="Have a model say how far answers agree with right ones.")
@filling_options("queries")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Have a model say how far each answer agrees with the references of its topic: support, partial or not.

    A reply in any other form is failed, and no verdict. First it says what will be sent, where to, and what that may
    cost. The exit code is 1 if something is left (docs/rag-judges.md).
    """
    from judged.rag.asking import prepare_correctness

    filled(context, give, prepare_correctness, paths, options)
