"""`judged rag`: scores of generated answers, and the steps at which evidence is lost."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, slice_options
from judged.interface.commands.gate import check_outputs, gate_options, load_config, write_decision
from judged.interface.options import READING, LazyGroup, shared, with_options
from judged.labels.commands.models import (
    asking_options,
    confirm_sending,
    parse_families,
    print_ask_result,
    progress_printer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.diagnosis.gates.config import GateTest
    from judged.interface.arguments import OutputOptions
    from judged.pipelines.rag import Responses
    from judged.pipelines.traces import Traces

    Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("rag", cls=LazyGroup)
def rag() -> None:
    """Evaluate generated answers: coverage of nuggets, citations, and support.

    RESPONSES are folders or files with answers, sentences, citations, context, nuggets, and verdicts (docs/rag.md).
    Several files are combined; several folders are separate systems. If PATH has several systems, NAME=PATH
    selects the system NAME. If PATH has one system, NAME=PATH renames this system to NAME.
    """


RESPONSES = click.argument("responses", nargs=-1, required=True, metavar="RESPONSES...")
QRELS = click.option(
    "--qrels",
    metavar="QRELS",
    help="Judgments of documents.  [default: the documents in the table `evidence` count as relevant]",
)
MEASURES = shared(
    "measures",
    help="Measure of answers, such as NuggetRecall or SupportP, or ranking measure, such as R@10. A ranking measure is"
    " computed on the ranked context documents of each answer. Repeat for more measures.  [default: all"
    " measures for which the tables have data]",
)
_RUN_HELP = (
    "Run with the documents that were retrieved for the answers. NAME is the name of a system, or of a pipeline stage."
    " Repeat for more systems or stages, with stages in pipeline order."
)


def read_named_responses(texts: Sequence[str], queries: str | None = None, documents: str | None = None) -> Responses:
    """Read RESPONSES: files without a name are one set of tables; folders and NAME=PATH are separate systems.

    NAME selects a system at PATH, or renames its only system. If an export has texts instead of ids of topics and
    passages, ids are looked up in `queries` and `documents`.
    """
    from judged.data.sources import split_name
    from judged.pipelines.rag.readers import read_responses
    from judged.pipelines.rag.responses import Responses

    named_paths = [split_name(text) for text in texts]
    files = [path for name, path in named_paths if not name and not Path(path).is_dir()]
    parts: list[Responses] = []
    for name, path in named_paths:
        if path not in files[1:] or name:
            is_file_set = not name and path in files
            loaded = read_responses(files if is_file_set else path, topics=queries, texts=documents)
            parts.append(loaded.with_run_name(name) if name else loaded)
    return Responses.of(parts)


def answers_option(command: Command) -> Command:
    """Add RESPONSES to a command, with the options to find ids and columns in them."""

    @wraps(command)
    def read_answers(responses: tuple[str, ...], queries: str | None, texts: str | None, **options: Any) -> None:
        answers = read_named_responses(responses, queries, texts)
        command(answers=answers, paths=(*responses, queries, texts), **options)

    return with_options(RESPONSES, shared("queries", "texts", "columns"))(read_answers)  # pyright: ignore[reportReturnType]


class UpstreamData(NamedTuple):
    """Judgments, runs, and corpus from before the answers; None if absent."""

    qrels: Qrels | None
    runs: dict[str, Run] | None
    corpus: list[str] | None
    paths: tuple[str, ...]


def upstream_options(command: Command) -> Command:
    """Add RESPONSES, and the options for judgments, runs, and the corpus, to a command."""

    @wraps(command)
    def read_upstream(
        qrels: str | None, runs: Sequence[str], corpus: str | None, qrels_format: Any, run_format: Any, **options: Any
    ) -> None:
        from judged.data.qrels import Qrels
        from judged.data.texts import document_ids

        judgments = None if qrels is None else Qrels.read(qrels, format=qrels_format)
        runs_by_name = {run.name: run for run in arguments.runs_at(runs, run_format)} or None
        paths = tuple(path for path in (qrels, corpus) if path)
        command(
            upstream=UpstreamData(judgments, runs_by_name, document_ids(corpus) if corpus else None, paths), **options
        )

    return with_options(  # pyright: ignore[reportReturnType]
        shared(*READING),
        RESPONSES,
        click.option("--qrels", metavar="FILE", help="Judgments of documents."),
        click.option("--run", "runs", multiple=True, metavar="[NAME=]RUN", help=_RUN_HELP),
        click.option(
            "--corpus", metavar="FILE", help="File with all documents of the corpus, or with one document id per line."
        ),
    )(read_upstream)


@rag.command("check", short_help="Check RESPONSES for missing or inconsistent data.")
@upstream_options
@shared("queries", "texts")
@answer_options()
def check_command(
    responses: tuple[str, ...], upstream: UpstreamData, queries: str | None, texts: str | None, output: OutputOptions
) -> None:
    """Check RESPONSES for missing and inconsistent data, and report what cannot be measured.

    Exit code 0: no errors; 1: errors; 2: unreadable input.
    """
    from judged.data.sources import split_name
    from judged.pipelines.rag import check_responses

    # Read errors of a single path are findings too, so it is read by `check_responses`.
    is_single_path = len(responses) == 1 and not split_name(responses[0])[0] and not (queries or texts)
    responses_or_path = responses[0] if is_single_path else read_named_responses(responses, queries, texts)
    runs = list(upstream.runs.values()) if upstream.runs else None
    findings = check_responses(responses_or_path, upstream.qrels, runs=runs, corpus=upstream.corpus)
    output(findings)
    raise SystemExit(1 if findings.errors else 0)


@rag.command("evaluate", short_help="Compute the scores of answers: content, citations, and support.")
@answers_option
@QRELS
@MEASURES
@shared("per_topic", help="Show the scores of every topic.")
@click.option(
    "--unjudged/--no-unjudged",
    default=True,
    show_default=True,
    help="Show bounds of each score: the lowest and the highest score over all possible values of the missing and"
    " failed verdicts.",
)
@shared("rel", "ci", "level", "draws", "seed", "attributes", "where")
@click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")
@answer_options()
def evaluate_command(
    answers: Responses,
    paths: tuple[str | None, ...],
    qrels: str | None,
    measure: tuple[str, ...],
    per_topic: bool,
    by: str | None,
    output: OutputOptions,
    attributes: str | None,
    **options: Any,
) -> None:
    """Score the answers of systems, with intervals over topics."""
    from judged.comparison.slicing import slice_topics
    from judged.data.qrels import Qrels
    from judged.pipelines.rag import evaluate
    from judged.pipelines.rag.overview import describe_input

    if by is not None and attributes is None:
        raise InputError("--by requires a file of topic attributes", fix="use --attributes FILE")
    output.keep(*paths, qrels, attributes)
    judgments = None if qrels is None else Qrels.of(qrels)
    interval_options: dict[str, Any] = {name: options.pop(name) for name in ("ci", "level", "resamples", "seed")}
    scores = evaluate(answers, measure or None, qrels=judgments, attributes=attributes, **options)
    if by is not None:
        output(scores.by_slice(slice_topics(attributes, by, query_ids=scores.query_ids), **interval_options))
    elif output.format == "parquet":
        output(scores)
    else:
        summary = scores.summary(**interval_options, per_topic=per_topic)
        further = describe_input(answers, judgments, all_measures=not measure)
        output(replace(summary, further=tuple(further)), table="topics" if per_topic else None)


@rag.command("waterfall", short_help="Find the pipeline step that loses the most evidence.")
@upstream_options
@click.option(
    "--traces",
    "paths",
    multiple=True,
    metavar="FILE",
    help="File of traces, to use instead of --run. Repeat for more files.",
)
@click.option(
    "--cutoffs",
    nargs=2,
    type=click.IntRange(1),
    default=(100, 10),
    metavar="FIRST LAST",
    help="FIRST: number of top documents that count as retrieved by the first stage. LAST: number of top documents"
    " that count as ranked by the last stage.  [default: 100 for FIRST, 10 for LAST]",
)
@shared("rel", default=1, show_default=True, help="Lowest relevant grade.")
@click.option("--partial", is_flag=True, help="Count the verdict `partial` as support.")
@click.option(
    "--needs",
    metavar="FILE",
    help="Table with the columns `query_id` and `need`, for topics that share an information need. Confidence"
    " intervals then treat all topics of an information need as one unit.",
)
@click.option(
    "--entities",
    metavar="FILE",
    help="With --by entity: table of entities, with the columns `entity`, `alias`, and `parent`.",
)
@shared("level", "per_topic")
@click.option(
    "--lost", is_flag=True, help="Show each lost item (such as a nugget), and the pipeline step that lost it."
)
@click.option(
    "--all",
    "all_chains",
    is_flag=True,
    help="Show the table of steps for every kind of item: nuggets, answers, documents, sentences, and users.",
)
@slice_options
@answer_options()
def waterfall_command(
    responses: tuple[str, ...],
    upstream: UpstreamData,
    paths: tuple[str, ...],
    needs: str | None,
    entities: str | None,
    partial: bool,
    per_topic: bool,
    lost: bool,
    all_chains: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Follow evidence from the corpus to the answer, and find the step that loses most.

    By default, the top 100 documents of the first stage and the top 10 of the last stage count. --by accepts topic
    attributes; with --entities, also `entity`; with --traces, also `rewritten` (whether a stage changed the query).
    """
    from judged.data.expression import Expression
    from judged.pipelines.rag import waterfall
    from judged.pipelines.traces import read_traces

    output.keep(*responses, *upstream.paths, needs, entities, *paths, *slicing_options.paths)
    answers = read_named_responses(responses, slicing_options.queries)
    traces = read_traces(paths) if paths else None
    slicing = None
    if slicing_options.where or slicing_options.by or slicing_options.slices:
        topic_attributes = _topic_attributes(upstream.qrels, traces, entities, slicing_options)
        topics = answers["answers"]["query_id"].unique().to_pylist()
        if slicing_options.where:
            mask = Expression(slicing_options.where).mask(topic_attributes.over(topics))
            topics = [topic for topic, is_selected in zip(topics, mask.tolist(), strict=True) if is_selected]
            if not topics:
                raise InputError(
                    f"no topic satisfies the condition {slicing_options.where!r}",
                    fix="check the attribute values in the condition",
                )
            answers = answers.of_topics(topics)
        slicing = (
            slicing_options.slice_topics(topic_attributes, topics)
            if slicing_options.by or slicing_options.slices
            else None
        )
    options |= {"runs": upstream.runs, "traces": traces, "corpus": upstream.corpus, "needs": needs, "slicing": slicing}
    answer = waterfall(answers, upstream.qrels, strict=not partial, **options)
    unfolded = [
        name
        for name, is_selected in (("slices", slicing), ("steps", all_chains), ("topics", per_topic), ("lost", lost))
        if is_selected
    ]
    output(answer, unfold=unfolded, table=unfolded[0] if unfolded else None)


