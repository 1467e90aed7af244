"""`judged clicks judge`: judgments made of clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.clicks_options import judging, level
from judged.cli.formats import answer_options
from judged.cli.options import shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("judge", short_help="Make judgments of clicks, with how sure they are.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@judging
@click.option(
    "--grading",
    type=click.Choice(["value", "lower", "people"]),
    help="Grades are values; or whole, by the lower end of their interval; or what people would give."
    "  [default: people with --gold, or else value]",
)
@click.option("--gold", metavar="QRELS", help="Judgments by people of some of the pairs.")
@level
@logs.log_options
@answer_options(trec=".txt")
@shared("qrels_format")
def command(paths: tuple[str, ...], gold: str | None, qrels_format: str | None, give: Give, **options: Any) -> None:
    """Make judgments of the clicks of LOG.

    As CSV (-o FILE.csv) they are read as judgments by every command, with what 'judged clicks evaluate' needs, and as
    labels by 'judged labels import'; as qrels of TREC (-o FILE.txt) they lose how sure they are.
    """
    from judged.data.origin import write_origin
    from judged.data.qrels import Qrels
    from judged.online.clicks import judge_clicks

    give.keep(gold, options["propensities"], options["topics"])
    people = None if gold is None else Qrels.read(gold, format=qrels_format)
    with logs.opened(paths, give, options) as log:
        found = judge_clicks(log, gold=people, **options)
    give(found)
    if give.out is not None and give.form in {"trec", "csv"}:
        write_origin(found.qrels.origin, give.out)
