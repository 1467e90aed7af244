"""What commands read: runs as they are named on the command line, and how far reading has come."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError, JudgedWarning, MissingExtraError
from judged.results.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from judged.data.run import Run

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


_LONG_WORK = 50_000_000  # bytes: what takes long enough to look at a progress bar


def runs_at(texts: Sequence[str], run_format: str | None) -> list[Run]:
    """Give the runs of FILE and NAME=FILE; they are read when they are used."""
    return [run for text in texts for run in _runs(text, run_format)]


def _runs(text: str, run_format: str | None) -> list[Run]:
    from judged.data.run import Run, split_runs
    from judged.data.sources import files_of

    name, path = named(text)
    name = name.encode(errors="backslashreplace").decode()
    found = files_of(path)
    if name and len(found) > 1:
        problem = f"{len(found)} files for one name, {name}"
        raise InputError(problem, fix="leave out the name: each file is a run of its own", path=path)
    scanned = [Run.scan(file, format=run_format, name=name or None) for file in found]
    return [run for each in scanned for run in split_runs(each.rows, each.name)]


def named(text: str) -> tuple[str, str]:
    """Read NAME=FILE, or FILE without a name."""
    from judged.data.files import exists
    from judged.data.sources import is_address

    name, equals, path = text.partition("=")
    if equals and not path and not exists(text):
        raise InputError(f"{text!r} names no file", fix="write NAME=FILE")
    return (name, path) if equals and not exists(text) and not is_address(text) else ("", text)


def refuse_measures(*paths: str) -> None:
    """Refuse a measure in a file's place (one ``-m`` takes the next word alone), and standard input as two files."""
    from judged.data.files import exists
    from judged.errors import JudgedError
    from judged.scoring.measures.grammar import parse_many

    if [named(path)[1] for path in paths].count("-") > 1:
        raise InputError("standard input (-) cannot be two files", fix="name the other file")
    for path in paths:
        if path == "-" or exists(named(path)[1]):
            continue
        try:
            measures = parse_many(path)
        except JudgedError:
            continue
        fix = f"repeat -m: -m {measures[0]}; or separate measures with commas: -m nDCG@10,{path}"
        raise InputError(f"{path} is a measure where a file is expected", fix=fix)


def keep_inputs(out: Path | None, inputs: Sequence[str]) -> None:
    """Refuse to write the result over a file that it is made of."""
    from judged.data.files import exists

    if out is None or not exists(out) or not out.is_file():
        return
    for path in inputs:
        if exists(path) and out.samefile(path):
            raise InputError("this file is an input", fix="write the result to another file", path=str(out))


def form_of(out: Path | None, known: Mapping[str, str]) -> str:
    """Return the format of a result by the end of the file's name; a command that writes other files has ``--to``."""
    from judged.results.answer import form_by_name

    to = [param for param in click.get_current_context().command.params if "--to" in param.opts]
    other = [f"--to {param.metavar}" for param in to if isinstance(param, click.Option) and param.metavar]
    return form_by_name(out or "", known, "a result", ask=" or ".join(["--format", *other]))


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
    from judged.data.part_rows import PartRows
    from judged.scoring.judging.join import in_memory

    files = [
        file.where
        for run in runs
        if not in_memory(run.rows)
        for file in ([rows for rows, _ in run.rows.read] if isinstance(run.rows, PartRows) else [run])
    ]
    total = sum(Path(file).stat().st_size for file in files if exists(file))
    with bar("reading", total) if total >= _LONG_WORK else nullcontext() as tell:
        yield tell


_WEB = ("fastapi", "uvicorn", "jinja2", "python_multipart")


def need_web() -> None:
    """Refuse to go on where something is missing that pages need."""
    for name in _WEB:
        try:
            importlib.import_module(name)
        except ImportError:
            raise MissingExtraError(name.replace("_", "-"), "web") from None
