"""Commands that compute scores: evaluate, explain, curve, measures, advise, leave-one-out, trec_eval."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from judged.errors import InputError, JudgedError, MeasureError
from judged.interface import arguments
from judged.interface.arguments import answer_options, filter_by_where, is_colored, terminal_width
from judged.interface.options import FORMATS, READING, TOPIC_OPTIONS, Choice, shared
from judged.results.escaping import escape_controls
from judged.scoring.default_measures import DEFAULT_MEASURE, DEFAULT_MEASURES, TESTED_MEASURES

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions
    from judged.scoring.judging import Judged, TiePolicy
    from judged.scoring.measures.base import Measure


@click.command("evaluate")
@shared("qrels", "runs")
@shared("measures", help="Measure, such as nDCG@10 or P@5,10. Can be repeated.")
@shared("dialect")
@shared("per_topic", help="Show the scores of each topic.")
@shared("topics", "depth", "ties_or_bounds", "exclude_self")
@click.option(
    "--unjudged", is_flag=True, help="Show the range of each score over all possible grades of unjudged documents."
)
@shared("documents", "rel", "ci", "level", "draws", "seed")
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of parallel processes that read runs and match them with QRELS. The number of processes does not"
    " affect the scores.",
)
@shared(*TOPIC_OPTIONS)
@answer_options()
@shared(*READING)
def evaluate_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    per_topic: bool,
    ci: Any,
    level: float,
    resamples: int,
    seed: int,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score RUNs against QRELS, with confidence intervals over topics.

    QRELS and RUN are files in the format TREC, CSV, TSV, JSON, JSONL, Parquet, BEIR, or MS MARCO, possibly compressed.
    The format is detected. Use - for standard input, and NAME=FILE to name a run. A folder or a file pattern is
    read as one run per file. A folder that Spark or DuckDB wrote is one run. FILE.duckdb/TABLE is a table of a
    database.
    """
    from judged.scoring.evaluation import evaluate

    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    judgments, run_list = output.inputs(
        qrels, runs, options, options["documents"], topic_options["queries"], topic_options["attributes"]
    )
    texts = None
    if topic_options["queries"]:
        from judged.data.topics import Topics

        texts = Topics.read(topic_options["queries"])
    judgments, options["attributes"] = filter_by_where(judgments, run_list, **topic_options, measures=measure)
    with arguments.scoring(run_list) as progress:
        scores = evaluate(judgments, run_list, measure or DEFAULT_MEASURES, seed=seed, progress=progress, **options)
    if texts is not None:
        scores = replace(scores, queries={query: texts.text(query) for query in scores.query_ids})
    if output.format == "parquet":
        output(scores)
        return
    summary = scores.summary(ci=ci, level=level, resamples=resamples, seed=seed, per_topic=per_topic)
    output(summary, table="topics" if per_topic else None)


