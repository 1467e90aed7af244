"""`judged rag`: what systems answered, and where the evidence for it went."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, slice_options
from judged.interface.commands.gate import check_outputs, gate_options, load_config, write_decision
from judged.interface.options import FORMATS, LazyGroup, shared, with_options
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
    """Evaluate generated answers: what they say of what they should, what they cite, and what supports it.

    RESPONSES are folders or files of answers, sentences, citations, context, nuggets and verdicts (docs/rag.md). Files
    go together; folders hold systems beside each other. NAME=PATH takes the system NAME, or calls the only one so.
    """


RESPONSES = click.argument("responses", nargs=-1, required=True, metavar="RESPONSES...")
QRELS = click.option(
    "--qrels", metavar="QRELS", help="Judgments of documents.  [default: documents that hold a nugget, by evidence]"
)
MEASURES = shared(
    "measures",
    help="A measure of answers, such as NuggetRecall or SupportP, or one of rankings, such as R@10, of the context."
    " Repeat for more.  [default: those that the tables allow]",
)
_RUN = "A run behind the answers, by its stage in the order of the pipeline, or by system: NAME=RUN. Repeat for more."


def responses_at(texts: Sequence[str], queries: str | None = None, documents: str | None = None) -> Responses:
    """Read RESPONSES: files without a name go together, folders and NAME=PATH stand beside each other.

    NAME is a system in what stands at PATH, or how its only one is called. Exports that name queries and passages by
    their texts find their ids in `queries` and `documents`.
    """
    from judged.pipelines.rag.readers import read_responses
    from judged.pipelines.rag.responses import Responses

    named = [arguments.split_name(text) for text in texts]
    files = [path for name, path in named if not name and not Path(path).is_dir()]
    parts: list[Responses] = []
    for name, path in named:
        if path not in files[1:] or name:
            together = not name and path in files
            made = read_responses(files if together else path, topics=queries, texts=documents)
            parts.append(made.with_run_name(name) if name else made)
    return Responses.of(parts)


class Before(NamedTuple):
    """What stood before answers, as it is given to functions; None for what nobody gave."""

    qrels: Qrels | None
    runs: dict[str, Run] | None
    corpus: list[str] | None
    paths: tuple[str, ...]


def sources(command: Command) -> Command:
    """Give a command RESPONSES, and what stood before them: QRELS, runs and the corpus."""

    @wraps(command)
    def reading(
        qrels: str | None, runs: Sequence[str], corpus: str | None, qrels_format: Any, run_format: Any, **options: Any
    ) -> None:
        from judged.data.qrels import Qrels
        from judged.data.texts import document_ids

        judgments = None if qrels is None else Qrels.read(qrels, format=qrels_format)
        named = {run.name: run for run in arguments.runs_at(runs, run_format)} or None
        paths = tuple(path for path in (qrels, corpus) if path)
        command(before=Before(judgments, named, document_ids(corpus) if corpus else None, paths), **options)

    return with_options(  # pyright: ignore[reportReturnType]
        shared(*FORMATS),
        RESPONSES,
        click.option("--qrels", metavar="FILE", help="Judgments: which documents are relevant."),
        click.option("--run", "runs", multiple=True, metavar="[NAME=]RUN", help=_RUN),
        click.option("--corpus", metavar="FILE", help="All documents, or their ids, one on each line."),
    )(reading)


@rag.command("check", short_help="What is there, what is missing, and what follows.")
@sources
@answer_options()
def check_command(responses: tuple[str, ...], before: Before, output: OutputOptions) -> None:
    """Say what is missing of RESPONSES or does not go together, and what can then not be measured.

    Exit code 0: no errors, warnings at most; 1: errors; 2: something cannot be read at all.
    """
    from judged.pipelines.rag import check_responses

    alone = len(responses) == 1 and not arguments.split_name(responses[0])[0]  # then read errors are among the findings
    given = responses[0] if alone else responses_at(responses)
    runs = list(before.runs.values()) if before.runs else None
    findings = check_responses(given, before.qrels, runs=runs, corpus=before.corpus)
    output(findings)
    raise SystemExit(1 if findings.errors else 0)


@rag.command("evaluate", short_help="Score answers by what they say, cite and rest on.")
@RESPONSES
@QRELS
@MEASURES
@shared("per_topic", help="Show the scores of every topic.")
@click.option(
    "--unjudged/--no-unjudged",
    default=True,
    show_default=True,
    help="Show how far missing and failed verdicts could move each number.",
)
@shared("rel", "ci", "level", "draws", "seed", "attributes", "where")
@click.option("--by", metavar="NAME", help="With --attributes: the scores by slice, one for each value.")
@answer_options()
def evaluate_command(
    responses: tuple[str, ...],
    qrels: str | None,
    measure: tuple[str, ...],
    per_topic: bool,
    by: str | None,
    output: OutputOptions,
    attributes: str | None,
    **options: Any,
) -> None:
    """Score what systems answered, with intervals over topics."""
    from judged.comparison.slicing import slice_topics
    from judged.pipelines.rag import evaluate

    if by is not None and attributes is None:
        raise InputError("--by needs attributes of topics", fix="give --attributes FILE with it")
    given = responses_at(responses)
    output.keep(*responses, qrels, attributes)
    method: dict[str, Any] = {name: options.pop(name) for name in ("ci", "level", "resamples", "seed")}
    scores = evaluate(given, measure or None, qrels=qrels, attributes=attributes, **options)
    if by is not None:
        output(scores.by_slice(slice_topics(attributes, by, query_ids=scores.query_ids), **method))
    elif output.format == "parquet":
        output(scores)
    else:
        output(scores.summary(**method, per_topic=per_topic), table="topics" if per_topic else None)


@rag.command("waterfall", short_help="Where the evidence went, and which step to work on.")
@sources
@click.option("--traces", "paths", multiple=True, metavar="FILE", help="Traces, in place of runs. Repeat for more.")
@click.option(
    "--cutoffs",
    nargs=2,
    type=click.IntRange(1),
    default=(100, 10),
    show_default=True,
    metavar="FIRST LAST",
    help="How many documents of the first and of the last stage count.",
)
@shared("rel", default=1, show_default=True, help="The lowest relevant grade.")
@click.option("--partial", is_flag=True, help="Let partial support pass.")
@click.option("--needs", metavar="FILE", help="Columns query_id and need: intervals are over needs, not over topics.")
@click.option(
    "--entities", metavar="FILE", help="Names of entities: columns entity, alias and parent; for --by entity."
)
@shared("level", "per_topic")
@click.option("--lost", is_flag=True, help="Show what was lost, and where.")
@click.option("--all", "every", is_flag=True, help="Show the steps of all chains.")
@slice_options
@answer_options()
def waterfall_command(
    responses: tuple[str, ...],
    before: Before,
    paths: tuple[str, ...],
    needs: str | None,
    entities: str | None,
    partial: bool,
    per_topic: bool,
    lost: bool,
    every: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Follow evidence from the corpus to the answer, and say at which step most is lost.

    The first stage is held to the first 100 documents, the last to the first 10. Besides attributes of files, topics
    can be cut --by entity and, with traces, --by rewritten.
    """
    from judged.data.expression import Expression
    from judged.pipelines.rag import waterfall
    from judged.pipelines.traces import read_traces

    output.keep(*responses, *before.paths, needs, entities, *paths, *slicing_options.paths)
    given = responses_at(responses)
    traces = read_traces(paths) if paths else None
    slicing = None
    if slicing_options.where or slicing_options.by or slicing_options.slices:
        known = _known(before.qrels, traces, entities, slicing_options)
        topics = given["answers"]["query_id"].unique().to_pylist()
        if slicing_options.where:
            mask = Expression(slicing_options.where).mask(known.over(topics))
            topics = [topic for topic, kept in zip(topics, mask.tolist(), strict=True) if kept]
            if not topics:
                raise InputError(
                    f"no topic satisfies {slicing_options.where!r}", fix="check the values of its attributes"
                )
            given = given.of_topics(topics)
        slicing = slicing_options.slice_topics(known, topics) if slicing_options.by or slicing_options.slices else None
    options |= {"runs": before.runs, "traces": traces, "corpus": before.corpus, "needs": needs, "slicing": slicing}
    answer = waterfall(given, before.qrels, strict=not partial, **options)
    unfolded = [
        name for name, on in (("slices", slicing), ("steps", every), ("topics", per_topic), ("lost", lost)) if on
    ]
    output(answer, unfold=unfolded, table=unfolded[0] if unfolded else None)


