"""`judged experiment`: which configuration of a search engine is best, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli import inputs
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give

_FOLDER = click.Path(path_type=Path)


@click.group("experiment", short_help="Run search engines in several configurations, and say which is best.")
def command() -> None:
    """Run search engines in several configurations over documents, queries and judgments.

    PLAN is a TOML file: what is searched, and which settings are tried (docs/experiments.md).
    """


@command.command("plan", short_help="Show what PLAN would run.")
@click.argument("plan")
@answer_options()
def plan(plan: str, give: Give) -> None:
    """Show the configurations of PLAN, what is left out of it and why, and how much there is to do."""
    from judged.experiments import Plan

    give.keep(plan)
    give(Plan.read(plan))


@command.command("run", short_help="Run PLAN, or what is left of it.")
@click.argument("plan")
@click.option(
    "--to",
    "folder",
    type=_FOLDER,
    metavar="FOLDER",
    help="Where results go.  [default: the name of PLAN, without .toml]",
)
@answer_options()
@click.pass_context
def run(context: click.Context, plan: str, folder: Path | None, give: Give) -> None:
    """Run PLAN, each configuration in a process of its own, and say what may be concluded.

    What was run already is not run again, whenever it was stopped. The exit code is 1 if a configuration failed.
    """
    from judged.experiments import Plan, conclude, run
    from judged.experiments.runner import waiting

    give.keep(plan)
    read, target = Plan.read(plan), folder or Path(Path(plan).stem)
    with inputs.bar("running", len(waiting(read, target))) as tell:
        results = run(read, target, progress=tell)
    give(conclude(results))
    if results.failures:
        context.exit(1)


@command.command("show", short_help="Say what may be concluded from the results in FOLDER.")
@click.argument("folder", type=_FOLDER)
@answer_options()
def show(folder: Path, give: Give) -> None:
    """Say what may be concluded from the results in FOLDER, also before all configurations were run."""
    from judged.experiments import conclude, load

    give(conclude(load(folder)))
