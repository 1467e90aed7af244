"""`judged labels judges`: who may judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from judged.labels.labels import Kind


@click.command("judges", short_help="Add judges, or list them.")
@click.argument("store")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--kind",
    type=click.Choice(["human", "model", "click"]),
    default="human",
    show_default=True,
    help="Of what kind they are.",
)
def command(store: str, names: tuple[str, ...], kind: Kind) -> None:
    """Add judges to STORE and print the token that lets each into the judging page; without names, list who is there.

    A token is shown this once: only its hash is kept. Who is there already gets a new one.
    """
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        for name in names:
            click.echo(f"{name}\t{opened.add_judge(name, kind=kind)}")
        for name, known in opened.judges().items() if not names else ():
            click.echo(f"{name}\t{known}")
