"""Command `judged serve`."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.components import serve_modules, workspace_arguments
from judged.interface import arguments
from judged.interface.options import READING, shared, with_options

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace


@click.command("serve")
@shared("qrels", required=False)
@shared("some_runs", "queries", "texts", "attributes")
@with_options(*(option for module in serve_modules() for option in module.OPTIONS))
@shared("host", "port")
@click.option("--open", "browse", is_flag=True, help="Open the workbench in the browser.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="JUDGED_TOKEN",
    help="Secret token that each request must contain. Use the environment variable JUDGED_TOKEN to hide the token"
    " from the process list.  [default: none; generated if --host is reachable from other machines]",
)
@shared(*READING)
def serve_command(
    qrels: str | None,
    runs: tuple[str, ...],
    host: str,
    port: int | None,
    browse: bool,
    token: str | None,
    **options: Any,
) -> None:
    """Explore QRELS and RUNs in the browser. Without files, the sample collection of judged is opened.

    QRELS and RUN are files that 'judged evaluate' can read. NAME=FILE names a run. --experiment opens the judgments and
    the runs of a plan, whose engines can be queried. --labels opens a store of labels for judging; without QRELS,
    nothing else is opened. All data stay on this machine. Press Ctrl-C to stop.
    """
    arguments.need_web()
    from judged.interface.pages.serving import open_listener
    from judged.web.server import prepare, serve

    listener = open_listener(host, port, token)
    address = listener.address
    prepare()
    try:
        workspace = _open_workspace(qrels, runs, options)
        _print_summary(workspace, address)
        serve(workspace, listener, ready=lambda: webbrowser.open(address) if browse else None)
    except KeyboardInterrupt:
        click.echo(err=True)  # after the ^C of the terminal
    finally:
        listener.socket.close()


def _open_workspace(qrels: str | None, runs: tuple[str, ...], options: dict[str, Any]) -> Workspace:
    """Open the files of the command line; without files, the sample."""
    from judged.data.qrels import Qrels
    from judged.interface.pages.workspace import open_sample, open_workspace

    keywords: dict[str, Any] = {name: options[name] for name in ("queries", "texts", "attributes")}
    keywords |= workspace_arguments(options | {"qrels": qrels})
    if "qrels" in keywords:  # a component such as an experiment opens its judgments and runs
        return open_workspace(**keywords)
    if qrels is None:
        if flags := [f"--{name}" for name in ("queries", "texts", "attributes") if options[name]]:
            raise click.UsageError(f"{flags[0]} requires QRELS")
        if (store := keywords.get("labels")) is not None:  # the runs of the sample have nothing to do with these labels
            return open_workspace(None, None, parts=keywords["parts"], title=store.where, labels=store)
        sample = open_sample()
        return replace(sample, parts={**sample.parts, **keywords["parts"]})
    input_runs = arguments.runs_at(runs, options["run_format"])
    with arguments.progress_bar(input_runs) as progress:
        judgments = Qrels.read(qrels, format=options["qrels_format"])
        return open_workspace(judgments, input_runs, progress=progress, **keywords)


def _print_summary(workspace: Workspace, address: str) -> None:
    from judged.results.decimals import counted

    names = workspace.run_names
    first_names = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if (store := workspace.labels) is not None:
        sizes = f"{counted(len(store.all_tasks()), 'task')}, {counted(len(store), 'label')}"
        click.echo(f"label store {store.where}: {sizes}")
    if workspace.query_ids:
        also = "" if store is None else "also open: "
        sizes = f"{counted(len(workspace.query_ids), 'topic')}, {counted(len(names), 'run')}"
        click.echo(f"{also}{workspace.title}: {sizes}")
    if names:
        click.echo(f"runs: {first_names}")
    click.echo(f"open at {address}")
    if workspace.labels is not None:
        click.echo(f"Judges open {address.partition('?')[0]}judging")
        click.echo("On other machines, judges open /judging?as=TOKEN with their own judge token.")
    click.echo("Press Ctrl-C to stop.")
