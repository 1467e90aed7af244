"""`--format` and `-o`: an answer goes to standard output or a file, in the form that is asked for."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError
from judged.interface import inputs
from judged.results.answer import FORMS, PICTURES, SUFFIXES
from judged.results.escaping import on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results import Answer

    Command = TypeVar("Command", bound=Callable[..., Any])


_ASCII = str.maketrans("↑↓│…█▉▊▋▌▍▎▏", "^v|~#######|")
_NOT_PRINTED = {*PICTURES, "parquet"}


@dataclass(frozen=True)
class Give:
    """What the options of a command ask for: a form, and where it goes."""

    form: str
    out: Path | None
    more: Mapping[str, str] = field(default_factory=dict)  # forms of this command alone, and their suffixes
    digits: int | None = None  # decimals for people; None: as the answer has them
    verbose: bool = False  # whether nothing is summed up: every note by itself, and what is folded for its length

    def keep(self, *paths: str | None) -> None:
        """Refuse to write the result over a file that it is made of."""
        inputs.keep_inputs(self.out, [path for path in paths if path])

    def inputs(
        self, qrels: str, runs: Sequence[str], options: dict[str, Any], *others: str | None
    ) -> tuple[Qrels, list[Run]]:
        """Read judgments, and give the runs; both and the others are kept. Takes the formats out of the options."""
        from judged.data.qrels import Qrels

        inputs.refuse_measures(qrels, *runs)
        given = inputs.runs_at(runs, options.pop("run_format"))
        self.keep(qrels, *others, *(run.where for run in given))
        return Qrels.read(qrels, format=options.pop("qrels_format")), given

    def __call__(
        self,
        answer: Answer,
        *,
        unfold: Iterable[str] = (),
        table: str | None = None,
        chart: str | None = None,
        notes: Iterable[str] = (),
        ascii_only: bool = False,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an answer, and its notes to standard error where the form has no place for them."""
        # `own` are the options of forms of this command alone.
        if self.form in _NOT_PRINTED and (self.out is None or str(self.out) == "-"):
            raise InputError("this format cannot be printed", fix=f"write it to a file: -o {answer.kind}.{self.form}")
        if self.form in self.more:
            made: str | bytes = getattr(answer, self.form)(**(own or {}))
        elif self.form == "table":
            to_terminal = self.out is None
            colour = to_terminal and is_colored(sys.stdout.isatty())
            made = answer.text(
                terminal_width() if to_terminal else None, unfold=unfold, digits=self.digits, colour=colour
            )
            if ascii_only or (to_terminal and not (sys.stdout.encoding or "").lower().startswith("utf")):
                made = made.translate(_ASCII).encode("ascii", "replace").decode()
        else:
            made = answer.written(self.form, unfold=unfold, table=table, chart=chart, digits=self.digits)
        write_result(made, self.out)
        if self.form != "json":
            print_warnings((*(map(str, answer.notes) if self.verbose else answer.warnings), *notes))


def answer_options(*unless: str, usual: str = "table", **more: str) -> Callable[[Command], Command]:
    """Give a command ``--format``, ``-o`` and ``--digits``, which reach it as ``give``.

    ``usual`` is the form where none is asked for. ``more`` are methods of its answer that write further forms, each
    with the end of the name of such a file. With an option of ``unless`` there is no answer, and its file is not told
    by its name.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, form: str | None, out: Path | None, **options: Any) -> Any:
            digits, verbose = options.pop("digits"), options.pop("verbose")
            suffixes = {**SUFFIXES, "": usual, **{suffix: name for name, suffix in more.items()}}
            other = any(options[name] is not None for name in unless)
            give = Give(form or ("" if other else inputs.form_of(out, suffixes)), out, more, digits, verbose)
            return command(*args, give=give, **options)

        made = click.option("-v", "--verbose", is_flag=True, help="Show every warning separately.")(call)
        made = click.option(
            "--digits",
            type=click.IntRange(1, 17),
            metavar="N",
            help="Decimals in tables, with more where a number would wrongly read as 0 or 1. CSV,"
            " JSON and Parquet keep full precision.",
        )(made)
        made = click.option(
            "-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file."
        )(made)
        return click.option(
            "--format",
            "form",
            type=click.Choice((*FORMS, *more)),
            help=f"Output format.  [default: {usual}, or by the extension of -o]",
        )(made)  # pyright: ignore[reportReturnType]

    return decorate


def write_result(made: str | bytes, output: Path | None) -> None:
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


def print_warnings(texts: Iterable[str]) -> None:
    """Print warnings to standard error."""
    label = click.style("warning:", fg="yellow") if is_colored(sys.stderr.isatty()) else "warning:"
    for text in texts:
        click.echo(f"{label} {on_terminal(text)}", err=True)


def is_colored(terminal: bool) -> bool:
    """Whether to write colours: only to a terminal, and not where NO_COLOR forbids it."""
    return terminal and not os.environ.get("NO_COLOR")


def terminal_width() -> int | None:
    """Give the width to fit tables into: that of the terminal, or COLUMNS; none into a pipe or a file."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        import shutil  # it imports every way to compress

        return shutil.get_terminal_size().columns
    return None
