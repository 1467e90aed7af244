"""Commands that diagnose runs: stages, matrix, disagree, needs, diff, review, tradeoff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, filter_by_where, print_warnings, slice_options
from judged.interface.options import FORMATS, POLICIES, TOPIC_OPTIONS, Choice, shared
from judged.results.decimals import counted
from judged.scoring.default_measures import DEFAULT_MEASURE, RANKING_AND_CANDIDATES

if TYPE_CHECKING:
    from pathlib import Path

    from judged.interface.arguments import OutputOptions


@click.command("stages")
@click.argument("qrels")
@click.argument("run")
@click.argument("final", required=False)
@shared("measure", help="A measure that rewards ranking better documents higher.")
@shared("cutoff", default=100, help="How many documents of each topic of RUN are candidates.")
@shared("rel")
@click.option("--recall", metavar="NAME", help="The measure of the candidates.  [default: R at the cutoff]")
@click.option("--baseline", metavar="RUN", help="Compare with another system: its candidates, or its only ranking.")
@click.option("--baseline-final", metavar="RUN", help="With --baseline: the final ranking of that system.")
@click.option(
    "--min-loss",
    type=float,
    default=0.1,
    show_default=True,
    help="Do not count a part of a topic's loss below this share of the best score.",
)
@click.option(
    "--min-share",
    type=float,
    default=0.15,
    show_default=True,
    help="Nor one below this share of everything lost on the topic.",
)
@shared("fdr", "alpha", "resamples", "seed")
@shared("per_topic", help="Show every topic, largest loss first.")
@shared("topic", help="Show what this topic lost, and where its documents were lost.")
@slice_options
@shared(
    "topics",
    type=Choice(("qrels", "both")),
    default="qrels",
    show_default=True,
    help="Which topics count: all in the qrels, or those that every run has too.",
)
@shared("order")
@answer_options()
@shared(*FORMATS)
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
    """Split each topic's loss into what is missing from the first documents of RUN and what is ranked badly among them.

    FINAL is the ranking that, say, a reranker made of the candidates; without it, RUN itself is the final ranking.
    With --baseline, the difference between two systems is split in the same way and tested.
    """
    from judged.data.qrels import Qrels
    from judged.data.topics import Topics
    from judged.diagnosis.stages import stages
    from judged.scoring.evaluation.inputs import measures_of

    if baseline_final and not baseline:
        raise InputError(
            "--baseline-final requires --baseline", fix="add --baseline with the candidates of the other system"
        )
    if per_topic and topic is not None:
        raise InputError("--per-topic shows every topic, but --topic only one", fix="give one of them")
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
    help="The horizontal measure, of the candidates.",
)
@click.option(
    "-y",
    default=RANKING_AND_CANDIDATES[0],
    show_default=True,
    metavar="NAME",
    help="The vertical measure, of the final ranking.",
)
@click.option(
    "--baseline",
    metavar="RUN",
    help="The run that the others are compared with, and whose means are the cuts.  [default: the first]",
)
@click.option("--cuts", metavar="X,Y", help="Cuts to use instead of the baseline's means.")
@shared("level", "fdr", "resamples", "seed", "per_topic")
@click.option("--per-run", is_flag=True, help="Show every run in full, where more than 4 would be summarized.")
@slice_options
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def matrix_command(
    qrels: str,
    runs: tuple[str, ...],
    baseline: str | None,
    cuts: str | None,
    per_topic: bool,
    per_run: bool,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Place RUNs, their slices and topics by two measures: one of the candidates, one of the final ranking.

    Low on -y alone: found, but ranked badly. Low on -x alone: not found, or not judged. A slice is called low only if
    its whole interval lies below the cut.
    """
    from judged.diagnosis.matrix.matrix import matrix, parse_cuts

    judgments, run_list = output.inputs(qrels, runs, options, options["documents"], *slicing_options.paths)
    baseline_run = next((run for run in run_list if run.name == baseline), run_list[0])
    judgments, slicing = slicing_options.apply(judgments, baseline_run)
    with arguments.progress_bar(run_list) as progress:
        matrix_options = {
            "baseline": baseline,
            "cuts": parse_cuts(cuts or ""),
            "slicing": slicing,
            "progress": progress,
        }
        answer = matrix(judgments, run_list, **matrix_options, **options)
    unfold = [*(["topics"] if per_topic else []), *(["points", "changes", "sentences"] if per_run else [])]
    table = "topics" if per_topic or answer.slicing is None else "points"
    output(answer, unfold=unfold, table=table, notes=map(str, slicing_options.notes(baseline_run)))


