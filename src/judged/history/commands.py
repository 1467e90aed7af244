"""`judged history`: keep evaluations, show changes over time, and find where a change began."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.history.series import FALSE_ALARMS, MARGIN_RELATIVE
from judged.interface.arguments import answer_options
from judged.interface.options import DEFAULT_TEST, PAIRED_TESTS, READING, Choice, shared, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions

_STORE = click.option(
    "--history",
    "where",
    metavar="STORE",
    help="Store of evaluations: an SQLite file or postgresql://...  [default: the environment variable JUDGED_HISTORY,"
    " or history.db]",
)
_SYSTEM = click.option("--run", "system", metavar="NAME", default="", help="Name of the system.  [default: the system"
                       " of the last evaluation]")  # fmt: skip


def _detection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return with_options(
        click.option(
            "--false-alarms",
            type=float,
            metavar="N",
            default=FALSE_ALARMS,
            show_default=True,
            help="Mean number of evaluations between false alarms, over all measures, if nothing changes.",
        ),
        click.option(
            "--margin-relative",
            type=float,
            metavar="SHARE",
            default=MARGIN_RELATIVE,
            show_default=True,
            help="Smallest reported change, as a share of the mean score.",
        ),
    )(command)


@click.group("history")
def history() -> None:
    """Keep evaluations in a store, and show what changed over time.

    EVALUATION is 'last', 'last-TAG' (the last evaluation with this tag), a number, a tag, or at least four characters
    of a commit; EVALUATION/SYSTEM names the system.
    Other commands read the run of an evaluation as history:EVALUATION, such as 'judged gate QRELS history:last-release
    RUN'.
    """


@history.command("add", short_help="Score RUNs, and add them to the store.")
@click.argument("qrels", metavar="QRELS|FOLDER")
@shared("some_runs")
@_STORE
@shared("measures")
@click.option("--time", metavar="TIME", help="Date or time of the evaluation (UTC).  [default: now]")
@click.option(
    "--commit", metavar="HASH", help="Commit of the system.  [default: that of the Git repository in this folder]"
)
@click.option("--tag", metavar="NAME", default="", help="Tag to find this evaluation again, such as release.")
@shared("dialect", "topics", "depth", "ties", "exclude_self", "rel")
@shared(*READING)
def add_command(
    qrels: str,
    runs: tuple[str, ...],
    where: str | None,
    measure: tuple[str, ...],
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Score RUNs against QRELS, and add runs, judgments, and scores to the store.

    The name of a run is the name of its system. FOLDER has one file of judgments and at least one run.
    """
    from judged.data.qrels import Qrels
    from judged.history.store import HistoryStore, read_folder
    from judged.scoring.default_measures import TESTED_MEASURES
    from judged.scoring.evaluation.inputs import runs_of

    if not runs:
        if not Path(qrels).is_dir():
            raise InputError("RUN is missing", fix="name at least one run, or a folder with judgments and runs")
        qrels, files = read_folder(qrels)
        runs = tuple(files)
    judgments, systems = Qrels.read(qrels, format=qrels_format), runs_of(list(runs), format=run_format)
    store = HistoryStore.open(where, new=True)
    for row in store.add(judgments, systems, measure or TESTED_MEASURES, **options):
        click.echo(f"{store.where}: {row.system} is evaluation {row.label}")
    store.close()


@history.command("show", short_help="Show scores over time, and detect changes.")
@_STORE
@_SYSTEM
@shared("measures", help="Measure. Can be repeated.  [default: those of the last evaluation]")
@_detection_options
@answer_options()
def show_command(
    where: str | None, system: str, measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Show the scores of a system over time, changes larger than their usual variation, and changed judgments.

    All evaluations are scored by the judgments and settings of the last one.
    """
    from judged.history import HistoryStore, show

    output(show(HistoryStore.open(where), system, measure or None, **options))


@history.command("plot", short_help="Draw the scores over time.")
@_STORE
@_SYSTEM
@shared("measures", help="Measure. Can be repeated.  [default: those of the last evaluation]")
@_detection_options
@answer_options(usual="html")
def plot_command(
    where: str | None, system: str, measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Draw the scores of a system over time, with intervals and changes: HTML, SVG, PNG, or PDF."""
    from judged.history import HistoryStore, show

    output(show(HistoryStore.open(where), system, measure or None, **options))


@history.command("bisect", short_help="Find the evaluation with which a change began.")
@_STORE
@_SYSTEM
@shared("measure", default=None, show_default=False, help="Measure.  [default: the first one of the last evaluation]")
@click.option(
    "--evaluation",
    metavar="EVALUATION",
    default="",
    help="First evaluation of a change in 'judged history show'.  [default: the last change]",
)
@shared("attributes")
@click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")
@_detection_options
@answer_options()
def bisect_command(
    where: str | None,
    system: str,
    measure: str | None,
    attributes: str | None,
    by: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Find the evaluation with which a change began, and the topics and slices that changed most."""
    from judged.comparison.slicing import slice_topics
    from judged.history import HistoryStore, bisect

    if (attributes is None) != (by is None):
        raise InputError("--attributes and --by are used together", fix="use both options, or neither")
    slicing = None if attributes is None or by is None else slice_topics(attributes, by)
    output.keep(attributes)
    output(bisect(HistoryStore.open(where), system, measure, slicing=slicing, **options))


@history.command("compare", short_help="Compare two evaluations.")
@click.argument("first", metavar="EVALUATION")
@click.argument("second", metavar="EVALUATION")
@_STORE
@click.option(
    "--run", "system", metavar="NAME", default="", help="Name of the system.  [default: that of the second EVALUATION]"
)
@shared("measures", help="Measure. Can be repeated.  [default: all of the second EVALUATION]")
@click.option("--test", type=Choice(PAIRED_TESTS), metavar="TEST", help=f"Paired test.  [default: {DEFAULT_TEST}]")
@shared("alpha", "resamples", "seed", "margin")
@answer_options()
def compare_command(
    where: str | None, first: str, second: str, system: str, measure: tuple[str, ...], output: OutputOptions,
    **options: Any,
) -> None:  # fmt: skip
    """Compare two evaluations by the judgments and settings of the second one."""
    from judged.history import HistoryStore, compare

    output(compare(HistoryStore.open(where), first, second, system, measures=measure or None, **options))
