"""`judged advise`: which measures suit these judgments and runs, which do not, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli import inputs, output

if TYPE_CHECKING:
    from judged.advice import Advice

_TASKS = (
    "single-answer", "many-relevant", "graded", "coverage", "first-stage", "rag", "recommendation", "diversity",
    "assessors", "preferences", "set",
)  # fmt: skip
_FORMS = {"": "table", ".txt": "table", ".json": "json", ".md": "markdown"}
_WIDTH = 100  # of text that goes into a pipe or a file


@click.command("advise")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--task", type=click.Choice(_TASKS), help="What the system is for.  [default: what the data seem to be made for]"
)
@click.option(
    "--rel", type=float, metavar="GRADE", help="The lowest grade that is relevant.  [default: chosen by the scale]"
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "markdown"]), help="Form: a table, or what -o ends in."
)
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@click.option("--run-format", metavar="FORMAT", help="Format of the runs, if it is not found by itself.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    task: str | None,
    rel: float | None,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Say which measures suit QRELS and RUNs, which do not, and why.

    The advice names the facts of the data and the papers that it rests on, and the command to run next.
    """
    from dataclasses import replace

    from judged.advice import advise
    from judged.data import Qrels

    chosen = form or inputs.form_of(out, _FORMS)
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [qrels, *(run.where for run in given)])
    options = [("--qrels-format", qrels_format), ("--run-format", run_format)]
    advice = replace(
        advise(Qrels.read(qrels, format=qrels_format), given, task, rel=rel),
        options=tuple(word for name, value in options if value for word in (name, value)),
    )
    output.write(_rendered(advice, chosen, to_file=out is not None), out)


def _rendered(advice: Advice, form: str, *, to_file: bool) -> str:
    if form == "json":
        import json

        return json.dumps(advice.to_dict(), indent=2, ensure_ascii=False)
    if form == "markdown":
        return advice.markdown()
    return advice.text((None if to_file else output.width()) or _WIDTH)