def _topic_attributes(
    qrels: Qrels | None, traces: Traces | None, entities: str | None, slicing_options: SliceOptions
) -> Attributes:
    """Return topic attributes: from files, derived, and from texts and traces."""
    from judged.comparison.slicing.derived import read_topic_attributes
    from judged.pipelines.rag import query_facts

    if qrels is None:
        raise InputError("slicing and filtering topics requires judgments", fix="use --qrels FILE")
    trace_attributes = (
        query_facts(traces, entities=entities, queries=slicing_options.queries) if traces or entities else None
    )
    file_attributes = [
        name for name in slicing_options.names if trace_attributes is None or name not in trace_attributes.names
    ]
    attributes = read_topic_attributes(
        qrels, attributes=slicing_options.attributes, queries=slicing_options.queries, needed=file_attributes
    )
    return attributes if trace_attributes is None else attributes.joined(trace_attributes)


@rag.command("explain", short_help="Show one answer, or the calculation of its score.")
@answers_option
@shared("topic", required=True, help="Topic id.")
@shared("measure", default=None, help="Measure whose calculation is shown.  [default: none; the answer is shown]")
@QRELS
@answer_options()
def explain_command(
    answers: Responses, paths: tuple[str | None, ...], qrels: str | None, output: OutputOptions, **options: Any
) -> None:
    """Show how the score of one answer results from its nuggets, sentences, or citations.

    Without a measure, the command shows the answer with its support, context, and nuggets. If PATH has several
    systems, NAME=PATH selects the system NAME.
    """
    from judged.pipelines.rag import explain

    output.keep(*paths, qrels)
    output(explain(answers, qrels=qrels, **options))


