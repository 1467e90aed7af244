"""`judged review`: which judgments people should look at again, and the judgments that come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.cli.slice_options import SliceOptions, slice_options
from judged.errors import InputError
from judged.results.decimals import counted

if TYPE_CHECKING:
    from pathlib import Path

    from judged.cli.formats import Give

_KINDS = ("false-positive", "false-negative", "unjudged")


@click.command("review", short_help="List the judgments that are worth a second look.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "-m",
    "--measure",
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="The measure whose scores the judgments matter to.",
)
@click.option(
    "--cutoff",
    type=int,
    metavar="K",
    help="How many documents of each topic a run shows.  [default: the measure's cutoff]",
)
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="N", help="The lowest relevant grade.")
@click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="List only this kind. Repeat for more.")
@click.option(
    "--limit", type=int, default=50, show_default=True, metavar="N", help="How many judgments to list; 0 for all."
)
@shared("texts")
@slice_options
@shared("depth", "order")
@click.option(
    "--apply",
    "reviewed",
    metavar="FILE",
    help="Instead of RUNs: merge the new grades of a list that was filled in into QRELS, and write the result to -o.",
)
@answer_options("reviewed", jsonl=".jsonl", tsv=".tsv")
@shared(*FORMATS)
def command(
    qrels: str, runs: tuple[str, ...], reviewed: str | None, asked: SliceOptions, give: Give, **options: Any
) -> None:
    """List the judgments of QRELS that are worth a second look, by how much they matter to the scores of RUNs.

    These are documents that a run shows although they are judged not relevant, or not judged at all, and relevant
    ones that it does not show. The format 'tsv' has an empty column for new grades; 'judged review QRELS --apply FILE
    -o NEW' merges them into QRELS.
    """
    from judged.diagnosis.review.review import review

    if reviewed is not None:
        _apply(qrels, runs, reviewed, give.out, options["qrels_format"])
        return
    if not runs:
        raise InputError("no run is given", fix="name one or more after QRELS")
    if options["limit"] < 0:
        raise InputError(f"--limit {options['limit']} is negative", fix="give a whole number, 0 for all")
    judgments, given = give.inputs(qrels, runs, options, options["texts"], *asked.paths)
    judgments, slicing = asked.applied(judgments, given[0])
    options["limit"] = options["limit"] or None
    options["kinds"] = [kind.replace("-", " ") for kind in options["kinds"] or _KINDS]
    give(review(judgments, given, queries=asked.queries, slicing=slicing, **options))


def _apply(qrels: str, runs: tuple[str, ...], reviewed: str, out: Path | None, qrels_format: str | None) -> None:
    from judged.data.qrels import Qrels
    from judged.data.write import write_qrels
    from judged.diagnosis.review.labels import apply_review

    if runs:
        raise InputError(
            "--apply does not take runs", fix="leave out the runs: judged review QRELS --apply FILE -o NEW"
        )
    if out is None:
        raise InputError("--apply writes judgments", fix="name a file for them: -o NEW.qrels")
    inputs.keep_inputs(out, [qrels, reviewed])
    old = Qrels.read(qrels, format=qrels_format)
    new = apply_review(old, reviewed)
    write_qrels(new, out)
    changed = int((new.grades[: len(old)] != old.grades).sum())
    click.echo(f"{counted(changed, 'grade')} changed, {len(new) - len(old)} added: {out}", err=True)
