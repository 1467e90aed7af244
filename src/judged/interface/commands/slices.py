"""`judged slices`: scores and differences by slices of the topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, slice_options
from judged.interface.options import DEFAULT_TEST, PAIRED_TESTS, POLICIES, READING, Choice, shared

if TYPE_CHECKING:
    from judged.data.run import Run
    from judged.interface.arguments import OutputOptions


_COMPARISON_OPTIONS = ("test", "correction", "alpha", "resamples", "margin", "family")


@click.command("slices")
@shared("qrels", "runs")
@slice_options
@shared("class_measures")
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME",
    help="Also show means with topics weighted by this numeric attribute, such as traffic."
    " To give each relevant document the same weight, use the attribute `relevant` (number of relevant documents).",
)
@click.option("--baseline", metavar="RUN", help="Baseline run: each other run is compared with this run on each slice.")
@click.option("--compare", "pair", is_flag=True, help="Compare the second run with the first run on each slice.")
@shared("measures")
@click.option(
    "--test",
    type=Choice(PAIRED_TESTS),
    metavar="TEST",
    help=f"Paired test: {', '.join(PAIRED_TESTS)}.  [default: {DEFAULT_TEST}]",
)
@click.option(
    "--family",
    type=Choice("judged.comparison.choices:Family"),
    default="all",
    show_default=True,
    help="Tests whose p-values are corrected together. measure: all tests by one measure; all: the tests of all"
    " slices, pairs, and measures.",
)
@shared("correction", "alpha", "resamples", "margin", "ci", "level", "seed", *POLICIES)
@shared("as_of", "freshness_bands")
@answer_options()
@shared(*READING)
def slices_command(
    qrels: str,
    runs: tuple[str, ...],
    weights: tuple[str, ...],
    baseline: str | None,
    pair: bool,
    measure: tuple[str, ...],
    slicing_options: SliceOptions,
    output: OutputOptions,
    **options: Any,
) -> None:
    """Show the scores of RUNs by slice of the topics. With --baseline, test the differences on each slice.

    Topics are sliced by attributes (--by) or by definitions in a file (--slices). Attributes are read from a table
    (--attributes), from other columns of the query file (--queries), or derived from the queries and the qrels. Slices
    with few topics are shown but not tested or ranked.
    """
    from judged.scoring.evaluation.evaluate import evaluate_without_warnings
    from judged.scoring.evaluation.inputs import attributes_of

    has_comparison = pair or baseline is not None
    _check_effects(weights, has_comparison=has_comparison, is_bootstrap=options["ci"] == "bootstrap")
    judgments, run_list = output.inputs(qrels, runs, options, *slicing_options.paths, options["documents"])
    documents = arguments.documents_with_ages(options)
    first = _baseline_run(run_list, baseline, pair=pair)
    if slicing_options.class_measures and len(measure) > 1:
        problem = f"at most one default measure can be combined with --class-measures, got {len(measure)}"
        raise InputError(problem, fix="use -m once, for the classes without their own measure")
    slicing_options = replace(slicing_options, default_measure="".join(measure))
    attributes = slicing_options.topic_attributes(
        judgments, first, names=(*weights, *attributes_of(measure)), documents=documents
    )
    judgments = slicing_options.filter_topics(judgments, first, documents)
    slicing = slicing_options.slice_topics(attributes, judgments.topics)
    evaluated = tuple(filter(None, slicing.class_measures)) or measure or None
    policies = {name: options[name] for name in (*POLICIES, "seed")}
    with arguments.scoring(run_list) as progress:
        scores = evaluate_without_warnings(
            judgments, run_list, evaluated, progress=progress, attributes=attributes, **policies
        )
    used_options = (
        _COMPARISON_OPTIONS if has_comparison else ("ci", "level", *(["resamples"] if options["resamples"] else []))
    )
    used_values = {name: options[name] for name in (*used_options, "seed")}
    if has_comparison:
        answer: Any = scores.compare_slices(slicing, first.name, **used_values)
    else:
        answer = scores.by_slice(slicing, weights=weights or None, **used_values)
    output(replace(answer, notes=(*slicing_options.notes(first), *answer.notes)))


def _baseline_run(runs: list[Run], baseline: str | None, *, pair: bool) -> Run:
    """Return the baseline; without a comparison, the run whose outcomes define slices."""
    if pair and baseline is not None:
        raise InputError("--compare and --baseline cannot be combined", fix="use only one of the two options")
    if pair and len(runs) != 2:
        raise InputError(f"--compare requires two runs, got {len(runs)}", fix="pass two runs, or use --baseline RUN")
    return arguments.baseline_run({"baseline": baseline}, runs)


def _check_effects(weights: tuple[str, ...], *, has_comparison: bool, is_bootstrap: bool) -> None:
    """Raise an error for an option without effect."""
    context = click.get_current_context()
    exception = "resamples" if is_bootstrap and not has_comparison else ""
    for name in ("ci", "level") if has_comparison else _COMPARISON_OPTIONS:
        if name != exception and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            fix = (
                f"omit --{name}; --alpha sets the level of the confidence intervals"
                if has_comparison
                else "add --baseline RUN or --compare"
            )
            raise InputError(f"--{name} has no effect {'with' if has_comparison else 'without'} a comparison", fix=fix)
    if has_comparison and weights:
        raise InputError(
            "--weights has no effect with a comparison", fix="omit --weights, or omit --baseline and --compare"
        )