@rag.command("gate", short_help="Decide whether the answers of a candidate may replace the answers of a baseline.")
@click.argument("baseline")
@click.argument("candidate")
@QRELS
@shared("queries", "texts", "columns")
@gate_options("NuggetRecall")
def gate_command(
    baseline: str,
    candidate: str,
    qrels: str | None,
    queries: str | None,
    texts: str | None,
    config: Path | None,
    output: OutputOptions,
    measure: tuple[str, ...],
    margin: float | None,
    margin_relative: float | None,
    strict: bool | None,
    test: GateTest | None,
    **others: Path | None,
) -> None:
    """Decide whether the answers of CANDIDATE may replace the answers of BASELINE.

    CANDIDATE and BASELINE are folders or files with the answers of one system. If PATH has several systems, NAME=PATH
    selects the system NAME. The checks can use measures of answers (SupportP) and ranking measures of the context
    documents (R@100). The exit codes are the same as for 'judged gate'.
    """
    from judged.pipelines.rag import evaluate

    measures = measure or (None if config else ("NuggetRecall",))
    gate_config, config_file = load_config(config, measures, margin, margin_relative, strict, test)
    parts = [read_named_responses([path], queries, texts) for path in (baseline, candidate)]
    for role, part in zip(("baseline", "candidate"), parts, strict=True):
        if len(part.run_names) > 1:
            fix = f"select one: {part.run_names[0]}={part.where}"
            raise InputError(
                f"the {role} must have the answers of one system, got {len(part.run_names)} systems",
                fix=fix,
                path=part.where,
            )
    check_outputs(output, gate_config, config_file, [baseline, candidate, qrels or ""], others)
    check_measures = [part.measure for part in (*gate_config.checks, *gate_config.guardrails) if part.measure]
    scores = evaluate(parts, check_measures, qrels=qrels, unjudged=False)
    write_decision(scores.gate(*scores.run_names, gate_config), output, others)


