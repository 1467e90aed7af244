"""The commands `judged labels` for models, sampling, and quality."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.options import READING, shared, with_options
from judged.labels.commands.labels import warn_about_similar_names
from judged.results.decimals import counted
from judged.scoring.default_measures import SAMPLED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.labels.asking.asking import AskResult, Tally
    from judged.labels.asking.preparation import Prepared


asking_options = with_options(
    click.option(
        "--endpoint",
        required=True,
        metavar="FILE",
        help="TOML file that describes the endpoint: `base_url`, `model`, `key_variable`, prices (docs/endpoints.md).",
    ),
    click.option("--budget-calls", type=click.IntRange(0), metavar="N", help="Maximum number of requests."),
    click.option(
        "--budget-money",
        type=click.FloatRange(0),
        metavar="X",
        help="Maximum cost, in the currency of the endpoint's prices.",
    ),
    click.option(
        "--characters",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of characters of each document that are sent.",
    ),
    click.option("--yes", is_flag=True, help="Send without confirmation."),
)
"""Options of all commands that send requests to a model."""


@click.command("ask", short_help="Have a language model grade the open tasks of a judge.")
@click.argument("store")
@click.option(
    "--judge",
    default="",
    metavar="NAME",
    help="Name of the judge under which STORE records the grades.  [default: name of the model in the endpoint file]",
)
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of pairs of topic and document that the model grades a second time, with another seed.",
)
@click.option(
    "--examples",
    metavar="FILE",
    help="JSON Lines file of few-shot examples, each with `query`, `document`, and `grade`.",
)
@shared("texts")
@asking_options
@answer_options()
@click.pass_context
def ask_command(
    context: click.Context,
    store: str,
    endpoint: str,
    examples: str | None,
    output: OutputOptions,
    budget_calls: int | None,
    budget_money: float | None,
    yes: bool,
    **options: Any,
) -> None:
    """Grade the open tasks of STORE with a language model, at an endpoint with OpenAI's chat protocol.

    Before sending, the command shows the content, destination, and maximum cost of the requests. Each reply is stored
    at once. After a stop, run the same command again. The exit code is 1 while requests remain (docs/model-judges.md).
    """
    from judged.data.json_rows import json_lines
    from judged.labels import LabelStore
    from judged.labels.asking import Endpoint, ask, prepare

    output.keep(store, endpoint, examples, options["texts"])
    example_rows = () if examples is None else [row for _, row in json_lines(Path(examples), examples)]
    label_store = LabelStore.open(store)
    if options["judge"]:
        warn_about_similar_names([options["judge"]], label_store.judge_names())
    prepared = prepare(label_store, Endpoint.read(endpoint), examples=example_rows, **options)
    confirm_sending(prepared, yes)
    result = ask(prepared, budget_calls=budget_calls, budget_money=budget_money, progress=progress_printer())
    print_ask_result(context, output, result)


def confirm_sending(prepared: Prepared, yes: bool) -> None:
    """Show the requests and ask for confirmation; without requests or with --yes, only show them."""
    if yes or not prepared.calls:
        click.echo("\n".join(prepared.sentences), err=True)
        return
    click.echo(prepared.text(), err=True)
    # Without a terminal nobody can confirm, so --yes is required.
    if not sys.stdin.isatty():
        raise InputError(
            "no request was sent, because you did not confirm",
            fix="add --yes to send the requests without confirmation",
        )
    click.confirm("Send these requests?", abort=True, err=True)


def progress_printer() -> Callable[[Tally], None] | None:
    """Return a function that shows the progress on one line of the terminal; None without a terminal."""
    if not arguments.can_redraw():
        return None

    def print_progress(tally: Tally) -> None:
        done = tally.answered + tally.cached
        invalid = ", ".join(f"{count} {kind}" for kind, count in tally.invalid.most_common())
        money = f", {tally.budget.money:.4g} spent" if tally.budget.money else ""
        counts = f"{done} of {counted(tally.requests, 'request')}, {counted(tally.budget.calls, 'call')}"
        line = f"{counts}{money}{f' ({invalid})' if invalid else ''}"
        click.echo(f"\r\033[2K{line}", nl=False, err=True)
        if not tally.remaining:
            click.echo("", err=True)

    return print_progress


def print_ask_result(context: click.Context, output: OutputOptions, result: AskResult) -> None:
    """Write the result; the exit code is 1 if requests are left."""
    output(result)
    if result.remaining:
        context.exit(1)


@click.command("questions", short_help="Generate queries from documents with a language model.")
@click.argument("store")
@click.argument("texts")
@shared("limit", default=50, help="Number of documents to sample.")
@shared("seed")
@shared("queries", help="Real user queries, for comparison with the synthetic queries.")
@asking_options
@answer_options()
@click.pass_context
def questions_command(
    context: click.Context,
    store: str,
    texts: str,
    queries: str | None,
    endpoint: str,
    output: OutputOptions,
    budget_calls: int | None,
    budget_money: float | None,
    yes: bool,
    **options: Any,
) -> None:
    """Generate a query for each sampled document of TEXTS with a language model, and add valid queries to STORE.

    The queries are marked as synthetic. Each query has one judging task, for its document, and no label yet. The exit
    code is 1 while requests remain (docs/model-judges.md).
    """
    from judged.labels import LabelStore
    from judged.labels.asking import Endpoint, ask_questions, prepare_questions

    output.keep(store, endpoint, texts, queries)
    label_store = LabelStore.open(store)
    prepared = prepare_questions(label_store, Endpoint.read(endpoint), texts, **options)
    confirm_sending(prepared, yes)
    questions = ask_questions(
        prepared, queries=queries, budget_calls=budget_calls, budget_money=budget_money, progress=progress_printer()
    )
    questions.add_to(label_store)
    print_ask_result(context, output, questions)


@click.command(
    "quality", short_help="Measure the quality of labels: agreement and consistency of judges, and drift over time."
)
@click.argument("store")
@shared("some_runs")
@shared("measure", help="Measure that RUNs are scored by, to compare the results under different judges.")
@click.option(
    "--gold",
    metavar="QRELS",
    help="Judgments that are known to be correct.  [default: gold grades of the tasks in STORE]",
)
@shared("scale", "confidence", "attributes")
@click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")
@answer_options()
@shared(*READING)
def quality_command(
    store: str,
    runs: tuple[str, ...],
    gold: str | None,
    attributes: str | None,
    by: str | None,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Measure the quality of the labels in STORE: agreement, self-consistency, accuracy, and drift of judges.

    With RUNs, also measure the effect of disagreement on system scores. STORE is a store, or a table of labels (CSV,
    JSON Lines, Parquet) with the columns query_id, doc_id, judge and grade.
    """
    from judged.data.qrels import Qrels
    from judged.labels import Labels, quality

    labels = Labels.of(store)
    gold_qrels = None if gold is None else Qrels.read(gold, format=qrels_format)
    run_list = arguments.runs_at(runs, run_format)
    output.keep(labels.where, *(run.where for run in run_list), gold, attributes)
    output(quality(store, run_list, gold=gold_qrels, slicing=arguments.slicing_by(by, attributes), **options))


