"""`judged check`: what is wrong with these files, where, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("check")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@answer_options()
@click.option("--texts", metavar="CORPUS", help="Also find documents that are not in this corpus.")
@shared(*FORMATS)
def command(qrels: str, runs: tuple[str, ...], give: Give, **options: str | None) -> None:
    """Look in QRELS and RUNs for anything that would make numbers wrong.

    Exit code 0: no errors, warnings at most; 1: errors; 2: a file cannot be read at all.
    """
    from judged.data.check_files import check

    give.keep(qrels, *runs, options["texts"])
    findings = check(qrels, runs, **options)
    give(findings)
    raise SystemExit(1 if findings.errors else 0)
