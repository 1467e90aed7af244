"""Commands that compare runs or judges: compare, power, agree, fuse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.components import find
from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options, filter_by_where
from judged.interface.options import (
    DEFAULT_TEST,
    FORMATS,
    PAIRED_TESTS,
    POLICIES,
    READING,
    TOPIC_OPTIONS,
    Choice,
    shared,
)
from judged.results.decimals import read_number
from judged.scoring.default_measures import DEFAULT_MEASURE, TESTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.data.run import Run
    from judged.interface.arguments import OutputOptions
    from judged.scoring.evaluation import Scores


_JOINT_TESTS = ("tukey", "randomized-tukey", "nemenyi", "dunnett", "randomized-dunnett")


@click.command("compare")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="Scores saved by 'judged evaluate -o FILE.parquet', instead of QRELS and RUNs. Can be repeated. Files with the"
    " same qrels are joined. Files with different qrels are separate collections; NAME=FILE names a collection.",
)
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME=QRELS,RUN,...",
    help="Qrels and runs of a collection. Repeat this option for each collection. Systems are matched by run name.",
)
@click.option(
    "--baseline",
    metavar="RUN",
    help="Baseline run: each other run is compared with this run.  [default: no baseline; all pairs of runs are"
    " compared]",
)
@shared("measures")
@click.option(
    "--test",
    type=Choice((*PAIRED_TESTS, *_JOINT_TESTS)),
    metavar="TEST",
    help=f"Paired tests of two systems: {', '.join(PAIRED_TESTS)}. Joint tests of all systems:"
    f" {', '.join(_JOINT_TESTS)}. P-values of joint tests need no correction for multiple comparisons.  [default:"
    f" {DEFAULT_TEST}]",
)
@shared("correction")
@click.option(
    "--family",
    type=Choice("judged.comparison.choices:Family"),
    default="measure",
    show_default=True,
    help="Tests whose p-values are corrected together. measure: the tests of all pairs by one measure; all: the tests"
    " of all pairs by all measures.",
)
@shared("alpha", "resamples", "seed")
@click.option(
    "--min-difference",
    type=float,
    default=0.0,
    metavar="D",
    help="Smallest difference on a topic that counts as a win or a loss.",
)
@shared("margin")
@click.option("--pairs", is_flag=True, help="Show the results of each pair of runs.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "exclude_self", "documents", "rel", "ci", *TOPIC_OPTIONS)
@shared("by", "class_measures")
@answer_options()
@shared(*READING)
def compare_command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measure: tuple[str, ...],
    pairs: bool,
    by: tuple[str, ...],
    class_measures: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Compare RUNs over the topics of QRELS: differences, confidence intervals, and significance tests.

    QRELS and RUN are files that 'judged evaluate' can read. With --collection or several --scores, systems are compared
    on each collection. The table has one column per collection. With --class-measures, they are compared on each class
    of topics by its own measure, as by 'judged slices --baseline'.
    """
    from judged.comparison import collections_of_scores, compare, compare_collections
    from judged.scoring.evaluation import Scores

    if sum(map(bool, (qrels, scores, collections))) != 1:
        raise InputError(
            "exactly one of QRELS with RUNs, --scores, and --collection is required",
            fix="use one of these inputs; repeat --scores or --collection before each value",
        )
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if not qrels and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit this option")
    if class_measures is not None or by:
        _compare_classes()
        return
    formats = {name: options.pop(name) for name in FORMATS}
    options["measures"] = measure or None
    if scores:
        options = _without_policies(options)
        output.keep(*scores)
    unfold = ["pairs"] if pairs else ()
    tables = _group_by_judgments([(name, Scores.load(path)) for name, path in map(_name_and_path, scores)])
    if len(tables) > 1:
        options = _collection_options(options)
        output(collections_of_scores(_check_names(tables), **options))
    elif collections:
        options = _collection_options(options)
        collections_by_name = _check_names(
            _read_collection(text, output, formats, options["documents"]) for text in collections
        )
        output(compare_collections(collections_by_name, **options))
    elif scores:
        output(tables[0][1].compare(**options), unfold=unfold)
    else:
        paths = options["documents"], topic_options["queries"], topic_options["attributes"]
        judgments, run_list = output.inputs(qrels or "", runs, formats, *paths)
        if not run_list:
            raise InputError("at least two runs are required", fix="add runs after QRELS")
        arguments.baseline_run(options, run_list)
        selection: dict[str, Any] = {"baseline": options["baseline"], "measures": measure}
        judgments, options["attributes"] = filter_by_where(judgments, run_list, **topic_options, **selection)
        with arguments.progress_bar(run_list) as progress:
            answer = compare(judgments, run_list, progress=progress, **options)
        output(answer, unfold=unfold)


