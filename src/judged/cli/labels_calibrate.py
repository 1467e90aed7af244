"""`judged labels calibrate`: models as judges against people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("calibrate", short_help="Set models as judges against people, and say what their labels are worth.")
@click.argument("human", metavar="QRELS|STORE")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Judgments by a model. Repeat for more.  [default: the models of STORE]",
)
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="A mean over topics to score runs by."
)
@click.option(
    "--labelled", metavar="FILE", help="The topics that people judged fully, one a line.  [default: all of theirs]"
)
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="N", help="The lowest relevant grade.")
@click.option("--highest", type=float, metavar="N", help="The highest grade of the scale.  [default: people's]")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="RUN=FAMILY",
    help="The family of models behind a run: whether a judge favours its own. Repeat for more.",
)
@shared("attributes")
@click.option("--by", metavar="NAME", help="With --attributes: compare grades by this attribute of topics, too.")
@shared("level")
@answer_options()
@shared(*FORMATS)
def command(
    human: str,
    judges: tuple[str, ...],
    runs: tuple[str, ...],
    labelled: str | None,
    families: tuple[str, ...],
    attributes: str | None,
    by: str | None,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Set judgments by models against those by people: how they grade, and what their labels are worth.

    With RUNs, also how systems and topics come out under both. The means of runs are corrected by what people said,
    for topics that people judged fully and that were chosen at random; a model that is of no use gets little weight or
    none.
    """
    from judged.comparison.slicing import slice_topics
    from judged.data import files
    from judged.data.qrels import Qrels
    from judged.labels import Labels, calibrate

    given = inputs.runs_at(runs, run_format) if runs else []
    give.keep(human, *(run.where for run in given), *(path for path in (labelled, attributes) if path))
    if (by is None) != (attributes is None):
        raise InputError("--by and --attributes go together", fix="give both, or neither")
    if wrong := next((text for text in families if "=" not in text), None):
        raise InputError(f"--family {wrong} names no family", fix="write --family RUN=FAMILY")
    models = {}
    for text in judges:
        name, path = inputs.named(text)
        qrels = Qrels.read(path, format=qrels_format, name=name or None)
        models[qrels.name] = qrels
    topics = None if labelled is None else files.text(labelled, labelled).split()
    people: Any = Qrels.read(human, format=qrels_format) if models else Labels.of(human)
    named = dict(text.split("=", 1) for text in families)
    options["slicing"] = None if by is None else slice_topics(attributes, by)
    give(calibrate(people, models or None, given, labelled=topics, families=named, **options))
