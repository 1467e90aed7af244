"""`judged rag gate`: whether the answers of one system may take the place of another's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli.gate import configured, deciding, give_decision, kept
from judged.cli.rag_inputs import QRELS, responses_at
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give
    from judged.diagnosis.gates.config import GateTest


@click.command("gate", short_help="Decide whether a candidate's answers may replace the baseline's.")
@click.argument("baseline")
@click.argument("candidate")
@QRELS
@deciding("NuggetRecall")
def command(
    baseline: str,
    candidate: str,
    qrels: str | None,
    config: Path | None,
    give: Give,
    measure: tuple[str, ...],
    margin: float | None,
    margin_relative: float | None,
    strict: bool | None,
    test: GateTest | None,
    **others: Path | None,
) -> None:
    """Decide whether the answers of CANDIDATE may replace those of BASELINE, by the checks of a configuration.

    Both are folders or files with the answers of one system; NAME=PATH takes the system NAME. Checks may be of answers
    (SupportP) and of their context (R@100). Exit codes are those of 'judged gate'.
    """
    from judged.pipelines.rag import evaluate

    measures = measure or (None if config else ("NuggetRecall",))
    asked, file = configured(config, measures, margin, margin_relative, strict, test)
    parts = [responses_at([path]) for path in (baseline, candidate)]
    for role, part in zip(("baseline", "candidate"), parts, strict=True):
        if len(part.run_names) > 1:
            fix = f"name one: {part.run_names[0]}={part.where}"
            raise InputError(f"the {role} holds {len(part.run_names)} systems", fix=fix, path=part.where)
    kept(give, asked, file, [baseline, candidate, qrels or ""], others)
    wanted = [part.measure for part in (*asked.checks, *asked.guardrails) if part.measure]
    scores = evaluate(parts, wanted, qrels=qrels, unjudged=False)
    give_decision(scores.gate(*scores.run_names, asked), give, others)
