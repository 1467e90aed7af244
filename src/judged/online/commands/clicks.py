"""`judged clicks`: click models, position bias, and judgments derived from clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.options import READING, Choice, LazyGroup, shared, with_options
from judged.online.commands import logs

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.group("clicks", cls=LazyGroup)
def clicks() -> None:
    """Estimate relevance from the clicks in LOG, corrected for position bias.

    LOG has the same formats as the LOG of 'judged online': UBI, a click-model log, a TREC session file, or a table with
    a --mapping.
    """


depth = click.option(
    "--depth",
    type=click.IntRange(1, 50),
    default=10,
    show_default=True,
    metavar="N",
    help="Ignore results and clicks below this rank.",
)
topics = click.option(
    "--topics",
    multiple=True,
    callback=logs.once,
    metavar="NAME",
    help="Column of LOG with topic IDs, or file with topic texts that are compared with query texts."
    "  [default: the column topic if LOG has it, otherwise each query text is a topic]",
)
propensities = click.option(
    "--propensities",
    metavar="FILE",
    help="Examination propensities of ranks: CSV or JSON from 'judged clicks propensities -o FILE'.",
)
judging = with_options(
    click.option(
        "--by",
        default="coec",
        show_default=True,
        metavar="SOURCE",
        help="Source of the judgments: coec (clicks over expected clicks), sat (satisfied clicks), purchase"
        " (purchases), or a click model, such as PBM.",
    ),
    propensities,
    click.option(
        "--min-shown",
        type=click.IntRange(1),
        default=10,
        show_default=True,
        help="Minimum number of impressions of a query-document pair.",
    ),
    topics,
    logs.dwell,
    depth,
    logs.where,
)
"""Options for deriving judgments from clicks."""

fitting = with_options(
    logs.by(
        "Column of LOG that identifies queries.  [default: the column topic if LOG has it, otherwise the query text]",
        "COLUMN",
    ),
    logs.pages,
    click.option("--depth", type=int, default=10, show_default=True, help="Ignore results and clicks below this rank."),
    logs.where,
    logs.interval,
    logs.log_options,
    answer_options(),
)
"""Options of click models: selection of pages, and definition of a query."""

estimating = with_options(depth, logs.where, shared("confidence"), logs.log_options, answer_options())
"""Options of estimates by rank."""

by_text = click.option(
    "--by",
    metavar="COLUMN",
    help="Column of LOG that identifies queries.  [default: the column topic if LOG has it, otherwise the query text]",
)
iterations = click.option(
    "--iterations", type=int, default=1000, show_default=True, help="Maximum number of EM steps per fit."
)


@clicks.command("models", short_help="Compare click models by their predictions of held-out clicks.")
@logs.paths
@click.option("-m", "--model", "models", multiple=True, metavar="NAME", help="Click model; repeatable.  [default: all]")
@click.option(
    "--folds",
    type=int,
    default=5,
    show_default=True,
    help="Number of folds for cross-validation. All pages of a user are in one fold.",
)
@iterations
@shared("seed")
@fitting
def models_command(paths: tuple[str, ...], output: OutputOptions, models: tuple[str, ...], **options: Any) -> None:
    """Compare how well click models predict the clicks of users of LOG who were held out from the fit.

    The models RCTR, DCTR, PBM, CM, DCM, CCM, UBM, DBN, and SDBN are compared by the likelihood of held-out clicks
    (docs/click-models.md).
    """
    from judged.online.clicks import compare_models

    with logs.opened_with_progress(paths, output, options) as (log, tell):
        result = compare_models(log, models or None, progress=tell, **options)
    output(result)


@clicks.command("fit", short_help="Fit a click model: attractiveness, examination, satisfaction.")
@logs.paths
@click.option("-m", "--model", default="UBM", show_default=True, metavar="NAME", help="Click model: PBM, UBM, DBN, ...")
@click.option(
    "--shrink",
    type=Choice("judged.online.clicks.fitting:Shrink"),
    default="empirical",
    show_default=True,
    help="empirical: shrink the estimates of pairs with few impressions toward the mean of all pairs (empirical"
    " Bayes); none: no shrinkage.",
)
@iterations
@shared(
    "draws",
    default=0,
    help="Number of bootstrap samples for standard errors. If the number is 0, standard errors come"
    " from the observed information.",
)
@shared("seed")
@fitting
def fit_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Fit a click model to LOG: the attractiveness of each document, and the examination of ranks.

    The table 'attractiveness' has a row for each pair of query and document. To write
    this table, use --format csv (docs/click-models.md).
    """
    from judged.online.clicks import fit_model

    with logs.opened_with_progress(paths, output, options) as (log, tell):
        result = fit_model(log, progress=tell, **options)
    output(result)


