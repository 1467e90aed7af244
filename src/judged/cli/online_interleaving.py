"""`judged online interleaving`: which of two rankers users prefer; exit code 0: the other one, 1: not, or not yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import interval, log_options, once, opened, where

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("interleaving", short_help="Lists that mix two rankers: which do users prefer?")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--baseline", metavar="NAME", help="The ranker that the other is compared with.  [default: the first in the log]"
)
@click.option("--by", multiple=True, callback=once, metavar="SLICE", help="Show it by this, too: device, ...")
@click.option("--count-shared", is_flag=True, help="Count clicks of team drafts above where the two lists part.")
@click.option("--count-repeated", is_flag=True, help="Count several clicks on one result as several.")
@click.option(
    "--any-day/--one-day", default=True, show_default=True, help="When intervals hold: on one day, set before."
)
@click.option(
    "--expected", type=int, default=5000, show_default=True, metavar="USERS", help="Where intervals are narrowest."
)
@click.option("--min-users", type=int, default=200, show_default=True, help="No verdict before so many clicked.")
@click.option("--plan", is_flag=True, help="Before a test: LOG is of the past; how long would one take?")
@click.option(
    "--abtest", "test", metavar="LOG", help="With --plan: an A/B test of the same change, to set beside this log."
)
@where
@interval
@log_options
@answer_options()
def command(paths: tuple[str, ...], give: Give, *, plan: bool, test: str | None, **options: Any) -> None:
    """Say which of two rankers users prefer, from a LOG of lists that mix both.

    Lists are mixed, and logged, by judged.online.mixed_lists. Exit code 0: the other ranker is preferred to the
    baseline; 1: it is not, or that cannot be told yet; 2: wrong input.
    """
    from judged.online.interleaving.analysis import interleaving
    from judged.online.interleaving.planning import plan_interleaving

    given = {name: options.pop(name) for name in _TEST}
    reading = dict(options)
    with opened(paths, give, options) as log:
        if not plan:
            found = interleaving(log, **given, **options)
        else:
            past = [] if test is None else [(interleaving(log, **given, **options), _abtest(test, give, reading))]
            give(plan_interleaving(log, past=past, **options))
            return
    give(found)
    if found.decision != "preferred":
        raise SystemExit(1)


_TEST = ("baseline", "by", "where", "count_shared", "count_repeated", "any_day", "expected", "min_users")


def _abtest(path: str, give: Give, options: dict[str, Any]) -> Any:
    from judged.online.abtest.abtest import abtest

    with opened((path,), give, options) as log:
        return abtest(log, **options)