def _compare_classes() -> None:
    """Run 'judged slices' with a baseline; p-values of all classes are corrected together."""
    from judged.interface.commands.slices import slices_command

    context = click.get_current_context()
    arguments.refuse_options(("min_difference", "ci", "pairs", "scores", "collections", "family"), "classes")
    names = {param.name for param in slices_command.params}
    values = {name: value for name, value in context.params.items() if name in names}
    context.invoke(slices_command, **values | {"pair": values["baseline"] is None, "family": "all"})


def _group_by_judgments(tables: list[tuple[str, Scores]]) -> list[tuple[str, Scores]]:
    """Join scores with the same judgments, under the name of the first."""
    from judged.scoring.evaluation.storage import same_judgments

    groups: list[list[tuple[str, Scores]]] = []
    for name, scores in tables:
        group = next((group for group in groups if same_judgments(group[0][1].qrels, scores.qrels)), None)
        if group is None:
            groups.append(group := [])
        group.append((name, scores))
    return [(group[0][0], group[0][1].join(*(scores for _, scores in group[1:]))) for group in groups]


def _collection_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove options that do not apply to several collections. Raise an error if one was used."""
    unused = ("min_difference", "margin", "ci", "pairs")
    arguments.refuse_options(unused, "several collections", "omit the option, or compare each collection separately")
    return {name: value for name, value in options.items() if name not in unused}


def _name_and_path(text: str) -> tuple[str, str]:
    """Split NAME=FILE into name and path; the default name is the stem of the file."""
    from judged.data.sources import split_name

    name, path = split_name(text)
    return name or Path(path).stem, path


def _read_collection(
    text: str, output: OutputOptions, formats: dict[str, str | None], documents: str | None
) -> tuple[str, Any]:
    """Parse NAME=QRELS,RUN,... and read the collection."""
    name, separator, paths = text.partition("=")
    qrels, *runs = paths.split(",")
    if not separator or not runs:
        raise InputError(f"--collection must be NAME=QRELS,RUN,..., got {text!r}", fix="write NAME=QRELS,RUN1,RUN2")
    return name, output.inputs(qrels, runs, {**formats}, documents)


def _check_names(collections: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(collections)
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two collections have the name {repeated[0]}", fix="use different names: NAME=...")
    return dict(pairs)


def _without_policies(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the policies, which saved scores already have. Raise an error if one was used."""
    used = [f"--{name.replace('_', '-')}" for name in POLICIES if options[name] is not None]
    if used:
        raise InputError(
            f"{used[0]} cannot be combined with --scores",
            fix=f"use {used[0]} with 'judged evaluate', or use QRELS and RUNs instead of --scores",
        )
    return {name: value for name, value in options.items() if name not in POLICIES}


