"""Commands that diagnose runs: stages, matrix, disagree, needs, diff, review, tradeoff."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, filter_by_where, print_warnings, slice_options
from judged.interface.options import FORMATS, POLICIES, READING, TOPIC_OPTIONS, Choice, shared
from judged.results.decimals import counted
from judged.scoring.default_measures import DEFAULT_MEASURE, RANKING_AND_CANDIDATES

if TYPE_CHECKING:
    from pathlib import Path

    from judged.interface.arguments import OutputOptions


@click.command("stages")
@click.argument("qrels")
@click.argument("run")
@click.argument("final", required=False)
@shared("measure", help="Measure of the final ranking.")
@shared("cutoff", default=100, help="Number of candidates per topic. The candidates are the top documents of RUN.")
@shared("rel")
@click.option("--recall", metavar="NAME", help="Measure of the candidates.  [default: recall (R) at --cutoff]")
@click.option(
    "--baseline",
    metavar="RUN",
    help="Run with the candidates of another system, for a comparison of the two systems. Without --baseline-final,"
    " this run is also the final ranking of the other system.",
)
@click.option("--baseline-final", metavar="RUN", help="Run with the final ranking of the system of --baseline.")
@click.option(
    "--min-loss",
    type=float,
    default=0.1,
    show_default=True,
    help="Ignore a candidate loss or ranking loss below this share of the topic's best possible score.",
)
@click.option(
    "--min-share",
    type=float,
    default=0.15,
    show_default=True,
    help="Ignore a candidate loss or ranking loss below this share of the topic's total loss.",
)
@shared("fdr", "alpha", "resamples", "seed")
@shared("per_topic", help="Show the results of each topic, largest loss first.")
@shared("topic", help="Show the losses of this topic, and the stage at which each relevant document was lost.")
@slice_options
@shared(
    "topics",
    type=Choice(("qrels", "both")),
    default="qrels",
    show_default=True,
    help="Topics that are averaged. qrels: all topics in the qrels; both: only topics that are also in every run.",
)
@shared("order")
@answer_options()
@shared(*READING)
def stages_command(
    qrels: str,
    run: str,
    final: str | None,
    baseline: str | None,
    baseline_final: str | None,
    per_topic: bool,
    topic: str | None,
    slicing_options: SliceOptions,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Split each topic's loss into relevant documents missing from the candidates and bad ranking of the candidates.

    The candidates are the first documents of RUN. FINAL is the ranking of the candidates, for example by a reranker.
    Without FINAL, RUN is also the final ranking. With --baseline, the difference between two systems is split in the
    same way and tested.
    """
    from judged.data.qrels import Qrels
    from judged.data.topics import Topics
    from judged.diagnosis.stages import stages
    from judged.scoring.evaluation.inputs import measures_of

    if baseline_final and not baseline:
        raise InputError(
            "--baseline-final requires --baseline", fix="add --baseline RUN with the candidates of the other system"
        )
    if per_topic and topic is not None:
        raise InputError("--per-topic and --topic cannot be combined", fix="use only one of the two options")
    options["measure"] = measures_of(options["measure"], rel=(rel := options.pop("rel")))
    if rel is not None:
        options["recall"] = measures_of(options["recall"] or f"R@{options['cutoff']}", rel=rel)
    runs = {path: arguments.runs_at([path], run_format) for path in (run, final, baseline, baseline_final) if path}
    output.keep(qrels, *slicing_options.paths, *(run_list[0].where for run_list in runs.values()))
    outcome_run = runs[baseline or run][0]
    judgments, slicing = slicing_options.apply(Qrels.read(qrels, format=qrels_format), outcome_run)
    baseline_runs: Any = baseline and runs[baseline]
    baseline_runs = (baseline_runs, runs[baseline_final]) if baseline_final else baseline_runs
    answer = stages(judgments, runs[run], final and runs[final], baseline=baseline_runs, slicing=slicing, **options)
    notes = [str(note) for note in slicing_options.notes(outcome_run)]
    if topic is not None:
        query = Topics.of(slicing_options.queries).text(topic) if slicing_options.queries else ""
        output(answer.topic(topic, query), notes=notes)
        return
    topic_table = "topics" if per_topic else None
    table = "topics" if answer.slicing is None else topic_table
    output(answer, unfold=(topic_table or "",), table=table, chart=topic_table, notes=notes)


