"""`judged online abtest`, `interleaving`, and `offline`, and `judged watch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options, write_result
from judged.interface.options import shared, with_options
from judged.online.commands import logs
from judged.online.commands.logs import interval, log_options, opened, where
from judged.scoring.default_measures import CLICKED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.data.qrels import Qrels
    from judged.interface.arguments import OutputOptions
    from judged.online.log import InteractionLog
    from judged.results import Answer


def _verdict_options(min_users_help: str) -> Callable[..., Any]:
    """Return the options for the verdict and the plan of a test."""
    return with_options(
        click.option(
            "--any-day/--one-day", default=True, show_default=True, help="When intervals hold: on one day, set before."
        ),
        click.option(
            "--expected",
            type=int,
            default=5000,
            show_default=True,
            metavar="USERS",
            help="Where intervals are narrowest.",
        ),
        click.option("--min-users", type=int, default=200, show_default=True, help=min_users_help),
        click.option("--plan", is_flag=True, help="Before a test: LOG is of the past; how long would one take?"),
    )


@click.command("abtest", short_help="An A/B test: is it sound, what differs, what follows.")
@logs.paths
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
@logs.by("Show declared metrics by this, too: device, ...")
@click.option("--window-days", type=float, metavar="DAYS", help="How long a user counts.  [default: to the log's end]")
@click.option(
    "--before-days", type=float, default=14.0, show_default=True, metavar="DAYS", help="Adjust by so much before."
)
@click.option("--margin-relative", type=float, default=0.02, show_default=True, help="What a guardrail may lose.")
@_verdict_options("No verdict before each arm has as many.")
@interval
@log_options
@answer_options()
def abtest_command(
    paths: tuple[str, ...],
    output: OutputOptions,
    *,
    plan: bool,
    shares: tuple[str, ...],
    better: tuple[str, ...],
    **options: Any,
) -> None:
    """Analyze an A/B test in LOG: whether it is sound, what differs between its arms, and what follows.

    Exit code 0: an arm may be shipped; 1: none may, or not yet; 2: wrong input.
    """
    from judged.online.ab_tests.abtest import abtest
    from judged.online.ab_tests.planning import plan_abtest

    metrics = options.pop("metrics") or None
    with opened(paths, output, options) as log:
        if plan:
            output(plan_abtest(log, metrics, unit=options["unit"], level=options["level"]))
            return
        expected_shares = dict(map(_parse_share, shares)) or None
        directions: dict[str, Any] = dict(map(_parse_direction, better))
        result = abtest(log, metrics=metrics, shares=expected_shares, better=directions, **options)
    output(result)
    if not result.ships:
        raise SystemExit(1)


def _parse_share(text: str) -> tuple[str, float]:
    arm, _, share = text.rpartition("=")
    try:
        return arm, float(share)
    except ValueError:
        raise InputError(f"--share is {text!r}", fix="write ARM=SHARE, such as control=0.5") from None


def _parse_direction(text: str) -> tuple[str, str]:
    name, _, direction = text.rpartition("=")
    if direction not in {"more", "less"} or not name:
        raise InputError(f"--better is {text!r}", fix="write NAME=more or NAME=less, such as PageCTR=more")
    return name, direction


@click.command("interleaving", short_help="Lists that mix two rankers: which do users prefer?")
@logs.paths
@click.option(
    "--baseline", metavar="NAME", help="The ranker that the other is compared with.  [default: the first in the log]"
)
@logs.by("Show it by this, too: device, ...")
@click.option("--count-shared", is_flag=True, help="Count clicks of team drafts above where the two lists part.")
@click.option("--count-repeated", is_flag=True, help="Count several clicks on one result as several.")
@_verdict_options("No verdict before so many clicked.")
@click.option(
    "--abtest", "test", metavar="LOG", help="With --plan: an A/B test of the same change, to set beside this log."
)
@where
@interval
@log_options
@answer_options()
def interleaving_command(
    paths: tuple[str, ...], output: OutputOptions, *, plan: bool, test: str | None, **options: Any
) -> None:
    """Say which of two rankers users prefer, from a LOG of lists that mix both.

    Lists are mixed, and logged, by judged.online.mixed_lists. Exit code 0: the other ranker is preferred to the
    baseline; 1: it is not, or that cannot be told yet; 2: wrong input.
    """
    from judged.online.interleaving_analysis.analysis import interleaving
    from judged.online.interleaving_analysis.planning import plan_interleaving

    test_options = {name: options.pop(name) for name in _INTERLEAVING_TEST}
    abtest_options = dict(options)  # a copy, since `opened` removes the reading options
    with opened(paths, output, options) as log:
        if not plan:
            result = interleaving(log, **test_options, **options)
        else:
            past: list[Any] = []
            if test is not None:
                past.append((interleaving(log, **test_options, **options), _abtest(test, output, abtest_options)))
            output(plan_interleaving(log, past=past, **options))
            return
    output(result)
    if result.decision != "preferred":
        raise SystemExit(1)


_INTERLEAVING_TEST = ("baseline", "by", "where", "count_shared", "count_repeated", "any_day", "expected", "min_users")


def _abtest(path: str, output: OutputOptions, options: dict[str, Any]) -> Any:
    from judged.online.ab_tests.abtest import abtest

    with opened((path,), output, options) as log:
        return abtest(log, **options)


_SHARED_OPTIONS = ("topics", "by", "pages", "unit", "level")


@click.command("offline", short_help="Whether judgments predict what users do.")
@click.argument("paths", nargs=-1, metavar="LOG...")
@click.argument("qrels", metavar="QRELS")
@shared("measures", help=f"A measure.  [default: {', '.join(CLICKED_MEASURES)}]")
@click.option(
    "--outcome",
    multiple=True,
    metavar="NAME",
    help="Such as satisfied, clicked, 'first click RR', opened, abandoned, reformulated.",
)
@click.option("--preferences", is_flag=True, help="Compare preferences between results, as clicks express them.")
@click.option(
    "--rule", multiple=True, metavar="NAME", help="With --preferences: above, last-above, earlier, previous or next."
)
@click.option(
    "--topics",
    multiple=True,
    callback=logs.once,
    metavar="NAME",
    help="How pages find topics: a column of the log, or a file of topics' texts.",
)
@logs.by("Slice by this column of the log.", "COLUMN")
@logs.pages
@logs.dwell
@click.option(
    "--least-judged",
    type=float,
    default=0.8,
    show_default=True,
    help="A page counts if this share of its first 10 results is judged.",
)
@logs.interval
@shared("qrels_format")
@logs.log_options
@answer_options()
def offline_command(paths: tuple[str, ...], qrels: str, output: OutputOptions, **options: Any) -> None:
    """Score the lists of LOG by the judgments in QRELS, and see whether better scores go with better outcomes.

    With --preferences: whether what clicks say about two results agrees with their grades, and says more than ranks.
    """
    if not paths:
        raise InputError("QRELS is missing", fix=f"add the judgments: judged online offline {qrels} QRELS")
    output.keep(qrels, options["topics"])
    if options["rule"] and not options["preferences"]:
        raise InputError("--rule requires --preferences", fix="add --preferences")
    if options["preferences"] and (options["measure"] or options["outcome"]):
        raise InputError("--preferences cannot be combined with -m or --outcome", fix="omit -m and --outcome")
    from judged.data.qrels import Qrels

    judgments = Qrels.read(qrels, format=options["qrels_format"])
    with logs.opened_with_progress(paths, output, options, "comparing") as (log, _):
        result = _compare_with_judgments(log, judgments, options)
    output(result)


def _compare_with_judgments(log: InteractionLog, judgments: Qrels, options: dict[str, Any]) -> Answer:
    from judged.online.offline import against_qrels, preference_agreement

    shared_options = {name: options[name] for name in _SHARED_OPTIONS}
    if options["preferences"]:
        if options["rule"]:
            shared_options["rules"] = options["rule"]
        return preference_agreement(log, judgments, **shared_options)
    if options["measure"]:
        shared_options["measures"] = options["measure"]
    return against_qrels(
        log,
        judgments,
        outcomes=options["outcome"] or None,
        dwell=options["dwell"],
        least_judged=options["least_judged"],
        **shared_options,
    )


@click.command("watch")
@click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))
@click.argument("paths", nargs=-1, metavar="[LOG]...")
@click.option("--init", is_flag=True, help="Write a first CONFIG for LOG in place of looking.")
@click.option("--force", is_flag=True, help="Let --init overwrite an existing CONFIG.")
@click.option("--keep/--no-keep", default=True, show_default=True, help="Whether the state file remembers LOG.")
@click.option("--prometheus", type=click.Path(path_type=Path), metavar="FILE", help="Also write series for Prometheus.")
@log_options
@answer_options()
def watch_command(
    config: Path,
    paths: tuple[str, ...],
    output: OutputOptions,
    *,
    init: bool,
    force: bool,
    keep: bool,
    prometheus: Path | None,
    **options: Any,
) -> None:
    """Hold all series of CONFIG against their baseline: what is new in LOG, canary queries, and tables.

    Made for cron: what was seen stays in the state file that CONFIG names, and running twice changes nothing.
    Exit code 0: nothing is off; 1: a series is, or a deployment should be taken back; 2: wrong input.
    """
    from judged.data.files import exists
    from judged.online.watch import first_config, read_watch, watch

    if init:
        if exists(config) and not force:
            fix = "use another name, or --force to overwrite it"
            raise InputError("the file already exists", fix=fix, path=str(config))
        with opened(paths, output, options) as log:
            write_result(first_config(log, config.with_suffix(".json").name).rstrip("\n"), config)
        return
    config_data = read_watch(config)
    if paths:
        with opened(paths, output, options) as log:
            result = watch(config_data, log, keep=keep)
    else:
        result = watch(config_data, keep=keep)
    if prometheus:
        write_result(result.prometheus().rstrip("\n"), prometheus)
    output(result)
    if not result.is_healthy:
        raise SystemExit(1)
