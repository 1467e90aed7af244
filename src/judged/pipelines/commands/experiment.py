"""`judged experiment`: which configuration of a search engine is best, and what it costs."""

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


_concluding = with_options(
    shared("measure", default=None, help="Conclude by it; PLAN need not name it.  [default: the first of PLAN]"),
    shared("by", metavar="ATTRIBUTE", help="Also show effects by this attribute of topics."),
    shared("attributes"),
    click.option(
        "--cost", multiple=True, metavar="NAME", help="A cost of the front. Repeat for more.  [default: p50_ms]"
    ),
    shared("confidence", "correction", "resamples", "seed"),
)
"""The options of what is concluded."""


@click.group("experiment")
def experiment() -> None:
    """Run search engines in several configurations over documents, queries and judgments.

    PLAN is a TOML file: what is searched, and which settings are tried (docs/experiments.md).
    """


@experiment.command("plan", short_help="Show what PLAN would run.")
@click.argument("plan")
@answer_options()
def plan(plan: str, output: OutputOptions) -> None:
    """Show the configurations of PLAN, what is left out of it and why, and how much there is to do."""
    from judged.pipelines.experiments import Plan

    output.keep(plan)
    output(Plan.read(plan))


@experiment.command("run", short_help="Run PLAN, or what is left of it, and conclude.")
@click.argument("plan")
@click.option(
    "--to",
    "folder",
    type=_FOLDER,
    metavar="FOLDER",
    help="Folder of the results.  [default: in the current folder, the name of PLAN without .toml]",
)
@_concluding
@answer_options()
@click.pass_context
def run(context: click.Context, plan: str, folder: Path | None, output: OutputOptions, **options: Any) -> None:
    """Run PLAN, each configuration in a process of its own, and say what may be concluded.

    An experiment that was stopped continues where it was. The exit code is 1 if a configuration failed.
    """
    from judged.pipelines.experiments import Plan, load, run
    from judged.pipelines.experiments.runner import waiting

    output.keep(plan)
    read, target = Plan.read(plan), folder or Path(Path(plan).stem)
    try:
        with arguments.bar("running", len(waiting(read, target))) as tell:
            results = run(read, target, progress=tell or _print_configurations(len(waiting(read, target))))
    except KeyboardInterrupt:
        left = len(waiting(read, target))
        done = len(read.configurations) - left
        click.echo(f"stopped: {done} done, {left} left in {target}; the same command goes on", err=True)
        raise
    if options["measure"]:
        results = load(target, options["measure"])
    output(_concluded(results, **options))
    if results.failures:
        context.exit(1)


def _print_configurations(count: int) -> Callable[[str, int], None]:
    """Return what prints a line for each configuration, where no progress bar is drawn."""
    seen = dict[str, None]()

    def tell(label: str, _: int) -> None:
        name = label.partition(": ")[0]
        if name not in seen:
            seen[name] = None
            click.echo(f"running {len(seen)} of {count}: {name}", err=True)

    return tell


@experiment.command("show", short_help="Conclude from the results in FOLDER.")
@click.argument("folder", type=_FOLDER)
@_concluding
@answer_options()
def show(folder: Path, output: OutputOptions, **options: Any) -> None:
    """Say what may be concluded from the results in FOLDER, also before all configurations were run."""
    from judged.pipelines.experiments import load

    output(_concluded(load(folder, options["measure"] or ()), **options))


def _concluded(
    results: Results, by: tuple[str, ...], attributes: str | None, cost: tuple[str, ...], **options: Any
) -> Answer:
    """Conclude; of one configuration alone give its scores."""
    from judged.pipelines.experiments import conclude

    if len(results.levels) == 1:
        return results.scores
    texts = {query: results.queries.text(query) for query in results.qrels.topics}
    return conclude(results, attributes=attributes, by=by or None, cost=cost or None, queries=texts, **options)
