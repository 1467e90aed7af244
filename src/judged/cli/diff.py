"""`judged diff`: two rankings side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import CHOICE, FORMATS, shared
from judged.cli.slice_options import narrowed
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give

_MEASURE = "A measure. Repeat for more.  [default: nDCG@10]"


@click.command("diff", short_help="Show two rankings side by side, topic by topic.")
@click.argument("qrels")
@click.argument("first", metavar="RUN_A")
@click.argument("second", metavar="RUN_B")
@click.option(
    "-t", "--topic", "named", multiple=True, metavar="ID", help="A topic. Repeat for more.  [default: see --limit]"
)
@click.option("-m", "--measure", multiple=True, default=("nDCG@10",), metavar="NAME", help=_MEASURE)
@click.option(
    "--cutoff", type=click.IntRange(1), default=10, show_default=True, help="How many documents of each list to show."
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Without --topic: how many topics to show each way, those that differ most by the first measure.",
)
@shared("texts", *CHOICE, "order", "rel")
@click.option("--ascii", "ascii_only", is_flag=True, help="Mark moves with ASCII characters.")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str, first: str, second: str, named: tuple[str, ...], ascii_only: bool, give: Give, **options: Any
) -> None:
    """Show RUN_A and RUN_B side by side, topic by topic: what moved, what is relevant, and what that did to the score.

    Without --topic, the topics whose scores differ most are shown, in favour of RUN_B and against it.
    """
    from judged.diagnosis.diff.diff import diff
    from judged.scoring.evaluation.inputs import measures_of

    chosen = {name: options.pop(name) for name in ("attributes", "where")} | {"queries": options["queries"]}
    judgments, runs = give.inputs(
        qrels, (first, second), options, options["texts"], chosen["queries"], chosen["attributes"]
    )
    if len(runs) != 2:
        names = ", ".join(run.name for run in runs)
        raise InputError(f"there are {len(runs)} runs in these files: {names}", fix="give files with one run each")
    options["measure"] = measures_of(options["measure"], rel=options.pop("rel"))
    answer = diff(narrowed(judgments, runs, **chosen)[0], runs[0], runs[1], named or None, **options)
    give(answer, ascii_only=ascii_only)
