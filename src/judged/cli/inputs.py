"""What commands read: runs as they are named on the command line, and how far reading has come."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from judged.cli.progress import bar
from judged.errors import InputError, JudgedWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from judged.data import Run

_LONG_WORK = 50_000_000  # bytes: what takes long enough to look at a progress bar


def runs_at(texts: Sequence[str], run_format: str | None) -> list[Run]:
    """Give the runs of FILE and NAME=FILE; they are read when they are used."""
    return [run for text in texts for run in _runs(text, run_format)]


def _runs(text: str, run_format: str | None) -> list[Run]:
    from judged.data import Run, split_runs

    name, path = named(text)
    name = name.encode(errors="backslashreplace").decode()
    run = Run.scan(path, format=run_format, name=name or None)
    return split_runs(run.rows, run.name)


def named(text: str) -> tuple[str, str]:
    """Read NAME=FILE, or FILE without a name."""
    from judged.data.files import exists

    name, equals, path = text.partition("=")
    return (name, path) if equals and not exists(text) else ("", text)


def keep_inputs(out: Path | None, inputs: Sequence[str]) -> None:
    """Refuse to write the result over a file that it is made of."""
    from judged.data.files import exists

    if out is None or not exists(out) or not out.is_file():
        return
    for path in inputs:
        if exists(path) and out.samefile(path):
            raise InputError("this file is an input", fix="write the result to another file", path=str(out))


def form_of(out: Path | None, known: Mapping[str, str]) -> str:
    """Tell the form of a result by the end of the file's name."""
    from judged.answer.by_name import form_by_name

    return form_by_name(out or "", known, "a result", ask="--format")


@contextmanager
def scoring(runs: Sequence[Run]) -> Generator[Callable[[str, int], None] | None]:
    """Show a progress bar, and keep back the warnings that are part of the result, and shown from there."""
    with warnings.catch_warnings(), progress_bar(runs) as tell:
        warnings.simplefilter("ignore", JudgedWarning)
        yield tell


@contextmanager
def progress_bar(runs: Sequence[Run]) -> Generator[Callable[[str, int], None] | None]:
    """Show a progress bar on a terminal, where there is much to read."""
    from judged.data.files import exists

    total = sum(Path(run.where).stat().st_size for run in runs if exists(run.where))
    with bar("reading", total) if total >= _LONG_WORK else nullcontext() as tell:
        yield tell