@click.command("disagree")
@shared("qrels")
@shared("runs", metavar="RUN RUN...")
@shared("measures", help=f"The two measures: give -m twice.  [default: {', '.join(RANKING_AND_CANDIDATES)}]")
@click.option(
    "--pair",
    nargs=2,
    metavar="NAME NAME",
    help="The two systems, by run name.  [default: the two that the measures disagree on most]",
)
@shared("limit", default=5, help="How many topics to look into.")
@slice_options
@shared(*POLICIES)
@answer_options()
@shared(*FORMATS)
def disagree_command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show where two measures prefer different systems: on which topics, on what evidence, and why.

    On the topics that pull the two means furthest apart, the judged documents are compared, to show what one measure
    sees and the other does not.
    """
    from judged.diagnosis.disagreement.disagree import disagree

    if len(measure) not in {0, 2}:
        problem = "only one measure is given" if len(measure) == 1 else f"{len(measure)} measures are given"
        raise InputError(problem, fix="name two, such as -m nDCG@10 -m R@100")
    documents, pair = options["documents"], options["pair"]
    judgments, run_list = output.inputs(qrels, runs, options, documents, *slicing_options.paths)
    first = next((run for run in run_list if pair and run.name == pair[0]), run_list[0])
    judgments, slicing = slicing_options.apply(judgments, first, documents)
    with arguments.progress_bar(run_list) as progress:
        options_used = {"slicing": slicing, "queries": slicing_options.queries, "progress": progress}
        answer = disagree(judgments, run_list, measure or RANKING_AND_CANDIDATES, **options_used, **options)
    output(answer, notes=map(str, slicing_options.notes(first)))


@click.command("needs")
@shared("qrels", "runs")
@click.option("--needs", "mapping", metavar="FILE", help="Table with the columns query_id and need.")
@shared("queries", help="Texts of the queries; without --needs, a column of this file names the need.")
@click.option(
    "--column", metavar="NAME", help="The column that names the need.  [default: need, topic_id, or the only one]"
)
@shared("measures")
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@shared("limit", type=click.IntRange(0), default=10, help="How many of the needs that vary most to show.")
@shared("cutoff", help="How many documents of each ranking to compare.")
@shared("level", "seed", "dialect", "topics", "ties", "exclude_self", "documents", "rel", "attributes", "where")
@answer_options()
@shared(*FORMATS)
def needs_command(
    qrels: str,
    runs: tuple[str, ...],
    mapping: str | None,
    measure: tuple[str, ...],
    output: OutputOptions,
    **options: Any,
) -> None:
    """Score RUNs by information need, where several queries express the same one: mean, worst wording and consistency.

    Each need counts once. QRELS may be by query or by need; the judgments of a need apply to each of its queries.
    """
    from judged.data.topics import Topics
    from judged.diagnosis.needs.needs import expand_to_variants, needs, needs_of

    queries, attributes = options["queries"], options["attributes"]
    if mapping is None and queries is None:
        raise InputError("a table of information needs is required", fix="use --needs FILE or --queries FILE")
    if attributes is not None and options["where"] is None:
        raise InputError("--attributes requires --where", fix="add --where \"kind == 'law'\"")
    judgments, run_list = output.inputs(qrels, runs, options, mapping, queries, options["documents"], attributes)
    options["queries"] = texts = None if queries is None else Topics.read(queries)
    if options["where"] is not None:
        slicing_options = SliceOptions(attributes=attributes, queries=queries, where=options["where"])
        by_query, _ = expand_to_variants(judgments, needs_of(mapping or texts, options["column"]))
        first = next((run for run in run_list if run.name == options["baseline"]), run_list[0])
        options["attributes"] = slicing_options.topic_attributes(by_query, first)
        print_warnings(map(str, slicing_options.notes(first)))
    with arguments.progress_bar(run_list) as progress:
        output(needs(judgments, run_list, mapping or texts, measure or None, progress=progress, **options))


@click.command("diff")
@shared("qrels")
@click.argument("first", metavar="RUN_A")
@click.argument("second", metavar="RUN_B")
@shared("topic", multiple=True, help="A topic. Repeat for more.  [default: see --limit]")
@shared("measures", default=(DEFAULT_MEASURE,), show_default=True, help="A measure. Repeat for more.")
@shared("cutoff", help="How many documents of each list to show.")
@shared(
    "limit",
    default=5,
    metavar="N",
    help="Without --topic: how many topics to show each way, those that differ most by the first measure.",
)
@shared("texts", *TOPIC_OPTIONS, "order", "rel")
@click.option("--ascii", "ascii_only", is_flag=True, help="Mark moves with ASCII characters.")
@answer_options()
@shared(*FORMATS)
def diff_command(
    qrels: str, first: str, second: str, topic: tuple[str, ...], ascii_only: bool, output: OutputOptions, **options: Any
) -> None:
    """Show RUN_A and RUN_B side by side, topic by topic: what moved, what is relevant, and what that did to the score.

    Without --topic, the topics whose scores differ most are shown, in favor of RUN_B and against it.
    """
    from judged.diagnosis.diff.diff import diff
    from judged.scoring.evaluation.inputs import measures_of

    topic_options = {name: options.pop(name) for name in ("attributes", "where")} | {"queries": options["queries"]}
    judgments, runs = output.inputs(
        qrels, (first, second), options, options["texts"], topic_options["queries"], topic_options["attributes"]
    )
    if len(runs) != 2:
        names = ", ".join(run.name for run in runs)
        raise InputError(f"there are {len(runs)} runs in these files: {names}", fix="give files with one run each")
    options["measure"] = measures_of(options["measure"], rel=options.pop("rel"))
    answer = diff(filter_by_where(judgments, runs, **topic_options)[0], runs[0], runs[1], topic or None, **options)
    output(answer, ascii_only=ascii_only)


_KINDS = ("false-positive", "false-negative", "unjudged")


@click.command("review")
@shared("qrels", "some_runs")
@shared("measure", help="The measure whose scores the judgments matter to.")
@shared(
    "cutoff",
    type=int,
    default=None,
    metavar="K",
    help="How many documents of each topic a run shows.  [default: the measure's cutoff]",
)
@shared("rel", default=1.0, show_default=True, help="The lowest relevant grade.")
@click.option("--kind", "kinds", type=Choice(_KINDS), multiple=True, help="List only this kind. Repeat for more.")
@shared("limit", type=int, default=50, metavar="N", help="How many judgments to list; 0 for all.")
@shared("texts")
@slice_options
@shared("depth", "order")
@click.option(
    "--apply",
    "reviewed",
    metavar="FILE",
    help="Instead of RUNs: merge the new grades of a list that was filled in into QRELS, and write the result to -o.",
)
@answer_options("reviewed", jsonl=".jsonl", tsv=".tsv")
@shared(*FORMATS)
def review_command(
    qrels: str,
    runs: tuple[str, ...],
    reviewed: str | None,
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """List the judgments of QRELS that are worth a second look, by how much they matter to the scores of RUNs.

    These are documents that a run shows although they are judged not relevant, or not judged at all, and relevant
    ones that it does not show. The format 'tsv' has an empty column for new grades; 'judged review QRELS --apply FILE
    -o NEW' merges them into QRELS.
    """
    from judged.diagnosis.review.review import review

    if reviewed is not None:
        _apply_review(qrels, runs, reviewed, output.out, options["qrels_format"])
        return
    if not runs:
        raise InputError("no run is given", fix="name one or more after QRELS")
    if options["limit"] < 0:
        raise InputError(f"--limit {options['limit']} is negative", fix="give a whole number, 0 for all")
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
            "--apply does not take runs", fix="leave out the runs: judged review QRELS --apply FILE -o NEW"
        )
    if out is None:
        raise InputError("--apply writes judgments", fix="name a file for them: -o NEW.qrels")
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
    help="Instead of QRELS and RUNs: scores saved by 'judged evaluate -o FILE.parquet'. Repeat for other runs.",
)
@click.option(
    "--costs", required=True, metavar="FILE", help="Table with a column run, and a column of numbers for each cost."
)
@shared("measure", default=None, help=f"A measure.  [default: {DEFAULT_MEASURE}, or the first of --scores]")
@click.option("--baseline", metavar="RUN", help="Compare with this run.  [default: the cheapest]")
@click.option("--cost", multiple=True, metavar="NAME", help="A cost to use. Repeat for more.  [default: all]")
@click.option(
    "--higher-is-better",
    multiple=True,
    metavar="NAME",
    help="A cost of which more is better, such as throughput. Repeat for more.",
)
@shared("rel", "level")
@shared("resamples", default=10_000, show_default=True, help="Number of resamples for the paired test.")
@shared("seed", *TOPIC_OPTIONS)
@answer_options()
@shared(*FORMATS)
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
    """Weigh what RUNs gain against what they cost: intervals, gain per unit of cost, and the Pareto front.

    The table of costs is CSV, TSV, JSON, JSONL or Parquet. Lower costs are better; an unknown cost stays unknown.
    """
    from judged.scoring.evaluation import Scores, evaluate

    output.keep(costs, *scores, qrels)
    if bool(scores) == bool(qrels):
        problem = "either QRELS and RUNs or --scores must say what to compare"
        raise InputError(problem, fix="give one of the two")
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if not qrels and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit it")
    if scores and rel is not None:
        raise InputError("--rel cannot change scores that are already computed", fix="give it to 'judged evaluate'")
    formats = {name: options.pop(name) for name in FORMATS}
    if qrels:
        judgments, run_list = output.inputs(qrels, runs, formats, topic_options["queries"], topic_options["attributes"])
        if not run_list:
            raise InputError("no run is given", fix="name two or more runs after QRELS")
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
