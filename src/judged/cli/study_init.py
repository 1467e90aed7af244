"""`judged study init`: a first design."""

from __future__ import annotations

from pathlib import Path

import click

from judged.cli import output
from judged.errors import InputError


@click.command("init", short_help="Write a first DESIGN, to start from.")
@click.argument("design", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing DESIGN.")
def command(design: Path, *, force: bool) -> None:
    """Write a first DESIGN with comments: a study of two rankers of the sample, which can be run as it stands."""
    from judged.data.files import exists
    from judged.studies import first_design

    if exists(design) and not force:
        fix = "give another name, or --force to overwrite it"
        raise InputError("this file exists already", fix=fix, path=str(design))
    output.write(first_design(design.name).rstrip("\n"), design)
    click.echo(f"wrote {design}; next: judged study check {design}")
