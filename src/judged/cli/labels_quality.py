"""`judged labels quality`: how far labels can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("quality", short_help="Measure agreement, consistency, drift and what they do to systems.")
@click.argument("store")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="The measure that RUNs are scored by."
)
@click.option(
    "--gold", metavar="QRELS", help="Judgments that are known to be right.  [default: those of the tasks in STORE]"
)
@click.option(
    "--scale",
    type=click.Choice(["nominal", "ordinal", "interval"]),
    default="ordinal",
    show_default=True,
    help="The scale on which Krippendorff's alpha treats grades.",
)
@shared("level")
@shared("attributes")
@click.option("--by", metavar="NAME", help="With --attributes: also agreement by this attribute of topics.")
@answer_options()
@shared(*FORMATS)
def command(
    store: str,
    runs: tuple[str, ...],
    gold: str | None,
    attributes: str | None,
    by: str | None,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Measure how far the labels in STORE can be trusted; with RUNs, also what the disagreement does to systems.

    STORE may also be a table of labels (CSV, JSON Lines, Parquet) with query_id, doc_id, judge and grade.
    """
    from judged.comparison.slicing import slice_topics
    from judged.data.qrels import Qrels
    from judged.labels import Labels, quality

    labels = Labels.of(store)
    known = None if gold is None else Qrels.read(gold, format=qrels_format)
    given = inputs.runs_at(runs, run_format) if runs else ()
    give.keep(labels.where, *(run.where for run in given), *(path for path in (gold, attributes) if path))
    if (by is None) != (attributes is None):
        raise InputError("--by and --attributes go together", fix="give both, or neither")
    slicing = None if by is None else slice_topics(attributes, by)
    give(quality(store, given, gold=known, slicing=slicing, **options))
