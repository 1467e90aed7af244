"""A command with the shared options and formats of judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.interface.arguments import answer_options, runs_at
from judged.interface.options import shared
from judged_example.longest import longest as longest_ranking

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.command("longest")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@answer_options()
@shared("run_format")
def longest(runs: tuple[str, ...], run_format: str | None, output: OutputOptions) -> None:
    """Show the longest ranking of each RUN."""
    output(longest_ranking(runs_at(runs, run_format)))
