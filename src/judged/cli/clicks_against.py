"""`judged clicks against`: judgments made of clicks against people's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, logs
from judged.cli.clicks_options import judging, level
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("against", short_help="Set judgments made of clicks against people's.")
@click.argument("path", metavar="LOG")
@click.argument("gold", metavar="QRELS")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@judging
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="A mean over topics to score runs by."
)
@shared("attributes")
@click.option(
    "--slice", "by_attribute", metavar="NAME", help="With --attributes: compare by this attribute of topics, too."
)
@level
@logs.log_options
@answer_options()
@shared(*FORMATS)
def command(
    path: str,
    gold: str,
    runs: tuple[str, ...],
    measure: str,
    attributes: str | None,
    by_attribute: str | None,
    qrels_format: str | None,
    run_format: str | None,
    give: Give,
    **options: Any,
) -> None:
    """Set judgments that are made of the clicks of LOG against those of people in QRELS.

    Whether both order documents alike, more so than raw clicks do; whether the logged rank is still in them; and with
    RUNs, whether both order systems alike and how many clicks are worth one label.
    """
    from judged.comparison.slicing import slice_topics
    from judged.data.qrels import Qrels
    from judged.online.clicks import against_people, judge_clicks

    if (by_attribute is None) != (attributes is None):
        raise InputError("--slice and --attributes go together", fix="give both, or neither")
    given = inputs.runs_at(runs, run_format) if runs else []
    give.keep(gold, options["propensities"], options["topics"], attributes, *(run.where for run in given))
    people = Qrels.read(gold, format=qrels_format)
    slicing = None if by_attribute is None else slice_topics(attributes, by_attribute)
    with logs.opened((path,), give, options) as log:
        made = judge_clicks(log, **options)
    give(against_people(made, people, given, measure, slicing=slicing, level=options["level"]))
