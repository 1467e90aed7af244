"""`judged report`: one file that says what was evaluated, which run is best, where it fails, and why to believe it."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, logs, output
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, POLICIES, shared
from judged.cli.slice_options import SliceOptions

if TYPE_CHECKING:
    from judged.cli.formats import Give

_CONVERT = "convert it: judged logs convert FILE --layout NAME (or --mapping FILE) --to FOLDER; then give --log FOLDER"


@click.command("report")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared("queries", "attributes", "where")
@click.option("--texts", metavar="FILE", help="Titles and texts of documents, shown in judged lists.")
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@click.option(
    "-m",
    "--measure",
    multiple=True,
    metavar="NAME",
    help="A measure; the first one orders the runs. Repeat for more.  [default: nDCG@10, AP, R@100]",
)
@click.option(
    "--by",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Attributes to slice by: from the files, or derived (length, kind, relevant_band,"
    " first_relevant, ...).  [default: those with few values]",
)
@click.option(
    "--log",
    metavar="FILE",
    help="A log of what users did, for a section on it: one whose layout is detected, or a"
    " folder that 'judged logs convert ... --to FOLDER' made of any other.",
)
@click.option(
    "--traces",
    multiple=True,
    metavar="FILE",
    help="Traces, for a section on stages, as for 'judged traces'. Repeat for more.",
)
@click.option(
    "--rag", "responses", metavar="RESPONSES", help="Answers, for a section on their evidence, as for 'judged rag'."
)
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for everything random.")
@click.option("--charts", type=click.Path(path_type=Path), metavar="DIR", help="Also write the charts to this folder.")
@click.option(
    "--charts-format",
    "picture",
    type=click.Choice(["svg", "png", "pdf"]),
    default="svg",
    show_default=True,
    help="Format of these charts.",
)
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    by: tuple[str, ...],
    where: str | None,
    charts: Path | None,
    picture: str,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Write a report on RUNs over the topics of QRELS: one self-contained HTML file.

    QRELS and RUN are files as for 'judged evaluate'. The extension of -o decides the format: report.html, report.md
    or report.json. Without -o, the summary and the leaderboard are printed.
    """
    from judged.data.qrels import Qrels
    from judged.reports import report
    from judged.reports.answer import undrawn

    given = inputs.runs_at(runs, run_format)
    read = [options[name] or "" for name in ("queries", "attributes", "texts", "documents", "log")]
    read += [*options["traces"], options["responses"] or ""]
    give.keep(qrels, *read, *(run.where for run in given))
    cut_by = next((run for run in given if run.name == options["baseline"]), given[0])
    asked = SliceOptions(attributes=options["attributes"], queries=options["queries"], where=where)
    output.notes(map(str, asked.notes(cut_by)))
    names = [name.strip() for text in by for name in text.split(",") if name.strip()]
    of_log = logs.known_layout(_CONVERT) if options["log"] is not None else nullcontext()
    with of_log, inputs.progress_bar(given) as progress:
        made = report(
            Qrels.read(qrels, format=qrels_format),
            given,
            measures=measure or None,
            by=names,
            where=where,
            command=again(click.get_current_context()),
            progress=progress,
            **{name: value for name, value in options.items() if value is not None},
        )
    give(made, notes=undrawn() if give.form == "html" else ())
    if give.out is not None and str(give.out) != "-":
        click.echo(f"wrote {give.out}", err=True)
    if charts is not None:
        files = made.save_charts(charts, form=picture)
        click.echo(f"wrote {len(files)} charts to {charts}", err=True)


def again(context: click.Context) -> str:
    """Write the command line that was given, in the order of the help, so that a shell reads it back."""
    names = [context.command.name or ""]
    above = context.parent
    while above is not None and above.parent is not None:  # the outermost is `judged` itself
        names.insert(0, above.command.name or "")
        above = above.parent
    arguments: list[str] = []
    options: list[str] = []
    for param in context.command.params:
        name = param.name or ""
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        values = [str(one) for one in value] if isinstance(value, tuple) else [str(value)]
        if isinstance(param, click.Argument):
            arguments += values
        else:
            flag = max(param.opts, key=len)
            options += [part for one in values for part in (flag, one)]
    return shlex.join(["judged", *names, *arguments, *options])
