"""`judged online offline`: whether judgments predict what users do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.formats import answer_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give
    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.results import Answer

_ASKED = ("topics", "by", "pages", "unit", "level")


@click.command("offline", short_help="Whether judgments predict what users do.")
@click.argument("paths", nargs=-1, metavar="LOG...")
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
    callback=logs.once,
    metavar="NAME",
    help="How pages find topics: a column of the log, or a file of topics' texts.",
)
@click.option("--by", multiple=True, callback=logs.once, metavar="COLUMN", help="Slice by this column of the log.")
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
@logs.interval
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@logs.log_options
@answer_options()
def command(paths: tuple[str, ...], qrels: str, give: Give, **options: Any) -> None:
    """Score the lists of LOG by the judgments in QRELS, and see whether better scores go with better outcomes.

    With --preferences: whether what clicks say about two results agrees with their grades, and says more than ranks.
    """
    if not paths:
        raise InputError("QRELS is missing", fix=f"name the judgments too: judged online offline {qrels} QRELS")
    give.keep(*paths, qrels, options["mapping"], options["topics"])
    if options["rule"] and not options["preferences"]:
        raise InputError("--rule says how preferences are read off clicks", fix="give --preferences as well")
    if options["preferences"] and (options["measure"] or options["outcome"]):
        raise InputError("preferences are compared with grades, not with scores", fix="leave out -m and --outcome")
    from judged.data.qrels import Qrels
    from judged.online.engine import within_memory

    judgments = Qrels.read(qrels, format=options["qrels_format"])
    with within_memory():
        log = logs.open_log(paths, **{name: options[name] for name in logs.READING})
        with logs.progress_line("comparing"):
            found = _compared(log, judgments, options)
    give(found)


def _compared(log: InteractionLog, judgments: Qrels, options: dict[str, Any]) -> Answer:
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
