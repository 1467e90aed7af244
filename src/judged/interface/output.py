"""Where results and notes go: standard output or a file, and standard error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from judged.results.escaping import on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write(made: str | bytes, output: Path | None) -> None:
    """Print a result, or put it into a file, whole or not at all."""
    if output is None or str(output) == "-":
        click.echo(made)
        return
    from judged.results.files import replaced

    with replaced(output) as temporary:
        if isinstance(made, bytes):
            temporary.write_bytes(made)
        else:
            temporary.write_text(made + "\n", encoding="utf-8", errors="backslashreplace")


def notes(texts: Iterable[str]) -> None:
    """Print warnings to standard error."""
    label = click.style("warning:", fg="yellow") if coloured(sys.stderr.isatty()) else "warning:"
    for text in texts:
        click.echo(f"{label} {on_terminal(text)}", err=True)


def coloured(terminal: bool) -> bool:
    """Whether to write colours: only to a terminal, and not where NO_COLOR forbids it."""
    return terminal and not os.environ.get("NO_COLOR")


def width() -> int | None:
    """Give the width to fit tables into: that of the terminal, or COLUMNS; none into a pipe or a file."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        import shutil  # it imports every way to compress

        return shutil.get_terminal_size().columns
    return None
