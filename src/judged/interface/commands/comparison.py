"""Commands that compare runs or judges: compare, power, agree, fuse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.components import find
from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options, filter_by_where
from judged.interface.options import DEFAULT_TEST, FORMATS, PAIRED_TESTS, POLICIES, TOPIC_OPTIONS, Choice, shared
from judged.results.decimals import read_number
from judged.scoring.default_measures import DEFAULT_MEASURE, TESTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from judged.data.qrels import Qrels
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
    help="Instead of QRELS and RUNs: scores saved by 'judged evaluate -o FILE.parquet'. Repeat for more: files with the"
    " same qrels are joined, others are several collections; NAME=FILE names one.",
)
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME=QRELS,RUN,...",
    help="One of several collections. Repeat for each; systems are matched by run name.",
)
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@shared("measures")
@click.option(
    "--test",
    type=Choice((*PAIRED_TESTS, *_JOINT_TESTS)),
    metavar="TEST",
    help=f"Test of each pair: {', '.join(PAIRED_TESTS)}; or of all systems at once, which"
    f" needs no correction: {', '.join(_JOINT_TESTS)}.  [default: {DEFAULT_TEST}]",
)
@shared("correction")
@click.option(
    "--family",
    type=Choice("judged.comparison.choices:Family"),
    default="measure",
    show_default=True,
    help="What is corrected together: the pairs of each measure, or those of all measures.",
)
@shared("alpha", "resamples", "seed")
@click.option(
    "--min-difference",
    type=float,
    default=0.0,
    metavar="D",
    help="Count a topic as won or lost only if the scores differ by at least D.",
)
@shared("margin")
@click.option("--pairs", is_flag=True, help="Show every pair.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "exclude_self", "documents", "rel", "ci", *TOPIC_OPTIONS)
@answer_options()
@shared(*FORMATS)
def compare_command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measure: tuple[str, ...],
    pairs: bool,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Compare RUNs over the topics of QRELS: which differ, by how much, and whether it could be chance.

    QRELS and RUN are files as for 'judged evaluate'. With --collection or several --scores, systems are compared on
    each collection, with collections as columns.
    """
    from judged.comparison import collections_of_scores, compare, compare_collections
    from judged.scoring.evaluation import Scores

    if sum(map(bool, (qrels, scores, collections))) != 1:
        raise InputError(
            "QRELS and RUNs, --scores and --collection are three ways to say what to compare",
            fix="give one of them; --scores and --collection are written before each of their values",
        )
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if not qrels and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit it")
    formats = {name: options.pop(name) for name in FORMATS}
    options["measures"] = measure or None
    if scores:
        options = _without_policies(options)
        output.keep(*(arguments.split_name(text)[1] for text in scores))
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
        judgments, given_runs = output.inputs(qrels or "", runs, formats, *paths)
        if not given_runs:
            raise InputError("no run is given", fix="name two or more runs after QRELS")
        selection: dict[str, Any] = {"baseline": options["baseline"], "measures": measure}
        judgments, options["attributes"] = filter_by_where(judgments, given_runs, **topic_options, **selection)
        with arguments.progress_bar(given_runs) as progress:
            answer = compare(judgments, given_runs, progress=progress, **options)
        output(answer, unfold=unfold)


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
    context = click.get_current_context()
    for unused in ("min_difference", "margin", "ci", "pairs"):
        if context.get_parameter_source(unused) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{unused} does not work with several collections", fix="leave it out, or compare them one by one"
            )
        options.pop(unused, None)
    return options


def _name_and_path(text: str) -> tuple[str, str]:
    """Split NAME=FILE into name and path; the default name is the stem of the file."""
    name, path = arguments.split_name(text)
    return name or Path(path).stem, path


def _read_collection(
    text: str, output: OutputOptions, formats: dict[str, str | None], documents: str | None
) -> tuple[str, Any]:
    """Parse NAME=QRELS,RUN,... and read the collection."""
    name, separator, paths = text.partition("=")
    qrels, *runs = paths.split(",")
    if not separator or not runs:
        raise InputError(f"{text!r} does not describe a collection", fix="write NAME=QRELS,RUN1,RUN2")
    return name, output.inputs(qrels, runs, {**formats}, documents)


