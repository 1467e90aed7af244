"""What commands over answers share: the stages before the context, and the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli import inputs
from judged.cli.options import shared

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])

_RUN = "A run behind the answers, by its stage in the order of the pipeline, or by system: NAME=RUN. Repeat for more."


def sources(command: Command) -> Command:
    """Give a command RESPONSES, and what stands before them: QRELS, runs and the corpus."""
    for option in (
        click.option("--corpus", metavar="FILE", help="All documents, or their ids, one on each line."),
        click.option("--run", "runs", multiple=True, metavar="[NAME=]RUN", help=_RUN),
        click.option("--qrels", metavar="FILE", help="Judgments: which documents are relevant."),
        click.argument("responses"),
    ):
        command = option(command)
    return shared("qrels_format", "run_format")(command)


def before(runs: tuple[str, ...], run_format: str | None) -> dict[str, Any] | None:
    """Give runs by name, as they are given; None where there are none."""
    return {run.name: run for run in inputs.runs_at(runs, run_format)} or None


def ids(corpus: str | None) -> list[str] | None:
    """Read the ids of the corpus."""
    from judged.data.texts import document_ids

    return document_ids(corpus) if corpus else None
