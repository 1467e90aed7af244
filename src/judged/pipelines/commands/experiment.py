"""`judged experiment`: compare configurations of search engines by effectiveness and cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.interface import arguments
from judged.interface.arguments import answer_options
from judged.interface.options import shared, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.arguments import OutputOptions
    from judged.pipelines.experiments import Results
    from judged.results import Answer

_FOLDER = click.Path(path_type=Path)


_conclusion_options = with_options(
    shared(
        "measure",
        default=None,
        help="Measure that the conclusions use. Measures that PLAN does not contain are also possible.  [default:"
        " the first measure of PLAN]",
    ),
    shared(
        "by",
        metavar="ATTRIBUTE",
        help="Topic attribute whose values define slices. The effects of settings are also estimated in each slice.",
    ),
    shared("attributes"),
    click.option(
        "--cost",
        multiple=True,
        metavar="NAME",
        help="Name of a cost, such as `index_mb`: the Pareto front shows the best configurations by measure and cost."
        " Repeat for more costs.  [default: `p50_ms`, the median latency]",
    ),
    shared(
        "margin",
        default=0.01,
        help="Largest difference from exact vector search that does not matter. Configurations with approximate search"
        " have an equivalence test with this margin.",
    ),
    shared("confidence", "correction", "resamples", "seed"),
)
"""Options of `run` and `show`."""


@click.group("experiment")
def experiment() -> None:
    """Run search engines in several configurations over documents, queries and judgments.

    PLAN is a TOML file with the documents, queries, judgments, engines, and settings (docs/experiments.md).
    """


@experiment.command("plan", short_help="Show the configurations that PLAN defines.")
@click.argument("plan")
@answer_options()
def plan(plan: str, output: OutputOptions) -> None:
    """Show the configurations of PLAN, the omitted combinations with reasons, and the number of searches."""
    from judged.pipelines.experiments import Plan

    output.keep(plan)
    output(Plan.read(plan))


@experiment.command("run", short_help="Run the configurations of PLAN, and find the best one.")
@click.argument("plan")
@click.option(
    "--to",
    "folder",
    type=_FOLDER,
    metavar="FOLDER",
    help="Folder for the results.  [default: the name of PLAN without .toml, in the current folder]",
)
@_conclusion_options
@answer_options()
@click.pass_context
def run(context: click.Context, plan: str, folder: Path | None, output: OutputOptions, **options: Any) -> None:
    """Run each configuration of PLAN in its own process, and find the best configuration.

    The same command continues a stopped experiment. The exit code is 1 if a configuration failed.
    """
    from judged.pipelines.experiments import Plan, load, run
    from judged.pipelines.experiments.runner import pending_configurations

    output.keep(plan)
    plan_to_run, target = Plan.read(plan), folder or Path(Path(plan).stem)
    try:
        with arguments.bar("running", len(pending_configurations(plan_to_run, target))) as progress_bar:
            results = run(
                plan_to_run,
                target,
                progress=progress_bar or _print_configurations(len(pending_configurations(plan_to_run, target))),
            )
    except KeyboardInterrupt:
        pending = len(pending_configurations(plan_to_run, target))
        total = len(plan_to_run.configurations)
        done = f"{total - pending} of {total} configurations done in {target}"
        click.echo(f"stopped: {done}. Run the same command again to continue.", err=True)
        raise
    if options["measure"]:
        results = load(target, options["measure"])
    output(_conclude(results, **options))
    if results.failures:
        context.exit(1)


def _print_configurations(count: int) -> Callable[[str, int], None]:
    """Return a progress callback that prints a line for each configuration if there is no progress bar."""
    names = dict[str, None]()

    def print_name(label: str, _: int) -> None:
        name = label.partition(": ")[0]
        if name not in names:
            names[name] = None
            click.echo(f"running {len(names)} of {count}: {name}", err=True)

    return print_name


@experiment.command("show", short_help="Show the conclusions from the experiment results in FOLDER.")
@click.argument("folder", type=_FOLDER)
@_conclusion_options
@answer_options()
def show(folder: Path, output: OutputOptions, **options: Any) -> None:
    """Show the conclusions from the results in FOLDER. The experiment can be unfinished."""
    from judged.pipelines.experiments import load

    output(_conclude(load(folder, options["measure"] or ()), **options))


def _conclude(
    results: Results, by: tuple[str, ...], attributes: str | None, cost: tuple[str, ...], **options: Any
) -> Answer:
    """Draw the conclusions; of a single configuration, return its scores."""
    from judged.pipelines.experiments import conclude

    if len(results.levels) == 1:
        return results.scores
    texts = {query: results.queries.text(query) for query in results.qrels.topics}
    return conclude(results, attributes=attributes, by=by or None, cost=cost or None, queries=texts, **options)
