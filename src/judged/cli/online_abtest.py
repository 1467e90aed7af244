"""`judged online abtest`: what a test on users says; exit code 0: an arm may be shipped, 1: none may, or not yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.logs import interval, log_options, once, opened
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("abtest", short_help="An A/B test: is it sound, what differs, what follows.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--primary", metavar="NAME", help="The one metric that decides.  [default: the first that the log can tell]"
)
@click.option(
    "--guardrail", "guardrails", multiple=True, metavar="NAME", help="May not lose more than --margin-relative."
)
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME", help="Others to look at, corrected together.")
@click.option(
    "--better", multiple=True, metavar="NAME=more|less", help="Direction of a metric that has none by itself."
)
@click.option(
    "--variant", default="variant", show_default=True, metavar="COLUMN", help="The column that holds the arm."
)
@click.option(
    "--baseline", metavar="NAME", help="The arm that the others are compared with.  [default: the first by name]"
)
@click.option(
    "--share", "shares", multiple=True, metavar="ARM=SHARE", help="How users should divide.  [default: equally]"
)
@click.option(
    "--by", multiple=True, callback=once, metavar="SLICE", help="Show declared metrics by this, too: device, ..."
)
@click.option("--window-days", type=float, metavar="DAYS", help="How long a user counts.  [default: to the log's end]")
@click.option(
    "--before-days", type=float, default=14.0, show_default=True, metavar="DAYS", help="Adjust by so much before."
)
@click.option("--margin-relative", type=float, default=0.02, show_default=True, help="What a guardrail may lose.")
@click.option(
    "--any-day/--one-day", default=True, show_default=True, help="When intervals hold: on one day, set before."
)
@click.option(
    "--expected", type=int, default=5000, show_default=True, metavar="USERS", help="Where intervals are narrowest."
)
@click.option("--min-users", type=int, default=200, show_default=True, help="No verdict before each arm has as many.")
@click.option("--plan", is_flag=True, help="Before a test: LOG is of the past; how long would one take?")
@interval
@log_options
@answer_options()
def command(
    paths: tuple[str, ...],
    give: Give,
    *,
    plan: bool,
    shares: tuple[str, ...],
    better: tuple[str, ...],
    **options: Any,
) -> None:
    """Analyze an A/B test in LOG: whether it is sound, what differs between its arms, and what follows.

    Exit code 0: an arm may be shipped; 1: none may, or not yet; 2: wrong input.
    """
    from judged.online.abtest.abtest import abtest
    from judged.online.abtest.planning import plan_abtest

    given = {name: options.pop(name) for name in list(options) if name in _TEST}
    with opened(paths, give, options) as log:
        if plan:
            give(plan_abtest(log, given["metrics"] or None, **options))
            return
        parted = dict(map(_share, shares)) or None
        ways: dict[str, Any] = dict(map(_direction, better))
        found = abtest(log, shares=parted, better=ways, **{**given, "metrics": given["metrics"] or None}, **options)
    give(found)
    if not found.ships:
        raise SystemExit(1)


_TEST = ("primary", "guardrails", "metrics", "variant", "baseline", "by", "window_days", "before_days",
         "margin_relative", "any_day", "expected", "min_users")  # fmt: skip


def _share(given: str) -> tuple[str, float]:
    """Read ``ARM=SHARE``."""
    arm, _, share = given.rpartition("=")
    try:
        return arm, float(share)
    except ValueError:
        raise InputError(f"--share is {given!r}", fix="write ARM=SHARE, such as control=0.5") from None


def _direction(given: str) -> tuple[str, str]:
    """Parse ``NAME=more`` or ``NAME=less``."""
    name, _, way = given.rpartition("=")
    if way not in {"more", "less"} or not name:
        raise InputError(f"--better is {given!r}", fix="write NAME=more or NAME=less, such as PageCTR=more")
    return name, way