def _known(
    qrels: Qrels | None, traces: Traces | None, entities: str | None, slicing_options: SliceOptions
) -> Attributes:
    """Give what is known of topics: of files and derived, and what texts and traces tell."""
    from judged.comparison.slicing.derived import read_topic_attributes
    from judged.pipelines.rag import query_facts

    if qrels is None:
        raise InputError("topics are cut and chosen by what is known of judged ones", fix="give --qrels FILE")
    told = query_facts(traces, entities=entities, queries=slicing_options.queries) if traces or entities else None
    needed = [name for name in slicing_options.names if told is None or name not in told.names]
    known = read_topic_attributes(
        qrels, attributes=slicing_options.attributes, queries=slicing_options.queries, needed=needed
    )
    return known if told is None else known.joined(told)


@rag.command("explain", short_help="Show one answer, or the pieces of its score.")
@RESPONSES
@shared("topic", required=True, help="The topic.")
@shared("measure", default=None, help="The measure; without one, the answer itself.")
@QRELS
@answer_options()
def explain_command(
    responses: tuple[str, ...], topic: str, measure: str | None, qrels: str | None, output: OutputOptions
) -> None:
    """Show how the score of one answer comes about, nugget by nugget, sentence by sentence or citation by citation.

    Without a measure: what it says, what supports that, what it was given, and what it should say. NAME=PATH takes one
    of several systems.
    """
    from judged.pipelines.rag import explain

    given = responses_at(responses)
    output.keep(*responses, qrels)
    output(explain(given, measure, topic=topic, qrels=qrels))


