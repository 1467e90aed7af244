"""`judged online`: what users did, from interaction logs."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from judged.cli import logs, output
from judged.cli.formats import answer_options
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from judged.cli.formats import Give
    from judged.online.facts.pages import FactSettings
    from judged.online.log import InteractionLog

    Tell: TypeAlias = Callable[[str, float | None], None]

_DATED = "give --documents FILE: documents with a column date"
_ELSEWHERE = {
    name: f"judged.cli.online_{name}"
    for name in ("overview", "queries", "funnel", "difference", "abtest", "interleaving", "offline")
}


class _Commands(click.Group):
    """The commands below `online`; those of other modules are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them in the order of the help."""
        return [*super().list_commands(ctx), *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one, or import it."""
        if cmd_name in _ELSEWHERE:
            return importlib.import_module(_ELSEWHERE[cmd_name]).command
        return super().get_command(ctx, cmd_name)


@click.group("online", cls=_Commands, short_help="Metrics of what users did, from interaction logs.")
def command() -> None:
    """Compute metrics of what users did, from logs of result pages and clicks.

    LOG is one file or several of one log: UBI (ndjson, JSON, Parquet, CSV), a click-model log, a TREC session file, or
    any table with a --mapping. What is wrong with a log is found by 'judged logs check'.
    """


def _asked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the logs, and the options of intervals, of how logs are read, and of the result."""
    function = logs.where(logs.interval(logs.log_options(logs.tables(answer_options()(function)))))
    return click.argument("paths", nargs=-1, required=True, metavar="LOG...")(function)


def _sliced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of slices."""
    dated = click.option(
        "--documents", metavar="FILE", help="For --by freshness: when results were made, documents with a column date."
    )
    by = click.option(
        "--by",
        multiple=True,
        callback=logs.once,
        metavar="SLICE",
        help="Slice by this: device, language, variant, ..., or an attribute of the log.",
    )
    return by(dated(function))


