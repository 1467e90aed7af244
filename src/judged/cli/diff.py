"""`judged diff`: two rankings side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli import inputs, output
from judged.cli.narrowing import narrowed, traced
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.diff.result import Diff
    from judged.judging import TiePolicy

_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv"}


@click.command("diff", short_help="Show two rankings side by side, topic by topic.")
@click.argument("qrels")
@click.argument("first", metavar="RUN_A")
@click.argument("second", metavar="RUN_B")
@click.option(
    "-t",
    "--topic",
    "named",
    multiple=True,
    metavar="ID",
    help="A topic. Repeat for more.  [default: those whose scores differ most, each way]",
)
@click.option(
    "-m",
    "--measure",
    multiple=True,
    metavar="NAME",
    help="A measure; the first chooses the topics. Repeat for more.  [default: nDCG@10]",
)
@click.option("--depth", type=click.IntRange(1), default=10, show_default=True, help="How far down lists are shown.")
@click.option(
    "--show",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="How many topics are shown each way, where none is named.",
)
@click.option("--docs", metavar="FILE", help="Documents with a title or text: JSONL, CSV, TSV or Parquet.")
@shared("queries", "attributes", "where")
@click.option(
    "--ties",
    type=click.Choice(["docid", "docid-rising", "stable", "rank"]),
    default="docid",
    show_default=True,
    help="Order of equal scores: by falling or rising document id, or as the run lists them; or the rank column orders"
    " all.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Mark moves with plain characters.")
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    first: str,
    second: str,
    named: tuple[str, ...],
    measure: tuple[str, ...],
    depth: int,
    show: int,
    docs: str | None,
    queries: str | None,
    attributes: str | None,
    where: str | None,
    ties: TiePolicy,
    ascii_only: bool,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Show RUN_A and RUN_B side by side, topic by topic: what moved, what is relevant, and what that did to the score.

    Without --topic, the topics whose scores differ most are shown, for RUN_B and against it.
    """
    from judged.data import Qrels
    from judged.diagnosis.diff.making import diff

    chosen = form or inputs.form_of(out, _SUFFIX)
    given = inputs.runs_at([first, second], run_format)
    if len(given) != 2:
        names = ", ".join(run.name for run in given)
        raise InputError(f"there are {len(given)} runs in these files: {names}", fix="give files with one run each")
    inputs.keep_inputs(out, [qrels, docs or "", queries or "", attributes or "", *(run.where for run in given)])
    judgments = narrowed(
        Qrels.read(qrels, format=qrels_format), given, attributes=attributes, queries=queries, where=where
    )
    found = diff(
        judgments,
        given[0],
        given[1],
        list(named) or None,
        measure=measure or "nDCG@10",
        depth=depth,
        show=show,
        docs=docs,
        queries=queries,
        ties=ties,
    )
    output.write(traced(_written(found, chosen, ascii_only=ascii_only, shown=out is None), chosen, where), out)
    if chosen != "json":
        output.remarks(found.warnings)


def _written(found: Diff, form: str, *, ascii_only: bool, shown: bool) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    if form == "csv":
        return found.documents().csv()
    if form == "markdown":
        return found.markdown()
    if not shown:
        return found.text(ascii_only=ascii_only)
    plain = ascii_only or not (sys.stdout.encoding or "").lower().startswith("utf")
    return found.text(width=output.width(), colour=output.coloured(sys.stdout.isatty()), ascii_only=plain)
