"""`judged slices`: scores and differences by slices of the topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import SliceOptions, answer_options, slice_options
from judged.interface.options import DEFAULT_TEST, FORMATS, PAIRED_TESTS, POLICIES, Choice, shared

if TYPE_CHECKING:
    from judged.data.run import Run
    from judged.interface.arguments import Give


_TESTED = ("test", "correction", "alpha", "resamples", "margin", "family")


@click.command("slices")
@shared("qrels", "runs")
@slice_options
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME",
    help="Also average with topics weighted by this numeric attribute, such as traffic;"
    " relevant gives every relevant document the same weight.",
)
@click.option("--baseline", metavar="RUN", help="Compare every other run with this one, slice by slice.")
@click.option("--compare", "pair", is_flag=True, help="Compare the second of two runs with the first.")
@shared("measures")
@click.option(
    "--test",
    type=Choice(PAIRED_TESTS),
    metavar="TEST",
    help=f"Test of each pair: {', '.join(PAIRED_TESTS)}.  [default: {DEFAULT_TEST}]",
)
@click.option(
    "--family",
    type=Choice("judged.comparison.choices:Family"),
    default="all",
    show_default=True,
    help="What is corrected together: all slices, pairs and measures, or those of each measure separately.",
)
@shared("correction", "alpha", "resamples", "margin", "ci", "level", "seed", *POLICIES)
@answer_options()
@shared(*FORMATS)
def slices_command(
    qrels: str,
    runs: tuple[str, ...],
    weights: tuple[str, ...],
    baseline: str | None,
    pair: bool,
    measure: tuple[str, ...],
    asked: SliceOptions,
    give: Give,
    **options: Any,
) -> None:
    """Show the scores of RUNs by slices of the topics or, with --baseline, where they differ.

    Slices are cut by attributes of topics (--by), which come from a table (--attributes), stand beside the query
    texts (--queries), or are derived from these and the qrels; or they are defined in a file (--slices). A slice with
    few topics is shown, but neither tested nor ranked.
    """
    from judged.scoring.evaluation.evaluate import evaluate_without_warnings
    from judged.scoring.evaluation.inputs import attributes_of

    tested = pair or baseline is not None
    _refuse_unused(weights, tested=tested, bootstrap=options["ci"] == "bootstrap")
    judgments, given = give.inputs(qrels, runs, options, *asked.paths, options["documents"])
    first = _first(given, baseline, pair=pair)
    known = asked.known(judgments, first, names=(*weights, *attributes_of(measure)), documents=options["documents"])
    judgments = asked.narrowed(judgments, first)
    slicing = asked.cut(known, judgments.topics)
    policies = {name: options[name] for name in (*POLICIES, "seed")}
    with arguments.scoring(given) as progress:
        scores = evaluate_without_warnings(
            judgments, given, measure or None, progress=progress, attributes=known, **policies
        )
    used = _TESTED if tested else ("ci", "level", *(["resamples"] if options["resamples"] else []))
    how = {name: options[name] for name in (*used, "seed")}
    if tested:
        answer: Any = scores.compare_slices(slicing, first.name, **how)
    else:
        answer = scores.by_slice(slicing, weights=weights or None, **how)
    give(replace(answer, notes=(*asked.notes(first), *answer.notes)))


def _first(runs: list[Run], baseline: str | None, *, pair: bool) -> Run:
    """Choose the run that others are compared with; without a comparison, the one by which outcomes are cut."""
    if pair and baseline is not None:
        raise InputError("--compare and --baseline both say what is compared", fix="give one of them")
    if pair and len(runs) != 2:
        raise InputError(f"--compare takes two runs, and there are {len(runs)}", fix="name one with --baseline")
    if baseline is None:
        return runs[0]
    from judged.data.run import run_named

    named = {run.name: run for run in runs}
    return named[run_named(baseline, named, "to use as the baseline")]


def _refuse_unused(weights: tuple[str, ...], *, tested: bool, bootstrap: bool) -> None:
    """Refuse options that would change nothing."""
    context = click.get_current_context()
    used = "resamples" if bootstrap and not tested else ""
    for name in ("ci", "level") if tested else _TESTED:
        if name != used and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            fix = "leave it out; --alpha sets the level of intervals" if tested else "add --baseline RUN, or --compare"
            raise InputError(f"--{name} has no effect {'on tests' if tested else 'without a comparison'}", fix=fix)
    if tested and weights:
        raise InputError(
            "--weights applies to scores by slice, not to tests", fix="leave out --weights, or the comparison"
        )
