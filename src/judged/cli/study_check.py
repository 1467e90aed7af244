"""`judged study check`: whether a design can be run, and what it balances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("check", short_help="Check that DESIGN can be run, and what it balances.")
@click.argument("design")
@answer_options()
def command(design: str, give: Give) -> None:
    """Check that the files of DESIGN are there, what its order balances, and how long it takes a participant.

    Exit code 0: it can be run; 1: something is missing; 2: DESIGN makes no sense.
    """
    from judged.studies import check_design, read_design

    give.keep(design)
    found = check_design(read_design(design))
    give(found)
    if not found.ready:
        raise SystemExit(1)
