"""`judged online`: metrics and analyses of user behavior from interaction logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options, documents_with_ages, terminal_width
from judged.interface.options import Choice, LazyGroup, shared, with_options
from judged.online.commands import logs
from judged.online.commands.logs import interval, log_options, opened, tables, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.online.facts.pages import FactSettings


_DOCUMENTS_FIX = "use --documents FILE with a column of dates"


@click.group(
    "online",
    cls=LazyGroup,
    places={
        name: f"judged.online.commands.comparisons:{name}_command" for name in ("abtest", "interleaving", "offline")
    },
)
def online() -> None:
    """Compute metrics of user behavior from logs of result pages and clicks.

    LOG is one or more files of one log: UBI (ndjson, JSON, Parquet, CSV), a click-model log, a TREC session file, or
    any table with a --mapping. 'judged logs check' finds problems of a log.
    """


_reading_options = with_options(where, log_options, tables, answer_options())
_metric_arguments = with_options(logs.paths, where, interval, log_options, tables, answer_options())
_slice_options = with_options(
    logs.by("Slicing attribute: device, language, variant, ..., or an attribute of the log."),
    click.option("--documents", metavar="FILE", help="Table of documents with dates, required for --by freshness."),
    shared("as_of", "freshness_bands"),
)
_comparison_arguments = with_options(
    logs.paths,
    click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        help="Ratio metric.  [default: five headline metrics]",
    ),
)
_since_option = click.option(
    "--since", metavar="DATE", help="Start of the later period.  [default: a week before the end of the log]"
)
_query_option = click.option(
    "--by",
    default="query_norm",
    show_default=True,
    metavar="COLUMN",
    help="Column that identifies queries: pages with the same value have the same query.",
)


def _quantile(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    del ctx, param
    try:
        return None if value is None else 1.0 if value == "off" else float(value)
    except ValueError:
        raise InputError(
            f"--winsorize must be a number or 'off', got {value!r}", fix="use a share above 0, such as 0.999, or 'off'"
        ) from None


_SETTINGS = {
    "winsorize": "Limit the revenue of each page to this quantile of the revenue of pages with revenue"
    " (winsorization); 1 or off: no limit.",
    "reformulation_gap": "Maximum seconds from a query to its reformulation.",
    "attribution_window": "Maximum seconds from a page to a cart event or purchase without a page ID. An event"
    " without a page ID counts for the last page before the event in the same session.",
    "success": "Minimum dwell time of a satisfied click in seconds, for metrics without the parameter t.",
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


@online.command("metrics", short_help="Metrics with confidence intervals, by slice.")
@click.option(
    "-m",
    "--metric",
    multiple=True,
    metavar="NAME",
    help="Metric, such as PageCTR or SatisfiedClicks(t=20).",
)
@_slice_options
@click.option(
    "--interval",
    type=Choice(("delta", "bootstrap")),
    default="delta",
    show_default=True,
    help="Method for the confidence intervals of ratios.",
)
@shared("draws", "seed")
@_setting_options
@_metric_arguments
def _metrics(paths: tuple[str, ...], metric: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Compute metrics of LOG with confidence intervals over users. Click metrics come with CTR by rank.

    Without -m, all common metrics that the log supports are computed; 'judged online list' lists all metrics.
    """
    from judged.online.estimation.online_metrics import online_metrics
    from judged.online.scores import check_has_estimates

    options["settings"] = _settings(options)
    with logs.opened_with_progress(paths, output, options) as (log, report):
        scores = check_has_estimates(_with_slices(online_metrics, log, metric or None, progress=report, **options))
    output(scores)


