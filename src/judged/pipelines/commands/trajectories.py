"""`judged trajectories`: agents that search several times for one question."""

from __future__ import annotations

from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options, slicing_by
from judged.interface.commands.gate import check_outputs, gate_options, load_config, write_decision
from judged.interface.options import DEFAULT_TEST, PAIRED_TESTS, READING, Choice, shared, with_options
from judged.pipelines.commands.traces import ID_OPTIONS
from judged.results.blocks import first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        if name or path not in files:
            part = read_trajectories(path, **options)
            parts.append(part.with_run_name(name) if name else part)
    return Trajectories.join(parts)


def _choice(flag: str, names: str, default: str, description: str) -> Callable[[Any], Any]:
    """Return an option with the names of a `Literal`, as ``module:name``."""
    choice = Choice(f"judged.pipelines.trajectories.{names}")
    return click.option(flag, type=choice, default=default, show_default=True, help=description)


_TOOL = (
    "Kind of step of the tool NAME: search, open, reason, answer, or other. Repeat for more tools.  [default: by the"
    " words in the name of the tool]"
)
_READING = with_options(click.option("--tool", "tools", multiple=True, metavar="NAME=KIND", help=_TOOL), ID_OPTIONS)
_JUDGMENTS = "Judgments of documents.  [default: the documents in the table `hops` count as relevant]"
_QRELS = click.option("--qrels", metavar="QRELS", help=_JUDGMENTS)
_DECIDES = (
    "Measure of answers that decides which answers are right: answers with a score above 0.5.  [default: verdicts, or"
    " else ExactMatch with the references]"
)
_ACCURACY = click.option("--accuracy", metavar="NAME", help=_DECIDES)
_REQUIRED = _choice(
    "--required", "where:Required", "any",
    "Evidence that a question without hops requires: any relevant document, or all relevant documents.",
)  # fmt: skip
_MEASURES = shared(
    "measures",
    help="Measure of trajectories, such as SeenR or RepeatedSearches, of answers, or of rankings. A ranking measure is"
    " computed on the documents in the order in which the agent first saw them. Repeat for more measures.  [default:"
    " all measures for which there are data]",
)
_BY = click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")


