"""`judged online`: what users did, from interaction logs."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from judged.cli import inputs, logs, output
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from judged.online.estimates import ScoresTable
    from judged.online.facts.settings import FactSettings
    from judged.online.log import InteractionLog

    Tell: TypeAlias = Callable[[str, float | None], None]

_FORMS = ("table", "markdown", "csv", "json")
_PICTURES = ("png", "svg", "pdf")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".csv": "csv", ".json": "json", ".html": "html"}
_NO_PAGE = "take 'judged online metrics -o page.html', or png or svg"
_DATED = "give --documents FILE: documents with a column date"
_ELSEWHERE = {"offline": "judged.cli.online_offline"}  # commands with a module of their own
_READING = ("layout", "mapping", "session_gap", "bots", "bot_pages", "bot_minutes", "rank_base", "memory", "threads")


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


def _asked(*more: str) -> Callable[..., Any]:
    """Give a command the logs, the options of intervals, of how logs are read, and of the result in `more` forms."""
    result = (
        click.option(
            "--format",
            "form",
            type=click.Choice((*_FORMS, *more, *_PICTURES)),
            help="Form of the result: a table, or what -o ends in.",
        ),
        click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write here."),
    )
    interval = (
        click.argument("paths", nargs=-1, required=True, metavar="LOG..."),
        click.option(
            "--unit",
            type=click.Choice(["user", "session"]),
            default="user",
            show_default=True,
            help="Intervals are made over these: what one of them does is not independent.",
        ),
        click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals."),
    )

    def given(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in (*reversed(result), logs.log_options, *reversed(interval)):
            function = option(function)
        return function

    return given


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
    from judged.online.facts.settings import FactSettings

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
@_asked("html")
def _metrics(metric: tuple[str, ...], **options: Any) -> None:
    """Compute metrics of LOG with intervals over users; wherever clicks count, CTR by rank stands beside them.

    Without -m, every usual metric that the log can tell is shown; 'judged online list' names all. The form html is a
    page that needs nothing else; its charts take judged[plots].
    """
    from judged.online.showing import text, trouble

    asked = {name: options[name] for name in ("unit", "level", "interval", "resamples", "seed")}
    asked["settings"] = _settings(options)
    chosen, log = _begin(options)
    with log as (read, tell):
        scores = _scores(read, metric or None, options, progress=tell, **asked)
        trouble.need_metrics(scores)
        curves = _visits(read, options, tell) if chosen == "html" else ()
    _doubt(scores)
    if chosen == "html":
        _page(scores, curves, options["out"])
        return
    _give(scores, chosen, options["out"], scores.chart if chosen in _PICTURES else None)
    if chosen == "csv" or chosen in _PICTURES:
        output.remarks(text.notes(scores))


@command.command("ranks", short_help="CTR by rank: position bias.")
@_sliced
@_asked()
def _ranks(**options: Any) -> None:
    """Show how often results were opened at each rank of LOG, with intervals over users."""
    from judged.online.showing import charts, text

    chosen, log = _begin(options, page=False)
    with log as (read, tell):
        asked = {name: options[name] for name in ("unit", "level")}
        scores = _scores(read, "ImpressionCTR", options, progress=tell, **asked)
    if not scores.ranks:
        why = scores.refused[0][1] if scores.refused else "nothing was shown"
        raise InputError(f"there is no CTR by rank: {why}", fix="see 'judged online list CTRAtRank'", path=scores.log)
    _doubt(scores)
    out = options["out"]
    if chosen in _PICTURES:
        _draw(charts.ranks_chart(scores, title=f"CTR by rank: {scores.log}"), chosen, out)
    elif chosen == "json":
        _give(scores, chosen, out)
    elif chosen == "table":
        logs.give(text.ranks_text(scores, **_terminal(out)), out)
    else:
        logs.give(text.ranks_csv(scores) if chosen == "csv" else text.ranks_markdown(scores), out)


@command.command("dwell", short_help="How long results are looked at, and satisfied clicks by threshold.")
@_asked()
def _dwell(**options: Any) -> None:
    """Show how long opened results of LOG are looked at, and how satisfied clicks depend on their threshold.

    Visits whose end was not seen count for as long as they were watched (Kaplan-Meier).
    """
    from judged.online.curves.dwell import dwell_times

    chosen, log = _begin(options, page=False)
    with log as (read, tell):
        _say(tell, "visits")
        found = dwell_times(read, unit=options["unit"], level=options["level"])
    _doubt(found.scores)
    _give(found, chosen, options["out"], found.chart if chosen in _PICTURES else None)


@command.command("time", short_help="A metric over time: control limits, signals, changes.")
@click.option("-m", "--metric", required=True, multiple=True, callback=logs.once, metavar="NAME", help="The metric.")
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
@_asked()
def _time(metric: str, every: str, warm_up: int | None, **options: Any) -> None:
    """Show a metric of LOG over time, with control limits, what lies outside them, and when its level changed."""
    from judged.online.curves.series import Series

    chosen, log = _begin(options, page=False)
    with log as (read, tell):
        asked = {name: options[name] for name in ("unit", "level")}
        asked |= {"settings": _settings(options), "progress": tell}
        scores = _online().online_metrics(read, metric, **asked)
        if not scores.estimates:
            raise InputError(
                f"{metric} cannot be told: {scores.refused[0][1]}", fix="'judged online metrics' shows what can"
            )
        series = Series(scores, _online().over_time(read, metric, every=every, warm_up=warm_up, **asked))
    _doubt(scores)
    _give(series, chosen, options["out"], series.chart if chosen in _PICTURES else None)


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
    from judged.online.metrics.registry import ONLINE_METRICS, online_metric
    from judged.online.showing import listing
    from judged.online.showing.document import definitions

    if form == "json":
        import json

        known = [online_metric(name)] if name else list(ONLINE_METRICS.values())
        click.echo(json.dumps(definitions(known), indent=2, ensure_ascii=False))
    elif name:
        click.echo(listing.page(name, width=output.width()))
    else:
        click.echo(listing.catalogue().markdown() if form == "markdown" else listing.text(width=output.width()))


def _scores(read: InteractionLog, metric: Any, options: dict[str, Any], **asked: Any) -> Any:
    """Compute metrics by the slice that was asked for; what is missing for it is said in words of the command line."""
    by, documents = options["by"], options["documents"]
    if documents is not None and "freshness" not in (by or ""):
        raise InputError("--documents says how old results are", fix="give --by freshness as well, or leave it out")
    try:
        return _online().online_metrics(read, metric, by=by, objects=documents, **asked)
    except InputError as error:
        if "objects=" not in error.fix:
            raise
        raise InputError(error.problem, fix=_DATED, path=error.path) from None


def _page(scores: Any, curves: Any, out: Path | None) -> None:
    """Write the page; say so where it has no charts."""
    from judged.reports.answer import undrawn
    from judged.reports.online import online_page

    logs.give(online_page(scores, curves, command=_again()).removesuffix("\n"), out)
    output.remarks(undrawn())


def _doubt(scores: ScoresTable) -> None:
    """Say on standard error where numbers should not be trusted as they are."""
    from judged.online.showing.trouble import doubtful

    output.remarks(doubtful(scores))


def _say(tell: Tell | None, step: str) -> None:
    if tell is not None:
        tell(step, None)


def _visits(read: InteractionLog, options: dict[str, Any], tell: Tell | None) -> Any:
    from judged.reports.online import visits

    _say(tell, "visits")
    return visits(read, unit=options["unit"], level=options["level"])


def _online() -> Any:
    return importlib.import_module("judged.online")


def _begin(options: dict[str, Any], *, page: bool = True) -> tuple[str, Any]:
    """Choose the form, refuse to write over an input, and give what reads the log."""
    out: Path | None = options["out"]
    known = {**_SUFFIX, **{f".{name}": name for name in _PICTURES}}
    chosen = options["form"] or inputs.form_of(out, known)
    if chosen == "html" and not page:
        raise InputError("there is no page of this result", fix=_NO_PAGE)
    if chosen in _PICTURES and (out is None or str(out) == "-"):
        raise InputError("a picture is not printed", fix=f"name a file for it: -o online.{chosen}")
    read = (options["mapping"], options.get("documents"))
    inputs.keep_inputs(out, [*options["paths"], *(one for one in read if one is not None)])
    return chosen, _read(options)


@contextmanager
def _read(options: dict[str, Any]) -> Generator[tuple[InteractionLog, Tell | None]]:
    """Read the log; on a terminal, say on standard error what is being done."""
    from judged.online.engine import within_memory

    with within_memory():
        read = logs.open_log(options["paths"], **{name: options[name] for name in _READING})
        with logs.progress_line("counting") as tell:
            yield read, tell


def _give(found: Any, form: str, out: Path | None, draw: Callable[[], Any] | None = None) -> None:
    """Write a result in one of its forms."""
    if draw is not None:
        _draw(draw(), form, out)
    elif form == "json":
        import json

        logs.give(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False), out)
    elif form == "table":
        logs.give(found.text(**_terminal(out)), out)
    else:
        logs.give(getattr(found, form)(), out)


def _draw(chart: Any, form: str, out: Path | None) -> None:
    from judged.charts import save_chart

    if out is not None:
        save_chart(chart, out, form)
        logs.say_written(out)


def _terminal(out: Path | None) -> dict[str, Any]:
    """Say how wide a terminal is and whether it takes colours; a file has neither."""
    if out is not None and str(out) != "-":
        return {}
    return {"width": output.width(), "colour": output.coloured(sys.stdout.isatty())}


def _again() -> str:
    from judged.cli.report import again

    return again(click.get_current_context())
