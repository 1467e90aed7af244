"""`judged labels qrels`: one grade for each pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Callable


def consensus_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say how grades of several judges become one."""
    kinds = click.Choice(["human", "model", "click"])
    for option in (
        click.option(
            "--min-judges", type=click.IntRange(1), default=1, show_default=True, help="Leave out other pairs."
        ),
        click.option(
            "--kind",
            "kinds",
            type=kinds,
            multiple=True,
            help="Count only these. Repeat for more.  [default: people's, if there are any]",
        ),
        click.option(
            "--by",
            default="majority",
            show_default=True,
            metavar="RULE",
            help="A judge's name; majority (of equally frequent grades the lowest); mean; dawid-skene, which weighs"
            " judges by how they err; or dawid-skene-mean.",
        ),
    ):
        function = option(function)
    return function


@click.command("qrels", short_help="Make qrels: one grade for each pair.")
@click.argument("store")
@consensus_options
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), required=True, metavar="FILE")
def command(store: str, out: Path, **options: Any) -> None:
    """Make qrels of the labels of STORE, which may also be a table of labels.

    FILE.origin.json says how they were made, and of whose labels; results that rest on FILE say it too.
    """
    from judged.data.write import write_qrels
    from judged.labels.consensus import consensus_notes, qrels_of
    from judged.results.notes import lines
    from judged.scoring.evaluation.notes import origin_notes

    inputs.keep_inputs(out, [store])
    options["kinds"] = options["kinds"] or None
    made = qrels_of(store, **options)
    write_qrels(made, out)
    click.echo(f"{counted(len(made), 'judgment')} of {counted(len(made.topics), 'topic')}: {out}")
    if made.origin is not None:
        output.notes(lines((*origin_notes(made.origin), *consensus_notes(made.origin))))
