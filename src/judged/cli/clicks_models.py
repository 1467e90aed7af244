"""`judged clicks models`: which click model predicts a log, and is worth its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli import logs
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.cli.formats import Give

    Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--by",
        multiple=True,
        callback=logs.once,
        metavar="COLUMN",
        help="What tells queries apart, a column of the log.  [default: topic where there is one, else the text]",
    ),
    click.option(
        "--pages",
        type=click.Choice(["first", "all"]),
        default="first",
        show_default=True,
        help="Of each result list its first page, or later ones too.",
    ),
    click.option("--depth", type=int, default=10, show_default=True, help="Ranks below this are not looked at."),
    logs.where,
)
"""Which pages count, and what a query is."""


def counting_options(command: Command) -> Command:
    """Give a command the options of what it counts of a log."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("models", short_help="Which click model predicts a LOG, and is worth its parameters.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("-m", "--model", "models", multiple=True, metavar="NAME", help="A click model; repeat.  [default: all]")
@click.option("--folds", type=int, default=5, show_default=True, help="Parts of the users, each predicted by the rest.")
@click.option("--iterations", type=int, default=1000, show_default=True, help="At most so many steps a fit.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the parts.")
@counting_options
@logs.interval
@logs.log_options
@answer_options()
def command(paths: tuple[str, ...], give: Give, models: tuple[str, ...], **options: Any) -> None:
    """Fit click models to some users of LOG, predict what the others click, and compare (docs/click-models.md).

    RCTR, DCTR, PBM, CM, DCM, CCM, UBM, DBN and SDBN are compared by the likelihood of held-out clicks.
    """
    from judged.online.clicks import compare_models
    from judged.online.engine import within_memory

    give.keep(*paths, options["mapping"])
    with within_memory():
        log = logs.open_log(paths, **{name: options.pop(name) for name in logs.READING})
        with logs.progress_line("counting") as tell:
            found = compare_models(log, models or None, progress=tell, **options)
    give(found)
