"""`judged change`: what is known of a change of the system, and what follows."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, print_warnings
from judged.interface.options import FORMATS, POLICIES, Choice, LazyGroup, shared
from judged.online.commands import logs
from judged.results.answer import PICTURES
from judged.scoring.default_measures import REPORTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.arguments import OutputOptions


@click.group("change", cls=LazyGroup)
def change() -> None:
    """Put together what is known of a change of the system: baseline and candidate."""


@change.command("review", short_help="One sheet: better, where, at what cost, gate, users; and what is blank.")
@shared("qrels")
@click.argument("baseline")
@click.argument("candidate")
@shared("measures", help="The first decides what is better.")
@shared("queries", "attributes")
@shared("by", metavar="NAME", help="Attributes to slice by.  [default: those with few values]")
@click.option("--traces", nargs=2, metavar="BASELINE CANDIDATE", help="Traces of both, for kinds of failure.")
@click.option("--meant", metavar="KIND", help="The kind of failure that the change was meant to mend.")
@click.option("--documents", metavar="FILE", help="Documents with their dates: for freshness.")
@click.option("--date", metavar="COLUMN", default="date", show_default=True, help="The column of dates of --documents.")
@click.option("--today", metavar="DAY", help="Leave out documents dated later.  [default: the newest date]")
@click.option("--clicks", multiple=True, metavar="FILE", help="For feedback: of both, or of BASELINE, then CANDIDATE.")
@click.option("--reviewed", type=click.Path(path_type=Path), metavar="FILE", help="Columns run, wrong and reviewed.")
@click.option("--costs", type=click.Path(path_type=Path), metavar="FILE", help="A column run, and one for each --cost.")
@click.option("--cost", "columns", multiple=True, metavar="COLUMN", help="A column of --costs. Repeat for more.")
@click.option("--gate", "config", type=click.Path(path_type=Path), metavar="FILE", help="Its configuration.")
@click.option("--log", multiple=True, metavar="FILE", help="A log with arms, as 'judged online abtest' reads it.")
@click.option("--arm", metavar="NAME", help="The candidate's arm, or ranker in mixed lists.  [default: by its name]")
@click.option("--guardrail", "guardrails", multiple=True, metavar="NAME", help="Of the test: metrics not to be lost.")
@click.option("--interleaved", multiple=True, metavar="FILE", help="A log of lists that mix both.")
@click.option("--propensities", multiple=True, metavar="FILE", help="A log with propensities, for 'off-policy'.")
@click.option("--topics", metavar="FILE", help="How pages of it find topics, as for 'judged clicks'.")
@click.option("--watch", "watched", type=click.Path(path_type=Path), metavar="FILE", help="Of 'judged watch'.")
@shared("seed", type=click.IntRange(0))
@answer_options()
def review_command(
    qrels: str,
    baseline: str,
    candidate: str,
    output: OutputOptions,
    *,
    measure: tuple[str, ...],
    by: tuple[str, ...],
    traces: tuple[str, str] | None,
    clicks: tuple[str, ...],
    costs: Path | None,
    columns: tuple[str, ...],
    log: tuple[str, ...],
    guardrails: tuple[str, ...],
    interleaved: tuple[str, ...],
    propensities: tuple[str, ...],
    topics: str | None,
    watched: Path | None,
    **options: Any,
) -> None:
    """Fill in the sheet of a change from whatever is known of BASELINE and CANDIDATE, and name what is blank.

    Exit code 0: nothing that decides (gate, A/B test, watch) says no; 1: something does; 2: wrong input.
    """
    from judged.reports.changes import review
    from judged.scoring.evaluation import runs_of

    output.keep(qrels, baseline, candidate, *log, *(traces or ()), *clicks, options["documents"])
    more: dict[str, Any] = {}
    for option, given, of, there in (
        ("--costs", costs, "--cost COLUMN", columns),
        ("--cost", columns, "--costs FILE", costs),
        ("--meant", options["meant"], "--traces BASELINE CANDIDATE", traces),
        ("--documents", options["documents"], "--traces BASELINE CANDIDATE", traces),
        ("--clicks", clicks, "--traces BASELINE CANDIDATE", traces),
        ("--today", options["today"], "--documents FILE", options["documents"]),
        ("--arm", options["arm"], "--log FILE", log or interleaved),
        ("--guardrail", guardrails, "--log FILE", log),
        ("--topics", topics, "--propensities FILE", propensities),
    ):
        if given and not there:
            raise InputError(f"{option} stands alone", fix=f"give {of} too")
    names = [run.name for one in (baseline, candidate) for run in runs_of(one)[:1]]
    if costs is not None:
        more["costs_of"] = (costs, columns)
    if traces:
        more |= _traced(traces, clicks)
    if log:
        from judged.online import abtest, read_log

        shown = read_log(log)
        test = abtest(shown, guardrails=guardrails)
        arms = test.assignment.arms
        against = _against(arms, names, options["arm"])
        more["test"] = test if against == arms[0] else abtest(shown, guardrails=guardrails, baseline=against)
    if interleaved:
        from judged.online import read_log
        from judged.online.interleaving_analysis.analysis import interleaving

        lists = read_log(interleaved)
        mixed = interleaving(lists)
        against = _against((mixed.baseline, mixed.other), names, options["arm"])
        more["mixed"] = mixed if against == mixed.baseline else interleaving(lists, baseline=against)
    if propensities:
        from judged.online import read_log
        from judged.online.clicks import off_policy

        more["logged"] = off_policy(read_log(propensities), candidate, topics=topics)
    if watched:
        from judged.online.watch import watch

        more["watch"] = watch(watched)
    made = review(qrels, baseline, candidate, list(measure) or None, by=by or None, **options, **more)
    output(made)
    if made.decision == "do not ship":
        raise SystemExit(1)


def _traced(traces: tuple[str, str], clicks: tuple[str, ...]) -> dict[str, Any]:
    """Read the traces of both, and name the clicks of both."""
    from judged.pipelines.traces import read_traces

    if len(clicks) > 2:
        raise InputError(f"--clicks is given {len(clicks)} times", fix="give it once, or for BASELINE and CANDIDATE")
    of_both = clicks if len(clicks) == 2 else next(iter(clicks), None)
    return {"traces": tuple(read_traces(one) for one in traces), "clicks": of_both}


def _against(arms: Sequence[str], names: Sequence[str], arm: str | None) -> str:
    """Say which arm is the baseline's: the one of its name, or the first that is not the candidate's."""
    ours = arm or names[1]
    return names[0] if names[0] in arms and names[0] != ours else next(one for one in arms if one != ours)


_CONVERT = "convert it: judged logs convert FILE --layout NAME (or --mapping FILE) --to FOLDER; then give --log FOLDER"


@click.command("report")
@shared("qrels", "runs", "queries", "attributes", "where")
@shared("texts", help="Titles and texts of documents, shown in judged lists.")
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@shared(
    "measures",
    help=f"A measure; the first one orders the runs. Repeat for more.  [default: {', '.join(REPORTED_MEASURES)}]",
)
@shared(
    "by",
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
@shared("seed", type=click.IntRange(0))
@click.option("--charts", type=click.Path(path_type=Path), metavar="DIR", help="Also write the charts to this folder.")
@click.option(
    "--charts-format",
    "picture",
    type=Choice(PICTURES),
    default="svg",
    show_default=True,
    help="Format of these charts.",
)
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def report_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    by: tuple[str, ...],
    where: str | None,
    charts: Path | None,
    picture: str,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Write a report on RUNs over the topics of QRELS: one self-contained HTML file.

    QRELS and RUN are files as for 'judged evaluate'. The extension of -o decides the format: report.html, report.md
    or report.json. Without -o, the summary and the leaderboard are printed.
    """
    from judged.reports import report
    from judged.reports.answer import undrawn

    files = [options[name] for name in ("queries", "attributes", "texts", "documents", "log", "responses")]
    judgments, given = output.inputs(qrels, runs, options, *files, *options["traces"])
    cut_by = next((run for run in given if run.name == options["baseline"]), given[0])
    slicing_options = SliceOptions(attributes=options["attributes"], queries=options["queries"], where=where)
    print_warnings(map(str, slicing_options.notes(cut_by)))
    of_log = logs.layout_errors(_CONVERT) if options["log"] is not None else nullcontext()
    with of_log, arguments.progress_bar(given) as progress:
        made = report(
            judgments,
            given,
            measures=measure or None,
            by=arguments.names_in(by),
            where=where,
            command=again(click.get_current_context()),
            progress=progress,
            **{name: value for name, value in options.items() if value is not None},
        )
    output(made, notes=undrawn() if output.format == "html" else ())
    if output.out is not None and str(output.out) != "-":
        click.echo(f"wrote {output.out}", err=True)
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
