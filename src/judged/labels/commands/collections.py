"""The commands `judged pool` and `judged collection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.commands.scoring import parse_groups
from judged.interface.options import READING, shared
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.group("collection")
def collection() -> None:
    """Check the quality and the limits of a test collection."""


@collection.command(
    "check", short_help="Check the judged share, the bias against new runs, and the detectable difference."
)
@shared("qrels", "runs")
@shared("measure", help="Measure that runs are compared by.")
@shared("cutoff", help="Number of top documents per run and topic whose judged share is reported.")
@shared("pool_depth", default=10)
@shared("group")
@click.option(
    "--labels",
    metavar="LABELS",
    help="Store or table with the labels of several judges. The agreement of these judges is also reported.",
)
@answer_options()
@shared(*READING)
def check(qrels: str, runs: tuple[str, ...], group: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Check whether the judgments in QRELS can be reused to evaluate systems that are similar to the pooled RUNs.

    The check reports the share of judged documents, the score loss of a run outside the pool, and the detectable
    difference. With --labels, the check also reports the agreement of the judges and the time per label.
    """
    from judged.labels.collection import check_collection

    labels = options["labels"]
    judgments, run_list = output.inputs(qrels, runs, options, labels if labels and "://" not in labels else None)
    output(check_collection(judgments, run_list, groups=parse_groups(group), **options))


@click.command("pool")
@shared("runs")
@shared(
    "depth",
    default=100,
    show_default=True,
    metavar="K",
    help="Number of top documents of each run that are in the pool of a topic.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Total number of labels, including the existing judgments in --qrels. The bandit method MaxMean selects the"
    " documents.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Number of documents to select as a stratified random sample, for 'judged labels estimate'.",
)
@click.option("--qrels", metavar="QRELS", help="With --budget: file with the existing judgments.")
@shared("queries", help="File of topics that the pool covers.  [default: all topics of the runs]")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --budget: number of documents of a topic to select at once, before their labels are known.",
)
@click.option(
    "--retention",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="With --budget: factor from 0 to 1 for the weights of earlier labels. At each new label of a run, the"
    " weights of all earlier labels are multiplied by this factor. With 1, all labels have the same weight.",
)
@shared("rel", default=1, show_default=True, help="With --budget: lowest relevant grade.")
@click.option(
    "--strata",
    default="10,30",
    show_default=True,
    metavar="K,...",
    help="With --sample: last rank of each stratum. The best rank of a document in any run determines its stratum.",
)
@click.option(
    "--rates",
    metavar="R,...",
    help="With --sample: sampling rate of each stratum, relative to the other strata.  [default: the rate of each"
    " stratum is twice"
    " the rate of the next stratum]",
)
@shared("seed", "run_format")
@answer_options()
def pool_command(
    runs: tuple[str, ...], run_format: str | None, strata: str, rates: str | None, output: OutputOptions, **options: Any
) -> None:
    """Select documents of the RUNs to judge.

    By default, the first K documents of each run are selected. --budget selects the documents that are most likely
    relevant, and --sample draws a random sample. The CSV output ('-o pool.csv') lists each pair of topic and document
    with its stratum and sampling probability.
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
