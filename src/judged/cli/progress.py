"""A progress bar on standard error, gone when the work is done."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import click

from judged.tables import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_REST = len("  []  100%  00:00:00") + 1  # columns: what stands beside the label and the bar
_BARE, _FULL = "%(label)s", "%(label)s  [%(bar)s]  %(info)s"
_UP, _ERASE = "\033[1A", "\r\033[2K"


@contextmanager
def bar(label: str, length: int) -> Generator[Callable[[str, int | None], None] | None]:
    """Draw a bar on a terminal; take a label and more steps, or None where nobody knows how many there will be."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    width = columns // 3
    half = max(1, (columns - width - _REST - 3) // 2)

    def fitting(label: str) -> str:
        text = visible(label)
        return text if len(text) <= 2 * half + 3 else f"{text[:half]}...{text[-half:]}"

    drawn = click.progressbar(
        length=length,
        label=fitting(label),
        bar_template=_BARE,
        file=sys.stderr,
        width=width,
        update_min_steps=0,
    )
    lock, show = Lock(), warnings.showwarning  # threads may read, and warn

    def tell(label: str, steps: int | None) -> None:
        with lock:
            drawn.label = fitting(label)
            drawn.bar_template = _BARE if steps is None else _FULL
            drawn.update(steps or 0)

    def show_above(*warning: Any) -> None:
        with lock:
            click.echo(_ERASE, err=True, nl=False)
            show(*warning)

    warnings.showwarning = show_above
    try:
        with drawn:
            yield tell
    finally:
        warnings.showwarning = show
        click.echo(_UP + _ERASE, err=True, nl=False)
