"""`judged disagree`: where two measures prefer different systems, and what they see there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.narrowing import traced
from judged.cli.options import FORMATS, POLICIES, shared
from judged.cli.slicing import SliceOptions, slice_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.disagreement.result import Disagreement

_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv"}
_DEFAULT = ("nDCG@10", "R@100")


@click.command("disagree", short_help="Show where two measures prefer different systems, and why.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="The two measures: -m twice.  [default: nDCG@10, R@100]"
)
@click.option(
    "--pair",
    nargs=2,
    metavar="NAME NAME",
    help="The two systems, by the names of their runs.  [default: those that the measures pull apart most]",
)
@click.option("--show", type=click.IntRange(1), default=5, show_default=True, help="How many topics are looked into.")
@slice_options
@shared(*POLICIES)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    pair: tuple[str, str] | None,
    show: int,
    asked: SliceOptions,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **policies: Any,
) -> None:
    """Show where two measures prefer different systems: on which topics, what it rests on, and why.

    Of the topics that pull the two means apart most, the judged documents are compared, to say what one measure
    sees there and the other does not.
    """
    from judged.data import Qrels
    from judged.diagnosis.disagreement.making import disagreement

    chosen = form or inputs.form_of(out, _SUFFIX)
    if len(measure) not in {0, 2}:
        many = "one measure is named" if len(measure) == 1 else f"{len(measure)} measures are named"
        raise InputError(many, fix="name two, such as -m nDCG@10 -m R@100")
    given = inputs.runs_at(runs, run_format)
    documents = policies["documents"] or ""
    inputs.keep_inputs(out, [qrels, documents, *asked.paths, *(run.where for run in given)])
    first = next((run for run in given if pair and run.name == pair[0]), given[0])
    judgments = asked.narrowed(Qrels.read(qrels, format=qrels_format), first)
    with inputs.progress_bar(given) as progress:
        found = disagreement(
            judgments,
            given,
            *(measure or _DEFAULT),
            pair=pair or None,
            slicing=asked.slicing(judgments, first, policies["documents"]),
            shown=show,
            queries=asked.queries,
            progress=progress,
            **policies,
        )
    output.write(traced(_written(found, chosen, shown=out is None), chosen, asked.where), out)
    if chosen != "json":
        output.remarks((*found.warnings, *map(str, asked.notes(first))))


def _written(found: Disagreement, form: str, *, shown: bool) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    if form == "csv":
        return found.long_table().csv()
    return found.markdown() if form == "markdown" else found.text(width=output.width() if shown else None)
