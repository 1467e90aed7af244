"""`judged agree`: how far several judges agree, and what their disagreement does to systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.cli.formats import Give
    from judged.data.qrels import Qrels


@click.command("agree")
@click.argument("qrels", nargs=-1, required=True, metavar="QRELS QRELS...")
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", help="A run to score with each judge's grades. Repeat for more."
)
@click.option(
    "-m",
    "--measure",
    multiple=True,
    metavar="NAME",
    help="A measure to score the runs by. Repeat for more.  [default: nDCG@10]",
)
@click.option(
    "--rel",
    multiple=True,
    metavar="[NAME=]N",
    help="Count grades of N and above as 1 and all others as 0, for all judges or for the one named. Repeat for more.",
)
@click.option(
    "--scale",
    type=click.Choice(["nominal", "ordinal", "interval"]),
    default="ordinal",
    show_default=True,
    help="The scale on which Krippendorff's alpha treats grades.",
)
@click.option(
    "--own", is_flag=True, help="Score runs with everything that each judge judged, not only what both judged."
)
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@shared("depth", "order")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: tuple[str, ...],
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    rel: tuple[str, ...],
    per_topic: bool,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Compare the judgments of several judges.

    Each pair of judges is compared on what both judged: kappa, weighted kappas and Krippendorff's alpha, with
    intervals over topics. With runs, also on how they rank the systems: tau, tau_AP, and how many pairs of systems
    swap places. NAME=FILE names a judge or a run.
    """
    from judged.comparison.agreement import agree

    judges = [_judge(text, qrels_format) for text in qrels]
    given = inputs.runs_at(runs, run_format)
    give.keep(*(judge.where for judge in judges), *(run.where for run in given))
    found = agree(*judges, runs=given, measures=measure or ("nDCG@10",), rel=_levels(rel), **options)
    give(found, unfold=["topics"] if per_topic else (), table="results")


def _judge(text: str, qrels_format: str | None) -> Qrels:
    from judged.data.qrels import Qrels

    name, path = inputs.named(text)
    return Qrels.read(path, format=qrels_format, name=name or None)


def _levels(texts: tuple[str, ...]) -> float | Mapping[str, float] | None:
    """Read N for all judges, or NAME=N for each."""
    if not texts:
        return None
    named: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            named[name] = read_number(number)
        except ValueError:
            raise InputError(f"{number!r} is not a grade", fix="write --rel N or --rel NAME=N") from None
    if "" in named and len(texts) > 1:
        raise InputError("--rel N is for all judges, but there is another --rel beside it", fix="name a judge in each")
    return named.get("", named)
