"""`judged pool`: how fair the pool is to a run that did not contribute to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli import inputs, output
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.uncertainty import LeaveOneOut

_FORMS = ("table", "markdown", "json", "csv", "latex")


@click.command("pool")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared("measures")
@click.option(
    "--pool-depth",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many documents of each run and topic were judged.",
)
@click.option(
    "--group",
    multiple=True,
    metavar="RUN=GROUP",
    help="Runs of one group are left out together, as they find the same documents. Repeat for more.",
)
@shared("depth")
@click.option("--format", "form", type=click.Choice(_FORMS), default="table", show_default=True, help="Form.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    pool_depth: int,
    group: tuple[str, ...],
    depth: int | None,
    form: str,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Score each RUN as if it had not contributed to the pool.

    The judgments of documents that a run alone has among its first documents are taken away. What it loses then, a
    new run, which contributed nothing, is undervalued by.
    """
    from judged.data import Qrels
    from judged.uncertainty import leave_one_out

    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [qrels, *(run.where for run in given)])
    found = leave_one_out(
        Qrels.read(qrels, format=qrels_format),
        given,
        measure or ("nDCG@10", "AP"),
        pool_depth=pool_depth,
        groups=_groups(group),
        depth=depth,
    )
    output.write(_written(found, form), out)
    if form != "json":
        output.remarks(found.notes)


def _groups(texts: tuple[str, ...]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for text in texts:
        run, equals, group = text.partition("=")
        if not equals or not run or not group:
            raise InputError(f"{text!r} names no run and group", fix="write --group RUN=GROUP")
        found[run] = group
    return found or None


def _written(found: LeaveOneOut, form: str) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    table = found.table()
    made = {"markdown": table.markdown, "csv": table.csv, "latex": table.latex}.get(form)
    return table.text(width=output.width()) if made is None else made()