@click.command("explain")
@click.argument("qrels", required=False)
@click.argument("run", required=False)
@click.option(
    "--grades",
    metavar="LIST",
    help="Grades of one ranking, instead of QRELS and RUN, such as '3 0 - 1' or 'R N R'. Write - for an unjudged"
    " document.",
)
@click.option(
    "--missing",
    metavar="LIST",
    default="",
    help="Grades of judged documents that were not returned. Only with --grades.",
)
@shared("topic", help="Topic to explain. Optional if the qrels have only one topic.")
@shared("measures", default=(DEFAULT_MEASURE,), help="Measure. Can be repeated.", show_default=True)
@click.option(
    "--as",
    "tools",
    metavar="TOOLS",
    help="Show the scores of other tools, and the rules that cause differences. Separate tools with commas, or write"
    " 'all' for all tools. Tools: trec_eval-10, trec_eval-9, gdeval, ranx, ir_measures, ...",
)
@shared("rel", help="Lowest relevant grade. With --as, this grade is passed to the tools (-l of trec_eval).")
@shared("depth", help="Use only the top N documents.")
@shared("order", "documents", "texts")
@shared("queries", help="Query texts.")
@answer_options()
@shared(*READING)
def explain_command(
    qrels: str | None,
    run: str | None,
    grades: str | None,
    missing: str,
    topic: str | None,
    measure: tuple[str, ...],
    tools: str | None,
    rel: float | None,
    depth: int | None,
    ties: TiePolicy,
    documents: str | None,
    texts: str | None,
    queries: str | None,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Show how the score of one topic of RUN is computed, step by step.

    The steps are recorded during the computation of the score. With --as, show the scores of other tools for the
    topic, with the reasons for differences.
    """
    from judged.data.topics import Topics
    from judged.results import AnswerList
    from judged.results.blocks import lines
    from judged.scoring.evaluation.inputs import measures_of
    from judged.scoring.evaluation.notes import origin_notes
    from judged.scoring.explanation import Explanation, compare_tools, explain_list

    if grades is None:
        judged = _read(qrels, run, qrels_format, run_format, {"ties": ties, "depth": depth, "documents": documents})
    else:
        others = {"QRELS": qrels, "RUN": run, "--topic": topic, "--documents": documents, "--texts": texts}
        judged = _judge_grades(grades, missing, depth, others)
    parsed_measures = measures_of(measure, rel=rel if tools is None else None)
    if topic is None and len(judged) != 1:
        raise InputError(
            f"one topic is required, got {len(judged)}", fix=f"add --topic, such as --topic {judged.query_ids[0]}"
        )
    query_id = judged.query_ids[0] if topic is None else topic
    output.keep(qrels, run, documents, queries, texts)
    if texts and tools is not None:
        raise InputError("--texts and --as cannot be combined", fix="omit one of the two options")
    text = Topics.read(queries).text(query_id) if queries else ""
    answers = [
        explain_list(judged, parsed, query_id)
        if tools is None
        else compare_tools(judged.qrels, judged.run, query_id, parsed, tools, rel=rel)
        for parsed in parsed_measures
    ]
    parts = tuple(replace(answer, query=text) for answer in answers)
    if texts:
        parts = tuple(part.with_titles(texts) for part in parts if isinstance(part, Explanation))
    is_unused = documents and not any(_needs_documents(parsed, judged.only(query_id)) for parsed in parsed_measures)
    note = "no measure uses --documents. Fix: use --texts FILE to show titles and texts"
    notes = [*lines(origin_notes(judged.qrels.origin)), *([note] if is_unused else [])]
    if grades is not None and not missing:
        notes.append(
            "documents that are not in --grades are assumed to be not relevant. Fix: add the grades of"
            " relevant documents that were not returned, such as --missing '2 1'"
        )
    output(parts[0] if len(parts) == 1 else AnswerList(parts), notes=notes)


def _needs_documents(measure: Measure, judged: Judged) -> bool:
    """Return whether a measure requires facts about documents."""
    try:
        measure(replace(judged, documents=None))
    except JudgedError:
        return True
    return False


def _read(
    qrels: str | None, run: str | None, qrels_format: str | None, run_format: str | None, policies: dict[str, Any]
) -> Judged:
    from judged.data.qrels import Qrels
    from judged.data.run import single_run
    from judged.scoring.judging import judge

    if qrels is None or run is None:
        raise InputError("QRELS and RUN are required", fix="add a qrels file and a run file, or use --grades '3 0 - 1'")
    runs = arguments.runs_at([run], run_format)
    return judge(Qrels.read(qrels, format=qrels_format), single_run(runs, "RUN"), **policies)


def _judge_grades(grades: str, missing: str, depth: int | None, others: dict[str, str | None]) -> Judged:
    from judged.scoring.judging import judge_list
    from judged.scoring.judging.unjudged import truncate

    if conflicts := [name for name, value in others.items() if value is not None]:
        names = ", ".join(conflicts)
        raise InputError(f"--grades cannot be combined with {names}", fix="omit --grades, or omit the other options")
    judged = judge_list(grades, missing=missing)
    return judged if depth is None else truncate(judged, depth)


_MAX_PLOT_WIDTH = 120  # columns: wider plots are not easier to read


@click.command("curve")
@shared("qrels", "runs")
@shared(
    "measures",
    help="Measure with a cutoff: nDCG, R, P, Success, 'P(rel=2)', ... nDCG@20 uses the"
    " cutoffs 1 to 20.  [default: nDCG]",
)
@click.option("--to", type=click.IntRange(1), metavar="K", help="Largest cutoff: use the cutoffs 1 to K.")
@click.option("--cutoffs", metavar="LIST", help="Cutoffs, such as 1,5,10 or 1..10,20,50.")
@click.option(
    "--precision-recall",
    type=Choice(("interpolated", "raw")),
    help="Plot precision against recall. interpolated: at recall 0, 0.1, ..., 1; raw: at each cutoff.",
)
@shared("topic", help="Topic to plot.  [default: mean over topics]")
@click.option("--ascii", "ascii_only", is_flag=True, help="Use only ASCII characters.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "exclude_self", "documents", "rel")
@shared("ci", "level", "draws", "seed", *TOPIC_OPTIONS)
@answer_options(usual="plot", plot=".txt")
@shared(*READING)
def curve_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    to: int | None,
    cutoffs: str | None,
    precision_recall: Literal["interpolated", "raw"] | None,
    rel: float | None,
    topic: str | None,
    ascii_only: bool,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Plot a measure of RUNs against its cutoff, or precision against recall, with confidence intervals over topics.

    QRELS and RUN are files that 'judged evaluate' can read. The plot is printed to the terminal. -o writes an image, an
    HTML page, or a table of all points.
    """
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if len(measure) > 1:
        raise InputError(
            f"one measure is required, got {len(measure)}", fix="use -m once, and plot each measure separately"
        )
    name = measure[0] if measure else None
    if name and "@" in name and (to or cutoffs):
        raise InputError(
            f"{name} has a cutoff, and cannot be combined with --to or --cutoffs",
            fix="omit the cutoff of the measure, or omit --to and --cutoffs",
        )
    if precision_recall is not None and name is not None:
        raise InputError(
            "--precision-recall cannot be combined with -m", fix="omit -m, and set the lowest relevant grade with --rel"
        )
    from judged.scoring.curves import curve
    from judged.scoring.curves import precision_recall as by_recall

    judgments, run_list = output.inputs(qrels, runs, options, options["documents"], *topic_options.values())
    options |= {"qrels": filter_by_where(judgments, run_list, **topic_options)[0], "runs": run_list}
    options["cutoffs"] = _cutoffs(to, cutoffs)
    with arguments.scoring(run_list) as options["progress"]:
        if precision_recall is None:
            curves = curve(measure=name or "nDCG", rel=rel, **options)
        else:
            curves = by_recall(how=precision_recall, rel=1 if rel is None else rel, **options)
    plot_options = {
        "width": min(terminal_width() or 80, _MAX_PLOT_WIDTH),
        "ascii_only": ascii_only or not (sys.stdout.encoding or "").lower().startswith("utf"),
        "color": output.out is None and is_colored(sys.stdout.isatty()),
    }
    output(curves if topic is None else curves.topic(topic), own_options=plot_options)


def _cutoffs(to: int | None, text: str | None) -> int | list[int] | None:
    if text is None:
        return to
    if to is not None:
        raise InputError("--to and --cutoffs cannot be combined", fix="use only one of the two options")
    from judged.scoring.measures.grammar import parse_many

    try:
        return [
            vars(measure)["cutoff"] for measure in parse_many(f"P@{text}")
        ]  # the grammar of measures includes series
    except MeasureError:
        raise InputError(
            f"--cutoffs must be a list of cutoffs, got {text!r}", fix="write 1,5,10 or 1..10,20,50"
        ) from None


@click.command("measures")
@click.argument("name", required=False)
def measures_command(name: str | None) -> None:
    """List all measures, or describe NAME: definition, formula, parameters, and pitfalls.

    If no measure has this name, list the measures, online metrics, commands, and pages that match.
    """
    from judged.scoring.measures.pages import catalog, page
    from judged.scoring.names import find_names, format_names, name_index

    try:
        click.echo(page(name) if name else catalog())
    except MeasureError:
        if not (matches := find_names(name or "", name_index(), similar=False)):
            raise
        click.echo(f"No measure has the name {escape_controls(name or '')}. Matches:\n{format_names(matches[:10])}")


@click.command("advise")
@shared("qrels", "some_runs")
@click.option(
    "--task",
    type=Choice("judged.scoring.advice.rules:TASKS"),
    help="Task of the system.  [default: inferred from the data]",
)
@shared("rel", help="Lowest relevant grade.  [default: inferred from the grades]")
@answer_options()
@shared(*READING)
def advise_command(
    qrels: str, runs: tuple[str, ...], task: str | None, rel: float | None, output: OutputOptions, **formats: Any
) -> None:
    """Recommend measures for QRELS and RUNs, and list measures that do not fit.

    The output ends with the next command to run. -v adds reasons, help with reading the scores, facts about the data,
    and references.
    """
    from judged.data.column_names import options_as_words
    from judged.scoring.advice import advise

    words = [word for name in FORMATS if formats[name] for word in (f"--{name.replace('_', '-')}", formats[name])]
    words += options_as_words()
    judgments, run_list = output.inputs(qrels, runs, formats)
    advice = replace(advise(judgments, run_list, task, rel=rel), options=tuple(words))
    output(advice, unfold=[block.name for block in advice.blocks()] if output.verbose else ())


@click.command("leave-one-out")
@shared("qrels", "runs", "measures", "pool_depth", "group", "depth", "rel")
@answer_options()
@shared(*READING)
def leave_one_out_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    group: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score each RUN as if it had not contributed to the pool.

    Judgments of documents that only this run returned within the pool depth are removed. The loss of score estimates
    how much a new run, which did not contribute to the pool, is underestimated.
    """
    from judged.results.blocks import lines
    from judged.scoring.evaluation.inputs import measures_of
    from judged.scoring.evaluation.notes import origin_notes
    from judged.scoring.uncertainty.pools import leave_one_out

    parsed_measures = measures_of(measure or TESTED_MEASURES, rel=options.pop("rel"))

    judgments, run_list = output.inputs(qrels, runs, options)
    notes = lines(origin_notes(judgments.origin))
    output(leave_one_out(judgments, run_list, parsed_measures, groups=parse_groups(group), **options), notes=notes)


def parse_groups(texts: tuple[str, ...]) -> dict[str, str] | None:
    """Parse values RUN=GROUP."""
    groups: dict[str, str] = {}
    for text in texts:
        run, separator, group = text.partition("=")
        if not separator or not run or not group:
            raise InputError(f"--group must be RUN=GROUP, got {text!r}", fix="write --group RUN=GROUP")
        groups[run] = group
    return groups or None


class _RawArgumentsCommand(click.Command):
    """Command that gets all its arguments unparsed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args


@click.command("trec_eval", cls=_RawArgumentsCommand, add_help_option=False)
@click.pass_context
def trec_eval_command(ctx: click.Context) -> None:
    """Evaluate like trec_eval: same options, output, and exit codes. See 'judged trec_eval -h'."""
    from judged.scoring.compat.trec_eval.command import trec_eval

    result = trec_eval(ctx.args)
    sys.stdout.flush()
    sys.stdout.buffer.write(result.output.encode(errors="surrogateescape"))
    if result.message:
        click.echo(result.message, err=True)
    ctx.exit(result.code)
