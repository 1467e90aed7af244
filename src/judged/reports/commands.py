"""Commands `judged change` and `judged report`."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, documents_with_ages, print_warnings
from judged.interface.options import POLICIES, READING, Choice, LazyGroup, shared
from judged.online.commands import logs
from judged.results.answer import PICTURES
from judged.scoring.default_measures import REPORTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.run import Run
    from judged.interface.arguments import OutputOptions
    from judged.pipelines.traces import Traces


@click.group("change", cls=LazyGroup)
def change() -> None:
    """Review a change to a system: compare a candidate with the baseline."""


# Options of `review` and `rollback`.
_gate_option = click.option(
    "--gate", "config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file of 'judged gate'."
)
_log_option = click.option(
    "--log", multiple=True, metavar="FILE", help="Log of an A/B test, in a format that 'judged online abtest' reads."
)
_guardrail_option = click.option(
    "--guardrail",
    "guardrails",
    multiple=True,
    metavar="NAME",
    help="Guardrail metric of the A/B test, which must not get worse. Repeat for more metrics.",
)
_watch_option = click.option(
    "--watch",
    "watched",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration file of 'judged watch' that contains the deployment of CANDIDATE.",
)


@change.command("review", short_help="Answer questions on quality, slices, costs, the gate, and online tests.")
@shared("qrels")
@click.argument("baseline", required=False)
@click.argument("candidate", required=False)
@shared("measures", help="Measure. The first measure decides which run is better. Repeat for more measures.")
@shared("queries", "attributes")
@shared(
    "by",
    metavar="NAME",
    help="Topic attribute whose values define slices. Repeat for more attributes.  [default: attributes with few"
    " values]",
)
@click.option(
    "--traces",
    nargs=2,
    metavar="BASELINE CANDIDATE",
    help="Files of traces of the two systems, to compare settings, pipeline steps, and failures. Without the arguments"
    " BASELINE and CANDIDATE, the runs are the lists that users saw.",
)
@click.option(
    "--settings",
    nargs=2,
    metavar="BEFORE AFTER",
    help="Settings of the two systems as TOML or JSON files.  [default: the settings in the traces]",
)
@click.option("--target-failure", metavar="KIND", help="Kind of failure that the change should fix.")
@click.option(
    "--corpus",
    multiple=True,
    metavar="FILE",
    help="Documents or document ids of the corpus, which are required to detect failures of the kind 'missing content'."
    " Use one file for both systems, or repeat the option: first the file of the baseline, then the file of the"
    " candidate.",
)
@click.option(
    "--documents",
    metavar="FILE",
    help="Documents with dates, which are required to detect failures of the kind 'freshness'.",
)
@shared("as_of", "freshness_bands")
@click.option(
    "--clicks",
    multiple=True,
    metavar="FILE",
    help="Table of clicks, which is required to detect failures of the kind 'feedback'. Use one file for both"
    " systems, or repeat the option: first the file of the baseline, then the file of the candidate.",
)
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Table with the columns `run`, `wrong`, and `reviewed`: number of wrong results and number of"
    " reviewed results in a manual review.",
)
@click.option(
    "--costs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Table with the column `run`, and one column for each --cost.",
)
@click.option(
    "--cost",
    "cost_columns",
    multiple=True,
    metavar="COLUMN",
    help="Column of costs to compare, in the table of --costs. Repeat for more columns.",
)
@_gate_option
@_log_option
@click.option(
    "--arm",
    metavar="NAME",
    help="Name of the arm (A/B test) or the ranker (interleaved lists) that is the candidate."
    "  [default: the arm or ranker with the name of the candidate run]",
)
@_guardrail_option
@click.option(
    "--interleaved",
    multiple=True,
    metavar="FILE",
    help="Log of interleaved lists, in a format that 'judged online interleaving' reads.",
)
@click.option(
    "--propensities",
    multiple=True,
    metavar="FILE",
    help="Log with propensities, for an off-policy estimate of the candidate's clicks.",
)
@click.option(
    "--topics",
    metavar="FILE",
    help="File that maps logged result pages to topics, in a format that 'judged clicks' reads.",
)
@_watch_option
@shared("seed", type=click.IntRange(0))
@shared("columns")
@shared("per_topic", help="Show every topic with a loss, sorted from the largest to the smallest loss.")
@answer_options()
def review_command(
    qrels: str,
    baseline: str | None,
    candidate: str | None,
    output: OutputOptions,
    *,
    measure: tuple[str, ...],
    by: tuple[str, ...],
    traces: tuple[str, str] | None,
    corpus: tuple[str, ...],
    clicks: tuple[str, ...],
    costs: Path | None,
    cost_columns: tuple[str, ...],
    log: tuple[str, ...],
    guardrails: tuple[str, ...],
    interleaved: tuple[str, ...],
    propensities: tuple[str, ...],
    topics: str | None,
    watched: Path | None,
    per_topic: bool,
    **options: Any,
) -> None:
    """Answer questions about a change from BASELINE to CANDIDATE, and list the questions without data.

    Exit code 1: the gate, the A/B test, or 'judged watch' has an unfavorable result; 0: no unfavorable
    result; 2: invalid input.
    """
    from judged.reports.changes import review

    files = (*(traces or ()), *(options["settings"] or ()), *corpus, *clicks, options["documents"])
    output.keep(qrels, *filter(None, (baseline, candidate)), *log, *files)
    results: dict[str, Any] = {}
    for option, value, missing_option, missing_value in (
        ("--costs", costs, "--cost COLUMN", cost_columns),
        ("--cost", cost_columns, "--costs FILE", costs),
        ("--target-failure", options["target_failure"], "--traces BASELINE CANDIDATE", traces),
        ("--corpus", corpus, "--traces BASELINE CANDIDATE", traces),
        ("--documents", options["documents"], "--traces BASELINE CANDIDATE", traces),
        ("--clicks", clicks, "--traces BASELINE CANDIDATE", traces),
        ("--arm", options["arm"], "--log FILE", log or interleaved),
        ("--guardrail", guardrails, "--log FILE", log),
        ("--topics", topics, "--propensities FILE", propensities),
    ):
        if value and not missing_value:
            raise InputError(f"{option} requires {missing_option.split()[0]}", fix=f"add {missing_option}")
    options["documents"] = documents_with_ages(options)
    if costs is not None:
        results["costs_of"] = (costs, cost_columns)
    if traces:
        results |= _read_traces(traces, clicks, corpus)
    runs = _runs(baseline, candidate, results.get("traces"))
    names = [run.name for run in runs]
    if log:
        from judged.online import abtest, read_log

        test_log = read_log(log)
        test = abtest(test_log, guardrails=guardrails)
        control = _baseline_arm(test.assignment.arms, names, options["arm"])
        # Repeat the test only if another arm than the default control has the baseline.
        is_control = control == test.assignment.arms[0]
        results["test"] = test if is_control else abtest(test_log, guardrails=guardrails, baseline=control)
    if interleaved:
        from judged.online import read_log
        from judged.online.interleaving_analysis.analysis import interleaving

        lists = read_log(interleaved)
        mixed = interleaving(lists)
        ranker = _baseline_arm((mixed.baseline, mixed.other), names, options["arm"])
        results["mixed"] = mixed if ranker == mixed.baseline else interleaving(lists, baseline=ranker)
    if propensities:
        from judged.online import read_log
        from judged.online.clicks import off_policy

        results["logged"] = off_policy(read_log(propensities), runs[1], topics=topics)
    if watched:
        from judged.online.watch import watch

        results["watch"] = watch(watched)
    pair = (None, None) if candidate is None else runs
    review_answer = review(qrels, *pair, list(measure) or None, by=by or None, **options, **results)
    output(review_answer, unfold=["losses"] if per_topic else (), table="losses" if per_topic else None)
    if review_answer.decision == "do not ship":
        raise SystemExit(1)


@change.command("rollback", short_help="Decide whether to roll back a deployed change.")
@click.argument("qrels", required=False)
@click.argument("baseline", required=False)
@click.argument("candidate", required=False)
@_gate_option
@_log_option
@click.option(
    "--arm",
    metavar="NAME",
    help="Arm of the A/B test that has the change.  [default: the only arm besides the control]",
)
@_guardrail_option
@_watch_option
@answer_options()
def rollback_command(
    qrels: str | None,
    baseline: str | None,
    candidate: str | None,
    output: OutputOptions,
    *,
    config: Path | None,
    log: tuple[str, ...],
    arm: str | None,
    guardrails: tuple[str, ...],
    watched: Path | None,
) -> None:
    """Decide whether to roll back a deployed change: roll back, keep, or wait.

    The decision combines the gate (QRELS BASELINE CANDIDATE with --gate), an A/B test (--log), and the watch (--watch).
    Exit code 1: roll back; 0: keep or wait; 2: invalid input.
    """
    from judged.reports.changes import decide_rollback

    output.keep(*filter(None, (qrels, baseline, candidate)), *log)
    if (config is None) != (candidate is None):
        raise InputError("--gate requires QRELS BASELINE CANDIDATE", fix="add --gate FILE and all three files, or none")
    sources: dict[str, Any] = {}
    if config is not None:
        from judged.diagnosis.gates import gate

        sources["gate"] = gate(qrels, baseline, candidate, config)
    if log:
        from judged.online import abtest, read_log

        sources["test"] = abtest(read_log(log), guardrails=guardrails)
    if watched is not None:
        from judged.online.watch import watch

        sources["watch"] = watch(watched)
    decision = decide_rollback(**sources, arm=arm)
    output(decision)
    if decision.exit_code:
        raise SystemExit(decision.exit_code)


def _runs(baseline: str | None, candidate: str | None, traces: tuple[Traces, Traces] | None) -> tuple[Run, Run]:
    from judged.reports.changes.sheet import final_lists
    from judged.scoring.evaluation.inputs import run_pair

    if candidate is not None:
        return run_pair(baseline, candidate)
    if baseline is not None or traces is None:
        problem = "the command requires two runs, or the traces of two systems"
        raise InputError(problem, fix="pass BASELINE CANDIDATE, or add --traces BASELINE CANDIDATE")
    return final_lists(traces)


def _read_traces(traces: tuple[str, str], clicks: tuple[str, ...], corpus: tuple[str, ...]) -> dict[str, Any]:
    from judged.data.texts import document_ids
    from judged.pipelines.traces import read_traces

    pairs: dict[str, Any] = {}
    for name, files in (("clicks", clicks), ("corpus", tuple(map(document_ids, corpus)))):
        if len(files) > 2:
            problem = f"--{name} must be used at most twice, got {len(files)}"
            raise InputError(
                problem, fix=f"use --{name} once for both systems, or twice: first for BASELINE, then for CANDIDATE"
            )
        pairs[name] = files if len(files) == 2 else next(iter(files), None)
    return {"traces": tuple(map(read_traces, traces)), **pairs}


def _baseline_arm(arms: Sequence[str], names: Sequence[str], candidate_arm: str | None) -> str:
    """Return the arm with the baseline's name, or else the first arm that is not the candidate's."""
    candidate = candidate_arm or names[1]
    is_named = names[0] in arms and names[0] != candidate
    return names[0] if is_named else next(arm for arm in arms if arm != candidate)


_CONVERT = "run 'judged logs convert FILE --layout NAME --to FOLDER' (or --mapping FILE), then use --log FOLDER"


@click.command("report")
@shared("qrels", "runs", "queries", "attributes", "where")
@shared("texts", help="Titles and texts of documents, shown in ranked lists.")
@click.option(
    "--baseline",
    metavar="RUN",
    help="Run that all other runs are compared with.  [default: all pairs of runs are compared]",
)
@shared(
    "measures",
    help="Measure. The first measure ranks the runs. Repeat for more measures.  [default:"
    f" {', '.join(REPORTED_MEASURES)}]",
)
@shared(
    "by",
    help="Topic attribute whose values define slices: from a file, or derived from the data (length, kind,"
    " relevant_band, first_relevant, ...). Repeat for more attributes.  [default: attributes with few values]",
)
@shared("class_measures")
@click.option(
    "--log",
    metavar="FILE",
    help="Log with a known layout, or a folder written by 'judged logs convert ... --to FOLDER'. Adds a section about"
    " user behavior.",
)
@click.option(
    "--traces",
    multiple=True,
    metavar="FILE",
    help="File of traces, as read by 'judged traces'. Adds a section about pipeline stages. Repeat for more files.",
)
@click.option(
    "--rag",
    "responses",
    metavar="RESPONSES",
    help="File of generated answers, as read by 'judged rag'. Adds a section about the evidence for these answers.",
)
@click.option(
    "--trajectories",
    metavar="FILE",
    help="Searches and answers of agents, as read by 'judged trajectories'. Adds a section about their evidence.",
)
@click.option("--title", metavar="TEXT", help="Title of the report.")
@shared("seed", type=click.IntRange(0))
@click.option(
    "--charts", type=click.Path(path_type=Path), metavar="DIR", help="Also write the charts as files to the folder DIR."
)
@click.option(
    "--charts-format",
    "picture",
    type=Choice(PICTURES),
    default="svg",
    show_default=True,
    help="File format of the charts.",
)
@shared(*POLICIES)
@answer_options()
@shared(*READING)
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
    """Write a report on RUNs over the topics of QRELS as one self-contained HTML file.

    QRELS and RUN are files that 'judged evaluate' can read. The extension of -o selects the format: report.html,
    report.md, or report.json. Without -o, the command prints the summary and the leaderboard.
    """
    from judged.reports import report
    from judged.reports.answer import missing_chart_notes

    names = ("queries", "attributes", "class_measures", "texts", "documents", "log", "responses", "trajectories")
    files = [options[name] for name in names]
    judgments, input_runs = output.inputs(qrels, runs, options, *files, *options["traces"])
    slicing_run = arguments.baseline_run(options, input_runs)
    slicing_options = SliceOptions(attributes=options["attributes"], queries=options["queries"], where=where)
    print_warnings(map(str, slicing_options.notes(slicing_run)))
    layout_hint = logs.layout_errors(_CONVERT) if options["log"] is not None else nullcontext()
    with layout_hint, arguments.progress_bar(input_runs) as progress:
        answer = report(
            judgments,
            input_runs,
            measures=measure or None,
            by=arguments.names_in(by),
            where=where,
            command=format_command(click.get_current_context()),
            progress=progress,
            **{name: value for name, value in options.items() if value is not None},
        )
    output(answer, notes=missing_chart_notes() if output.format == "html" else ())
    if output.out is not None and str(output.out) != "-":
        click.echo(f"wrote {output.out}", err=True)
    if charts is not None:
        files = answer.save_charts(charts, form=picture)
        click.echo(f"wrote {len(files)} charts to {charts}", err=True)


def format_command(context: click.Context) -> str:
    """Format the command line of a call for a shell, with options in the order of the help."""
    names = [context.command.name or ""]
    parent = context.parent
    while parent is not None and parent.parent is not None:  # the outermost context is `judged`
        names.insert(0, parent.command.name or "")
        parent = parent.parent
    arguments: list[str] = []
    options: list[str] = []
    for param in context.command.params:
        name = param.name or ""
        # Defaults are omitted: a later version may change them on purpose.
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        values = list(map(str, value)) if isinstance(value, tuple) else [str(value)]
        if isinstance(param, click.Argument):
            arguments += values
        else:
            flag = max(param.opts, key=len)
            options += [word for value in values for word in (flag, value)]
    return shlex.join(["judged", *names, *arguments, *options])