@clicks.command("propensities", short_help="Estimate the examination propensity of each rank, without a click model.")
@logs.paths
@click.option(
    "--stratum",
    metavar="COLUMN",
    help="Estimate separate propensities for each value of this column, such as device or layout.",
)
@click.option(
    "--randomized/--all",
    "randomized",
    default=None,
    help="Use only results with a randomized rank, or all results."
    "  [default: --randomized if the log has propensities, otherwise --all]",
)
@by_text
@estimating
def propensities_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Estimate examination propensities relative to rank 1, from results that were shown at several ranks.

    Save the output as CSV or JSON (-o FILE) for the option --propensities of other commands. Two ranks can be compared
    only if the same results were clicked at both ranks, directly or through other ranks. If two ranks cannot be
    compared, the command fails. Fix: use a smaller --depth, or a log in which some pages have a random order.
    """
    from judged.online.clicks import propensities

    with logs.opened(paths, output, options) as log:
        result = propensities(log, **options)
    output(result)


@clicks.command("coec", short_help="Clicks over expected clicks (COEC), by query and document.")
@logs.paths
@click.option(
    "--counting",
    type=Choice("judged.online.clicks.clicks_over_expected:Counting"),
    default="clicks",
    show_default=True,
    help="Events that count as clicks.",
)
@logs.dwell
@propensities
@by_text
@click.option(
    "--stratum", metavar="COLUMN", help="Compute separate click-through rates by rank for each value of this column."
)
@estimating
def coec_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Compare the clicks of each pair of query and document with the clicks expected at its ranks."""
    from judged.online.clicks import coec

    output.keep(options["propensities"])
    with logs.opened(paths, output, options) as log:
        result = coec(log, **options)
    output(result)


