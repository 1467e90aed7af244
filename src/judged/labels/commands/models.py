"""The commands `judged labels` for models, sampling, and quality."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.options import FORMATS, shared, with_options
from judged.scoring.default_measures import SAMPLED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.labels.asking.asking import AskResult, Tally
    from judged.labels.asking.preparation import Prepared


asking_options = with_options(
    click.option(
        "--endpoint", required=True, metavar="FILE", help="TOML file: base_url, model, key_variable, prices..."
    ),
    click.option("--budget-calls", type=click.IntRange(0), metavar="N", help="Send at most N requests."),
    click.option("--budget-money", type=click.FloatRange(0), metavar="X", help="Spend at most X, in the prices' unit."),
    click.option("--characters", type=click.IntRange(1), metavar="N", help="Cut documents to N characters."),
    click.option("--yes", is_flag=True, help="Send without asking first."),
)
"""Options of all commands that send requests to a model."""


@click.command("ask", short_help="Ask a model for the grades of STORE's open tasks.")
@click.argument("store")
@click.option("--judge", default="", metavar="NAME", help="The model's name as a judge.  [default: its model's name]")
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of its pairs that it is asked again, with another seed.",
)
@click.option("--examples", metavar="FILE", help="Examples for the model, JSONL: query, document, grade.")
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
    """Ask a model, at an endpoint that speaks OpenAI's chat protocol, for the grades of STORE's open tasks.

    First it says what will be sent, where to, and what that may cost. What is answered is kept at once; the same
    command goes on after a stop. The exit code is 1 if something is left (docs/model-judges.md).
    """
    from judged.data.json_rows import json_lines
    from judged.labels import LabelStore
    from judged.labels.asking import Endpoint, ask, prepare

    output.keep(store, endpoint, examples, options["texts"])
    example_rows = () if examples is None else [row for _, row in json_lines(Path(examples), examples)]
    prepared = prepare(LabelStore.open(store), Endpoint.read(endpoint), examples=example_rows, **options)
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
        raise InputError("nothing was sent", fix="add --yes to send it")
    click.confirm("Send this?", abort=True, err=True)


def progress_printer() -> Callable[[Tally], None] | None:
    """Return a function that shows the progress on one line of the terminal; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def print_progress(tally: Tally) -> None:
        done = tally.answered + tally.cached
        invalid = ", ".join(f"{count} {kind}" for kind, count in tally.invalid.most_common())
        money = f", {tally.budget.money:.4g} spent" if tally.budget.money else ""
        line = f"{done} of {tally.requests}, {tally.budget.calls} calls{money}{f' ({invalid})' if invalid else ''}"
        click.echo(f"\r\033[2K{line}", nl=False, err=True)
        if not tally.left:
            click.echo("", err=True)

    return print_progress


def print_ask_result(context: click.Context, output: OutputOptions, result: AskResult) -> None:
    """Write the result; the exit code is 1 if requests are left."""
    output(result)
    if result.left:
        context.exit(1)