@click.command("power")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@shared("measures")
@shared("alpha", help="Significance level of the two-sided paired t-test.")
@shared("power")
@click.option(
    "--difference", type=float, metavar="D", help="Also show the number of topics required to detect a difference of D."
)
@click.option(
    "--n",
    type=click.IntRange(1),
    metavar="N",
    help="Number of topics to plan for.  [default: number of scored topics]",
)
@click.option(
    "--sd",
    type=float,
    metavar="S",
    help="Standard deviation over topics of the differences between two systems. Use this option instead of QRELS and"
    " RUNs.",
)
@click.option("--pairs", is_flag=True, help="Show the results of each pair of runs.")
@shared(*TOPIC_OPTIONS)
@answer_options()
@shared(*READING)
def power_command(
    qrels: str | None,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    n: int | None,
    sd: float | None,
    pairs: bool,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show the smallest difference between runs that a test over these topics can detect.

    The detectable difference depends on how much the difference between two RUNs varies over topics, not on the
    observed mean difference. Without files, use --sd and --n.
    """
    from judged.comparison.plans import Plans
    from judged.scoring.evaluation import evaluate
    from judged.stats.sample_size import plan_of_sd

    formats = {name: options.pop(name) for name in FORMATS}
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if qrels is None and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit this option")
    if sd is not None:
        if qrels is not None or n is None:
            raise InputError(
                "--sd requires --n, and cannot be combined with QRELS", fix="use --sd S --n N without files"
            )
        output(Plans({"(given)": plan_of_sd(sd, n, **options)}))
        return
    if qrels is None or not runs:
        raise InputError("QRELS and RUNs are required", fix="add the files, or use --sd and --n")
    judgments, run_list = output.inputs(qrels, runs, formats, topic_options["queries"], topic_options["attributes"])
    if len(run_list) < 2:
        raise InputError("at least two runs are required, got 1", fix="add another run, or use --sd and --n")
    measure_names = measure or TESTED_MEASURES
    judgments, attributes = filter_by_where(judgments, run_list, **topic_options, measures=measure_names)
    with arguments.scoring(run_list) as progress:
        scores = evaluate(judgments, run_list, measure_names, attributes=attributes, progress=progress)
    output(scores.power(n=n, **options), unfold=["pairs"] if pairs else (), table="pairs" if pairs else None)


@click.command("agree")
@click.argument("qrels", nargs=-1, required=True, metavar="QRELS QRELS...")
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", help="Run to score with the grades of each judge. Can be repeated."
)
@shared(
    "measures", default=(DEFAULT_MEASURE,), help="Measure that scores the runs. Can be repeated.", show_default=True
)
@click.option(
    "--rel",
    multiple=True,
    metavar="[NAME=]N",
    help="Lowest grade that counts as relevant, for all judges or for the judge NAME. Relevant grades become 1, and"
    " lower grades become 0. Can be"
    " repeated.",
)
@shared("scale")
@click.option(
    "--own",
    is_flag=True,
    help="Score runs with all judgments of each judge. By default, the scores that two judges give to a system are"
    " computed with only the documents that both judges judged.",
)
@shared("per_topic", "depth", "order", "confidence")
@answer_options()
@shared(*READING)
def agree_command(
    qrels: tuple[str, ...],
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    rel: tuple[str, ...],
    per_topic: bool,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Measure the agreement of several judges.

    Each pair of judges is compared on the documents that both judges judged: kappa, weighted kappas, and Krippendorff's
    alpha, with confidence intervals over topics. With runs, the rankings of the systems are also compared: tau, tau_AP,
    and the number of swapped pairs. NAME=FILE names a judge or a run.
    """
    from judged.comparison.agreement import agree
    from judged.data.qrels import Qrels

    judges = [Qrels.read(path, format=qrels_format) for path in qrels]
    run_list = arguments.runs_at(runs, run_format)
    output.keep(*(judge.where for judge in judges), *(run.where for run in run_list))
    agreement = agree(*judges, runs=run_list, measures=measure, rel=_parse_levels(rel), **options)
    output(agreement, unfold=["topics"] if per_topic else (), table="results")


def _parse_levels(texts: tuple[str, ...]) -> float | Mapping[str, float] | None:
    """Parse N for all judges, or NAME=N for each judge."""
    if not texts:
        return None
    levels: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            levels[name] = read_number(number)
        except ValueError:
            raise InputError(f"--rel must be a grade, got {number!r}", fix="write --rel N or --rel NAME=N") from None
    if "" in levels and len(texts) > 1:
        raise InputError(
            "--rel N applies to all judges and cannot be combined with another --rel",
            fix="use --rel NAME=N for each judge",
        )
    return levels.get("", levels)


_FILE = click.Path(path_type=Path)


@click.command("fuse")
@shared("runs")
@click.option("--to", "target", type=_FILE, metavar="FILE", help="Output file of the fused run.")
@click.option(
    "--algorithm",
    type=Choice("judged.comparison.fusion.fuse:Algorithm"),
    default="rrf",
    show_default=True,
    help="Fusion algorithm. rrf: reciprocal rank fusion; sum, mnz, max: CombSUM, CombMNZ, CombMAX of normalized"
    " scores; borda: Borda count.",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="RUN=W",
    help="Weight of a run. Can be repeated.  [default: 1 for each run]",
)
@click.option(
    "--rrf-k",
    type=float,
    default=60,
    show_default=True,
    metavar="K",
    help="Constant that is added to each rank. Used only by the algorithm rrf.",
)
@click.option(
    "--normalize",
    type=Choice("judged.comparison.fusion.fuse:Normalization"),
    default="min-max",
    show_default=True,
    help="Normalization of the scores of each run. Used only by the algorithms sum, mnz, and max.",
)
@click.option(
    "--missing",
    type=Choice("judged.comparison.fusion.fuse:Missing"),
    help="Score that a run adds to a document that the run does not contain. skip: no score; last: the score at the"
    " rank after the last document, or the lowest score of the run; share: the score at the mean of all ranks after"
    " the last document.  [default: share for borda, last for z-scores, otherwise skip]",
)
@shared("depth", "order")
@shared("cutoff", default=None, metavar="N", help="Number of documents per topic of the fused run.  [default: all]")
@click.option(
    "--traces", type=_FILE, metavar="FILE", help="Output file in the trace format, with the runs and the fused run."
)
@click.option(
    "--qrels",
    metavar="QRELS",
    help="Judgments for choosing the weights. Cross-validation estimates the score on topics that were not used to"
    " choose the weights.",
)
@shared("measure", help="Measure for choosing the weights.")
@click.option(
    "--steps",
    type=int,
    default=10,
    show_default=True,
    help="Number of steps of the grid of weights: the weights are multiples of 1/STEPS that sum to 1.",
)
@click.option(
    "--folds",
    type=int,
    default=10,
    show_default=True,
    help="Number of folds of the cross-validation.",
)
@shared("seed", "confidence")
@answer_options()
@shared(*READING)
def fuse_command(
    runs: tuple[str, ...],
    target: Path | None,
    weights: tuple[str, ...],
    cutoff: int | None,
    traces: Path | None,
    qrels: str | None,
    qrels_format: str | None,
    run_format: str | None,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Fuse RUNs into one run, by ranks or by scores, with optional weights.

    With --qrels, weights are chosen by a measure. On topics that were not used to choose the weights, cross-validation
    estimates the gain compared with equal weights and with each run.
    """
    from judged.comparison.fusion import choose_weights, fuse
    from judged.data.qrels import Qrels
    from judged.data.write import write_run

    write_traces = None if traces is None else find("writers", "traces")
    if traces is not None and write_traces is None:
        raise InputError("--traces requires the package judged.pipelines", fix="omit --traces")
    run_list = arguments.runs_at(runs, run_format)
    for path in (target, traces, output.out):
        arguments.keep_inputs(path, [run.where for run in run_list] + ([qrels] if qrels else []))
    if qrels is None and target is None and traces is None:
        fix = "use --to FILE for the run, --traces FILE for traces, or --qrels QRELS to choose weights"
        raise InputError("no output is selected", fix=fix)
    name = target.name.partition(".")[0] if target else ""
    choice_options = {option: options.pop(option) for option in ("measure", "steps", "folds", "seed", "level")}
    if qrels is None:
        run_weights = _parse_weights(weights, run_list) if weights else None
        fused = fuse(run_list, weights=run_weights, cutoff=cutoff, name=name, **options)
    elif weights:
        raise InputError(
            "--weight and --qrels cannot be combined", fix="use --weight to set weights, or --qrels to choose weights"
        )
    else:
        answer = choose_weights(Qrels.read(qrels, format=qrels_format), run_list, **choice_options, **options)
        run_weights = answer.weights
        fused = answer.run(cutoff=cutoff, name=name)
        output(answer)
    if target is not None:
        write_run(fused, target)
    if write_traces is not None:
        stages = {run.name: run for run in run_list} | {"fused": fused}
        parents = dict.fromkeys(stages, ()) | {"fused": tuple(run.name for run in run_list)}
        settings = {**options, "cutoff": cutoff, "weights": run_weights}
        fusion_settings = {name: value for name, value in settings.items() if value is not None}
        write_traces(stages, parents, {"fused": fusion_settings}, traces)


def _parse_weights(texts: tuple[str, ...], runs: Sequence[Run]) -> dict[str, float]:
    from judged.data.run import find_run

    weights: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            weights[find_run(name, runs).name] = read_number(number)
        except ValueError as error:
            raise InputError(f"--weight {text!r}: {number!r} {error}", fix="write RUN=W, such as bm25=0.7") from None
    return weights
