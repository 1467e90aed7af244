"""The commands `judged pool` and `judged collection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.commands.scoring import parse_groups
from judged.interface.options import FORMATS, shared
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.group("collection")
def collection() -> None:
    """Look at judgments and the runs that they were made from as a test collection."""


@collection.command("check", short_help="Say how far judgments reach, to whom they are fair, and what they can detect.")
@shared("qrels", "runs")
@shared("measure", help="By which runs are compared.")
@shared("cutoff", help="Of documents to be judged.")
@shared("pool_depth", default=10)
@shared("group")
@click.option("--labels", metavar="LABELS", help="Who gave the judgments: a store of labels, or a table of them.")
@answer_options()
@shared(*FORMATS)
def check(qrels: str, runs: tuple[str, ...], group: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Say what QRELS can tell about RUNs like those that they were made from.

    How many documents are judged, what a run loses that was not pooled, how far judges agree, what labels cost,
    and which difference could be found.
    """
    from judged.labels.collection import check_collection

    labels = options["labels"]
    judgments, run_list = output.inputs(qrels, runs, options, labels if labels and "://" not in labels else None)
    output(check_collection(judgments, run_list, groups=parse_groups(group), **options))


@click.command("pool")
@shared("runs")
@shared("depth", default=100, show_default=True, metavar="K", help="Pool the first K of each run.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Spend N labels in all where most is found (MaxMean): asks for the next ones after those of --qrels.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Draw N documents in all at random, with known probabilities, for 'judged labels estimate'.",
)
@click.option("--qrels", metavar="QRELS", help="With --budget: the labels so far.")
@shared("queries", help="Pool only the topics of this file.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --budget: how many documents of each topic to ask for at a time.",
)
@click.option(
    "--retention",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="With --budget: how much of what is known of a run remains after its next document; 1 for all.",
)
@shared("rel", default=1, show_default=True, help="With --budget: the lowest relevant grade.")
@click.option(
    "--strata",
    default="10,30",
    show_default=True,
    metavar="K,...",
    help="With --sample: best ranks at which strata end.",
)
@click.option(
    "--rates", metavar="R,...", help="With --sample: how many times as often each stratum's documents are drawn."
)
@shared("seed", "run_format")
@answer_options()
def pool_command(
    runs: tuple[str, ...], run_format: str | None, strata: str, rates: str | None, output: OutputOptions, **options: Any
) -> None:
    """Choose which documents of the RUNs to judge: all of the first K, the most promising N, or a sample of N.

    As CSV ('-o pool.csv') it is the list for judging: each pair with its stratum and probability.
    """
    from judged.data.qrels import Qrels
    from judged.labels import pool

    run_list = arguments.runs_at(runs, run_format)
    output.keep(options["qrels"], options["queries"], *(run.where for run in run_list))
    if options["qrels"] is not None:
        options["qrels"] = Qrels.read(options["qrels"])
    options["strata"] = [int(end) for end in _parse_numbers("--strata", strata)]
    options["rates"] = None if rates is None else _parse_numbers("--rates", rates)
    output(pool(run_list, **options))


def _parse_numbers(option: str, text: str) -> list[float]:
    try:
        return [read_number(part) for part in text.split(",") if part]
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}", fix="use numbers separated by commas") from None
