"""`judged serve`: the workbench in the browser."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.options import FORMATS, shared
from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from judged.labels.store import LabelStore
    from judged.web.workspace import Workspace

_NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart")


@click.command("serve", short_help="Explore QRELS and RUNs in the browser.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@shared("queries", "texts", "attributes")
@click.option("--traces", multiple=True, metavar="FILE", help="Traces, as for 'judged traces'. Repeat for more.")
@click.option(
    "--log", "logs", multiple=True, metavar="LOG", help="What users did, as for 'judged clicks'. Repeat for more."
)
@click.option("--watch", metavar="CONFIG", help="A watch over production, as for 'judged watch'.")
@click.option("--rag", metavar="RESPONSES", help="Answers, as for 'judged rag'.")
@click.option("--experiment", metavar="PLAN", help="Engines to try queries on, as for 'judged experiment'; no QRELS.")
@click.option(
    "--results",
    metavar="FOLDER",
    help="What running PLAN left behind.  [default: where 'judged experiment run' puts it, if it was run]",
)
@click.option(
    "--labels",
    metavar="STORE",
    help="Labels to be judged in the browser: a file, or postgresql://...",
)
@shared("host", "port")
@click.option("--open", "browse", is_flag=True, help="Open the browser.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="JUDGED_TOKEN",
    help="A secret that every visitor must present; set as JUDGED_TOKEN, it stays out of the"
    " process list.  [default: none; generated if --host is reachable from other machines]",
)
@shared(*FORMATS)
def serve_command(
    qrels: str | None,
    runs: tuple[str, ...],
    host: str,
    port: int | None,
    browse: bool,
    token: str | None,
    **options: Any,
) -> None:
    """Explore QRELS and RUNs in the browser; without files, the sample that ships with judged.

    QRELS and RUN are files as for 'judged evaluate'; NAME=FILE names a run. With --experiment the plan's judgments and
    the runs of its configurations are open, and its engines can be asked. With --labels its tasks can be judged, also
    without QRELS. Everything is read, computed and shown on
    this machine. Ctrl-C stops it.
    """
    need_web()
    from judged.pipelines.rag import Responses
    from judged.web.server import place, prepare, serve

    where = place(host, port, token)
    address = where.address
    prepare()
    try:
        workspace = replace(_workspace(qrels, runs, options), labels=_labels(options["labels"]))
        if options["logs"]:
            workspace = replace(workspace, log=options["logs"])
        if options["watch"]:
            workspace = replace(workspace, watch=options["watch"])
        if options["rag"]:
            workspace = replace(workspace, responses=Responses.of(options["rag"]))
        _tell(workspace, address)
        serve(workspace, where, ready=lambda: webbrowser.open(address) if browse else None)
    except KeyboardInterrupt:
        click.echo(err=True)  # after the ^C of the terminal
    finally:
        where.socket.close()


def need_web() -> None:
    """Refuse to go on where something is missing that pages need."""
    import importlib

    for name in _NEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            raise MissingExtraError(name.replace("_", "-"), "web") from None


def _workspace(qrels: str | None, runs: tuple[str, ...], options: dict[str, Any]) -> Workspace:
    """Open what was named, or the sample."""
    from judged.data.qrels import Qrels
    from judged.web.workspace import open_sample, open_workspace

    opened = {name: options[name] for name in ("queries", "texts", "attributes", "traces")}
    if options["experiment"]:
        if given := [f"--{name}" for name in ("queries", "texts", "traces") if opened[name]] or ["QRELS"] * bool(qrels):
            raise click.UsageError(f"{given[0]} goes without --experiment: the plan names its own files")
        return _experiment(options["experiment"], options["results"], options["attributes"])
    if options["results"]:
        raise click.UsageError("--results needs --experiment, the plan that they are of")
    if qrels is None:
        if given := [f"--{name}" for name, path in opened.items() if path]:
            raise click.UsageError(f"{given[0]} needs QRELS")
        return open_sample()
    found = inputs.runs_at(runs, options["run_format"])
    with inputs.progress_bar(found) as progress:
        return open_workspace(
            Qrels.read(qrels, format=options["qrels_format"]),
            found,
            progress=progress,
            **opened,
        )


def _experiment(plan: str, folder: str | None, attributes: str | None) -> Workspace:
    from judged.pipelines.experiments import load
    from judged.web.workspace import open_experiment

    place = folder or Path(plan).stem
    results = load(place) if folder or Path(place, "plan.json").is_file() else None
    return open_experiment(plan, results, attributes, f"experiment {Path(plan).stem}")


def _labels(where: str | None) -> LabelStore | None:
    from judged.labels.store import LabelStore

    if where is not None and "://" not in where and not Path(where).is_file():
        raise InputError("there is no such store", fix=f"make it: judged labels new {where}", path=where)
    return None if where is None else LabelStore.open(where)


def _tell(workspace: Workspace, address: str) -> None:
    """Say what is open and where."""
    from judged.results.decimals import counted

    names = workspace.run_names
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    click.echo(f"{workspace.title}: {counted(len(workspace.query_ids), 'topic')}, {counted(len(names), 'run')}")
    if names:
        click.echo(f"runs: {shown}")
    click.echo(f"open at {address}")
    if workspace.labels is not None:
        click.echo("judges go to /judging there, with ?as= and their token where they come from other machines")
    click.echo("Ctrl-C stops it")
