"""`judged online offline`: whether judgments predict what users do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.logs import give, log_options, once, open_log, progress_line, say_written
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog

_FORMS = ("table", "markdown", "csv", "json")
_PICTURES = ("png", "svg", "pdf", "html")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".csv": "csv", ".json": "json"}
_READING = ("layout", "mapping", "session_gap", "bots", "bot_pages", "bot_minutes", "rank_base", "memory", "threads")
_ASKED = ("topics", "by", "pages", "unit", "level")


@click.command("offline", short_help="Whether judgments predict what users do.")
@click.argument("logs", nargs=-1, metavar="LOG...")
@click.argument("qrels", metavar="QRELS")
@click.option("-m", "--measure", multiple=True, metavar="NAME", help="A measure.  [default: nDCG@10, P@10, RR]")
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
    callback=once,
    metavar="NAME",
    help="How pages find topics: a column of the log, or a file of topics' texts.",
)
@click.option("--by", multiple=True, callback=once, metavar="COLUMN", help="Slice by this column of the log.")
@click.option(
    "--pages",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="Of each result list its first page, or later ones too.",
)
@click.option("--dwell", type=float, default=30.0, show_default=True, help="Seconds that satisfy.")
@click.option(
    "--least-judged",
    type=float,
    default=0.8,
    show_default=True,
    help="A page counts if this share of its first 10 results is judged.",
)
@click.option(
    "--unit",
    type=click.Choice(["user", "session"]),
    default="user",
    show_default=True,
    help="Whose pages are not independent: intervals are over these.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@log_options
@click.option(
    "--format",
    "form",
    type=click.Choice((*_FORMS, *_PICTURES)),
    help="Form of the result: a table, or what -o ends in; png, svg, pdf and html are a chart.",
)
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
def command(logs: tuple[str, ...], qrels: str, out: Path | None, form: str | None, **options: Any) -> None:
    """Score the lists of LOG by the judgments in QRELS, and see whether better scores go with better outcomes.

    With --preferences: whether what clicks say about two results agrees with their grades, and says more than ranks.
    """
    if not logs:
        raise InputError("QRELS is missing", fix=f"name the judgments too: judged online offline {qrels} QRELS")
    chosen = form or inputs.form_of(out, {**_SUFFIX, **{f".{name}": name for name in _PICTURES}})
    inputs.keep_inputs(out, [*logs, qrels, options["mapping"] or "", options["topics"] or ""])
    _refuse(options, chosen, out)
    from judged.online.engine import within_memory

    with within_memory():
        found, doubts = _found(logs, qrels, options)
    output.remarks(doubts)
    if chosen in _PICTURES:
        from judged.charts import save_chart

        if out is not None:
            save_chart(found.chart(), out, chosen, f"{found.outcomes[0]} by {found.measures[0]}")
            say_written(out)
    elif chosen == "json":
        import json

        give(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False), out)
    elif chosen == "table":
        give(found.text(width=output.width() if out is None else None), out)
    else:
        give(getattr(found, chosen)(), out)


offline = command


def _refuse(options: dict[str, Any], form: str, out: Path | None) -> None:
    """Refuse what does not go together."""
    if options["rule"] and not options["preferences"]:
        raise InputError("--rule says how preferences are read off clicks", fix="give --preferences as well")
    if options["preferences"] and (options["measure"] or options["outcome"]):
        raise InputError("preferences are compared with grades, not with scores", fix="leave out -m and --outcome")
    if form in _PICTURES and options["preferences"]:
        raise InputError("there is no picture of preferences", fix="take table, markdown, csv or json")
    if form in _PICTURES and (out is None or str(out) == "-"):
        raise InputError("a picture is not printed", fix=f"name a file for it: -o offline.{form}")


def _found(logs: tuple[str, ...], qrels: str, options: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Read both and compare them; beside the result stands why the log should not be trusted, if it should not."""
    from judged.data.qrels import Qrels
    from judged.online.findings import doubts
    from judged.online.showing.trouble import unfit

    judgments = Qrels.read(qrels, format=options["qrels_format"])
    log = open_log(logs, **{name: options[name] for name in _READING})
    with progress_line("comparing"):
        return _compared(log, judgments, options), unfit(log.name, doubts(log.accounts, log.findings))


def _compared(log: InteractionLog, judgments: Qrels, options: dict[str, Any]) -> Any:
    from judged.online.offline import against_qrels, preference_agreement

    asked = {name: options[name] for name in _ASKED}
    if options["preferences"]:
        return preference_agreement(log, judgments, **({"rules": options["rule"]} if options["rule"] else {}), **asked)
    if options["measure"]:
        asked["measures"] = options["measure"]
    return against_qrels(
        log,
        judgments,
        outcomes=options["outcome"] or None,
        dwell=options["dwell"],
        least_judged=options["least_judged"],
        **asked,
    )
