"""`judged review`: which judgments people should look at again, and the judgments that come back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.narrowing import traced
from judged.cli.options import FORMATS, shared
from judged.cli.slicing import SliceOptions, slice_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.review.result import ReviewList

_FORMS = ("table", "csv", "jsonl", "tsv", "markdown", "json")
_SUFFIX = {"": "table", ".txt": "table", ".csv": "csv", ".jsonl": "jsonl", ".tsv": "tsv", ".md": "markdown"}
_KINDS = ("false-positive", "false-negative", "unjudged")


@click.command("review", short_help="List the judgments that are worth a second look.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="What labels matter to.")
@click.option("--at", "k", type=int, metavar="K", help="Documents of each topic that are shown.  [default: the cutoff]")
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="N", help="The lowest relevant grade.")
@click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="List this kind only. Repeat for more.")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help="List so many labels; 0 for all.")
@click.option("--docs", metavar="FILE", help="Documents with doc_id, title, text: JSONL, CSV, TSV or Parquet.")
@slice_options
@click.option("--depth", type=int, metavar="N", help="Use only the first N documents of each topic.")
@click.option(
    "--ties",
    type=click.Choice(["docid", "docid-rising", "stable", "rank"]),
    default="docid",
    show_default=True,
    help="Order of equal scores.",
)
@click.option(
    "--apply",
    "reviewed",
    metavar="FILE",
    help="In place of RUNs: put the new grades of a list that was filled in into QRELS, and write them to -o.",
)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    reviewed: str | None,
    asked: SliceOptions,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """List labels of QRELS that people should look at again, by how much they matter to the scores of RUNs.

    Documents that a run shows and that are not relevant or not judged, and relevant ones that it does not show. The
    form 'tsv' has an empty column for new grades; 'judged review QRELS --apply FILE -o NEW' puts them into QRELS.
    """
    if reviewed is not None:
        _apply(qrels, runs, reviewed, out, qrels_format)
        return
    chosen = form or inputs.form_of(out, {**_SUFFIX, ".json": "json"})
    made = _listed(qrels, runs, asked, out, qrels_format, run_format, options)
    output.write(traced(_written(made, chosen, shown=out is None), chosen, asked.where), out)
    output.remarks(made.warnings)


def _listed(
    qrels: str,
    runs: tuple[str, ...],
    asked: SliceOptions,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    options: dict[str, Any],
) -> ReviewList:
    from judged.data import Qrels
    from judged.diagnosis.review.making import review
    from judged.diagnosis.review.rows import KINDS

    if not runs:
        raise InputError("no run is given", fix="name one or more behind QRELS")
    if options["limit"] < 0:
        raise InputError(f"a limit of {options['limit']} makes no sense", fix="give a whole number, 0 for all")
    given = inputs.runs_at(runs, run_format)
    docs = options.pop("docs")
    inputs.keep_inputs(out, [qrels, docs or "", *asked.paths, *(run.where for run in given)])
    judgments = asked.narrowed(Qrels.read(qrels, format=qrels_format), given[0])
    kinds = [kind.replace("-", " ") for kind in options.pop("kinds")] or KINDS
    limit = options.pop("limit") or None
    cut = asked.slicing(judgments, given[0])
    return review(judgments, given, kinds=kinds, limit=limit, queries=asked.queries, docs=docs, slicing=cut, **options)


def _apply(qrels: str, runs: tuple[str, ...], reviewed: str, out: Path | None, qrels_format: str | None) -> None:
    from judged.data import Qrels
    from judged.data.write import write_qrels
    from judged.diagnosis.review.forms import apply_review

    if runs:
        raise InputError("--apply takes no run", fix="leave out the runs: judged review QRELS --apply FILE -o NEW")
    if out is None:
        raise InputError("--apply writes judgments", fix="name a file for them: -o NEW.qrels")
    inputs.keep_inputs(out, [qrels, reviewed])
    old = Qrels.read(qrels, format=qrels_format)
    new = apply_review(old, reviewed)
    write_qrels(new, out)
    changed = int((new.grades[: len(old)] != old.grades).sum())
    grades = "1 grade" if changed == 1 else f"{changed} grades"
    click.echo(f"{grades} changed, {len(new) - len(old)} added: {out}", err=True)


def _written(made: ReviewList, form: str, *, shown: bool) -> str:
    if form == "json":
        import json

        return json.dumps(made.to_dict(), indent=2, ensure_ascii=False)
    return made.text(width=output.width() if shown else None) if form == "table" else getattr(made, form)()
