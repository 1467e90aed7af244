"""What several commands read and write: runs, slices of topics, progress bars, and the form and file of a result."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import reduce, wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError, JudgedWarning, MissingExtraError
from judged.interface.options import Choice, shared, with_options
from judged.results.answer import FORMS, PICTURES, SUFFIXES
from judged.results.blocks import Note, first_few
from judged.results.escaping import on_terminal, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results import Answer

    Command = TypeVar("Command", bound=Callable[..., Any])


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
    from judged.scoring.judging.join import is_in_memory

    files = [
        file.where
        for run in runs
        if not is_in_memory(run.rows)
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


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the names in texts that hold several of them, with commas between."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class SliceOptions:
    """What the options of slices ask for."""

    attributes: str | None = None  # a path
    by: tuple[str, ...] = ()  # names of attributes, several of them with commas between
    slices: str | None = None  # a path
    cross: bool = False  # whether slices of several attributes are crossed
    min_topics: int | None = None  # topics of a slice that is tested; None for the usual number
    queries: str | None = None  # a path
    where: str | None = None  # an expression

    @property
    def names(self) -> list[str]:
        """The attributes that make slices."""
        return names_in(self.by)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read: no result may be written over them."""
        return tuple(path for path in (self.attributes, self.queries, self.slices) if path)

    def known(self, qrels: Qrels, run: Run, *, names: Iterable[str] = (), documents: str | None = None) -> Attributes:
        """Give the attributes of the topics: from the files, or else derived."""
        from judged.comparison.slicing.derived import read_topic_attributes

        given = {"attributes": self.attributes, "queries": self.queries, "documents": documents}
        return read_topic_attributes(qrels, needed=[*self._needed(), *names], run=run, **given)

    def notes(self, run: Run) -> tuple[Note, ...]:
        """Give the note on topics that are chosen or cut by an outcome of this run."""
        from judged.comparison.slicing.derived import OUTCOME

        if OUTCOME not in self._needed():
            return ()
        luck = "on topics where that run did badly, any other run does better by luck alone (regression to the mean)"
        return (Note("cut-by-outcome", f"{OUTCOME} is taken from {run.name}: {luck}"),)

    def applied(self, qrels: Qrels, run: Run, documents: str | None = None) -> tuple[Qrels, Slicing | None]:
        """Leave the topics that ``--where`` keeps, and cut them into slices; None where none are asked for."""
        qrels = self.narrowed(qrels, run)
        if not (self.by or self.slices):
            return qrels, None
        return qrels, self.cut(self.known(qrels, run, documents=documents), qrels.topics)

    def cut(self, known: Attributes, query_ids: Sequence[str]) -> Slicing:
        """Cut topics into slices by their attributes."""
        from judged.comparison.slicing.topic_slices import Slicing, slice_topics

        if not (self.by or self.slices):
            names = first_few(list(known.names))
            raise InputError("nothing says how to slice", fix=f"give --by NAME, one of {names}; or --slices FILE")
        for name in self.names:
            if Path(name).is_file() and known.spelled(name) not in known.names:
                raise InputError(f"--by takes names, and {name} is a file", fix=f"write --attributes {name} --by NAME")
        how: dict[str, Any] = {"min_topics": self.min_topics, "query_ids": query_ids}
        by = [known.spelled(name) for name in self.names]
        if not self.cross:
            return slice_topics(known, by, slices=self.slices, **how)
        parts = [slice_topics(known, name, **how) for name in by]
        parts += [slice_topics(known, slices=self.slices, **how)] if self.slices else []
        if len(parts) < 2:
            raise InputError("--cross needs two things to cross", fix="give --by NAME,NAME")
        return reduce(Slicing.cross, parts)

    def narrowed(self, qrels: Qrels, run: Run) -> Qrels:
        """Leave the judgments of the topics that ``--where`` keeps, and say of how many this is not known."""
        from judged.scoring.evaluation.inputs import filter_topics

        known = self.known(qrels, run) if self.where else None
        qrels, lacking = filter_topics(qrels, self.where, known)
        print_warnings(map(str, lacking))
        return qrels

    def _needed(self) -> list[str]:
        """Name the attributes that slices and ``--where`` ask for."""
        from judged.comparison.slicing.topic_slices import read_slices

        texts = [slice_.expression for slice_ in read_slices(self.slices)] if self.slices else []
        return [*self.names, *(name for text in (*texts, self.where or "") for name in _names(text))]


