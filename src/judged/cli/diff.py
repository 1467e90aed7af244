"""`judged diff`: two rankings side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.giving import answer_options
from judged.cli.narrowing import narrowed
from judged.cli.options import CHOICE, FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.giving import Give


@click.command("diff", short_help="Show two rankings side by side, topic by topic.")
@click.argument("qrels")
@click.argument("first", metavar="RUN_A")
@click.argument("second", metavar="RUN_B")
@click.option(
    "-t", "--topic", "named", multiple=True, metavar="ID", help="A topic. Repeat for more.  [default: see --show]"
)
@click.option("-m", "--measure", multiple=True, metavar="NAME", help="A measure. Repeat for more.  [default: nDCG@10]")
@click.option("--depth", type=click.IntRange(1), default=10, show_default=True, help="How far down lists are shown.")
@click.option(
    "--show",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Without --topic: show so many topics each way that differ most by the first measure.",
)
@shared("docs", *CHOICE, "order")
@click.option("--ascii", "ascii_only", is_flag=True, help="Mark moves with plain characters.")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    first: str,
    second: str,
    named: tuple[str, ...],
    measure: tuple[str, ...],
    queries: str | None,
    attributes: str | None,
    where: str | None,
    ascii_only: bool,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Show RUN_A and RUN_B side by side, topic by topic: what moved, what is relevant, and what that did to the score.

    Without --topic, the topics whose scores differ most are shown, for RUN_B and against it.
    """
    from judged.data import Qrels
    from judged.diagnosis.diff.side_by_side import diff

    given = inputs.runs_at([first, second], run_format)
    if len(given) != 2:
        names = ", ".join(run.name for run in given)
        raise InputError(f"there are {len(given)} runs in these files: {names}", fix="give files with one run each")
    give.keep(qrels, options["docs"], queries, attributes, *(run.where for run in given))
    judgments = Qrels.read(qrels, format=qrels_format)
    judgments = narrowed(judgments, given, attributes=attributes, queries=queries, where=where)
    options |= {"measure": measure or "nDCG@10", "queries": queries}
    give(diff(judgments, given[0], given[1], list(named) or None, **options), where=where, ascii_only=ascii_only)
