"""What the commands about clicks have in common: which pages of a log count, and which topics they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs

if TYPE_CHECKING:
    from collections.abc import Callable

depth = click.option(
    "--depth", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="Ranks that are looked at."
)
topics = click.option(
    "--topics",
    multiple=True,
    callback=logs.once,
    metavar="NAME",
    help="How pages find topics: a column of the log, or a file of topics' texts."
    "  [default: the column topic, or texts]",
)
propensities = click.option(
    "--propensities",
    metavar="FILE",
    help="How often ranks are looked at, as 'judged clicks propensities -o FILE' wrote it (CSV or JSON).",
)
level = click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
dwell = click.option("--dwell", type=float, default=30.0, show_default=True, help="Seconds that satisfy.")


def judging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of how judgments are made of clicks."""
    options = (
        click.option(
            "--by",
            default="coec",
            show_default=True,
            metavar="SOURCE",
            help="coec: clicks over expected clicks; sat: satisfied ones; purchase; or a click model, such as PBM.",
        ),
        propensities,
        click.option(
            "--min-shown",
            type=click.IntRange(1),
            default=10,
            show_default=True,
            help="Leave out pairs shown less often.",
        ),
        topics,
        dwell,
        depth,
        logs.where,
    )
    for option in reversed(options):
        function = option(function)
    return function