_STORAGE_OPTIONS = (
    click.option("--into", metavar="FOLDER", help="Output folder.  [default: RESPONSES, if it is a folder]"),
    click.option(
        "--store",
        metavar="STORE",
        help="Database that stores the replies of the model, so that no request is sent twice.  [default:"
        " FOLDER/asked.db]",
    ),
    click.option(
        "--judge",
        default="",
        metavar="NAME",
        help="Name of the judge that the tables record for these verdicts.  [default: name of the model in the"
        " endpoint file]",
    ),
)
_VERDICT_OPTIONS = (
    click.option(
        "--repeats", type=click.FloatRange(0, 1), default=0.1, show_default=True, metavar="SHARE",
        help="Share of topics that the model judges twice, to measure the variance of its verdicts. If SHARE is above"
            " 0, the model judges at least two topics twice.",
    ),
    click.option(
        "--keep-addressed", is_flag=True,
        help="Also send texts that try to instruct the judge (possible prompt injections). By default, texts"
            " of this kind are not sent, and count as failed requests.",
    ),
    click.option(
        "--family", "families", multiple=True, metavar="RUN=MODEL",
        help="Model that generated the answers of the system RUN. A note warns of bias if this model and the"
            " judge belong to the same model family. Repeat for more systems.",
    ),
)  # fmt: skip
_FORM_NOTE = "If a reply of the model contains no valid verdict, the verdict is recorded as failed."
_COST_NOTE = (
    "The command first shows the data that it will send, the endpoint, and the cost. The exit code is 1 if some"
    " requests were not answered (docs/rag-judges.md)."
)


