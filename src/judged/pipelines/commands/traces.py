"""`judged traces`: the stage at which documents are lost, and the path of a document through the stages."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, documents_with_ages, slice_options
from judged.interface.options import Choice, shared, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.pipelines.traces import Traces
    from judged.pipelines.traces.conventions import Format

_STAGES = (
    "Pipeline stage NAME, which returned the documents of RUN. Repeat for each stage, in pipeline order. The input of"
    " a stage is the output of the previous stage. To name other input stages, write"
    ' "NAME<PARENT,PARENT=RUN" in quotes, such as --stage "rrf<bm25,tfidf=rrf.run". Use this option instead of TRACES.'
)


@click.group("traces")
def traces() -> None:
    """Follow queries through the stages of a pipeline, and compare each stage with judgments.

    TRACES are files: JSON Lines with one line for each stage of a query (docs/traces.md), spans of OpenInference or
    OpenTelemetry, or queries of User Behavior Insights (UBI). Runs can replace traces: --stage bm25=bm25.run --stage
    rerank=final.run.
    """


ID_OPTIONS = with_options(
    click.option(
        "--topic-from",
        metavar="NAME",
        help="Name of the span attribute that contains the topic id. "
        " [default: the query text is used as the topic id]",
    ),
    click.option(
        "--topics",
        "query_texts",
        metavar="FILE",
        help="File of topics with ids and texts, to find the topic id of each query text.",
    ),
    click.option(
        "--id-from",
        metavar="KEY",
        help="Name of the key in each document, or in its metadata, that contains the document id.",
    ),
)
"""Options to find the ids of topics and documents in records of other tools."""


class _TraceSource(NamedTuple):
    """Files of traces with their reading options, or runs by stage."""

    paths: tuple[str, ...]
    stages: tuple[str, ...]
    traces_format: str | None
    topic_from: str | None
    query_texts: str | None
    id_from: str | None
    documents_of: str | None


def _reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for reading trace files to a command."""

    @wraps(function)
    def parse_source(**options: Any) -> Any:
        source = _TraceSource(**{name: options.pop(name, ()) for name in _TraceSource._fields})
        return function(source=source, **options)

    return _READING(parse_source)


_READING = with_options(
    click.option(
        "--traces-format",
        type=Choice("judged.pipelines.traces.conventions:Format"),
        help="Format of the traces.  [default: detected from the content]",
    ),
    ID_OPTIONS,
    click.option(
        "--documents-of",
        metavar="FILE",
        help="File that maps each chunk id to a document id: two columns, or a JSON object.",
    ),
)

_trace_arguments = with_options(
    click.argument("paths", nargs=-1, metavar="[TRACES]..."),
    click.option("--stage", "stages", multiple=True, metavar="NAME=RUN", help=_STAGES),
    _reading_options,
)
"""Arguments for traces: files, or runs by stage."""


def _loss_options(measure_help: str) -> Callable[..., Any]:
    """Return the options of the measure, the scored list, and the corpus."""
    corpus = "File with all documents of the corpus, or with one document id per line, to identify missing content."
    return with_options(
        shared("measure", help=measure_help),
        click.option(
            "--final",
            metavar="STAGE",
            help="Stage whose list of documents is scored.  [default: the stage whose list users saw]",
        ),
        click.option("--corpus", metavar="FILE", help=corpus),
    )


@traces.command("check", short_help="List the stages of TRACES, and report unreadable records.")
@_trace_arguments
@answer_options()
def check(source: _TraceSource, output: OutputOptions) -> None:
    """List the stages of TRACES with their numbers of queries and documents, and report unreadable records."""
    from judged.pipelines.traces import check_traces

    output(check_traces(_read_source(source, output)))


