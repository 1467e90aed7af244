"""`judged online`: metrics and analyses of user behavior from interaction logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options, terminal_width
from judged.interface.options import Choice, LazyGroup, shared, with_options
from judged.online.commands import logs
from judged.online.commands.logs import interval, log_options, opened, tables, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.online.facts.pages import FactSettings
    from judged.online.log import InteractionLog


_DOCUMENTS_FIX = "use --documents FILE with documents that have a column date"


@click.group(
    "online",
    cls=LazyGroup,
    places={
        name: f"judged.online.commands.comparisons:{name}_command" for name in ("abtest", "interleaving", "offline")
    },
)
def online() -> None:
    """Compute metrics of what users did, from logs of result pages and clicks.

    LOG is one file or several of one log: UBI (ndjson, JSON, Parquet, CSV), a click-model log, a TREC session file, or
    any table with a --mapping. What is wrong with a log is found by 'judged logs check'.
    """


_reading_options = with_options(where, log_options, tables, answer_options())
_metric_arguments = with_options(logs.paths, where, interval, log_options, tables, answer_options())
_slice_options = with_options(
    logs.by("Slice by this: device, language, variant, ..., or an attribute of the log."),
    click.option(
        "--documents", metavar="FILE", help="For --by freshness: when results were made, documents with a column date."
    ),
)
_comparison_arguments = with_options(
    logs.paths,
    click.option(
        "-m", "--metric", "metrics", multiple=True, metavar="NAME", help="A ratio.  [default: five that matter]"
    ),
)
_since_option = click.option(
    "--since", metavar="DATE", help="When the later period begins.  [default: a week before the log's end]"
)
_query_option = click.option(
    "--by", default="query_norm", show_default=True, metavar="COLUMN", help="What tells queries apart."
)


def _quantile(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    del ctx, param
    try:
        return None if value is None else 1.0 if value == "off" else float(value)
    except ValueError:
        raise InputError(f"--winsorize is {value!r}", fix="use a share above 0, such as 0.999, or off") from None


_SETTINGS = {
    "winsorize": "Money of a page above this quantile, of pages that brought any, counts as it; 1 or off: as it is.",
    "reformulation_gap": "Seconds within which the next query of a session may be a reformulation.",
    "attribution_window": "Seconds within which a cart or purchase that names no page counts for the last one.",
    "success": "Seconds of dwell that make a session succeed, where a metric does not say it (t=).",
}
"""Help of the fields of `FactSettings`. Its import takes half a second, so the defaults are repeated in `_DEFAULTS`."""

_DEFAULTS = {"winsorize": "0.999", "reformulation_gap": "300", "attribution_window": "1800", "success": "30"}


def _setting_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `FactSettings` to a command."""
    # Decorators apply from the bottom, so the order of the options is reversed.
    for name, description in reversed(_SETTINGS.items()):
        value_options: dict[str, Any] = {"callback": _quantile} if name == "winsorize" else {"type": float}
        flag, metavar = f"--{name.replace('_', '-')}", "SHARE" if name == "winsorize" else "SECONDS"
        help_text = f"{description}  [default: {_DEFAULTS[name]}]"
        function = click.option(flag, metavar=metavar, help=help_text, **value_options)(function)
    return function


def _settings(options: dict[str, Any]) -> FactSettings:
    from judged.online.facts.pages import FactSettings

    values = {name: options.pop(name) for name in _SETTINGS}
    return FactSettings(**{name: value for name, value in values.items() if value is not None})


