"""`judged pool`: which documents of several runs to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("pool", short_help="Choose which documents of several runs to judge.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--depth", type=click.IntRange(1), default=100, show_default=True, metavar="K", help="Pool the first K of each run."
)
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
@click.option("--queries", metavar="FILE", help="Pool only the topics of this file.")
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
@click.option("--rel", type=float, default=1, show_default=True, help="With --budget: the lowest relevant grade.")
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
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the sample.")
@shared("run_format")
@answer_options()
def command(
    runs: tuple[str, ...], run_format: str | None, strata: str, rates: str | None, give: Give, **options: Any
) -> None:
    """Choose which documents of the RUNs to judge: all of the first K, the most promising N, or a sample of N.

    As CSV ('-o pool.csv') it is the list for judging: each pair with its stratum and probability.
    """
    from judged.data.qrels import Qrels
    from judged.labels import pool

    given = inputs.runs_at(runs, run_format)
    give.keep(options["qrels"], options["queries"], *(run.where for run in given))
    if options["qrels"] is not None:
        options["qrels"] = Qrels.read(options["qrels"])
    options["strata"] = [int(end) for end in _numbers("--strata", strata)]
    options["rates"] = None if rates is None else _numbers("--rates", rates)
    give(pool(given, **options))


def _numbers(option: str, text: str) -> list[float]:
    from judged.errors import InputError
    from judged.results.decimals import read_number

    try:
        return [read_number(part) for part in text.split(",") if part]
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}", fix="write numbers with commas between") from None