@online.command("ranks", short_help="CTR by rank, which depends on position bias and relevance.")
@_slice_options
@_metric_arguments
def _ranks(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Compute the CTR of each rank in LOG, with confidence intervals over users."""
    from judged.online.estimation.online_metrics import online_metrics

    with logs.opened_with_progress(paths, output, options) as (log, report):
        scores = _with_slices(online_metrics, log, "ImpressionCTR", progress=report, **options)
    output(scores.by_rank())


@online.command("dwell", short_help="Dwell times, and satisfied clicks by threshold.")
@_metric_arguments
def _dwell(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Estimate dwell times of clicked results in LOG, and the share of satisfied clicks at each threshold.

    Visits without an observed end are censored (Kaplan-Meier), not excluded.
    """
    from judged.online.dwell import dwell_times

    with logs.opened_with_progress(paths, output, options) as (log, report):
        if report is not None:
            report("visits", None)
        result = dwell_times(log, **options)
    output(result)


@online.command("time", short_help="Metrics over time, with control limits, signals, and change points.")
@click.option(
    "-m", "--metric", required=True, multiple=True, metavar="NAME", help="Metric. Repeat the option for more metrics."
)
@click.option(
    "--every",
    type=Choice(("hour", "day", "week")),
    default="day",
    show_default=True,
    help="Length of a period.",
)
@click.option(
    "--warm-up",
    type=int,
    metavar="N",
    help="Number of complete periods at the start that define the control limits.  [default: all periods before the"
    " first change or, if these are too few, all periods]",
)
@_setting_options
@_metric_arguments
def _time(paths: tuple[str, ...], metric: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Compute metrics of LOG over time, with control limits, values outside them, and changes of the level."""
    from judged.online.series import over_time

    options["settings"] = _settings(options)
    with logs.opened_with_progress(paths, output, options) as (log, report):
        result = over_time(log, metric, progress=report, **options)
    output(result)


@online.command("list", short_help="List the metrics, or show the full definition of one metric.")
@click.argument("name", required=False)
@click.option(
    "--format",
    "form",
    type=Choice(("table", "markdown", "json")),
    default="table",
    show_default=True,
    help="Output format.",
)
def _list(name: str | None, form: str) -> None:
    """List the metrics, or show the definition of NAME: formula, numerator, denominator, window, source, caveats."""
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


def _with_slices(analyze: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Analyze a log by slices. Errors about `documents` get a fix for the command line."""
    if options["documents"] is not None and "freshness" not in (options["by"] or ""):
        raise InputError("--documents requires --by freshness", fix="add --by freshness, or omit --documents")
    options["documents"] = documents_with_ages(options)
    try:
        return analyze(*inputs, **options)
    except InputError as error:
        if "documents=" not in error.fix:
            raise
        raise InputError(error.problem, fix=_DOCUMENTS_FIX, path=error.path) from None


@online.command(
    "overview", short_help="Compare headline metrics with the previous period, and decompose the differences."
)
@_comparison_arguments
@_since_option
@_query_option
@interval
@shared("alpha", help="Significance level.")
@_reading_options
def overview_command(paths: tuple[str, ...], output: OutputOptions, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare five headline metrics of LOG with the previous period, and decompose each difference.

    A metric over pages changes because the mix of queries changes, or because the metric changes within queries.
    The command estimates these two components of the difference, with confidence intervals.
    """
    from judged.online.log_overview import overview

    with opened(paths, output, options) as log:
        result = overview(log, metrics or None, **options)
    output(result)


@online.command(
    "queries", short_help="Lists of queries with zero results, abandonment, reformulations, or changed frequency."
)
@logs.paths
@click.option(
    "--list",
    "lists",
    multiple=True,
    metavar="NAME",
    help="List to show: zero, abandoned, reformulated, low-ctr, slow, new, rising, or falling.  [default: all]",
)
@_query_option
@_since_option
@click.option(
    "--min-users",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Minimum number of users who issued a listed query.",
)
@shared("limit", type=click.IntRange(0), default=20, help="Maximum number of rows of each list; 0: all.")
@shared("confidence")
@shared(
    "fdr",
    help="False discovery rate of each list with a significance test (all lists except 'zero' and 'reformulated').",
)
@_reading_options
def queries_command(
    paths: tuple[str, ...], output: OutputOptions, lists: tuple[str, ...], limit: int, **options: Any
) -> None:
    """List queries of LOG with zero results, abandonment, reformulations, few clicks, slow pages, or changed frequency.

    For each query, a list shows counts and a rate with a confidence interval, such as the share of users with zero
    results. The lists "zero" and "reformulated" have no significance test. All lists except "zero" and "reformulated"
    contain only queries with a significant difference. A CSV or Parquet file contains only one list: select this
    list with --list.
    """
    from judged.online.query_lists import queries

    with opened(paths, output, options) as log:
        result = queries(log, lists or None, limit=limit or None, **options)
    output(result)


@online.command("funnel", short_help="Funnel from search to click, cart, and purchase, by slice.")
@logs.paths
@click.option(
    "--row",
    type=Choice("judged.online.search_funnel:Row"),
    default="session",
    show_default=True,
    help="Unit that the funnel counts.",
)
@_slice_options
@interval
@_reading_options
def funnel_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Count sessions or pages of LOG that reach a click, the cart, and a purchase, if the log has these events."""
    from judged.online.search_funnel import funnel

    with opened(paths, output, options) as log:
        result = _with_slices(funnel, log, **options)
    output(result)


@online.command("difference", short_help="Differences between slices or periods, with significance tests.")
@_comparison_arguments
@_slice_options
@click.option(
    "--baseline",
    metavar="NAME",
    help="Baseline slice, with which the other slices are compared.  [default: the first slice in the output]",
)
@click.option("--since", metavar="DATE", help="Start of the later period, if --by is not used.")
@interval
@shared("correction")
@_reading_options
def difference_command(paths: tuple[str, ...], output: OutputOptions, metrics: tuple[str, ...], **options: Any) -> None:
    """Compare slices of LOG with a baseline slice or, without --by, the later period with the earlier one.

    A user may be in several slices, or in both periods. Differences between slices are not causal effects: slices are
    not an experiment.
    """
    from judged.online.differences import difference

    with opened(paths, output, options) as log:
        result = _with_slices(difference, log, metrics or None, **options)
    output(result)