@online.command("metrics", short_help="Metrics with intervals, by slice.")
@click.option(
    "-m", "--metric", multiple=True, metavar="NAME", help="A metric, such as PageCTR or SatisfiedClicks(t=20)."
)
@_slice_options
@click.option(
    "--interval",
    type=Choice(("delta", "bootstrap")),
    default="delta",
    show_default=True,
    help="How intervals of ratios are made.",
)
@shared("draws", "seed")
@_setting_options
@_metric_arguments
def _metrics(paths: tuple[str, ...], metric: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Compute metrics of LOG with intervals over users; wherever clicks count, CTR by rank stands beside them.

    Without -m, every usual metric that the log can tell is shown; 'judged online list' names all.
    """
    from judged.online.scores import check_has_estimates

    options["settings"] = _settings(options)
    with logs.opened_with_progress(paths, output, options) as (log, tell):
        scores = check_has_estimates(_scores(log, metric or None, progress=tell, **options))
    output(scores)


@online.command("ranks", short_help="CTR by rank: position bias.")
@_slice_options
@_metric_arguments
def _ranks(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Show how often results were opened at each rank of LOG, with intervals over users."""
    with logs.opened_with_progress(paths, output, options) as (log, tell):
        scores = _scores(log, "ImpressionCTR", progress=tell, **options)
    output(scores.by_rank())


@online.command("dwell", short_help="How long results are looked at, and satisfied clicks by threshold.")
@_metric_arguments
def _dwell(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Show how long opened results of LOG are looked at, and how satisfied clicks depend on their threshold.

    Visits whose end was not seen count for as long as they were watched (Kaplan-Meier).
    """
    from judged.online.dwell import dwell_times

    with logs.opened_with_progress(paths, output, options) as (log, tell):
        if tell is not None:
            tell("visits", None)
        result = dwell_times(log, **options)
    output(result)


@online.command("time", short_help="Metrics over time: control limits, signals, changes.")
@click.option("-m", "--metric", required=True, multiple=True, metavar="NAME", help="A metric. Repeat for more.")
@click.option(
    "--every",
    type=Choice(("hour", "day", "week")),
    default="day",
    show_default=True,
    help="One value for each of these.",
)
@click.option(
    "--warm-up",
    type=int,
    metavar="N",
    help="So many complete periods at the beginning say what is usual.  [default: those before the first change]",
)
@_setting_options
@_metric_arguments
def _time(paths: tuple[str, ...], metric: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Show metrics of LOG over time, with control limits, what lies outside them, and when their level changed."""
    from judged.online.series import over_time

    options["settings"] = _settings(options)
    with logs.opened_with_progress(paths, output, options) as (log, tell):
        result = over_time(log, metric, progress=tell, **options)
    output(result)


@online.command("list", short_help="List the metrics, or show one in full.")
@click.argument("name", required=False)
@click.option(
    "--format",
    "form",
    type=Choice(("table", "markdown", "json")),
    default="table",
    show_default=True,
    help="Form of the list.",
)
def _list(name: str | None, form: str) -> None:
    """List the metrics, or show NAME in full: formula, numerator, denominator, window, source, when it misleads."""
    from judged.online import catalog
    from judged.online.layout import definitions
    from judged.online.metrics import ONLINE_METRICS, online_metric

    if form == "json":
        import json

        metrics = [online_metric(name)] if name else ONLINE_METRICS.values()
        click.echo(json.dumps(definitions(metrics).records(), indent=2, ensure_ascii=False))
    elif name:
        click.echo(catalog.page(name, width=terminal_width()))
    else:
        click.echo(catalog.catalog().markdown() if form == "markdown" else catalog.text(width=terminal_width()))


def _scores(log: InteractionLog, metric: Any, *, by: str | None, documents: str | None, **options: Any) -> Any:
    """Compute metrics with an optional slice. Errors about `objects` get a fix for the command line."""
    from judged.online.estimation.online_metrics import online_metrics

    if documents is not None and "freshness" not in (by or ""):
        raise InputError("--documents requires --by freshness", fix="add --by freshness, or omit --documents")
    try:
        return online_metrics(log, metric, by=by, objects=documents, **options)
    except InputError as error:
        if "objects=" not in error.fix:
            raise
        raise InputError(error.problem, fix=_DOCUMENTS_FIX, path=error.path) from None


@online.command("overview", short_help="The numbers that matter against the period before, and what moved them.")
@_comparison_arguments
@_since_option
@_query_option
@interval
@shared("alpha", help="Significance: what is said to change.")
@_reading_options
def overview_command(paths: tuple[str, ...], output: OutputOptions, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare five numbers of LOG with the period before, and say whether other queries moved them, or the same ones.

    A number over pages changes because other queries are asked, or because queries fare otherwise: both parts have
    intervals.
    """
    from judged.online.log_overview import overview

    with opened(paths, output, options) as log:
        result = overview(log, metrics or None, **options)
    output(result)


@online.command("queries", short_help="Queries that find nothing, are left, are asked again, rise or fall.")
@logs.paths
@click.option(
    "--list",
    "lists",
    multiple=True,
    metavar="NAME",
    help="zero, left, again, low-ctr, slow, new, rising or falling.  [default: all]",
)
@_query_option
@_since_option
@click.option("--min-users", type=click.IntRange(1), default=2, show_default=True, help="Fewer are not listed.")
@shared("limit", type=click.IntRange(0), default=20, help="Rows of each list; 0: all.")
@shared("confidence")
@shared("fdr", help="Share of false discoveries, on average.")
@_reading_options
def queries_command(
    paths: tuple[str, ...], output: OutputOptions, lists: tuple[str, ...], limit: int, **options: Any
) -> None:
    """List the queries of LOG that find nothing, are left, are asked again, get few clicks, are slow, rise or fall.

    Each with how many users, a share and its interval; restricted to what can be told. CSV and Parquet hold one list:
    name it with --list.
    """
    from judged.online.query_lists import queries

    with opened(paths, output, options) as log:
        result = queries(log, lists or None, limit=limit or None, **options)
    output(result)


@online.command("funnel", short_help="From search to click, cart and purchase, by slice.")
@logs.paths
@click.option(
    "--row",
    type=Choice("judged.online.search_funnel:Row"),
    default="session",
    show_default=True,
    help="What is followed.",
)
@logs.by("Slice by this: device, variant, ...")
@interval
@_reading_options
def funnel_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Follow the searches of LOG to a click, to the cart and to a purchase, as far as the log holds these."""
    from judged.online.search_funnel import funnel

    with opened(paths, output, options) as log:
        result = funnel(log, **options)
    output(result)


@online.command("difference", short_help="Slices or periods side by side, each difference tested.")
@_comparison_arguments
@logs.by("Slice by this: variant, device, ...")
@click.option("--baseline", metavar="NAME", help="The slice that the others are compared with.  [default: the first]")
@click.option("--since", metavar="DATE", help="Without --by: when the later period begins.")
@interval
@shared("correction")
@_reading_options
def difference_command(paths: tuple[str, ...], output: OutputOptions, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare slices of LOG with a baseline, or, without --by, what came later with what was before.

    Users may be on both sides. Slices of their own making are not an experiment.
    """
    from judged.online.differences import difference

    with opened(paths, output, options) as log:
        result = difference(log, metrics or None, **options)
    output(result)