@click.command("next", short_help="List documents to label next for a comparison of two runs.")
@click.argument("qrels")
@click.argument("first")
@click.argument("second")
@shared("measure", help="Measure with a cutoff: P, CG, DCG, RBP, nDCG or NCG.")
@shared("limit", type=click.IntRange(0), default=20, metavar="N", help="Maximum number of documents in the list.")
@click.option(
    "--highest", type=float, metavar="GRADE", help="Highest grade of the scale.  [default: highest grade in the qrels]"
)
@shared(
    "topics",
    default="qrels",
    show_default=True,
    help="Topics in the mean. `qrels`: all topics in the qrels; `run`: topics in a run; `both`: topics in the qrels and"
    " in a run.",
)
@shared("order")
@answer_options()
@shared(*READING)
def next_command(qrels: str, first: str, second: str, output: OutputOptions, **options: Any) -> None:
    """Check whether QRELS decide which of the runs FIRST and SECOND is better, and list documents to label next.

    The comparison is decided if no possible grades of the unjudged top documents could change the winner.
    """
    from judged.labels.deciding import decide

    judgments, (first_run, second_run) = output.inputs(qrels, (first, second), options)
    output(decide(judgments, first_run, second_run, **options))


@click.command("estimate", short_help="Estimate the scores of runs from judgments of a sample of the pool.")
@click.argument("pool")
@click.argument("qrels")
@shared("runs")
@shared("measures", help=f"Measure. Repeat for more measures.  [default: {', '.join(SAMPLED_MEASURES)}]")
@shared("confidence")
@answer_options()
@shared(*READING)
def estimate_command(
    pool: str, qrels: str, runs: tuple[str, ...], measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Estimate the scores that RUNs would have if the whole pool were judged, from judgments of a sample.

    QRELS has the judgments. POOL is the sample, a CSV file of 'judged pool --sample'. Estimates of measures
    that add up the contributions of single documents, such as P@10 and DCG@10, are unbiased. Estimates of recall (R@k)
    and AP are biased in small samples.
    """
    from judged.labels import Pool, estimate

    judgments, run_list = output.inputs(qrels, runs, options, pool)
    output(estimate(Pool.read(pool), judgments, run_list, measure or SAMPLED_MEASURES, **options))


def parse_families(texts: tuple[str, ...], kind: str = "family") -> dict[str, str]:
    """Parse RUN=FAMILY, or RUN=kind, options."""
    if invalid := next((text for text in texts if "=" not in text), None):
        raise InputError(
            f"`--family` must be RUN={kind.upper()}, got {invalid}", fix=f"use --family RUN={kind.upper()}"
        )
    return dict(text.split("=", 1) for text in texts)


@click.command("calibrate", short_help="Compare labels of language models with human labels.")
@click.argument("human", metavar="QRELS|STORE")
@shared("some_runs")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Judgments of a model. Repeat for more models.  [default: all models in STORE]",
)
@shared("measure", help="Measure that scores the runs. The measure must be a mean over topics.")
@click.option(
    "--labeled",
    metavar="FILE",
    help="File with one topic ID per line: topics for which people judged all documents.  [default: all topics with"
    " human labels]",
)
@shared("rel", default=1.0, show_default=True, help="Lowest relevant grade.")
@click.option("--highest", type=float, metavar="N", help="Highest grade of the scale.  [default: highest human grade]")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="RUN=FAMILY",
    help="Family of the model that a run uses, to test whether a judge favors its own family. Repeat for more runs.",
)
@shared("attributes")
@click.option("--by", metavar="NAME", help="With --attributes: topic attribute whose values define slices.")
@shared("level")
@answer_options()
@shared(*READING)
def calibrate_command(
    human: str,
    judges: tuple[str, ...],
    runs: tuple[str, ...],
    labeled: str | None,
    families: tuple[str, ...],
    attributes: str | None,
    by: str | None,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Compare labels of language models with human labels.

    With RUNs, also compare the scores of systems under model and human labels, and use the human labels to correct the
    mean scores under model labels. The correction assumes that the human-judged topics are a random sample and
    completely judged. A model that does not predict human scores gets a weight near 0.
    """
    from judged.data import files
    from judged.data.qrels import Qrels
    from judged.data.run import find_run
    from judged.labels import Labels, calibrate

    run_list = arguments.runs_at(runs, run_format)
    output.keep(human, *(run.where for run in run_list), labeled, attributes)
    options["slicing"] = arguments.slicing_by(by, attributes)
    family_of_run = {find_run(name, run_list).name: family for name, family in parse_families(families).items()}
    models = {qrels.name: qrels for qrels in (Qrels.read(path, format=qrels_format) for path in judges)}
    topics = None if labeled is None else files.text(labeled, labeled).split()
    people: Any = Qrels.read(human, format=qrels_format) if models else Labels.of(human)
    output(calibrate(people, models or None, run_list, labeled=topics, families=family_of_run, **options))
