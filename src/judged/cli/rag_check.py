"""`judged rag check`: what is there of answers, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.rag_inputs import responses_at, sources

if TYPE_CHECKING:
    from judged.cli.formats import Give
    from judged.cli.rag_inputs import Before


@click.command("check", short_help="What is there, what is missing, and what follows.")
@sources
@answer_options()
def command(responses: tuple[str, ...], before: Before, give: Give) -> None:
    """Say what is missing of RESPONSES or does not go together, and what can then not be measured.

    Exit code 0: no errors, warnings at most; 1: errors; 2: something cannot be read at all.
    """
    from judged.pipelines.rag import check_responses

    alone = len(responses) == 1 and not inputs.named(responses[0])[0]  # what cannot be read is then among the findings
    given = responses[0] if alone else responses_at(responses)
    runs = list(before.runs.values()) if before.runs else None
    findings = check_responses(given, before.qrels, runs=runs, corpus=before.corpus)
    give(findings)
    raise SystemExit(1 if findings.errors else 0)