@traces.command("funnel", short_help="Show how much each pipeline stage contributes to the loss of score.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("Measure whose loss, the best possible score minus the score, is split by stage.")
@shared("confidence")
@shared("per_topic", help="Show every topic, sorted from the largest to the smallest loss.")
@click.option("--lost", is_flag=True, help="Show each lost relevant document, and the stage that lost it.")
@slice_options
@answer_options()
def funnel(
    qrels: str,
    source: _TraceSource,
    per_topic: bool,
    lost: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show how much each stage of the pipeline contributes to the loss: the best possible score minus the score.

    For each topic, the losses of all stages add up to the loss of the pipeline.
    """
    from judged.pipelines.traces import funnel as compute_funnel

    _show_unfolded(
        output,
        _analyze_slices(compute_funnel, qrels, source, slicing_options, output, options),
        topics=per_topic,
        documents=lost,
    )


@traces.command("failures", short_help="Classify lost documents, and recommend a first action.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("Measure whose loss is split by kind of failure.")
@click.option("--documents", metavar="FILE", help="Table of documents with dates, to test for the failure 'freshness'.")
@shared("as_of", "freshness_bands")
@click.option(
    "--clicks",
    metavar="FILE",
    help="Table of clicks with the columns `query_id`, `doc_id`, `clicks`, and, optionally, `expected` (expected"
    " number of clicks, given the rank).  [default:"
    " the clicks in TRACES, if any]",
)
@click.option(
    "--labels",
    metavar="STORE",
    help="Store or table with labels of several annotators, to find topics on which annotators disagree.",
)
@shared("fdr", default=0.05, help="False discovery rate at which the tests over topics are significant.")
@shared("confidence", "seed", "columns")
@click.option("--per-document", is_flag=True, help="Show every relevant document that users did not see.")
@slice_options
@answer_options()
def failures(
    qrels: str,
    source: _TraceSource,
    per_document: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Classify the relevant documents that users did not see, by kind of failure.

    Kinds of failure: missing content (the corpus does not contain the document), candidate (no first stage returned the
    document), scoring (a later stage removed the document or ranked it too low), and debugging (the trace is
    incomplete). Tests over topics detect four more kinds of failure, if the data in parentheses are available:
    calibration (a stage with two or more parents), freshness (dates of documents), intent (slices or subtopics), and
    feedback (clicks or labels).
    """
    from judged.pipelines.traces import failures as find_failures

    _show_unfolded(
        output,
        _analyze_slices(find_failures, qrels, source, slicing_options, output, options, with_attributes=True),
        documents=per_document,
    )


@traces.command("gaps", short_help="For each entity, compare the demand in queries with the supply in documents.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("Measure whose scores are compared between entities.")
@click.option("--entities", metavar="FILE", help="Table of entities with the columns `entity`, `alias`, and `parent`.")
@click.option(
    "--by",
    metavar="NAME",
    help="Topic attribute that contains the entities of each topic. Use this option instead of --entities.",
)
@shared("queries", help="Texts of the queries.  [default: the texts in TRACES]")
@shared(
    "attributes",
    help="Attributes of topics. The attribute `traffic`, if present, must be the number of searches of each topic.",
)
@shared(
    "documents",
    help="Table that assigns entities to documents in one of three ways: a column `entity` (with --by NAME: the column"
    " NAME); titles, which are searched for the names of --entities; or rows of `entity` and `doc_ids`. Shows the kind"
    " of content gap of each entity.",
)
@shared("fdr", default=0.05, help="False discovery rate at which the tests of entities are significant.")
@shared("confidence", "seed")
@click.option("--missing-content", "only_missing", is_flag=True, help="Show only the queries without relevant content.")
@answer_options()
def gaps(qrels: str, source: _TraceSource, only_missing: bool, output: OutputOptions, **options: Any) -> None:
    """For each entity, compare demand in queries with supply in documents. List queries without relevant content."""
    from judged.data.qrels import Qrels
    from judged.data.texts import document_ids
    from judged.pipelines.traces import gaps as find_gaps

    files = [options[name] for name in ("entities", "queries", "attributes", "documents", "corpus")]
    traces = _read_source(source, output, qrels, *files)
    options["corpus"] = document_ids(options["corpus"]) if options["corpus"] else None
    output(find_gaps(Qrels.read(qrels), traces, **options), table="missing_content" if only_missing else None)


@traces.command("diff", short_help="Compare two sets of traces, and test each pipeline step.")
@click.argument("qrels")
@click.argument("baseline")
@click.argument("other")
@shared("measure", help="Measure whose change of the score is split by pipeline step.")
@shared("alpha", "resamples", "seed")
@shared("per_topic", help="Show every topic, sorted from the largest decrease to the largest increase.")
@click.option(
    "--lost",
    is_flag=True,
    help="Show relevant documents that are lost only in BASELINE, only in OTHER, or at different steps.",
)
@_reading_options
@slice_options
@answer_options()
def diff(
    qrels: str,
    baseline: str,
    other: str,
    source: _TraceSource,
    per_topic: bool,
    lost: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Split the change of a measure from BASELINE to OTHER by the steps of the pipeline, and test each part."""
    from judged.data.qrels import Qrels
    from judged.pipelines.traces import diff as compare_traces

    first, second = (
        _read_source(source._replace(paths=(path,)), output, qrels, *slicing_options.paths)
        for path in (baseline, other)
    )
    judgments, slicing = slicing_options.apply(Qrels.read(qrels), second.run(second.final.name))
    _show_unfolded(
        output, compare_traces(judgments, first, second, slicing=slicing, **options), topics=per_topic, documents=lost
    )


@traces.command("explain", short_help="Show the path of documents through the stages.")
@_trace_arguments
@shared("topic", required=True, help="Topic id.")
@click.option(
    "--doc",
    "documents",
    multiple=True,
    metavar="ID",
    help="Document id. Repeat once to compare the features of two documents.",
)
@click.option(
    "--qrels",
    metavar="QRELS",
    help="Judgments, to show the grades of documents and, without --doc, all relevant documents.",
)
@answer_options()
def explain(
    source: _TraceSource, topic: str, documents: tuple[str, ...], qrels: str | None, output: OutputOptions
) -> None:
    """Show the rank and score of documents of a topic at each stage, and the stage that removed each document.

    Without --doc, the documents are the top of the list that users saw and, with --qrels, all relevant documents. If
    you select two documents, the features that differ most between the two documents are also
    shown.
    """
    from judged.pipelines.traces import explain_document

    output(explain_document(_read_source(source, output, qrels), topic, documents or None, qrels=qrels))


@traces.command("runs", short_help="Write the documents of each stage as a run.")
@_trace_arguments
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Output folder.",
)
def runs(source: _TraceSource, folder: Path) -> None:
    """Write the documents of each stage of TRACES to FOLDER as a run for other commands.

    A run keeps the recorded scores only if every document has a score and sorting by these scores gives the recorded
    order. Otherwise, the scores of the run are the negative ranks. The command prints which scores each file has.
    """
    from judged.data.write import write_run

    folder.mkdir(parents=True, exist_ok=True)
    traces = _read_source(source)
    for run in traces.runs():
        path = folder / f"{run.name.replace('/', '_')}.run"
        write_run(run, path)
        scores = "recorded scores" if traces.has_scores(run.name) else "negative ranks as scores"
        unrecorded = sum(traces.state(query, run.name) == "unrecorded" for query in traces.query_ids)
        note = (
            f"; {unrecorded} of {len(traces.query_ids)} queries are missing in the run, because their traces do not"
            " record this stage"
        )
        click.echo(f"{path}: {scores}{note if unrecorded else ''}")


def _show_unfolded(output: OutputOptions, answer: Any, **selected: bool) -> None:
    """Show an answer with the selected tables unfolded; the first of them is the CSV output."""
    unfolded = [name for name, is_selected in selected.items() if is_selected]
    output(answer, unfold=unfolded, table=next(iter(unfolded), None))


def _analyze_slices(
    analyze: Callable[..., Any],
    qrels: str,
    source: _TraceSource,
    slicing_options: SliceOptions,
    output: OutputOptions,
    options: dict[str, Any],
    *,
    with_attributes: bool = False,
) -> Any:
    """Read judgments and traces, slice the topics by the options, and run an analysis."""
    from judged.data.qrels import Qrels
    from judged.data.texts import document_ids

    files = [options.get(name) for name in ("corpus", "documents", "clicks", "labels")]
    traces = _read_source(source, output, qrels, *files, *slicing_options.paths)
    final_run = traces.run(traces.final.name)
    if "documents" in options:
        options["documents"] = documents_with_ages(options)
    judgments, slicing = slicing_options.apply(Qrels.read(qrels), final_run, options.get("documents"))
    if with_attributes and (slicing_options.attributes or slicing_options.queries):
        options["attributes"] = slicing_options.topic_attributes(judgments, final_run)
    corpus = document_ids(options["corpus"]) if options["corpus"] else None
    return analyze(judgments, traces, slicing=slicing, **{**options, "corpus": corpus})


def _read_source(source: _TraceSource, output: OutputOptions | None = None, *others: str | None) -> Traces:
    from judged.pipelines.traces import read_traces, traces_of_runs

    if bool(source.paths) == bool(source.stages):
        raise InputError(
            "the command requires either trace files, or one run for each stage",
            fix="pass TRACES, or use --stage NAME=RUN",
        )
    runs, parents = dict[str, Any](), dict[str, tuple[str, ...]]()
    for text in source.stages:
        name_and_parents, equals, path = text.partition("=")
        name, separator, parent_names = name_and_parents.partition("<")
        if not equals or not name or not path:
            raise InputError(f"--stage must be NAME=RUN, got {text!r}", fix="write NAME=RUN, such as bm25=bm25.run")
        runs[name] = arguments.runs_at([path], None)
        parents |= {name: tuple(filter(None, parent_names.split(",")))} if separator else {}
    if output is not None:
        other_paths = (source.query_texts, source.documents_of, *others)
        output.keep(*source.paths, *(text.partition("=")[2] for text in source.stages), *other_paths)
    traces = (
        traces_of_runs(runs, parents=parents)
        if source.stages
        else read_traces(
            source.paths,
            format=cast("Format | None", source.traces_format),
            topic_from=source.topic_from,
            topics=source.query_texts,
            id_from=source.id_from,
        )
    )
    return traces if source.documents_of is None else traces.unified(source.documents_of)