def _pop_reading_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `_READING`, and return them as arguments of `read_trajectories`."""
    tools = [text.rpartition("=") for text in options.pop("tools")]
    for name, _, kind in tools:
        if not name:
            fix = "write NAME=KIND, such as find_papers=search"
            raise InputError(f"--tool must be NAME=KIND, got {kind!r}", fix=fix)
    kinds = {name: kind for name, _, kind in tools}
    reading = {name: options.pop(name) for name in ("topic_from", "id_from")}
    return reading | {"tools": kinds, "topics": options.pop("query_texts")}


def _command(name: str, short_help: str, *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that registers a command with TRAJECTORIES, as the parameter `read`, and these options."""

    def register(command: Command) -> Command:
        @wraps(command)
        def read_and_call(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
            files = ("query_texts", "qrels", "attributes", "corpus", "factors")
            output.keep(*paths, *map(options.get, files))
            command(read_named_trajectories(paths, **_pop_reading_options(options)), output=output, **options)

        paths = click.argument("paths", nargs=-1, required=True, metavar="TRAJECTORIES...")
        call = with_options(paths, _READING, *options, answer_options())(read_and_call)
        return trajectories.command(name, short_help=short_help)(call)  # pyright: ignore[reportReturnType]

    return register


@_command("check", "Count trials and steps, and report unreadable records.")
def check(read: Trajectories, output: OutputOptions) -> None:
    """Count the trials of each system, and their steps by kind and tool, and report unreadable records."""
    from judged.pipelines.trajectories import check_trajectories

    output(check_trajectories(read))


_UNJUDGED = "Show the scores with all unjudged documents nonrelevant, and relevant."


@_command(
    "evaluate", "Compute the scores of agents: searches, answers, and effort.", _QRELS, _ACCURACY, _MEASURES,
    shared("per_topic", help="Show the scores of every question."),
    click.option("--unjudged/--no-unjudged", default=True, show_default=True, help=_UNJUDGED),
    shared("rel", "ci", "level", "draws", "seed", "attributes", "where"), _BY,
)  # fmt: skip
def evaluate_command(
    read: Trajectories, measure: tuple[str, ...], per_topic: bool, by: str | None, output: OutputOptions, **options: Any
) -> None:
    """Score the searches, answers, and effort of agents. The score of a question is the mean over its trials.

    Intervals are over questions.
    """
    from judged.pipelines.trajectories import evaluate

    intervals: dict[str, Any] = {name: options.pop(name) for name in ("ci", "level", "resamples", "seed")}
    slicing = slicing_by(by, by and options["attributes"])
    scores = evaluate(read, measure or None, **options)
    if slicing is not None:
        output(scores.by_slice(slicing, **intervals))
    else:
        answer = scores if output.format == "parquet" else scores.summary(**intervals, per_topic=per_topic)
        output(answer, table="topics" if per_topic else None)


_FACTORS = (
    "Table with the column `run` and one column for each part of the systems, such as `agent` and `retriever`: shows"
    " the effect of replacing one part while all others stay the same."
)


@_command(
    "compare", "Compare agents over the same questions, and their accuracy with effort.", _QRELS, _ACCURACY, _MEASURES,
    click.option("--baseline", metavar="NAME", help="System to compare each other one with.  [default: all pairs]"),
    click.option("--effort", metavar="MEASURE", help="Effort to compare the first measure with, such as NumSearches."),
    click.option("--factors", metavar="FILE", help=_FACTORS),
    click.option("--test", type=Choice(PAIRED_TESTS), help=f"Paired test over questions.  [default: {DEFAULT_TEST}]"),
    shared("correction", "alpha", "resamples", "seed", "rel"),
)  # fmt: skip
def compare_command(
    read: Trajectories, measure: tuple[str, ...], effort: str | None, factors: str | None, output: OutputOptions,
    **options: Any,
) -> None:  # fmt: skip
    """Compare agents: differences of the means over questions, with intervals and paired tests.

    Trials of a question are not independent, so the tests use the mean over the trials of each question.
    """
    from judged.data.records import read_records
    from judged.pipelines.trajectories import evaluate
    from judged.pipelines.trajectories.evaluation import compare_effort, factor_effects

    scoring: dict[str, Any] = {name: options.pop(name) for name in ("qrels", "accuracy", "rel")}
    measures = measure if effort is None else (*(measure[:1] or ["AnswerAccuracy"]), effort)
    scores = evaluate(read, measures or None, unjudged=False, **scoring)
    if effort is not None:
        output(compare_effort(scores, baseline=options["baseline"], seed=options["seed"]))
    elif factors is not None:
        levels = {str(row.pop("run", "")): row for _, row in read_records(factors)}
        output(factor_effects(scores, levels, alpha=options["alpha"], seed=options["seed"]))
    else:
        output(scores.compare(**options))


@trajectories.command("gate", short_help="Decide whether an agent may replace a baseline.")
@click.argument("baseline")
@click.argument("candidate")
@with_options(_READING, _QRELS, _ACCURACY, gate_options("AnswerAccuracy"))
def gate_command(
    baseline: str, candidate: str, config: Path | None, measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Decide whether the agent CANDIDATE may replace the agent BASELINE.

    BASELINE and CANDIDATE are files or folders with the trajectories of one system; NAME=PATH selects or renames it.
    The checks can use all measures of 'judged trajectories evaluate'. For measures such as NumSearches or
    Effort(of=cost), a loss is an increase. The exit codes are the same as for 'judged gate'.
    """
    from judged.pipelines.trajectories import Trajectories, evaluate

    settings: dict[str, Any] = {name: options.pop(name) for name in ("margin", "margin_relative", "strict", "test")}
    scoring: dict[str, Any] = {name: options.pop(name) for name in ("qrels", "accuracy")}
    reading = _pop_reading_options(options)
    gate_config, config_file = load_config(config, measure or (None if config else ("AnswerAccuracy",)), **settings)
    files = [baseline, candidate, scoring["qrels"] or "", reading["topics"] or ""]
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
    checks = (*gate_config.checks, *gate_config.guardrails)
    measures = [check.measure for check in checks if check.measure]
    scores = evaluate(Trajectories.join([first, second]), measures, unjudged=False, **scoring)
    write_decision(scores.gate(*scores.run_names, gate_config), output, options)


@_command(
    "where", "Find the stage at which wrong answers lost their evidence.", _QRELS, _ACCURACY, _REQUIRED,
    shared("rel", default=1.0), shared("attributes"), _BY,
    click.option("--corpus", metavar="FILE", help="File with all documents of the corpus, or with one id per line."),
    shared("confidence", "seed"),
    click.option("--per-trial", is_flag=True, help="Show every wrong trial."),
)  # fmt: skip
def where_command(
    read: Trajectories, by: str | None, attributes: str | None, corpus: str | None, per_trial: bool,
    output: OutputOptions, **options: Any,
) -> None:  # fmt: skip
    """Assign each wrong answer to the first stage at which required evidence was lost, and show what could be gained.

    The parts add up to 1 minus the accuracy.
    """
    from judged.data.texts import document_ids
    from judged.pipelines.trajectories import where

    slicing, ids = slicing_by(by, attributes), document_ids(corpus) if corpus else None
    answer = where(read, corpus=ids, slicing=slicing, **options)
    unfolded = [name for name, is_shown in (("slices", by), ("trials", per_trial)) if is_shown]
    output(answer, unfold=unfolded, table="trials" if per_trial else None)


@_command(
    "explain", "Show the steps of the trials of one question, and what each search found.", _QRELS, _ACCURACY,
    _REQUIRED, shared("topic", required=True, help="Query id of the question."),
    shared("measures", help="Measure of trajectories whose scores by trial are shown. Repeat for more measures."),
    click.option("--run", "runs", multiple=True, metavar="NAME", help="System. Repeat for more.  [default: all]"),
    shared("rel", default=1.0),
)  # fmt: skip
def explain_command(
    read: Trajectories, topic: str, measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Show the steps of the trials of one question: documents, new relevant documents, and wasted searches."""
    from judged.pipelines.trajectories import explain

    output(explain(read, topic, measures=measure, **options))


@_command(
    "confidence", "Compare the confidence that agents state with their accuracy.", _ACCURACY,
    click.option("--bins", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Number of bins."),
    _choice("--distance", "confidence:Distance", "mean", "Mean, or root mean square (rms), of the distances of bins."),
    _choice("--binning", "confidence:Binning", "width", "Bins of equal width, or of equal size."),
    shared("confidence", "draws", "seed"),
)  # fmt: skip
def confidence_command(read: Trajectories, output: OutputOptions, **options: Any) -> None:
    """Compare the confidence that agents state with their accuracy: calibration error, Brier score, and log loss."""
    from judged.pipelines.trajectories import confidence

    output(confidence(read, **options))


_COST = partial(click.option, type=float, metavar="COST")


@_command(
    "plan", "Plan how many questions and trials detect a difference of agents.", _QRELS, _ACCURACY,
    shared("measure", default="AnswerAccuracy", help="Measure of trajectories with a score for each trial."),
    _COST("--budget", help="Cost of one system.  [default: cost of the trials read]"),
    _COST("--question-cost", default=0.0, show_default=True, help="Cost of a question."),
    _COST("--trial-cost", default=1.0, show_default=True, help="Cost of a trial."),
    shared("alpha", "power"),
)  # fmt: skip
def plan_command(read: Trajectories, output: OutputOptions, **options: Any) -> None:
    """Estimate the variance between questions and between trials, and the best split of a fixed budget."""
    from judged.pipelines.trajectories import plan

    output(plan(read, **options))


_TURNS = (
    "Table with the columns `query_id`, `conversation`, and `turn`.  [default: ids such as 31_4 for turn 4 of"
    " conversation 31, as in TREC CAsT and iKAT]"
)


@trajectories.command("conversations", short_help="Score conversational search by turn and by conversation.")
@shared("qrels", "runs", "measures")
@click.option("--turns", metavar="FILE", help=_TURNS)
@shared("confidence", "seed")
@answer_options()
@shared(*READING)
def conversations_command(
    qrels: str, runs: tuple[str, ...], measure: tuple[str, ...], turns: str | None, output: OutputOptions,
    **options: Any,
) -> None:  # fmt: skip
    """Score conversational search: means over turns and over conversations, and by turn. Each topic is a turn.

    Intervals and tests are over conversations.
    """
    from judged.data.records import read_records
    from judged.pipelines.trajectories import conversations

    judgments, run_list = output.inputs(qrels, runs, options, turns)
    by_query: dict[str, tuple[str, int]] | None = None
    if turns is not None:
        try:
            by_query = {row["query_id"]: (row["conversation"], int(row["turn"])) for _, row in read_records(turns)}
        except (KeyError, ValueError):
            fix = "use a table with the columns query_id, conversation, and turn"
            raise InputError("turns cannot be read", fix=fix, path=turns) from None
    measures: dict[str, Any] = {"measures": measure} if measure else {}
    output(conversations(judgments, run_list, **measures, turns=by_query, **options))
