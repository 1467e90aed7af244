"""`judged trajectories`: agents that search several times for one question."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options
from judged.interface.commands.gate import check_outputs, gate_options, load_config, write_decision
from judged.interface.options import DEFAULT_TEST, PAIRED_TESTS, READING, Choice, shared, with_options
from judged.pipelines.commands.traces import ID_OPTIONS
from judged.results.blocks import first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.qrels import Qrels
    from judged.interface.arguments import OutputOptions
    from judged.pipelines.trajectories import Trajectories

    Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("trajectories")
def trajectories() -> None:
    """Evaluate agents: their searches, opened documents, and answers.

    TRAJECTORIES are files or folders: JSON lines with one trial each, records of BrowseComp, logs of chat messages with
    tool calls, or spans of OpenInference or OpenTelemetry (docs/trajectories.md). Files without a name are combined;
    folders are separate. If PATH has several systems, NAME=PATH selects the system NAME. If PATH has one system,
    NAME=PATH renames this system to NAME.
    """


def read_named_trajectories(texts: Sequence[str], **options: Any) -> Trajectories:
    """Read TRAJECTORIES: files without a name together, folders and NAME=PATH separately."""
    from judged.data.sources import split_name
    from judged.pipelines.trajectories import Trajectories, read_trajectories

    named_paths = [split_name(text) for text in texts]
    files = [path for name, path in named_paths if not name and not Path(path).is_dir()]
    parts = [read_trajectories(files, **options)] if files else []
    for name, path in named_paths:
        if name:
            parts.append(read_trajectories(path, **options).with_run_name(name))
        elif path not in files:
            parts.append(read_trajectories(path, **options))
    return Trajectories.join(parts)


def trajectory_options(command: Command) -> Command:
    """Add TRAJECTORIES to a command, with the options to read them.

    The command gets the parameters `read` (trajectories) and `paths` (files that its output must not replace).
    """

    @wraps(command)
    def read_options(paths: tuple[str, ...], **options: Any) -> None:
        query_texts = options["query_texts"]
        read = read_named_trajectories(paths, **_pop_reading_options(options))
        command(read=read, paths=(*paths, query_texts), **options)

    return with_options(  # pyright: ignore[reportReturnType]
        click.argument("paths", nargs=-1, required=True, metavar="TRAJECTORIES..."), _READING
    )(read_options)


_READING = with_options(
    click.option(
        "--tool",
        "tools",
        multiple=True,
        metavar="NAME=KIND",
        help="Kind of step of the tool NAME: search, open, reason, answer, or other. Repeat for more tools."
        "  [default: by the words in the name of the tool]",
    ),
    ID_OPTIONS,
)


def _pop_reading_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `_READING`, and return them as arguments of `read_trajectories`."""
    reading = {name: options.pop(name) for name in ("topic_from", "id_from")}
    return reading | {"tools": dict(map(_parse_tool, options.pop("tools"))), "topics": options.pop("query_texts")}


_QRELS = click.option(
    "--qrels",
    metavar="QRELS",
    help="Judgments of documents.  [default: the documents in the table `hops` count as relevant]",
)
_ACCURACY = click.option(
    "--accuracy",
    metavar="NAME",
    help="Measure of answers that decides which answers are right: answers with a score above 0.5.  [default: verdicts,"
    " or else ExactMatch with the references]",
)
_REQUIRED = click.option(
    "--required",
    type=Choice("judged.pipelines.trajectories.where:Required"),
    default="any",
    show_default=True,
    help="Evidence that a question without hops requires: any relevant document, or all relevant documents.",
)
_MEASURES = shared(
    "measures",
    help="Measure of trajectories, such as SeenR or RepeatedSearches, of answers, or of rankings. A ranking measure is"
    " computed on the documents in the order in which the agent first saw them. Repeat for more measures.  [default:"
    " all measures for which there are data]",
)
_BY = click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")


def _judgments(qrels: str | None) -> Qrels | None:
    from judged.data.qrels import Qrels

    return None if qrels is None else Qrels.of(qrels)


def _slicing(read: Trajectories, by: str | None, attributes: str | None) -> Any:
    from judged.comparison.slicing import slice_topics

    if by is None:
        return None
    if attributes is None:
        raise InputError("--by requires a file of topic attributes", fix="use --attributes FILE")
    return slice_topics(attributes, by, query_ids=read.query_ids)


