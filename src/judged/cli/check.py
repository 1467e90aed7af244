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
@shared(*FORMATS)
def command(qrels: str, runs: tuple[str, ...], give: Give, qrels_format: str | None, run_format: str | None) -> None:
    """Look in QRELS and RUNs for anything that would make numbers wrong.

    Exit code 0: no errors, warnings at most; 1: errors; 2: a file cannot be read at all.
    """
    from judged.data.check_files import check

    give.keep(qrels, *runs)
    findings = check(qrels, runs, qrels_format=qrels_format, run_format=run_format)
    give(findings)
    raise SystemExit(1 if findings.errors else 0)