@rag.command("gate", short_help="Decide whether a candidate's answers may replace the baseline's.")
@click.argument("baseline")
@click.argument("candidate")
@QRELS
@gate_options("NuggetRecall")
def gate_command(
    baseline: str,
    candidate: str,
    qrels: str | None,
    config: Path | None,
    output: OutputOptions,
    measure: tuple[str, ...],
    margin: float | None,
    margin_relative: float | None,
    strict: bool | None,
    test: GateTest | None,
    **others: Path | None,
) -> None:
    """Decide whether the answers of CANDIDATE may replace those of BASELINE, by the checks of a configuration.

    Both are folders or files with the answers of one system; NAME=PATH takes the system NAME. Checks may be of answers
    (SupportP) and of their context (R@100). Exit codes are those of 'judged gate'.
    """
    from judged.pipelines.rag import evaluate

    measures = measure or (None if config else ("NuggetRecall",))
    asked, file = load_config(config, measures, margin, margin_relative, strict, test)
    parts = [responses_at([path]) for path in (baseline, candidate)]
    for role, part in zip(("baseline", "candidate"), parts, strict=True):
        if len(part.run_names) > 1:
            fix = f"name one: {part.run_names[0]}={part.where}"
            raise InputError(f"the {role} holds {len(part.run_names)} systems", fix=fix, path=part.where)
    check_outputs(output, asked, file, [baseline, candidate, qrels or ""], others)
    wanted = [part.measure for part in (*asked.checks, *asked.guardrails) if part.measure]
    scores = evaluate(parts, wanted, qrels=qrels, unjudged=False)
    write_decision(scores.gate(*scores.run_names, asked), output, others)


_WHERE = (
    click.option("--into", metavar="FOLDER", help="Write the table there.  [default: RESPONSES, if it is a folder]"),
    click.option(
        "--store", metavar="STORE", help="Where replies are kept: nothing is asked twice.  [default: FOLDER/asked.db]"
    ),
    click.option(
        "--judge", default="", metavar="NAME", help="The model's name as a judge.  [default: as its endpoint]"
    ),
)
_VERDICTS = (
    click.option(
        "--repeats", type=click.FloatRange(0, 1), default=0.1, show_default=True, metavar="SHARE",
        help="Share of topics of which all is asked again, two at least: how far the judge wavers.",
    ),
    click.option(
        "--keep-addressed", is_flag=True,
        help="Ask also about texts that address the judge; else what rests on them fails."
    ),
    click.option(
        "--family", "families", multiple=True, metavar="RUN=MODEL",
        help="The model behind a system: whether it is of the judge's family. Repeat for more.",
    ),
)  # fmt: skip
_FORM = "A reply in any other form is failed, and no verdict."
_SENT = """First it says what will be sent, where to, and what that may cost. The exit code is 1 if something is left
    (docs/rag-judges.md)."""


