"""`judged traces`: the stage at which documents are lost, and the path of a document through the stages."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, slice_options
from judged.interface.options import Choice, shared, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.pipelines.traces import Traces
    from judged.pipelines.traces.conventions import Format

_STAGES = (
    "A run as a stage, in the order of the pipeline: NAME=RUN, or NAME<PARENT,PARENT=RUN where it does not follow the"
    " one before it. In place of TRACES."
)


@click.group("traces")
def traces() -> None:
    """Follow queries through the stages of a pipeline, and hold each stage against judgments.

    TRACES are JSON lines, one for each stage of a query (docs/traces.md), spans by the conventions of OpenInference or
    OpenTelemetry, or queries by UBI. Or name runs by stage: --stage bm25=bm25.run --stage rerank=final.run.
    """


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
        help="Look for this layout only.  [default: any]",
    ),
    click.option(
        "--topic-from", metavar="NAME", help="The attribute of spans that holds the topic.  [default: the query's text]"
    ),
    click.option(
        "--topics",
        "query_texts",
        metavar="FILE",
        help="Texts of topics: a query has the id of the topic with its text.",
    ),
    click.option("--id-from", metavar="KEY", help="The key of a document, or of its metadata, that holds its id."),
    click.option("--documents-of", metavar="FILE", help="The document of each chunk: two columns, or JSON."),
)

_trace_arguments = with_options(
    click.argument("paths", nargs=-1, metavar="[TRACES]..."),
    click.option("--stage", "stages", multiple=True, metavar="NAME=RUN", help=_STAGES),
    _reading_options,
)
"""Arguments for traces: files, or runs by stage."""


def _loss_options(measure_help: str) -> Callable[..., Any]:
    """Return the options of the measure, the scored list, and the corpus."""
    corpus = "All documents, or their ids, one on each line: what is not among them cannot be found."
    return with_options(
        shared("measure", help=measure_help),
        click.option("--final", metavar="STAGE", help="The stage whose list is scored.  [default: what was shown]"),
        click.option("--corpus", metavar="FILE", help=corpus),
    )


@traces.command("check", short_help="Say which stages TRACES have, and what could not be read.")
@_trace_arguments
@answer_options()
def check(source: _TraceSource, output: OutputOptions) -> None:
    """Say which stages TRACES have, how many queries went through each, and what could not be read."""
    from judged.pipelines.traces import check_traces

    output(check_traces(_read_source(source, output)))


@traces.command("funnel", short_help="What each stage lost of a measure, exactly.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("The measure whose loss is split.")
@shared("confidence")
@shared("per_topic", help="Show every topic, the largest loss first.")
@click.option("--lost", is_flag=True, help="Show the relevant documents that were lost, and where.")
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
    """Split what each topic loses of a measure into the stages of its pipeline: the parts add up to the loss."""
    from judged.pipelines.traces import funnel as compute_funnel

    _show_unfolded(
        output,
        _analyze_slices(compute_funnel, qrels, source, slicing_options, output, options),
        topics=per_topic,
        documents=lost,
    )


@traces.command("failures", short_help="Kinds of failure, and what to do first.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("The measure whose loss is sorted.")
@click.option("--documents", metavar="FILE", help="Table of documents with their dates: for freshness.")
@click.option("--date", metavar="COLUMN", default="date", show_default=True, help="Its column of dates.")
@click.option("--today", metavar="DAY", help="Leave out documents dated later.  [default: the newest date]")
@click.option("--clicks", metavar="FILE", help="Columns query_id, doc_id, clicks and expected.  [default: as traced]")
@click.option("--labels", metavar="STORE", help="Labels of several judges: topics on which they disagree are feedback.")
@shared("fdr", default=0.05, help="False-discovery rate of the tests over topics.")
@shared("confidence", "seed")
@click.option("--per-document", is_flag=True, help="Show every relevant document that people did not see.")
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
    """Sort the relevant documents that people did not see: missing content, candidate, scoring, or not recorded.

    Calibration of merged sources, freshness, intent and feedback are tested over topics, given what they need: a stage
    with two parents or more, dates of documents, slices or subtopics, clicks.
    """
    from judged.pipelines.traces import failures as find_failures

    _show_unfolded(
        output,
        _analyze_slices(find_failures, qrels, source, slicing_options, output, options, with_attributes=True),
        documents=per_document,
    )


@traces.command("gaps", short_help="What people ask about, against what there is.")
@click.argument("qrels")
@_trace_arguments
@_loss_options("The measure by which entities are compared.")
@click.option("--entities", metavar="FILE", help="Names of entities: columns entity, alias and parent.")
@click.option("--by", metavar="NAME", help="Instead, the attribute of topics that names entities: one, or a list.")
@shared("queries", help="Texts of the queries.  [default: as they were traced]")
@shared("attributes", help="Table of facts about topics; traffic is how often each is asked.")
@shared("documents", help="Table of documents with the column entity, or that of --by.")
@shared("fdr", default=0.05, help="False-discovery rate among entities.")
@shared("confidence", "seed")
@click.option("--wanted", "only_wanted", is_flag=True, help="Show only the content to write or to fetch.")
@answer_options()
def gaps(qrels: str, source: _TraceSource, only_wanted: bool, output: OutputOptions, **options: Any) -> None:
    """Set what people ask about against what there is, entity by entity, and list the content to write or to fetch."""
    from judged.data.qrels import Qrels
    from judged.data.texts import document_ids
    from judged.pipelines.traces import gaps as find_gaps

    files = [options[name] for name in ("entities", "queries", "attributes", "documents", "corpus")]
    traces = _read_source(source, output, qrels, *files)
    options["corpus"] = document_ids(options["corpus"]) if options["corpus"] else None
    output(find_gaps(Qrels.read(qrels), traces, **options), table="wanted" if only_wanted else None)


@traces.command("diff", short_help="What changed between two sets of traces, and at which step.")
@click.argument("qrels")
@click.argument("baseline")
@click.argument("other")
@shared("measure", help="The measure that changed.")
@shared("alpha", "resamples", "seed")
@shared("per_topic", help="Show every topic, the largest loss first.")
@click.option("--lost", is_flag=True, help="Show the relevant documents that are lost elsewhere than before.")
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
    """Split what changed from BASELINE to OTHER into the steps of the pipeline, and test each part."""
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


@traces.command("why", short_help="The way of a document through the stages, or of a topic back to its query.")
@_trace_arguments
@shared("topic", required=True, help="The topic.")
@click.option("--doc", "documents", multiple=True, metavar="ID", help="A document; two are compared.")
@click.option("--qrels", metavar="QRELS", help="For grades, and for the relevant documents that people did not see.")
@answer_options()
def why(source: _TraceSource, topic: str, documents: tuple[str, ...], qrels: str | None, output: OutputOptions) -> None:
    """Say where documents of a topic came from, where they stood, and where they were cut and by how much.

    Without --doc, the list that people saw is walked back to the query, and every relevant document with it. Of two
    documents, the features are named that set them most apart.
    """
    from judged.pipelines.traces import why as document_paths

    output(document_paths(_read_source(source, output, qrels), topic, documents or None, qrels=qrels))


@traces.command("runs", short_help="Write every stage as a run.")
@_trace_arguments
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where to write them.",
)
def runs(source: _TraceSource, folder: Path) -> None:
    """Write what each stage of TRACES passed on into FOLDER, as ordinary runs for every other command.

    Scores are the recorded ones where each document of the stage has one and they give the recorded order, else ranks,
    negative: behind each file stands which.
    """
    from judged.data.write import write_run

    folder.mkdir(parents=True, exist_ok=True)
    traces = _read_source(source)
    for run in traces.runs():
        path = folder / f"{run.name.replace('/', '_')}.run"
        write_run(run, path)
        scores = "recorded scores" if traces.has_scores(run.name) else "ranks as scores, negative"
        unrecorded = sum(traces.state(query, run.name) == "unrecorded" for query in traces.query_ids)
        note = f"; not recorded for {unrecorded} of {len(traces.query_ids)} queries, which the run lacks"
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
    judgments, slicing = slicing_options.apply(Qrels.read(qrels), final_run)
    if with_attributes and (slicing_options.attributes or slicing_options.queries):
        options["attributes"] = slicing_options.topic_attributes(judgments, final_run)
    corpus = document_ids(options["corpus"]) if options["corpus"] else None
    return analyze(judgments, traces, slicing=slicing, **{**options, "corpus": corpus})


def _read_source(source: _TraceSource, output: OutputOptions | None = None, *others: str | None) -> Traces:
    from judged.pipelines.traces import read_traces, traces_of_runs

    if bool(source.paths) == bool(source.stages):
        raise InputError(
            "either files of traces or runs by stage are required", fix="name TRACES, or use --stage NAME=RUN"
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