def _filling_command(table: str, short_help: str, *names: str) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator for commands that fill a table of RESPONSES, with the shared options of these names."""

    def decorate(fill: Callable[..., None]) -> click.Command:
        options = with_options(
            RESPONSES,
            shared(*names, "columns"),
            *_STORAGE_OPTIONS,
            *(() if table == "nuggets" else _VERDICT_OPTIONS),
            asking_options,
            answer_options(),
            click.pass_context,
        )
        description = cleandoc(fill.__doc__ or "")
        text = f"{description} {_COST_NOTE}" if table == "nuggets" else f"{description} {_FORM_NOTE} {_COST_NOTE}"
        return rag.command(help=text, short_help=short_help)(options(fill))

    return decorate


@_filling_command("nuggets", "Have a model list the nuggets (facts) that answers should contain.", "queries", "texts")
@click.option(
    "--qrels",
    required=True,
    metavar="QRELS",
    help="Judgments of documents. The model extracts nuggets from the relevant documents.",
)
@shared("rel", default=1.0, show_default=True, help="Lowest relevant grade.")
@shared(
    "depth",
    default=10,
    show_default=True,
    help="Maximum number of relevant documents per topic from which nuggets are extracted.",
)
@shared("limit", default=30, help="Maximum number of nuggets per topic.")
def nuggets(context: click.Context, **options: Any) -> None:
    """Have a model list nuggets for each topic of RESPONSES that has no nuggets.

    Nuggets are facts of 1 to 12 words, rated `vital` or `okay`. Nuggets are extracted from the relevant documents of
    QRELS, except documents that contain instructions to the model.
    """
    _fill_table(context, "nuggets", **options)


@_filling_command("assignments", "Have a model judge how well answers cover nuggets.", "queries")
def assign(context: click.Context, **options: Any) -> None:
    """Have a model judge how well each answer covers each nugget of its topic.

    The verdicts are `support`, `partial`, and `not`.
    """
    _fill_table(context, "assignments", **options)


@_filling_command("support", "Have a model judge how well citations support sentences.", "texts")
@click.option(
    "--context",
    "by_context",
    is_flag=True,
    help="Judge whether the whole context supports each sentence, instead of judging each citation.",
)
def support(context: click.Context, by_context: bool, **options: Any) -> None:
    """Have a model judge how well each cited document, or the whole context, supports each sentence.

    The verdicts are `support`, `partial`, `not`, and `contradicts`.
    """
    _fill_table(context, "support", **options, by={"context": by_context})


@_filling_command("correctness", "Have a model judge how well answers agree with reference answers.", "queries")
def correctness(context: click.Context, **options: Any) -> None:
    """Have a model judge how well each answer agrees with the reference answers of its topic.

    The verdicts are `support`, `partial`, and `not`.
    """
    _fill_table(context, "correctness", **options)


def _fill_table(
    context: click.Context,
    table: str,
    *,
    responses: tuple[str, ...],
    into: str | None,
    store: str | None,
    endpoint: str,
    yes: bool,
    budget_calls: int | None,
    budget_money: float | None,
    output: OutputOptions,
    families: tuple[str, ...] = (),
    by: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Send the prepared requests, write the filled tables, and show the result."""
    from judged.labels.asking import Endpoint
    from judged.pipelines.rag.filling import fill, prepare_table
    from judged.pipelines.rag.responses import write_responses

    folder = into or (responses[0] if len(responses) == 1 and Path(responses[0]).is_dir() else None)
    if folder is None:
        raise InputError("no output folder", fix="use --into FOLDER")
    queries, texts = options.get("queries"), options.get("texts")
    output.keep(*responses, endpoint, queries, texts, options.get("qrels"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    options |= {"store": store or str(Path(folder) / "asked.db"), **(by or {})}
    options["families"] = parse_families(families, "model")
    prepared = prepare_table(table, read_named_responses(responses, queries, texts), Endpoint.read(endpoint), **options)
    confirm_sending(prepared, yes)
    filled = fill(prepared, budget_calls=budget_calls, budget_money=budget_money, progress=progress_printer())
    table_names = ("nuggets", "evidence") if table == "nuggets" else (table,)
    is_other_folder = Path(folder).resolve() != Path(responses[0]).resolve()
    if filled.responses is not None:
        write_responses(filled.responses, folder, filled.responses.tables if is_other_folder else table_names)
    print_ask_result(context, output, filled)


@rag.command("calibrate", short_help="Compare verdicts of models with verdicts of people.")
@answers_option
@click.option(
    "--people", multiple=True, required=True, metavar="JUDGE", help="Name of a human judge. Repeat for more judges."
)
@MEASURES
@click.option(
    "--labeled",
    metavar="FILE",
    help="File with one topic ID per line: topics for which people judged all items.  [default: all topics that people"
    " judged]",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="Largest acceptable bias.",
)
@shared("confidence")
@answer_options()
def calibrate_command(
    answers: Responses,
    paths: tuple[str | None, ...],
    people: tuple[str, ...],
    measure: tuple[str, ...],
    labeled: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Test whether the bias of each model judge in RESPONSES, compared with people, is within a margin.

    The mean scores of systems are corrected with the topics that people judged. The topics that people judged must be
    a random sample, and must be judged completely. Topics that a model judged twice are used to estimate the share of
    the variance of a mean that is due to the model (docs/rag-judges.md).
    """
    from judged.data import files
    from judged.pipelines.rag.judge_error import calibrate

    output.keep(*paths, labeled)
    topics = None if labeled is None else files.text(labeled, labeled).split()
    output(calibrate(answers, people, measure or None, labeled=topics, **options))
