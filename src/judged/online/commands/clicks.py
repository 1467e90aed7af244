"""`judged clicks`: click models, position bias, and judgments derived from clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.options import FORMATS, Choice, LazyGroup, shared, with_options
from judged.online.commands import logs

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.group("clicks", cls=LazyGroup)
def clicks() -> None:
    """Learn from the clicks of LOG what users find attractive, apart from where it stood.

    LOG is read as by 'judged online': UBI, a click-model log, a TREC session file, or a table with a --mapping.
    """


depth = click.option(
    "--depth", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="Ranks that are looked at."
)
topics = click.option(
    "--topics",
    multiple=True,
    callback=logs.once,
    metavar="NAME",
    help="How pages find topics: a column of the log, or a file of topics' texts."
    "  [default: the column topic, or texts]",
)
propensities = click.option(
    "--propensities",
    metavar="FILE",
    help="How often ranks are looked at, as 'judged clicks propensities -o FILE' wrote it (CSV or JSON).",
)
judging = with_options(
    click.option(
        "--by",
        default="coec",
        show_default=True,
        metavar="SOURCE",
        help="coec: clicks over expected clicks; sat: satisfied ones; purchase; or a click model, such as PBM.",
    ),
    propensities,
    click.option(
        "--min-shown", type=click.IntRange(1), default=10, show_default=True, help="Leave out pairs shown less often."
    ),
    topics,
    logs.dwell,
    depth,
    logs.where,
)
"""Options for deriving judgments from clicks."""

fitting = with_options(
    logs.by(
        "What tells queries apart, a column of the log.  [default: topic where there is one, else the text]", "COLUMN"
    ),
    logs.pages,
    click.option("--depth", type=int, default=10, show_default=True, help="Ranks below this are not looked at."),
    logs.where,
    logs.interval,
    logs.log_options,
    answer_options(),
)
"""Options of click models: selection of pages, and definition of a query."""

estimating = with_options(depth, logs.where, shared("confidence"), logs.log_options, answer_options())
"""Options of estimates by rank."""

by_text = click.option(
    "--by", metavar="COLUMN", help="What tells queries apart.  [default: the column topic, or texts]"
)
iterations = click.option(
    "--iterations", type=int, default=1000, show_default=True, help="At most so many steps a fit."
)


@clicks.command("models", short_help="Which click model predicts a LOG, and is worth its parameters.")
@logs.paths
@click.option("-m", "--model", "models", multiple=True, metavar="NAME", help="A click model; repeat.  [default: all]")
@click.option("--folds", type=int, default=5, show_default=True, help="Parts of the users, each predicted by the rest.")
@iterations
@shared("seed")
@fitting
def models_command(paths: tuple[str, ...], output: OutputOptions, models: tuple[str, ...], **options: Any) -> None:
    """Fit click models to some users of LOG, predict what the others click, and compare (docs/click-models.md).

    RCTR, DCTR, PBM, CM, DCM, CCM, UBM, DBN and SDBN are compared by the likelihood of held-out clicks.
    """
    from judged.online.clicks import compare_models

    with logs.opened_with_progress(paths, output, options) as (log, tell):
        result = compare_models(log, models or None, progress=tell, **options)
    output(result)


@clicks.command("fit", short_help="Fit a click model to a LOG: attractiveness, examination, satisfaction.")
@logs.paths
@click.option("-m", "--model", default="UBM", show_default=True, metavar="NAME", help="PBM, UBM, DBN, ...")
@click.option(
    "--shrink",
    type=Choice("judged.online.clicks.fitting:Shrink"),
    default="empirical",
    show_default=True,
    help="Draw rare pairs towards the others, or let each stand for itself.",
)
@iterations
@shared("draws", default=0, help="Standard errors by a bootstrap; 0: by information.")
@shared("seed")
@fitting
def fit_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Fit a click model to LOG: what attracts clicks at each query, and how far users look.

    The table 'attractiveness' has a row for each query and document: --format csv writes it (docs/click-models.md).
    """
    from judged.online.clicks import fit_model

    with logs.opened_with_progress(paths, output, options) as (log, tell):
        result = fit_model(log, progress=tell, **options)
    output(result)