def narrowed(
    qrels: Qrels,
    runs: list[Run],
    *,
    attributes: str | None,
    queries: str | None,
    where: str | None,
    baseline: str | None = None,
    measures: Sequence[str] = (),
) -> tuple[Qrels, Attributes | None]:
    """Keep the topics that an expression over their attributes asks for; and give those that measures ask for."""
    from judged.scoring.evaluation.inputs import attributes_of

    needed = attributes_of(measures)
    if where is None:
        if attributes is not None and not needed:
            fix = "say which topics: --where \"kind == 'law'\", or -m \"P@5 where kind == 'law'\""
            raise InputError("--attributes goes with --where", fix=fix)
        if not needed:
            return qrels, None
    cut_by = next((run for run in runs if run.name == baseline), runs[0])
    asked = SliceOptions(attributes=attributes, queries=queries, where=where)
    print_warnings(map(str, asked.notes(cut_by)))
    return asked.narrowed(qrels, cut_by), asked.known(qrels, cut_by, names=needed) if needed else None


def _names(expression: str) -> tuple[str, ...]:
    from judged.data.expression import Expression

    return Expression(expression).names


def slicing_by(name: str | None, attributes: str | None, flag: str = "--by") -> Slicing | None:
    """Cut topics by one attribute of a file; None where neither is given."""
    from judged.comparison.slicing import slice_topics

    if (name is None) != (attributes is None):
        raise InputError(f"{flag} and --attributes go together", fix="give both, or neither")
    return None if name is None else slice_topics(attributes, name)


_SLICE_OPTIONS = with_options(
    shared("attributes", "by"),
    click.option("--slices", metavar="FILE", help="Your own slices: [[slice]] tables in a TOML file."),
    click.option("--cross", is_flag=True, help="Cross the slices of several --by attributes with one another."),
    click.option(
        "--min-topics",
        type=click.IntRange(1),
        metavar="N",
        help="Slices with fewer topics are shown, but not tested or ranked.  [default: 10]",
    ),
    shared("queries", "where"),
)


def slice_options(command: Command) -> Command:
    """Give a command the options of slices, which reach it as ``asked``."""

    @wraps(command)
    def call(*args: Any, **options: Any) -> Any:
        asked = SliceOptions(**{field.name: options.pop(field.name) for field in fields(SliceOptions)})
        return command(*args, asked=asked, **options)

    return _SLICE_OPTIONS(call)  # pyright: ignore[reportReturnType]


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
        keep_inputs(self.out, [path for path in paths if path])

    def inputs(
        self, qrels: str, runs: Sequence[str], options: dict[str, Any], *others: str | None
    ) -> tuple[Qrels, list[Run]]:
        """Read judgments, and give the runs; both and the others are kept. Takes the formats out of the options."""
        from judged.data.qrels import Qrels

        refuse_measures(qrels, *runs)
        given = runs_at(runs, options.pop("run_format"))
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
            give = Give(form or ("" if other else form_of(out, suffixes)), out, more, digits, verbose)
            return command(*args, give=give, **options)

        return with_options(  # pyright: ignore[reportReturnType]
            click.option(
                "--format",
                "form",
                type=Choice((*FORMS, *more)),
                help=f"Output format.  [default: {usual}, or by the extension of -o]",
            ),
            click.option(
                "-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file."
            ),
            click.option(
                "--digits",
                type=click.IntRange(1, 17),
                metavar="N",
                help="Decimals in tables, with more where a number would wrongly read as 0 or 1. CSV,"
                " JSON and Parquet keep full precision.",
            ),
            click.option("-v", "--verbose", is_flag=True, help="Show every warning separately."),
        )(call)

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
