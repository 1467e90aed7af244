"""Standard output and standard error that say so when nothing can be written to them."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from judged.errors import OutputError
from judged.tables import on_terminal


class _Descriptor(io.FileIO):
    """A file descriptor whose failures are told apart from those of every other file.

    They are no OSError: Click would end one for a reader that left with 1, which means "no" here.
    """

    def __init__(self, descriptor: int, called: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._called = called

    def write(self, content: object, /) -> int:  # type: ignore[override]
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputError(self._called, error) from None


class _Terminal(io.TextIOWrapper):
    """A terminal that takes no orders from names in files."""

    def write(self, text: str, /) -> int:
        super().write(on_terminal(text))
        return len(text)


def guard() -> None:
    """Put streams in the place of Python's that know how to fail; what cannot be encoded is written as an escape."""
    if os.name != "posix":  # a console of Windows is no file descriptor
        return
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  so it is where it was closed (>&-)
        sys.stdout = stream(os.open(os.devnull, os.O_RDONLY), "utf-8", "strict")
    else:
        sys.stdout = stream(sys.stdout.fileno(), sys.stdout.encoding, sys.stdout.errors or "strict")
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = stream(sys.stderr.fileno(), sys.stderr.encoding, sys.stderr.errors or "strict", "standard error")


def stream(descriptor: int, encoding: str, errors: str, called: str = "standard output") -> TextIO:
    """Write to a descriptor, whose failures become an `OutputError`."""
    file = _Descriptor(descriptor, called)
    escaped = "backslashreplace" if errors in {"strict", "surrogateescape"} else errors
    by_line = file.isatty() or called == "standard error"
    shown = _Terminal if file.isatty() and called == "standard output" else io.TextIOWrapper
    return shown(io.BufferedWriter(file), encoding, escaped, line_buffering=by_line)
