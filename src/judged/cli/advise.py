"""`judged advise`: which measures suit these judgments and runs, which do not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give

_TASKS = (
    "single-answer",
    "many-relevant",
    "graded",
    "coverage",
    "first-stage",
    "rag",
    "recommendation",
    "diversity",
    "assessors",
    "preferences",
    "set",
)


@click.command("advise")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--task", type=click.Choice(_TASKS), help="What the system is for.  [default: inferred from the data]")
@click.option(
    "--rel", type=float, metavar="GRADE", help="The lowest relevant grade.  [default: inferred from the grades]"
)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    task: str | None,
    rel: float | None,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Say which measures suit QRELS and RUNs, which do not, and why.

    The advice is short and ends with the command to run next. -v adds the reasons, how to read the numbers, and the
    facts about the data and the papers behind the advice.
    """
    from dataclasses import replace

    from judged.data.qrels import Qrels
    from judged.scoring.advice import advise

    given = inputs.runs_at(runs, run_format)
    give.keep(qrels, *(run.where for run in given))
    options = [("--qrels-format", qrels_format), ("--run-format", run_format)]
    advice = replace(
        advise(Qrels.read(qrels, format=qrels_format), given, task, rel=rel),
        options=tuple(word for name, value in options if value for word in (name, value)),
    )
    give(advice, unfold=[block.name for block in advice.blocks()] if give.verbose else ())
