"""`judged study export`: what was recorded, as tables and as a log."""

from __future__ import annotations

from pathlib import Path

import click

from judged.results.decimals import counted


@click.command("export", short_help="Write what was recorded, as tables and as a log.")
@click.argument("store")
@click.option("-o", "--out", "folder", required=True, metavar="FOLDER", help="Where to.")
@click.option("--personal", is_flag=True, help="With what says who somebody is, if the design asks for it.")
def command(store: str, folder: str, personal: bool) -> None:
    """Write the tables of STORE into FOLDER as JSON Lines, and log.ndjson, which 'judged online' reads.

    It can be done while the study runs.
    """
    from judged.studies.log import write_log
    from judged.studies.storage import StudyStore

    opened = StudyStore.open(store)
    records = opened.records(personal=personal)
    opened.close()
    records.write(folder)
    write_log(records, Path(folder) / "log.ndjson")
    done, started = (records["trials"].column(name).drop_null() for name in ("ended", "started"))
    people = counted(records["participants"].num_rows, "participant")
    click.echo(f"{folder}: {people}, {counted(len(started), 'task')} begun, {len(done)} ended")