@clicks.command("propensities", short_help="How often each rank is looked at, without a model of clicks.")
@logs.paths
@click.option("--stratum", metavar="COLUMN", help="Estimate each value of this column apart: device, layout, ...")
@click.option(
    "--randomized/--all",
    "randomized",
    default=None,
    help="Count only results that were put where they are by chance, or all.  [default: the former, where logged]",
)
@by_text
@estimating
def propensities_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Estimate how often users look at each rank, against rank 1, from results that stood at several ranks.

    As CSV or JSON it is a file for --propensities. Ranks that no result joins are refused: then swap results on a share
    of pages, or look at fewer ranks.
    """
    from judged.online.clicks import propensities

    with logs.opened(paths, output, options) as log:
        result = propensities(log, **options)
    output(result)


@clicks.command("coec", short_help="Clicks over those that ranks let expect, by query and document.")
@logs.paths
@click.option(
    "--counting",
    type=Choice("judged.online.clicks.clicks_over_expected:Counting"),
    default="clicks",
    show_default=True,
    help="What counts as a click.",
)
@logs.dwell
@propensities
@by_text
@click.option("--stratum", metavar="COLUMN", help="Expect clicks by the ranks of each value of this column.")
@estimating
def coec_command(paths: tuple[str, ...], output: OutputOptions, **options: Any) -> None:
    """Count clicks of each query and document against what the ranks that it was shown at let expect."""
    from judged.online.clicks import coec

    output.keep(options["propensities"])
    with logs.opened(paths, output, options) as log:
        result = coec(log, **options)
    output(result)


@clicks.command("ips", short_help="What logged clicks say of runs that users did not see.")
@click.argument("path", metavar="LOG")
@shared("runs")
@click.option(
    "--propensities",
    metavar="FILE",
    help="How often ranks are looked at: CSV or JSON with rank and value.  [default: estimated from LOG]",
)
@shared("measures", help="DCG@k, P@k or RBP.  [default: DCG@10, P@10]")
@click.option(
    "--clip", type=click.FloatRange(1), metavar="W", help="The largest weight of a click.  [default: none is cut]"
)
@topics
@click.option("--stratum", metavar="COLUMN", help="The column whose values the propensities are of.")
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
    """Score RUNs by the clicks of LOG, each weighted by the inverse of how often its rank is looked at.

    The first RUN is what the others are compared with. What was never shown has no clicks. Intervals allow for the
    error of propensities that are estimated from LOG, and take others as known.
    """
    from judged.online.clicks import ips

    run_list = arguments.runs_at(runs, options.pop("run_format"))
    output.keep(propensities, options["topics"], *(run.where for run in run_list))
    measure_options = {"measures": measure} if measure else {}
    with logs.opened((path,), output, options) as log:
        result = ips(log, run_list, propensities, **measure_options, **options)
    output(result)


@clicks.command("off-policy", short_help="What another ranker would have got, by how likely each result was shown.")
@click.argument("path", metavar="LOG")
@click.argument("run", metavar="RUN")
@topics
@depth
@click.option("--clip", type=float, default=10.0, show_default=True, metavar="W", help="Of the clipped estimate.")
@click.option("--independent-ranks", is_flag=True, help="The table of RUN fills each rank independently of the others.")
@shared("confidence")
@logs.log_options
@answer_options()
def off_policy_command(path: str, run: str, output: OutputOptions, **options: Any) -> None:
    """Estimate the clicks a page that RUN would have got, from a LOG that knows how likely each result was shown.

    RUN is a run, or a table with rank, doc_id and probability, if the ranker does not depend on the query. LOG, or its
    mapping, declares what the logged probabilities are: see docs/off-policy.md. Exit code 0: some estimator gives an
    interval; 1: only the direct one, or none; 2: wrong input.
    """
    from judged.online.clicks import off_policy

    output.keep(run, options["topics"])
    with logs.opened((path,), output, options) as log:
        result = off_policy(log, run, **options)
    output(result)
    if not result.overlaps:
        raise SystemExit(1)


@clicks.command("judge", short_help="Make judgments of clicks, with how sure they are.")
@logs.paths
@judging
@click.option(
    "--grading",
    type=Choice("judged.online.clicks.judgments:Grading"),
    help="Grades are values; or whole, by the lower end of their interval; or what people would give."
    "  [default: people with --gold, or else value]",
)
@click.option("--gold", metavar="QRELS", help="Judgments by people of some of the pairs.")
@shared("confidence")
@logs.log_options
@answer_options(trec=".txt")
@shared("qrels_format")
def judge_command(
    paths: tuple[str, ...], gold: str | None, qrels_format: str | None, output: OutputOptions, **options: Any
) -> None:
    """Make judgments of the clicks of LOG.

    As CSV (-o FILE.csv) they are read as judgments by every command, with what 'judged clicks evaluate' needs, and as
    labels by 'judged labels import'; as qrels of TREC (-o FILE.txt) they lose how sure they are.
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


@clicks.command("evaluate", short_help="Score runs by uncertain judgments, and allow for that.")
@click.argument("qrels", metavar="JUDGMENTS")
@shared("runs", "measures", "confidence")
@shared("draws", type=click.IntRange(100), default=200, help="How often noise is drawn.")
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
    """Score RUNs by JUDGMENTS that are uncertain: a table with query_id, doc_id, grade, value and se.

    'judged clicks judge LOG -o JUDGMENTS.csv' writes one. Intervals hold what topics and what judgments add, and it is
    said how much each does; means are corrected for noise, which makes an ideal ranking look better than it is. The
    first RUN is what the others are compared with.
    """
    from judged.online.clicks import evaluate_uncertain

    run_list = arguments.runs_at(runs, run_format)
    output.keep(qrels, *(run.where for run in run_list))
    output(evaluate_uncertain(qrels, run_list, measure or None, **options))


@clicks.command("against", short_help="Set judgments click_judgments of clicks against people's.")
@click.argument("path", metavar="LOG")
@click.argument("gold", metavar="QRELS")
@shared("some_runs")
@judging
@shared("measure", help="A mean over topics to score runs by.")
@shared("attributes")
@click.option(
    "--slice", "by_attribute", metavar="NAME", help="With --attributes: compare by this attribute of topics, too."
)
@shared("confidence")
@logs.log_options
@answer_options()
@shared(*FORMATS)
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
    """Set judgments that are click_judgments of the clicks of LOG against those of people in QRELS.

    Whether both order documents alike, more so than raw clicks do; whether the logged rank is still in them; and with
    RUNs, whether both order systems alike and how many clicks are worth one label.
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