def _filling(table: str, short: str, *names: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command with RESPONSES, the options of all that fills a table, and the shared ones of these names."""

    def decorate(command: Callable[..., None]) -> click.Command:
        options = with_options(
            RESPONSES,
            shared(*names),
            *_WHERE,
            *(() if table == "nuggets" else _VERDICTS),
            asking_options,
            answer_options(),
            click.pass_context,
        )
        text = f"{command.__doc__} {_SENT}" if table == "nuggets" else f"{command.__doc__} {_FORM} {_SENT}"
        return rag.command(help=text, short_help=short)(options(command))

    return decorate


@_filling("nuggets", "Have a model list what answers should say.", "queries", "texts")
@click.option("--qrels", required=True, metavar="QRELS", help="Judgments: nuggets are made from relevant documents.")
@shared("rel", default=1.0, show_default=True, help="The lowest relevant grade.")
@shared("depth", default=10, show_default=True, help="So many documents of a topic.")
@shared("limit", default=30, help="The most nuggets of a topic.")
def nuggets(context: click.Context, **options: Any) -> None:
    """Have a model list the nuggets of each topic of RESPONSES that has none: facts of 1 to 12 words, vital or okay.

    They are made from the documents that QRELS call relevant, of which those that address the judge are left out.
    """
    _filled(context, "nuggets", **options)


@_filling("assignments", "Have a model say how far answers say the nuggets.", "queries")
def assign(context: click.Context, **options: Any) -> None:
    """Have a model say how far each answer says each nugget of its topic: support, partial or not."""
    _filled(context, "assignments", **options)


@_filling("support", "Have a model say how far sentences are supported by what they cite.", "texts")
@click.option("--context", "whole", is_flag=True, help="By all of the context together, not by what they cite.")
def support(context: click.Context, whole: bool, **options: Any) -> None:
    """Have a model say how far each sentence is supported by each document that it cites, or by its context.

    Verdicts are support, partial, not and contradicts.
    """
    _filled(context, "support", **options, by={"context": whole})


@_filling("correctness", "Have a model say how far answers agree with right ones.", "queries")
def correctness(context: click.Context, **options: Any) -> None:
    """Have a model say how far each answer agrees with the references of its topic: support, partial or not."""
    _filled(context, "correctness", **options)


def _filled(
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
    """Ask what was prepared, write the tables that were filled, and say what came of it."""
    from judged.labels.asking import Endpoint
    from judged.pipelines.rag.filling import fill, prepare_table
    from judged.pipelines.rag.responses import write_responses

    folder = into or (responses[0] if len(responses) == 1 and Path(responses[0]).is_dir() else None)
    if folder is None:
        raise InputError("it is not said where the table belongs", fix="give --into FOLDER")
    queries, texts = options.get("queries"), options.get("texts")
    output.keep(*responses, endpoint, queries, texts, options.get("qrels"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    options |= {"store": store or str(Path(folder) / "asked.db"), **(by or {})}
    options["families"] = parse_families(families, "model")
    prepared = prepare_table(table, responses_at(responses, queries, texts), Endpoint.read(endpoint), **options)
    confirm_sending(prepared, yes)
    made = fill(prepared, budget_calls=budget_calls, budget_money=budget_money, progress=progress_printer())
    own = ("nuggets", "evidence") if table == "nuggets" else (table,)
    whole = Path(folder).resolve() != Path(responses[0]).resolve()
    if made.responses is not None:
        write_responses(made.responses, folder, made.responses.tables if whole else own)
    print_ask_result(context, output, made)


@rag.command("calibrate", short_help="Set verdicts of models against people's: may a judge be believed?")
@RESPONSES
@click.option("--people", multiple=True, required=True, metavar="JUDGE", help="A judge who is a person; repeatable.")
@MEASURES
@click.option("--labeled", metavar="FILE", help="Topics that people judged fully, one a line.  [default: all theirs]")
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="A bias that does not matter.",
)
@shared("confidence")
@answer_options()
def calibrate_command(
    responses: tuple[str, ...],
    people: tuple[str, ...],
    measure: tuple[str, ...],
    labeled: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Say of each model that gave verdicts in RESPONSES whether its means may be reported as if people had judged.

    Means of systems are corrected by the topics that people judged, which are taken to be chosen at random and judged
    fully. Of topics that were judged twice it says how much of a mean's variance is the judge's own
    (docs/rag-judges.md).
    """
    from judged.data import files
    from judged.pipelines.rag.judge_error import calibrate

    output.keep(*responses, labeled)
    topics = None if labeled is None else files.text(labeled, labeled).split()
    output(calibrate(responses_at(responses), people, measure or None, labeled=topics, **options))
