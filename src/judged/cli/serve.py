"""`judged serve`: the workbench in the browser."""

from __future__ import annotations

import click


@click.command("serve")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(qrels: str | None, runs: tuple[str, ...]) -> None:
    """Open the workbench: look at QRELS and RUNs in the browser; without files, at the sample."""
    del qrels, runs