def _parse_tool(text: str) -> tuple[str, str]:
    name, equals, kind = text.rpartition("=")
    if not equals or not name:
        raise InputError(f"--tool must be NAME=KIND, got {text!r}", fix="write NAME=KIND, such as find_papers=search")
    return name, kind


@trajectories.command("check", short_help="Count trials and steps, and report unreadable records.")
@trajectory_options
@answer_options()
def check(read: Trajectories, paths: tuple[str | None, ...], output: OutputOptions) -> None:
    """Count the trials of each system, and their steps by kind and tool, and report unreadable records."""
    from judged.pipelines.trajectories import check_trajectories

    output.keep(*paths)
    output(check_trajectories(read))


@trajectories.command("evaluate", short_help="Compute the scores of agents: searches, answers, and effort.")
@trajectory_options
@_QRELS
@_ACCURACY
@_MEASURES
@shared("per_topic", help="Show the scores of every question.")
@click.option(
    "--unjudged/--no-unjudged",
    default=True,
    show_default=True,
    help="Show the scores with all unjudged documents nonrelevant, and relevant.",
)
@shared("rel", "ci", "level", "draws", "seed", "attributes", "where")
@_BY
@answer_options()
def evaluate_command(
    read: Trajectories,
    paths: tuple[str | None, ...],
    qrels: str | None,
    measure: tuple[str, ...],
    per_topic: bool,
    by: str | None,
    attributes: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score the searches, answers, and effort of agents. The score of a question is the mean over its trials.

    Intervals are over questions.
    """
    from judged.pipelines.trajectories import evaluate

    output.keep(*paths, qrels, attributes)
    intervals: dict[str, Any] = {name: options.pop(name) for name in ("ci", "level", "resamples", "seed")}
    scores = evaluate(read, measure or None, qrels=_judgments(qrels), attributes=attributes, **options)
    if (slicing := _slicing(read, by, attributes)) is not None:
        output(scores.by_slice(slicing, **intervals))
    else:
        answer = scores if output.format == "parquet" else scores.summary(**intervals, per_topic=per_topic)
        output(answer, table="topics" if per_topic else None)


@trajectories.command("compare", short_help="Compare agents over the same questions, and their accuracy with effort.")
@trajectory_options
@_QRELS
@_ACCURACY
@_MEASURES
@click.option(
    "--baseline",
    metavar="NAME",
    help="Baseline system: each other system is compared with it.  [default: all pairs are compared]",
)
@click.option(
    "--effort",
    metavar="MEASURE",
    help="Compare the first measure with this effort, such as NumSearches or Effort(of=cost): systems that no other"
    " system dominates.",
)
@click.option(
    "--factors",
    metavar="FILE",
    help="Table with the column `run` and one column for each part of the systems, such as `agent` and `retriever`:"
    " shows the effect of replacing one part while all others stay the same.",
)
@click.option("--test", type=Choice(PAIRED_TESTS), help=f"Paired test over questions.  [default: {DEFAULT_TEST}]")
@shared("correction", "alpha", "resamples", "seed", "rel")
@answer_options()
def compare_command(
    read: Trajectories,
    paths: tuple[str | None, ...],
    qrels: str | None,
    accuracy: str | None,
    measure: tuple[str, ...],
    effort: str | None,
    factors: str | None,
    rel: float | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Compare agents: differences of the means over questions, with intervals and paired tests.

    Trials of a question are not independent, so the tests use the mean over the trials of each question.
    """
    from judged.data.records import read_records
    from judged.pipelines.trajectories import evaluate
    from judged.pipelines.trajectories.effort import compare_effort, factor_effects

    output.keep(*paths, qrels, factors)
    judgments = _judgments(qrels)
    if effort is not None:
        names = [*(measure[:1] or ["AnswerAccuracy"]), effort]
        scores = evaluate(read, names, qrels=judgments, accuracy=accuracy, rel=rel, unjudged=False)
        output(compare_effort(scores, baseline=options["baseline"], seed=options["seed"]))
        return
    scores = evaluate(read, measure or None, qrels=judgments, accuracy=accuracy, rel=rel, unjudged=False)
    if factors is not None:
        levels = {str(row.pop("run", "")): row for _, row in read_records(factors)}
        output(factor_effects(scores, levels, alpha=options["alpha"], seed=options["seed"]))
        return
    output(scores.compare(**options))


@trajectories.command("gate", short_help="Decide whether an agent may replace a baseline.")
@click.argument("baseline")
@click.argument("candidate")
@_READING
@_QRELS
@_ACCURACY
@gate_options("AnswerAccuracy")
def gate_command(
    baseline: str,
    candidate: str,
    qrels: str | None,
    accuracy: str | None,
    config: Path | None,
    measure: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Decide whether the agent CANDIDATE may replace the agent BASELINE.

    BASELINE and CANDIDATE are files or folders with the trajectories of one system; NAME=PATH selects or renames it.
    The checks can use all measures of 'judged trajectories evaluate'. For measures such as NumSearches or
    Effort(of=cost), a loss is an increase. The exit codes are the same as for 'judged gate'.
    """
    from judged.pipelines.trajectories import Trajectories, evaluate

    settings: dict[str, Any] = {name: options.pop(name) for name in ("margin", "margin_relative", "strict", "test")}
    measures = measure or (None if config else ("AnswerAccuracy",))
    gate_config, config_file = load_config(config, measures, **settings)
    files, reading = [baseline, candidate, qrels or "", options["query_texts"] or ""], _pop_reading_options(options)
    check_outputs(output, gate_config, config_file, files, options)
    first, second = (read_named_trajectories([path], **reading) for path in (baseline, candidate))
    for part in (first, second):
        if len(part.run_names) > 1:
            problem = f"a gate compares single systems, got {len(part.run_names)} systems"
            raise InputError(problem, fix=f"select one: {part.run_names[0]}={part.where}", path=part.where)
    if missing := sorted({*first.query_ids} - {*second.query_ids}):
        problem = f"the candidate has no trial of {counted(len(missing), 'question')}: {first_few(missing)}"
        fix = "add trials of these questions; failed trials have the status `failed`"
        raise InputError(problem, fix=fix, path=second.where)
    if first.run_names == second.run_names:  # two versions of one agent
        first, second = first.with_run_name("baseline"), second.with_run_name("candidate")
    both, checks = Trajectories.join([first, second]), (*gate_config.checks, *gate_config.guardrails)
    checked = [check.measure for check in checks if check.measure]
    scores = evaluate(both, checked, qrels=_judgments(qrels), accuracy=accuracy, unjudged=False)
    write_decision(scores.gate(*both.run_names, gate_config), output, options)


@trajectories.command("where", short_help="Find the stage at which wrong answers lost their evidence.")
@trajectory_options
@_QRELS
@_ACCURACY
@_REQUIRED
@shared("rel", "attributes")
@_BY
@click.option("--corpus", metavar="FILE", help="File with all documents of the corpus, or with one id per line.")
@shared("confidence", "seed")
@click.option("--per-trial", is_flag=True, help="Show every wrong trial.")
@answer_options()
def where_command(
    read: Trajectories,
    paths: tuple[str | None, ...],
    qrels: str | None,
    by: str | None,
    attributes: str | None,
    corpus: str | None,
    rel: float | None,
    per_trial: bool,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Assign each wrong answer to the first stage at which required evidence was lost, and show what could be gained.

    The parts add up to 1 minus the accuracy.
    """
    from judged.data.texts import document_ids
    from judged.pipelines.trajectories import where

    output.keep(*paths, qrels, attributes, corpus)
    slicing, ids = _slicing(read, by, attributes), document_ids(corpus) if corpus else None
    relevance: dict[str, Any] = {} if rel is None else {"rel": rel}
    answer = where(read, _judgments(qrels), corpus=ids, slicing=slicing, **relevance, **options)
    unfolded = [name for name, is_shown in (("slices", by is not None), ("trials", per_trial)) if is_shown]
    output(answer, unfold=unfolded, table="trials" if per_trial else None)


@trajectories.command("explain", short_help="Show the steps of the trials of one question, and what each search found.")
@trajectory_options
@_QRELS
@_ACCURACY
@_REQUIRED
@shared("topic", required=True, help="Query id of the question.")
@shared("measures", help="Measure of trajectories whose scores by trial are shown. Repeat for more measures.")
@click.option("--run", "runs", multiple=True, metavar="NAME", help="System to show. Repeat for more.  [default: all]")
@shared("rel")
@answer_options()
def explain_command(
    read: Trajectories,
    paths: tuple[str | None, ...],
    qrels: str | None,
    topic: str,
    measure: tuple[str, ...],
    runs: tuple[str, ...],
    rel: float | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show the steps of the trials of one question: documents, new relevant documents, and wasted searches."""
    from judged.pipelines.trajectories import explain

    output.keep(*paths, qrels)
    relevance: dict[str, Any] = {} if rel is None else {"rel": rel}
    output(explain(read, topic, _judgments(qrels), measure, runs=runs or None, **relevance, **options))


@trajectories.command("confidence", short_help="Compare the confidence that agents state with their accuracy.")
@trajectory_options
@_ACCURACY
@click.option("--bins", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Number of bins.")
@click.option(
    "--distance",
    type=Choice("judged.pipelines.trajectories.confidence:Distance"),
    default="mean",
    show_default=True,
    help="Mean, or root mean square (rms), of the distances of bins.",
)
@click.option(
    "--binning",
    type=Choice("judged.pipelines.trajectories.confidence:Binning"),
    default="width",
    show_default=True,
    help="Bins of equal width, or of equal size.",
)
@shared("confidence", "draws", "seed")
@answer_options()
def confidence_command(
    read: Trajectories, paths: tuple[str | None, ...], output: OutputOptions, **options: Any
) -> None:
    """Compare the confidence that agents state with their accuracy: calibration error, Brier score, and log loss."""
    from judged.pipelines.trajectories import confidence

    output.keep(*paths)
    output(confidence(read, **options))


@trajectories.command("plan", short_help="Plan how many questions and trials detect a difference of agents.")
@trajectory_options
@_QRELS
@_ACCURACY
@shared("measure", default="AnswerAccuracy", help="Measure of trajectories with a score for each trial.")
@click.option("--budget", type=float, metavar="COST", help="Cost of one system.  [default: cost of the trials read]")
@click.option("--question-cost", type=float, default=0.0, show_default=True, metavar="COST", help="Cost of a question.")
@click.option("--trial-cost", type=float, default=1.0, show_default=True, metavar="COST", help="Cost of a trial.")
@shared("alpha", "power")
@answer_options()
def plan_command(
    read: Trajectories, paths: tuple[str | None, ...], qrels: str | None, output: OutputOptions, **options: Any
) -> None:
    """Estimate the variance between questions and between trials, and the best split of a fixed budget."""
    from judged.pipelines.trajectories import plan

    output.keep(*paths, qrels)
    output(plan(read, qrels=_judgments(qrels), **options))


@trajectories.command("conversations", short_help="Score conversational search by turn and by conversation.")
@shared("qrels", "runs", "measures")
@click.option(
    "--turns",
    metavar="FILE",
    help="Table with the columns `query_id`, `conversation`, and `turn`.  [default: ids such as 31_4 for turn 4 of"
    " conversation 31, as in TREC CAsT and iKAT]",
)
@shared("confidence", "seed")
@answer_options()
@shared(*READING)
def conversations_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    turns: str | None,
    qrels_format: Any,
    run_format: Any,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score conversational search: means over turns and over conversations, and by turn. Each topic is a turn.

    Intervals and tests are over conversations.
    """
    from judged.data.qrels import Qrels
    from judged.data.records import read_records
    from judged.interface.arguments import runs_at
    from judged.pipelines.trajectories import conversations

    output.keep(qrels, *runs, turns)
    by_query: dict[str, tuple[str, int]] | None = None
    if turns is not None:
        try:
            by_query = {row["query_id"]: (row["conversation"], int(row["turn"])) for _, row in read_records(turns)}
        except (KeyError, ValueError):
            fix = "use a table with the columns query_id, conversation, and turn"
            raise InputError("turns cannot be read", fix=fix, path=turns) from None
    measures: dict[str, Any] = {"measures": measure} if measure else {}
    judgments = Qrels.read(qrels, format=qrels_format)
    output(conversations(judgments, runs_at(runs, run_format), **measures, turns=by_query, **options))
