"""`judged measures`: the catalogue, or one measure's page."""

from __future__ import annotations

import click


@click.command("measures", short_help="List the measures, or show the page of one.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the measures, or show the page of NAME: definition, formula, parameters, pitfalls."""
    from judged.scoring.measures.pages import catalogue, page

    click.echo(page(name) if name else catalogue())