def _quantile(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a share; ``off`` is 1."""
    del ctx, param
    try:
        return None if value is None else 1.0 if value == "off" else float(value)
    except ValueError:
        raise InputError(f"--winsorise is {value!r}", fix="give a share above 0, such as 0.999, or off") from None


_SETTINGS = {
    "winsorise": "Money of a page above this quantile, of pages that brought any, counts as it; 1 or off: as it is.",
    "reformulation_gap": "Seconds within which the next query of a session may be a reformulation.",
    "attribution_window": "Seconds within which a cart or purchase that names no page counts for the last one.",
    "success": "Seconds of dwell that make a session succeed, where a metric does not say it (t=).",
}
"""The fields of `FactSettings`. Their defaults stay there, and are shown here: importing them takes half a second."""

_SHOWN = {"winsorise": "0.999", "reformulation_gap": "300", "attribution_window": "1800", "success": "30"}


def _settled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the choices behind the facts that no metric carries in its name."""
    for name, what in reversed(_SETTINGS.items()):
        kind: dict[str, Any] = {"callback": _quantile} if name == "winsorise" else {"type": float}
        flag, said = f"--{name.replace('_', '-')}", f"{what}  [default: {_SHOWN[name]}]"
        function = click.option(flag, metavar="SHARE" if name == "winsorise" else "SECONDS", help=said, **kind)(
            function
        )
    return function


def _settings(options: dict[str, Any]) -> FactSettings:
    from judged.online.facts.pages import FactSettings

    return FactSettings(**{name: options[name] for name in _SETTINGS if options[name] is not None})


@command.command("metrics", short_help="Metrics with intervals, by slice.")
@click.option(
    "-m", "--metric", multiple=True, metavar="NAME", help="A metric, such as PageCTR or SatisfiedClicks(t=20)."
)
@_sliced
@click.option(
    "--interval",
    type=click.Choice(["delta", "bootstrap"]),
    default="delta",
    show_default=True,
    help="How intervals of ratios are made.",
)
@click.option("--resamples", type=int, default=2000, show_default=True, help="Resamples of the bootstrap.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@_settled
@_asked
def _metrics(metric: tuple[str, ...], give: Give, **options: Any) -> None:
    """Compute metrics of LOG with intervals over users; wherever clicks count, CTR by rank stands beside them.

    Without -m, every usual metric that the log can tell is shown; 'judged online list' names all.
    """
    from judged.online.scores import need_metrics

    asked = {name: options[name] for name in ("unit", "level", "interval", "resamples", "seed")}
    asked["settings"] = _settings(options)
    with _log(options, give) as (log, tell):
        scores = need_metrics(_scores(log, metric or None, options, progress=tell, **asked))
    give(scores)


@command.command("ranks", short_help="CTR by rank: position bias.")
@_sliced
@_asked
def _ranks(give: Give, **options: Any) -> None:
    """Show how often results were opened at each rank of LOG, with intervals over users."""
    with _log(options, give) as (log, tell):
        asked = {name: options[name] for name in ("unit", "level")}
        scores = _scores(log, "ImpressionCTR", options, progress=tell, **asked)
    give(scores.by_rank())


@command.command("dwell", short_help="How long results are looked at, and satisfied clicks by threshold.")
@_asked
def _dwell(give: Give, **options: Any) -> None:
    """Show how long opened results of LOG are looked at, and how satisfied clicks depend on their threshold.

    Visits whose end was not seen count for as long as they were watched (Kaplan-Meier).
    """
    from judged.online.curves.dwell import dwell_times

    with _log(options, give) as (log, tell):
        if tell is not None:
            tell("visits", None)
        found = dwell_times(log, **{name: options[name] for name in ("where", "unit", "level")})
    give(found)


@command.command("time", short_help="Metrics over time: control limits, signals, changes.")
@click.option("-m", "--metric", required=True, multiple=True, metavar="NAME", help="A metric. Repeat for more.")
@click.option(
    "--every",
    type=click.Choice(["hour", "day", "week"]),
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
@_settled
@_asked
def _time(metric: tuple[str, ...], every: str, warm_up: int | None, give: Give, **options: Any) -> None:
    """Show metrics of LOG over time, with control limits, what lies outside them, and when their level changed."""
    asked = {name: options[name] for name in ("where", "unit", "level")}
    asked["settings"] = _settings(options)
    with _log(options, give) as (log, tell):
        found = _online().over_time(log, metric, every=every, warm_up=warm_up, progress=tell, **asked)
    give(found)


@command.command("list", short_help="List the metrics, or show one in full.")
@click.argument("name", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="Form of the list.",
)
def _list(name: str | None, form: str) -> None:
    """List the metrics, or show NAME in full: formula, numerator, denominator, window, source, when it misleads."""
    from judged.online import catalogue
    from judged.online.layout import definitions
    from judged.online.metrics import ONLINE_METRICS, online_metric

    if form == "json":
        import json

        known = [online_metric(name)] if name else ONLINE_METRICS.values()
        click.echo(json.dumps(definitions(known).records(), indent=2, ensure_ascii=False))
    elif name:
        click.echo(catalogue.page(name, width=output.width()))
    else:
        click.echo(catalogue.catalogue().markdown() if form == "markdown" else catalogue.text(width=output.width()))


def _scores(log: InteractionLog, metric: Any, options: dict[str, Any], **asked: Any) -> Any:
    """Compute metrics by the slice that was asked for; what is missing for it is said in words of the command line."""
    by, documents = options["by"], options["documents"]
    if documents is not None and "freshness" not in (by or ""):
        raise InputError("--documents says how old results are", fix="give --by freshness as well, or leave it out")
    try:
        return _online().online_metrics(log, metric, by=by, objects=documents, where=options["where"], **asked)
    except InputError as error:
        if "objects=" not in error.fix:
            raise
        raise InputError(error.problem, fix=_DATED, path=error.path) from None


def _online() -> Any:
    return importlib.import_module("judged.online")


@contextmanager
def _log(options: dict[str, Any], give: Give) -> Generator[tuple[InteractionLog, Tell | None]]:
    """Refuse to write over an input, and read the log; on a terminal, say on standard error what is being done."""
    from judged.online.engine import within_memory

    give.keep(*options["paths"], options["mapping"], options.get("documents"))
    with within_memory():
        log = logs.open_log(options["paths"], **{name: options[name] for name in (*logs.READING, "tables")})
        with logs.progress_line("counting") as tell:
            yield log, tell
