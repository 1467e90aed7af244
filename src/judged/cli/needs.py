"""`judged needs`: systems by need, where several queries word the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.cli.slice_options import SliceOptions
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("needs", short_help="Score RUNs by information need, where several queries express the same one.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--needs", "mapping", metavar="FILE", help="Table with the columns query_id and need.")
@click.option(
    "--queries", metavar="FILE", help="Texts of the queries; without --needs, a column of this file names the need."
)
@click.option(
    "--column", metavar="NAME", help="The column that names the need.  [default: need, topic_id, or the only one]"
)
@shared("measures")
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="How many of the needs that vary most to show.",
)
@click.option(
    "--cutoff",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many documents of each ranking to compare.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the resamples of the tests.")
@shared("dialect", "topics", "ties", "exclude_self", "documents", "rel", "attributes", "where")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str, runs: tuple[str, ...], mapping: str | None, measure: tuple[str, ...], give: Give, **options: Any
) -> None:
    """Score RUNs by information need, where several queries express the same one: mean, worst wording and consistency.

    Each need counts once. QRELS may be by query or by need; the judgments of a need apply to each of its queries.
    """
    from judged.data.topics import Topics
    from judged.diagnosis.needs.likeness import by_variant, needs_of
    from judged.diagnosis.needs.needs import needs

    queries, attributes = options["queries"], options["attributes"]
    if mapping is None and queries is None:
        raise InputError("nothing says which queries express the same need", fix="give --needs FILE or --queries FILE")
    if attributes is not None and options["where"] is None:
        raise InputError("--attributes goes with --where", fix="say which queries: --where \"kind == 'law'\"")
    judgments, given = give.inputs(qrels, runs, options, mapping, queries, options["documents"], attributes)
    options["queries"] = texts = None if queries is None else Topics.read(queries)
    if options["where"] is not None:
        asked = SliceOptions(attributes=attributes, queries=queries, where=options["where"])
        by_query, _ = by_variant(judgments, needs_of(mapping or texts, options["column"]))
        first = next((run for run in given if run.name == options["baseline"]), given[0])
        options["attributes"] = asked.known(by_query, first)
        output.notes(map(str, asked.notes(first)))
    with inputs.progress_bar(given) as progress:
        give(needs(judgments, given, mapping or texts, measure or None, progress=progress, **options))