@click.command("matrix")
@shared("qrels", "runs")
@click.option(
    "-x",
    default=RANKING_AND_CANDIDATES[1],
    show_default=True,
    metavar="NAME",
    help="Measure of the candidates, on the horizontal axis.",
)
@click.option(
    "-y",
    default=RANKING_AND_CANDIDATES[0],
    show_default=True,
    metavar="NAME",
    help="Measure of the final ranking, on the vertical axis.",
)
@click.option(
    "--baseline",
    metavar="RUN",
    help="Baseline run, whose means are the thresholds.  [default: the first run]",
)
@click.option("--cuts", metavar="X,Y", help="Thresholds of the two measures, instead of the means of the baseline.")
@shared("level", "fdr", "resamples", "seed", "per_topic")
@click.option("--per-run", is_flag=True, help="Show all results of each run, also for more than 4 runs.")
@slice_options
@shared("class_measures", *POLICIES)
@answer_options()
@shared(*READING)
def matrix_command(
    qrels: str,
    runs: tuple[str, ...],
    cuts: str | None,
    per_topic: bool,
    per_run: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Classify RUNs, slices, and topics by a measure of the candidates (-x) and a measure of the final ranking (-y).

    If only the measure of -y is low, relevant documents were returned but ranked too low. If only the measure of -x is
    low, relevant documents were not returned, or were returned but not judged. A slice is low if its whole confidence
    interval is below the threshold. With --class-measures, each class has its own measure instead of -y, and its own
    thresholds.
    """
    from judged.diagnosis.matrix.matrix import class_matrix, matrix, parse_cuts
    from judged.scoring.evaluation.evaluate import evaluate_without_warnings
    from judged.scoring.evaluation.inputs import measures_of

    judgments, run_list = output.inputs(qrels, runs, options, options["documents"], *slicing_options.paths)
    baseline_run = arguments.baseline_run(options, run_list)
    slicing_options = replace(slicing_options, default_measure=options["y"])
    judgments, slicing = slicing_options.apply(judgments, baseline_run)
    if slicing is not None and slicing.class_measures:
        arguments.refuse_options(("cuts", "fdr", "resamples", "per_topic", "per_run"), "measures of classes")
        evaluated = [*filter(None, slicing.class_measures), options["x"], "Judged@10"]
        scores = evaluate_without_warnings(judgments, run_list, evaluated, **{name: options[name] for name in POLICIES})
        x = measures_of(options["x"], rel=options["rel"])[0]
        answer = class_matrix(scores, slicing, x=x, baseline=baseline_run.name, level=options["level"])
        output(answer, notes=map(str, slicing_options.notes(baseline_run)))
        return
    with arguments.progress_bar(run_list) as progress:
        matrix_options = {"cuts": parse_cuts(cuts or ""), "slicing": slicing, "progress": progress}
        answer = matrix(judgments, run_list, **matrix_options, **options)
    unfold = [*(["topics"] if per_topic else []), *(["points", "changes", "sentences"] if per_run else [])]
    table = "topics" if per_topic or answer.slicing is None else "points"
    output(answer, unfold=unfold, table=table, notes=map(str, slicing_options.notes(baseline_run)))


@click.command("disagree")
@shared("qrels")
@shared("runs", metavar="RUN RUN...")
@shared(
    "measures",
    help=f"Measure to compare. Use -m twice, for two measures.  [default: {', '.join(RANKING_AND_CANDIDATES)}]",
)
@click.option(
    "--pair",
    nargs=2,
    metavar="NAME NAME",
    help="Names of the two runs to compare.  [default: the pair with the largest disagreement]",
)
@shared("limit", default=5, help="Number of topics whose documents are compared.")
@slice_options
@shared(*POLICIES)
@answer_options()
@shared(*READING)
def disagree_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show where two measures prefer different systems, on which topics, and why.

    For the topics that contribute most to the disagreement, the judged documents of the two systems are compared. The
    comparison shows which documents and ranks affect one measure but not the other.
    """
    from judged.data.run import find_run
    from judged.diagnosis.disagreement.disagree import disagree

    if len(measure) not in {0, 2}:
        raise InputError(f"exactly two measures are required, got {len(measure)}", fix="use -m nDCG@10 -m R@100")
    documents, pair = options["documents"], options["pair"]
    judgments, run_list = output.inputs(qrels, runs, options, documents, *slicing_options.paths)
    pair_runs = [find_run(name, run_list) for name in pair or ()]
    first, options["pair"] = next(iter(pair_runs), run_list[0]), [run.name for run in pair_runs] or None
    judgments, slicing = slicing_options.apply(judgments, first, documents)
    with arguments.progress_bar(run_list) as progress:
        options_used = {"slicing": slicing, "queries": slicing_options.queries, "progress": progress}
        answer = disagree(judgments, run_list, measure or RANKING_AND_CANDIDATES, **options_used, **options)
    output(answer, notes=map(str, slicing_options.notes(first)))


@click.command("needs")
@shared("qrels", "runs")
@click.option("--needs", "mapping", metavar="FILE", help="Table with the columns `query_id` and `need`.")
@shared(
    "queries", help="File of query texts. Without --needs, this file must also have a column with the information need."
)
@click.option(
    "--column",
    metavar="NAME",
    help="Column with the information need.  [default: the column need, need_id, topic_id, or topic; otherwise the"
    " only column besides query_id]",
)
@shared("measures")
@click.option(
    "--baseline",
    metavar="RUN",
    help="Baseline run: each other run is compared with this run.  [default: no baseline; all pairs of runs are"
    " compared]",
)
@shared(
    "limit",
    type=click.IntRange(0),
    default=10,
    help="Number of information needs to show, starting with the largest range of scores.",
)
@shared(
    "cutoff",
    help="Number of top documents to compare between the rankings of two queries with the same information need.",
)
@shared("level", "seed", "dialect", "topics", "ties", "exclude_self", "documents", "rel", "attributes", "where")
@answer_options()
@shared(*READING)
def needs_command(
    qrels: str,
    runs: tuple[str, ...],
    mapping: str | None,
    measure: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score RUNs by information need, if several queries express the same need: mean, worst query, and consistency.

    Each information need has the same weight. The query ids of QRELS are ids of queries or of information needs.
    Judgments of an information need apply to each query of the information need.
    """
    from judged.data.topics import Topics
    from judged.diagnosis.needs.needs import expand_to_variants, needs, needs_of

    queries, attributes = options["queries"], options["attributes"]
    if mapping is None and queries is None:
        raise InputError("a table of information needs is required", fix="use --needs FILE or --queries FILE")
    if attributes is not None and options["where"] is None:
        raise InputError("--attributes requires --where", fix="add --where \"kind == 'law'\"")
    judgments, run_list = output.inputs(qrels, runs, options, mapping, queries, options["documents"], attributes)
    first = arguments.baseline_run(options, run_list)
    options["queries"] = texts = None if queries is None else Topics.read(queries)
    if options["where"] is not None:
        slicing_options = SliceOptions(attributes=attributes, queries=queries, where=options["where"])
        by_query, _ = expand_to_variants(judgments, needs_of(mapping or texts, options["column"]))
        options["attributes"] = slicing_options.topic_attributes(by_query, first)
        print_warnings(map(str, slicing_options.notes(first)))
    with arguments.progress_bar(run_list) as progress:
        output(needs(judgments, run_list, mapping or texts, measure or None, progress=progress, **options))


@click.command("diff")
@shared("qrels")
@click.argument("first", metavar="RUN_A")
@click.argument("second", metavar="RUN_B")
@shared("topic", multiple=True, help="Topic to show. Can be repeated.  [default: see --limit]")
@shared("measures", default=(DEFAULT_MEASURE,), show_default=True, help="Measure. Can be repeated.")
@shared("cutoff", help="Number of documents of each run to show.")
@shared(
    "limit",
    default=5,
    metavar="N",
    help="Show the N topics with the largest gains and the N topics with the largest losses, by the first measure."
    " Ignored with --topic.",
)
@click.option(
    "--only",
    type=Choice("judged.diagnosis.diff.answer:Only"),
    help="Show only topics on which RUN_B is worse, or better. Ignored with --topic.",
)
@shared("texts", *TOPIC_OPTIONS, "order", "rel")
@click.option("--ascii", "ascii_only", is_flag=True, help="Use only ASCII characters.")
@answer_options()
@shared(*READING)
def diff_command(
    qrels: str, first: str, second: str, topic: tuple[str, ...], ascii_only: bool, output: OutputOptions, **options: Any
) -> None:
    """Show RUN_A and RUN_B side by side for single topics: rank changes, relevance, and effects on the score.

    Without --topic, the topics with the largest gains and the largest losses of RUN_B are shown.
    """
    from judged.diagnosis.diff.diff import diff
    from judged.scoring.evaluation.inputs import measures_of

    topic_options = {name: options.pop(name) for name in ("attributes", "where")} | {"queries": options["queries"]}
    judgments, runs = output.inputs(
        qrels, (first, second), options, options["texts"], topic_options["queries"], topic_options["attributes"]
    )
    options["measure"] = measures_of(options["measure"], rel=options.pop("rel"))
    answer = diff(filter_by_where(judgments, runs, **topic_options)[0], runs[0], runs[1], topic or None, **options)
    output(answer, ascii_only=ascii_only)


_KINDS = ("false-positive", "false-negative", "unjudged")


@click.command("review")
@shared("qrels", "some_runs")
@shared("measure", help="Measure that shows how each judgment affects the scores.")
@shared(
    "cutoff",
    type=int,
    default=None,
    metavar="K",
    help="Number of documents per topic that users see.  [default: the cutoff of the measure]",
)
@shared("rel", default=1.0, show_default=True, help="Lowest relevant grade.")
@click.option(
    "--kind", "kinds", type=Choice(_KINDS), multiple=True, help="List only judgments of this kind. Can be repeated."
)
@shared("limit", type=int, default=50, metavar="N", help="Maximum number of judgments to list, or 0 for all.")
@shared("texts")
@slice_options
@shared("depth", "order")
@click.option(
    "--apply",
    "reviewed",
    metavar="FILE",
    help="List of judgments with new grades, instead of RUNs. The new grades are merged into QRELS, and the result is"
    " written to the -o file.",
)
@answer_options("reviewed", jsonl=".jsonl", tsv=".tsv")
@shared(*READING)
def review_command(
    qrels: str,
    runs: tuple[str, ...],
    reviewed: str | None,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """List the judgments of QRELS that should be checked again, largest effect on the scores of RUNs first.

    The list contains documents near the top of a run that are judged not relevant or are not judged, and relevant
    documents that are not near the top. The format 'tsv' has an empty column for new grades. 'judged review QRELS
    --apply FILE -o NEW' merges the new grades into QRELS.
    """
    from judged.diagnosis.review.review import review

    if reviewed is not None:
        _apply_review(qrels, runs, reviewed, output.out, options["qrels_format"])
        return
    if not runs:
        raise InputError("at least one run is required", fix="add runs after QRELS")
    if options["limit"] < 0:
        raise InputError(
            f"--limit must not be negative, got {options['limit']}", fix="use a positive integer, or 0 for all"
        )
    judgments, run_list = output.inputs(qrels, runs, options, options["texts"], *slicing_options.paths)
    judgments, slicing = slicing_options.apply(judgments, run_list[0])
    options["limit"] = options["limit"] or None
    options["kinds"] = [kind.replace("-", " ") for kind in options["kinds"] or _KINDS]
    output(review(judgments, run_list, queries=slicing_options.queries, slicing=slicing, **options))


def _apply_review(qrels: str, runs: tuple[str, ...], reviewed: str, out: Path | None, qrels_format: str | None) -> None:
    from judged.data.qrels import Qrels
    from judged.data.write import write_qrels
    from judged.diagnosis.review.answer import apply_review

    if runs:
        raise InputError(
            "--apply cannot be combined with runs", fix="omit the runs: judged review QRELS --apply FILE -o NEW"
        )
    if out is None:
        raise InputError("--apply requires an output file", fix="add -o NEW.qrels")
    arguments.keep_inputs(out, [qrels, reviewed])
    old = Qrels.read(qrels, format=qrels_format)
    new = apply_review(old, reviewed)
    write_qrels(new, out)
    changed = int((new.grades[: len(old)] != old.grades).sum())
    click.echo(f"{counted(changed, 'grade')} changed, {len(new) - len(old)} added: {out}", err=True)


@click.command("tradeoff")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="Scores saved by 'judged evaluate -o FILE.parquet', instead of QRELS and RUNs. Can be repeated.",
)
@click.option(
    "--costs", required=True, metavar="FILE", help="Table with the column `run`, and a numeric column for each cost."
)
@shared(
    "measure",
    default=None,
    help=f"Measure.  [default: {DEFAULT_MEASURE}; with --scores, the first measure in the file]",
)
@click.option("--baseline", metavar="RUN", help="Baseline run.  [default: the cheapest run]")
@click.option(
    "--cost", multiple=True, metavar="NAME", help="Column of costs to use. Can be repeated.  [default: all costs]"
)
@click.option(
    "--higher-is-better",
    multiple=True,
    metavar="NAME",
    help="Cost for which higher values are better, such as throughput. Can be repeated.",
)
@shared("rel", "level")
@shared("resamples", default=10_000, show_default=True, help="Number of resamples of the paired test.")
@shared("seed", *TOPIC_OPTIONS)
@answer_options()
@shared(*READING)
def tradeoff_command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    rel: float | None,
    costs: str,
    measure: str | None,
    cost: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Compare the effectiveness of RUNs with their costs: intervals, gain per unit of cost, and the Pareto front.

    The table of costs is a CSV, TSV, JSON, JSONL, or Parquet file. By default, lower costs are better. A missing
    cost is not estimated.
    """
    from judged.scoring.evaluation import Scores, evaluate

    output.keep(costs, *scores, qrels)
    if bool(scores) == bool(qrels):
        raise InputError("either QRELS with RUNs or --scores is required", fix="use only one of the two inputs")
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if not qrels and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit this option")
    if scores and rel is not None:
        raise InputError("--rel cannot be combined with --scores", fix="use --rel with 'judged evaluate'")
    formats = {name: options.pop(name) for name in FORMATS}
    if qrels:
        judgments, run_list = output.inputs(qrels, runs, formats, topic_options["queries"], topic_options["attributes"])
        if not run_list:
            raise InputError("at least two runs are required", fix="add runs after QRELS")
        arguments.baseline_run(options, run_list)
        measure_names, measure = [measure or DEFAULT_MEASURE], None  # the only one, at the level of --rel
        judgments, attributes = filter_by_where(
            judgments, run_list, **topic_options, baseline=options["baseline"], measures=measure_names
        )
        with arguments.scoring(run_list) as progress:
            table = evaluate(judgments, run_list, measure_names, rel=rel, attributes=attributes, progress=progress)
    else:
        saved = [Scores.load(path) for path in scores]
        table = saved[0].join(*saved[1:])
    output(table.tradeoff(costs, measure=measure, cost=cost or None, **options))