def _check_names(collections: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(collections)
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two collections are named {repeated[0]}", fix="give them names: NAME=...")
    return dict(pairs)


def _without_policies(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the policies, which saved scores already have. Raise an error if one was used."""
    used = [f"--{name.replace('_', '-')}" for name in POLICIES if options[name] is not None]
    if used:
        raise InputError(
            f"{used[0]} cannot change scores that are already computed",
            fix="give it to 'judged evaluate', or give QRELS and RUNs here",
        )
    return {name: value for name, value in options.items() if name not in POLICIES}


@click.command("power")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@shared("measures")
@shared("alpha", help="Significance level of the two-sided paired t-test.")
@shared("power")
@click.option(
    "--difference", type=float, metavar="D", help="Also show how many topics it takes to detect a true difference of D."
)
@click.option(
    "--n",
    type=click.IntRange(1),
    metavar="N",
    help="Plan for N topics, instead of the number that the runs have scores for.",
)
@click.option(
    "--sd",
    type=float,
    metavar="S",
    help="Instead of QRELS and RUNs: the standard deviation of the differences by topic.",
)
@click.option("--pairs", is_flag=True, help="Show every pair of runs.")
@shared(*TOPIC_OPTIONS)
@answer_options()
@shared(*FORMATS)
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
    """Show which differences between runs these topics could detect.

    How much the difference between two RUNs varies from topic to topic decides which true difference a test would
    detect; the observed mean difference plays no part. Without files, give --sd and --n.
    """
    from judged.comparison.plans import Plans
    from judged.scoring.evaluation import evaluate
    from judged.stats.sample_size import plan_of_sd

    formats = {name: options.pop(name) for name in FORMATS}
    topic_options = {name: options.pop(name) for name in TOPIC_OPTIONS}
    if qrels is None and (used_options := [f"--{name}" for name, value in topic_options.items() if value]):
        raise InputError(f"{used_options[0]} requires QRELS and RUNs", fix="omit it")
    if sd is not None:
        if qrels is not None or n is None:
            raise InputError("--sd replaces QRELS and RUNs, and needs --n", fix="give --sd S --n N, and no files")
        output(Plans({"(given)": plan_of_sd(sd, n, **options)}))
        return
    if qrels is None or not runs:
        raise InputError("QRELS and RUNs are missing", fix="name the files, or give --sd and --n")
    judgments, run_list = output.inputs(qrels, runs, formats, topic_options["queries"], topic_options["attributes"])
    if len(run_list) < 2:
        raise InputError(
            "with one run there are no differences to plan from", fix="give at least two runs, or --sd and --n"
        )
    measure_names = measure or TESTED_MEASURES
    judgments, attributes = filter_by_where(judgments, run_list, **topic_options, measures=measure_names)
    with arguments.scoring(run_list) as progress:
        scores = evaluate(judgments, run_list, measure_names, attributes=attributes, progress=progress)
    output(scores.power(n=n, **options), unfold=["pairs"] if pairs else (), table="pairs" if pairs else None)


@click.command("agree")
@click.argument("qrels", nargs=-1, required=True, metavar="QRELS QRELS...")
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", help="A run to score with each judge's grades. Repeat for more."
)
@shared(
    "measures", default=(DEFAULT_MEASURE,), help="A measure to score the runs by. Repeat for more.", show_default=True
)
@click.option(
    "--rel",
    multiple=True,
    metavar="[NAME=]N",
    help="Count grades of N and above as 1 and all others as 0, for all judges or for the one named. Repeat for more.",
)
@shared("scale")
@click.option(
    "--own", is_flag=True, help="Score runs with everything that each judge judged, not only what both judged."
)
@shared("per_topic", "depth", "order", "confidence")
@answer_options()
@shared(*FORMATS)
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
    """Compare the judgments of several judges.

    Each pair of judges is compared on what both judged: kappa, weighted kappas and Krippendorff's alpha, with
    intervals over topics. With runs, also on how they rank the systems: tau, tau_AP, and how many pairs of systems
    swap places. NAME=FILE names a judge or a run.
    """
    from judged.comparison.agreement import agree

    judges = [_read_judge(text, qrels_format) for text in qrels]
    run_list = arguments.runs_at(runs, run_format)
    output.keep(*(judge.where for judge in judges), *(run.where for run in run_list))
    agreement = agree(*judges, runs=run_list, measures=measure, rel=_parse_levels(rel), **options)
    output(agreement, unfold=["topics"] if per_topic else (), table="results")


def _read_judge(text: str, qrels_format: str | None) -> Qrels:
    from judged.data.qrels import Qrels

    name, path = arguments.split_name(text)
    return Qrels.read(path, format=qrels_format, name=name or None)


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
            raise InputError(f"{number!r} is not a grade", fix="write --rel N or --rel NAME=N") from None
    if "" in levels and len(texts) > 1:
        raise InputError(
            "--rel N for all judges cannot be combined with another --rel", fix="use --rel NAME=N for each judge"
        )
    return levels.get("", levels)


_FILE = click.Path(path_type=Path)


@click.command("fuse")
@shared("runs")
@click.option("--to", "target", type=_FILE, metavar="FILE", help="Write the fused run to this file.")
@click.option(
    "--algorithm",
    type=Choice("judged.comparison.fusion.fuse:Algorithm"),
    default="rrf",
    show_default=True,
    help="Reciprocal rank fusion; CombSUM, CombMNZ or CombMAX of normalized scores; Borda count.",
)
@click.option("--weight", "weights", multiple=True, metavar="RUN=W", help="Weight of a run.  [default: 1 each]")
@click.option(
    "--rrf-k", type=float, default=60, show_default=True, metavar="K", help="For rrf: the constant added to each rank."
)
@click.option(
    "--normalize",
    type=Choice("judged.comparison.fusion.fuse:Normalization"),
    default="min-max",
    show_default=True,
    help="For sum, mnz and max: how the scores of each run are normalized.",
)
@click.option(
    "--missing",
    type=Choice("judged.comparison.fusion.fuse:Missing"),
    help="What a run contributes for a document that it does not have: nothing; as if it came right after its last; or"
    " the average of the ranks that remain.  [default: skip; last for z-scores, share for borda]",
)
@shared("depth", "order")
@shared("cutoff", default=None, metavar="N", help="Keep the first N documents of each topic.  [default: all]")
@click.option("--traces", type=_FILE, metavar="FILE", help="Write the runs and their fusion to this file, as traces.")
@click.option(
    "--qrels",
    metavar="QRELS",
    help="Choose the weights by a measure, and show what the choice is worth on other topics.",
)
@shared("measure", help="The measure by which weights are chosen.")
@click.option(
    "--steps", type=int, default=10, show_default=True, help="Weights are multiples of 1/STEPS that add up to 1."
)
@click.option(
    "--folds",
    type=int,
    default=10,
    show_default=True,
    help="Number of folds in which the choice of weights is cross-validated.",
)
@shared("seed", "confidence")
@answer_options()
@shared(*FORMATS)
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
    """Combine the RUNs into one: by ranks or by scores, with weights, and with a policy for documents that a run lacks.

    With --qrels, weights are chosen by a measure, and cross-validation over topics shows what the choice is worth.
    """
    from judged.comparison.fusion import choose_weights, fuse
    from judged.data.qrels import Qrels
    from judged.data.write import write_run

    write_traces = None if traces is None else find("writers", "traces")
    if traces is not None and write_traces is None:
        raise InputError("traces cannot be written without judged.pipelines", fix="leave out --traces")
    run_list = arguments.runs_at(runs, run_format)
    for path in (target, traces, output.out):
        arguments.keep_inputs(path, [run.where for run in run_list] + ([qrels] if qrels else []))
    if qrels is None and target is None and traces is None:
        fix = "--to FILE for the run, --traces FILE for traces, or --qrels QRELS to choose weights"
        raise InputError("an output is required", fix=f"use {fix}")
    name = target.name.partition(".")[0] if target else ""
    choice_options = {option: options.pop(option) for option in ("measure", "steps", "folds", "seed", "level")}
    if qrels is None:
        fused = fuse(
            run_list, weights=_parse_weights(weights) if weights else None, cutoff=cutoff, name=name, **options
        )
    elif weights:
        raise InputError(
            "--weight gives the weights, and --qrels asks for them to be chosen", fix="leave out one of them"
        )
    else:
        answer = choose_weights(Qrels.read(qrels, format=qrels_format), run_list, **choice_options, **options)
        fused = answer.run(cutoff=cutoff, name=name)
        output(answer)
    if target is not None:
        write_run(fused, target)
    if write_traces is not None:
        stages = {run.name: run for run in run_list} | {"fused": fused}
        parents = dict.fromkeys(stages, ()) | {"fused": tuple(run.name for run in run_list)}
        write_traces(stages, parents, traces)


def _parse_weights(texts: tuple[str, ...]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            weights[name] = read_number(number)
        except ValueError as error:
            raise InputError(f"--weight {text!r}: {number!r} {error}", fix="write RUN=W, such as bm25=0.7") from None
    return weights
