"""`judged labels status`: how far the judging is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("status", short_help="How far the judging is.")
@click.argument("store")
@answer_options()
def command(store: str, give: Give) -> None:
    """Show tasks by judge and topic, labels by kind, and how long a label takes."""
    from judged.labels.progress import status
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        give(status(opened))