@click.command("questions", short_help="Have a model make queries from documents.")
@click.argument("store")
@click.argument("texts")
@shared("limit", default=50, help="From so many documents.")
@shared("seed")
@shared("queries", help="Queries that people asked, to compare the synthetic ones with.")
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
    """Have a model make a query from each of some documents of TEXTS, check them, and add the good ones to STORE.

    They are marked as synthetic there, each with its document as a task. Nothing is labeled. The exit code is 1 if
    something is left (docs/model-judges.md).
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


@click.command("quality", short_help="Measure agreement, consistency, drift and what they do to systems.")
@click.argument("store")
@shared("some_runs")
@shared("measure", help="The measure that RUNs are scored by.")
@click.option(
    "--gold", metavar="QRELS", help="Judgments that are known to be right.  [default: those of the tasks in STORE]"
)
@shared("scale", "confidence", "attributes")
@click.option("--by", metavar="NAME", help="With --attributes: also agreement by this attribute of topics.")
@answer_options()
@shared(*FORMATS)
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
    """Measure how far the labels in STORE can be trusted; with RUNs, also what the disagreement does to systems.

    STORE may also be a table of labels (CSV, JSON Lines, Parquet) with query_id, doc_id, judge and grade.
    """
    from judged.data.qrels import Qrels
    from judged.labels import Labels, quality

    labels = Labels.of(store)
    gold_qrels = None if gold is None else Qrels.read(gold, format=qrels_format)
    run_list = arguments.runs_at(runs, run_format)
    output.keep(labels.where, *(run.where for run in run_list), gold, attributes)
    output(quality(store, run_list, gold=gold_qrels, slicing=arguments.slicing_by(by, attributes), **options))


@click.command("next", short_help="List the labels that would decide which of two runs is better.")
@click.argument("qrels")
@click.argument("first")
@click.argument("second")
@shared("measure", help="P, CG, DCG, RBP, nDCG or NCG, with a cutoff.")
@shared("limit", type=click.IntRange(0), default=20, metavar="N", help="List at most so many.")
@click.option("--highest", type=float, metavar="GRADE", help="The highest grade of the scale.  [default: the qrels']")
@shared(
    "topics",
    default="qrels",
    show_default=True,
    help="Which topics count: all in the qrels, those in a run, or those in both.",
)
@shared("order")
@answer_options()
@shared(*FORMATS)
def next_command(qrels: str, first: str, second: str, output: OutputOptions, **options: Any) -> None:
    """Say whether the labels in QRELS decide which of the runs FIRST and SECOND is better, and which to give next.

    It is decided if no grades of the unjudged documents among their first could turn it.
    """
    from judged.labels.deciding import decide

    judgments, (first_run, second_run) = output.inputs(qrels, (first, second), options)
    output(decide(judgments, first_run, second_run, **options))


@click.command("estimate", short_help="Estimate scores from judgments of a sample.")
@click.argument("pool")
@click.argument("qrels")
@shared("runs")
@shared("measures", help=f"Measure: repeatable.  [default: {', '.join(SAMPLED_MEASURES)}]")
@shared("confidence")
@answer_options()
@shared(*FORMATS)
def estimate_command(
    pool: str, qrels: str, runs: tuple[str, ...], measure: tuple[str, ...], output: OutputOptions, **options: Any
) -> None:
    """Estimate what judgments of the whole pool would give RUNs, from QRELS of the sample POOL.

    POOL is a CSV file of 'judged pool --sample'. Sums over documents are estimated without bias, R and AP nearly so.
    """
    from judged.labels import Pool, estimate

    judgments, run_list = output.inputs(qrels, runs, options, pool)
    output(estimate(Pool.read(pool), judgments, run_list, measure or SAMPLED_MEASURES, **options))


def parse_families(texts: tuple[str, ...], kind: str = "family") -> dict[str, str]:
    """Parse RUN=FAMILY, or RUN=kind, options."""
    if invalid := next((text for text in texts if "=" not in text), None):
        raise InputError(f"--family must be RUN={kind.upper()}, got {invalid}", fix=f"use --family RUN={kind.upper()}")
    return dict(text.split("=", 1) for text in texts)


@click.command("calibrate", short_help="Set models as judges against people, and say what their labels are worth.")
@click.argument("human", metavar="QRELS|STORE")
@shared("some_runs")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Judgments by a model. Repeat for more.  [default: the models of STORE]",
)
@shared("measure", help="A mean over topics to score runs by.")
@click.option(
    "--labeled", metavar="FILE", help="The topics that people judged fully, one a line.  [default: all of theirs]"
)
@shared("rel", default=1.0, show_default=True, help="The lowest relevant grade.")
@click.option("--highest", type=float, metavar="N", help="The highest grade of the scale.  [default: people's]")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="RUN=FAMILY",
    help="The family of models behind a run: whether a judge favors its own. Repeat for more.",
)
@shared("attributes")
@click.option("--by", metavar="NAME", help="With --attributes: compare grades by this attribute of topics, too.")
@shared("level")
@answer_options()
@shared(*FORMATS)
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
    """Set judgments by models against those by people: how they grade, and what their labels are worth.

    With RUNs, also how systems and topics come out under both. The means of runs are corrected by what people said,
    for topics that people judged fully and that were chosen at random; a model that is of no use gets little weight or
    none.
    """
    from judged.data import files
    from judged.data.qrels import Qrels
    from judged.labels import Labels, calibrate

    run_list = arguments.runs_at(runs, run_format)
    output.keep(human, *(run.where for run in run_list), labeled, attributes)
    options["slicing"] = arguments.slicing_by(by, attributes)
    family_of_run = parse_families(families)
    models = {}
    for text in judges:
        name, path = arguments.split_name(text)
        qrels = Qrels.read(path, format=qrels_format, name=name or None)
        models[qrels.name] = qrels
    topics = None if labeled is None else files.text(labeled, labeled).split()
    people: Any = Qrels.read(human, format=qrels_format) if models else Labels.of(human)
    output(calibrate(people, models or None, run_list, labeled=topics, families=family_of_run, **options))
