"""`judged watch`: is a running system still what its baseline was? Exit code 0: yes; 1: no; 2: wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import output
from judged.cli.formats import answer_options
from judged.cli.logs import log_options, opened
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("watch", short_help="Is a running system still what its baseline was?")
@click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))
@click.argument("paths", nargs=-1, metavar="[LOG]...")
@click.option("--init", is_flag=True, help="Write a first CONFIG for LOG in place of looking.")
@click.option("--force", is_flag=True, help="Let --init overwrite an existing CONFIG.")
@click.option("--keep/--no-keep", default=True, show_default=True, help="Whether the state file remembers LOG.")
@click.option("--prometheus", type=click.Path(path_type=Path), metavar="FILE", help="Also write series for Prometheus.")
@log_options
@answer_options()
def command(
    config: Path,
    paths: tuple[str, ...],
    give: Give,
    *,
    init: bool,
    force: bool,
    keep: bool,
    prometheus: Path | None,
    **options: Any,
) -> None:
    """Hold all series of CONFIG against their baseline: what is new in LOG, canary queries, and tables.

    Made for cron: what was seen stays in the state file that CONFIG names, and running twice changes nothing.
    Exit code 0: nothing is off; 1: a series is, or a deployment should be taken back; 2: wrong input.
    """
    from judged.data.files import exists
    from judged.online.watch import first_config, read_watch, watch

    if init:
        if exists(config) and not force:
            fix = "give another name, or --force to overwrite it"
            raise InputError("this file exists already", fix=fix, path=str(config))
        with opened(paths, give, options) as log:
            output.write(first_config(log, config.with_suffix(".json").name).rstrip("\n"), config)
        return
    asked = read_watch(config)
    if paths:
        with opened(paths, give, options) as log:
            found = watch(asked, log, keep=keep)
    else:
        found = watch(asked, keep=keep)
    if prometheus:
        output.write(found.prometheus().rstrip("\n"), prometheus)
    give(found)
    if not found.calm:
        raise SystemExit(1)
