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
            "--any-day/--one-day",
            default=True,
            show_default=True,
            help="--any-day: anytime-valid intervals, so you may look at the results every day. --one-day:"
            " fixed-sample intervals, valid only on one day that was set in advance.",
        ),
        click.option(
            "--expected",
            type=int,
            default=5000,
            show_default=True,
            metavar="USERS",
            help="Expected number of users. Anytime-valid intervals are narrowest at this number of users.",
        ),
        click.option("--min-users", type=int, default=200, show_default=True, help=min_users_help),
        click.option("--plan", is_flag=True, help="Estimate the duration of a future test from a past LOG."),
    )


@click.command("abtest", short_help="Analyze an A/B test: validity checks, differences, and a verdict on each arm.")
@logs.paths
@click.option(
    "--primary",
    metavar="NAME",
    help="Primary metric, which decides the verdict.  [default: the first headline metric that the log supports]",
)
@click.option(
    "--guardrail",
    "guardrails",
    multiple=True,
    metavar="NAME",
    help="Guardrail: a metric that must not get worse by more than --margin-relative; repeatable.",
)
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Exploratory metric; repeatable. The p-values of all exploratory metrics are corrected for multiple tests.",
)
@click.option(
    "--better",
    multiple=True,
    metavar="NAME=more|less",
    help="Whether higher values (more) or lower values (less) are better, for a metric that has no fixed direction.",
)
@click.option("--variant", default="variant", show_default=True, metavar="COLUMN", help="Column that holds the arm.")
@click.option("--baseline", metavar="NAME", help="Baseline arm.  [default: the first in alphabetical order]")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="ARM=SHARE",
    help="Planned share of users of an arm; repeatable.  [default: equal shares]",
)
@logs.by("Slice the primary metric and the guardrails by this attribute: device, ...")
@click.option(
    "--window-days",
    type=float,
    metavar="DAYS",
    help="Number of days after the first exposure of a user; later pages of the user are excluded.  [default: until the"
    " end of the log]",
)
@click.option(
    "--before-days",
    type=float,
    default=14.0,
    show_default=True,
    metavar="DAYS",
    help="Number of days before first exposure that CUPED uses to reduce the variance.",
)
@click.option(
    "--margin-relative",
    type=float,
    default=0.02,
    show_default=True,
    help="Largest tolerable loss of a guardrail, as a share of the baseline.",
)
@_verdict_options("Minimum number of users in each arm for a verdict.")
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
    """Analyze the A/B test in LOG: its validity, the differences between arms, and a verdict on each arm.

    Exit code 0: the verdict on at least one arm is "ship"; 1: no arm has this verdict; 2: invalid input.
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
        raise InputError(f"--share must be ARM=SHARE, got {text!r}", fix="use --share control=0.5") from None


def _parse_direction(text: str) -> tuple[str, str]:
    name, _, direction = text.rpartition("=")
    if direction not in {"more", "less"} or not name:
        raise InputError(f"--better must be NAME=more or NAME=less, got {text!r}", fix="use --better PageCTR=more")
    return name, direction


@click.command("interleaving", short_help="Analyze interleaved lists: which of two rankers do users prefer?")
@logs.paths
@click.option(
    "--baseline",
    metavar="NAME",
    help="Baseline ranker.  [default: the attribute interleaving_first of LOG, otherwise the first in alphabetical"
    " order]",
)
@logs.by("Slice the preference by this attribute: device, ...")
@click.option(
    "--count-shared",
    is_flag=True,
    help="In team drafts, also count clicks above the first rank where the two rankings differ.",
)
@click.option("--count-repeated", is_flag=True, help="Count repeated clicks on the same result.")
@_verdict_options("Minimum number of users with a click for a verdict.")
@click.option(
    "--abtest", "test", metavar="LOG", help="With --plan: log of an A/B test of the same change, for comparison."
)
@where
@interval
@log_options
@answer_options()
def interleaving_command(
    paths: tuple[str, ...], output: OutputOptions, *, plan: bool, test: str | None, **options: Any
) -> None:
    """Estimate which of two rankers users prefer, from a LOG of interleaved lists.

    Use judged.online.mixed_lists to create the interleaved lists, and the attributes that you log for each list. Exit
    code 0: users significantly prefer the other ranker to the baseline; 1: no significant preference for the other
    ranker; 2: invalid input.
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


@click.command("offline", short_help="Test whether offline scores predict user behavior.")
@click.argument("paths", nargs=-1, metavar="LOG...")
@click.argument("qrels", metavar="QRELS")
@shared("measures", help=f"Measure; repeatable.  [default: {', '.join(CLICKED_MEASURES)}]")
@click.option(
    "--outcome",
    multiple=True,
    metavar="NAME",
    help="Outcome of a page, which the scores should predict: satisfied, clicked, 'first click RR', 'best click RR',"
    " opened, abandoned, or reformulated; repeatable.  [default: satisfied (if LOG has timestamps), clicked, and"
    " 'first click RR']",
)
@click.option(
    "--preferences", is_flag=True, help="Compare preferences derived from clicks with the order of the grades in QRELS."
)
@click.option(
    "--rule",
    multiple=True,
    metavar="NAME",
    help="With --preferences: rule that derives preferences from clicks (above, last-above, earlier, previous, or"
    " next); repeatable.",
)
@click.option(
    "--topics",
    multiple=True,
    callback=logs.once,
    metavar="NAME",
    help="Column of LOG with topic IDs, or file with topic texts that are compared with query texts."
    "  [default: the column topic if LOG has it, otherwise query_id]",
)
@logs.by("Slice by this column of LOG.", "COLUMN")
@logs.pages
@logs.dwell
@click.option(
    "--min-judged",
    type=float,
    default=0.8,
    show_default=True,
    help="Minimum share of judged results in the top 10 of a page; other pages are excluded.",
)
@logs.interval
@shared("qrels_format")
@logs.log_options
@answer_options()
def offline_command(paths: tuple[str, ...], qrels: str, output: OutputOptions, **options: Any) -> None:
    """Score the result lists in LOG with QRELS, and test whether lists with better scores have better outcomes.

    With --preferences: infer pairwise preferences between documents from clicks, and test whether they agree with the
    grades more often than preferences by rank do.
    """
    if not paths:
        raise InputError("the argument QRELS is missing", fix=f"add the judgments: judged online offline {qrels} QRELS")
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
        min_judged=options["min_judged"],
        **shared_options,
    )


@click.command("watch")
@click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))
@click.argument("paths", nargs=-1, metavar="[LOG]...")
@click.option("--init", is_flag=True, help="Write a CONFIG with default settings for LOG, and do not analyze LOG.")
@click.option("--force", is_flag=True, help="With --init: overwrite an existing CONFIG.")
@click.option(
    "--keep/--no-keep",
    default=True,
    show_default=True,
    help="--keep: store the data of LOG in the state file, for later runs. --no-keep: do not change the state file.",
)
@click.option(
    "--prometheus",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the series to FILE in the Prometheus text format.",
)
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
    """Compare the series in CONFIG (new data in LOG, canary queries, and tables) with their baselines.

    Run the command regularly, for example with cron. The state file that CONFIG names stores past days, and a second
    run with the same LOG changes nothing. Exit code 0: no alarm; 1: a series has an alarm, or a deployment should be
    rolled back; 2: invalid input.
    """
    from judged.data.files import exists
    from judged.online.watch import first_config, read_watch, watch

    if init:
        if exists(config) and not force:
            fix = "use another name, or --force to overwrite the file"
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
