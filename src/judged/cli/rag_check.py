"""`judged rag check`: what is there of answers, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options
from judged.cli.rag_sources import before, ids, sources

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("check", short_help="What is there, what is missing, and what follows.")
@sources
@answer_options()
def command(
    responses: str,
    qrels: str | None,
    runs: tuple[str, ...],
    corpus: str | None,
    qrels_format: str | None,
    run_format: str | None,
    give: Give,
) -> None:
    """Say what is missing of RESPONSES or does not go together, and what can then not be measured.

    Exit code 0: no errors, warnings at most; 1: errors; 2: something cannot be read at all.
    """
    from judged.data.qrels import Qrels
    from judged.rag import check_responses

    judgments = None if qrels is None else Qrels.read(qrels, format=qrels_format)
    named = before(runs, run_format)
    findings = check_responses(responses, judgments, runs=list((named or {}).values()) or None, corpus=ids(corpus))
    give(findings)
    raise SystemExit(1 if findings.errors else 0)