@clicks.command("ips", short_help="Score runs with logged clicks, weighted by inverse propensities (IPS).")
@click.argument("path", metavar="LOG")
@shared("runs")
@click.option(
    "--propensities",
    metavar="FILE",
    help="Examination propensities: CSV or JSON with rank and value.  [default: estimated from LOG]",
)
@shared("measures", help="DCG@k, P@k or RBP.  [default: DCG@10, P@10]")
@click.option(
    "--clip",
    type=click.FloatRange(1),
    metavar="W",
    help="Maximum weight of a click: larger weights are set to W.  [default: no clipping]",
)
@topics
@click.option("--stratum", metavar="COLUMN", help="Use separate propensities for each value of this column.")
@estimating
@shared("run_format")
def ips_command(
    path: str,
    runs: tuple[str, ...],
    propensities: str | None,
    measure: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score RUNs with the clicks in LOG. Each click is weighted by the inverse examination propensity of its rank.

    The first RUN is the baseline. Documents that were never shown count as documents without clicks. Intervals include
    the error of propensities that were estimated from LOG; other propensities are treated as known.
    """
    from judged.online.clicks import ips

    run_list = arguments.runs_at(runs, options.pop("run_format"))
    output.keep(propensities, options["topics"], *(run.where for run in run_list))
    measure_options = {"measures": measure} if measure else {}
    with logs.opened((path,), output, options) as log:
        result = ips(log, run_list, propensities, **measure_options, **options)
    output(result)


@clicks.command("off-policy", short_help="Estimate the clicks of another ranker from logged propensities.")
@click.argument("path", metavar="LOG")
@click.argument("run", metavar="RUN")
@topics
@depth
@click.option(
    "--clip",
    type=float,
    default=10.0,
    show_default=True,
    metavar="W",
    help="Maximum weight in the estimate 'clipped': larger weights are set to W.",
)
@click.option(
    "--independent-ranks",
    is_flag=True,
    help="Declare that RUN, a table of probabilities, fills each rank independently of the other ranks.",
)
@shared("confidence")
@logs.log_options
@answer_options()
def off_policy_command(path: str, run: str, output: OutputOptions, **options: Any) -> None:
    """Estimate the clicks per page of RUN from a LOG with the propensity of each result.

    RUN is a run or, if the ranker does not depend on the query, a table with rank, doc_id, and probability. LOG or its
    mapping must declare the kind of the propensities (docs/off-policy.md). Exit code 0: an estimator that uses
    propensities has an interval; 1: no such estimator has an interval; 2: invalid input.
    """
    from judged.online.clicks import off_policy

    output.keep(run, options["topics"])
    with logs.opened((path,), output, options) as log:
        result = off_policy(log, run, **options)
    output(result)
    if not result.overlaps:
        raise SystemExit(1)


@clicks.command("judge", short_help="Convert clicks to graded judgments with standard errors.")
@logs.paths
@judging
@click.option(
    "--grading",
    type=Choice("judged.online.clicks.judgments:Grading"),
    help="Grade of a pair. value: the estimate; lower: an integer that depends on the lower confidence limit; human:"
    " the predicted human grade.  [default: human with --gold, otherwise value]",
)
@click.option("--gold", metavar="QRELS", help="Human judgments of some query-document pairs, for --grading human.")
@shared("confidence")
@logs.log_options
@answer_options(trec=".txt")
@shared("qrels_format")
def judge_command(
    paths: tuple[str, ...], gold: str | None, qrels_format: str | None, output: OutputOptions, **options: Any
) -> None:
    """Convert the clicks in LOG to graded judgments.

    Every command that needs judgments reads the CSV (-o FILE.csv). 'judged labels import' reads this CSV as labels, and
    'judged clicks evaluate' also reads the standard errors. TREC qrels (-o FILE.txt) have no standard errors.
    """
    from judged.data.qrels import Qrels, write_origin
    from judged.online.clicks import judge_clicks

    output.keep(gold, options["propensities"], options["topics"])
    people = None if gold is None else Qrels.read(gold, format=qrels_format)
    with logs.opened(paths, output, options) as log:
        result = judge_clicks(log, gold=people, **options)
    output(result)
    if output.out is not None and output.format in {"trec", "csv"}:
        write_origin(result.qrels.origin, output.out)


@clicks.command("evaluate", short_help="Score runs with uncertain judgments; intervals include the judgment error.")
@click.argument("qrels", metavar="JUDGMENTS")
@shared("runs", "measures", "confidence")
@shared("draws", type=click.IntRange(100), default=200, help="Number of simulations of the errors in the judgments.")
@shared("seed")
@answer_options()
@shared("run_format")
def evaluate_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    run_format: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score RUNs with uncertain JUDGMENTS: a table with query_id, doc_id, grade, value, and se.

    To estimate JUDGMENTS from clicks, use 'judged clicks judge LOG -o JUDGMENTS.csv'. Intervals include the variance
    of topics and of judgments, and the result shows the share of each source. Means are corrected for noise, because
    noisy grades make the ideal ranking score too high. The first RUN is the baseline.
    """
    from judged.online.clicks import evaluate_uncertain

    run_list = arguments.runs_at(runs, run_format)
    output.keep(qrels, *(run.where for run in run_list))
    output(evaluate_uncertain(qrels, run_list, measure or None, **options))


@clicks.command("against", short_help="Compare click judgments with human judgments.")
@click.argument("path", metavar="LOG")
@click.argument("gold", metavar="QRELS")
@shared("some_runs")
@judging
@shared("measure", help="Measure for the scores of RUNs.")
@shared("attributes")
@click.option(
    "--slice",
    "by_attribute",
    metavar="NAME",
    help="With --attributes: also show the agreement by this attribute of topics.",
)
@shared("confidence")
@logs.log_options
@answer_options()
@shared(*(name for name in READING if name != "columns"))
def against_command(
    path: str,
    gold: str,
    runs: tuple[str, ...],
    measure: str,
    attributes: str | None,
    by_attribute: str | None,
    qrels_format: str | None,
    run_format: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Compare judgments from the clicks in LOG with the human judgments in QRELS.

    The result shows how often click judgments and human judgments order two documents the same way, compared with raw
    click-through rates, and whether position bias remains. With RUNs, the command also compares the orders of systems
    by click judgments and by human judgments, and shows how many clicks replace one human label.
    """
    from judged.data.qrels import Qrels
    from judged.online.clicks import against_people, judge_clicks

    slicing = arguments.slicing_by(by_attribute, attributes, "--slice")
    run_list = arguments.runs_at(runs, run_format)
    output.keep(gold, options["propensities"], options["topics"], attributes, *(run.where for run in run_list))
    people = Qrels.read(gold, format=qrels_format)
    with logs.opened((path,), output, options) as log:
        click_judgments = judge_clicks(log, **options)
    output(against_people(click_judgments, people, run_list, measure, slicing=slicing, level=options["level"]))
