"""`judged labels topics`: which queries of a log become topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("topics", short_help="Choose topics from a list of queries with how often each was asked.")
@click.argument("queries")
@click.option("-n", "n", type=click.IntRange(1), default=50, show_default=True, help="How many topics.")
@click.option(
    "--scheme",
    type=click.Choice(["traffic", "strata", "random"]),
    default="traffic",
    show_default=True,
    help="Proportional to searches; as many of head, torso and tail; or all queries alike.",
)
@click.option("--column", default="count", show_default=True, metavar="NAME", help="The column that says how often.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the choice.")
@answer_options()
def command(queries: str, n: int, give: Give, **options: Any) -> None:
    """Choose topics from QUERIES, a table of queries and how often each was asked, with known probabilities.

    As CSV ('-o topics.csv') it is a file of topics: 'judged slices --queries topics.csv --weights weight' gives the
    mean over searches.
    """
    from judged.labels import choose_topics

    give.keep(queries)
    give(choose_topics(queries, n, **options))
