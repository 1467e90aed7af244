"""Shared code of commands: reading runs, slicing topics, progress bars, and writing results."""

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
from judged.results.escaping import escape_controls, on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results import Answer

    Command = TypeVar("Command", bound=Callable[..., Any])


_BAR_WIDTH_AROUND = len("  []  100%  00:00:00") + 1  # columns of the line without label and bar
_LABEL_ONLY, _FULL_BAR = "%(label)s", "%(label)s  [%(bar)s]  %(info)s"
_UP, _ERASE = "\033[1A", "\r\033[2K"


def can_redraw() -> bool:
    """Return whether stderr is a terminal that replaces a line by the next one; a stored notebook shows all of them."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and "JPY_PARENT_PID" not in os.environ


@contextmanager
def bar(label: str, length: int) -> Generator[Callable[[str, int | None], None] | None]:
    """Show a progress bar on a terminal. Yield None, or a function of a label and a number of steps or None."""
    if not can_redraw():
        yield None
        return
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    width = columns // 3
    half_length = max(1, (columns - width - _BAR_WIDTH_AROUND - 3) // 2)

    def fitting(label: str) -> str:
        text = escape_controls(label)
        return text if len(text) <= 2 * half_length + 3 else f"{text[:half_length]}...{text[-half_length:]}"

    progress = click.progressbar(
        length=length,
        label=fitting(label),
        bar_template=_LABEL_ONLY,
        file=sys.stderr,
        width=width,
        update_min_steps=0,
    )
    lock, original_showwarning = Lock(), warnings.showwarning  # threads may update the bar and warn

    def update(label: str, steps: int | None) -> None:
        with lock:
            progress.label = fitting(label)
            progress.bar_template = _LABEL_ONLY if steps is None else _FULL_BAR
            progress.update(steps or 0)

    def show_above(*warning: Any) -> None:
        with lock:
            click.echo(_ERASE, err=True, nl=False)
            original_showwarning(*warning)

    warnings.showwarning = show_above
    try:
        with progress:
            yield update
    finally:
        warnings.showwarning = original_showwarning
        click.echo(_UP + _ERASE, err=True, nl=False)


_MIN_BYTES_FOR_BAR = 50_000_000  # smallest input for which a progress bar is shown


def runs_at(texts: Sequence[str], run_format: str | None) -> list[Run]:
    """Return the runs for arguments such as FILE or NAME=FILE. They are read on first use."""
    from judged.scoring.evaluation.inputs import runs_of

    return runs_of(texts, format=run_format) if texts else []


def baseline_run(options: dict[str, Any], runs: Sequence[Run]) -> Run:
    """Return the run of ``--baseline``, or else the first run. Replace the option by the name of the run."""
    from judged.data.run import find_run

    if options["baseline"] is None:
        return runs[0]
    run = find_run(options["baseline"], runs, "to use as the baseline")
    options["baseline"] = run.name
    return run


def refuse_options(names: Iterable[str], reason: str, fix: str = "omit the option") -> None:
    """Raise an error if one of these parameters is on the command line."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(f"--{name.replace('_', '-')} cannot be combined with {reason}", fix=fix)


def refuse_measures(*paths: str) -> None:
    """Raise an error if an argument is a measure (``-m`` takes only one), or if standard input is used twice."""
    from judged.data.files import exists
    from judged.data.sources import split_name
    from judged.errors import JudgedError
    from judged.scoring.measures.grammar import parse_many

    if [split_name(path)[1] for path in paths].count("-") > 1:
        raise InputError("standard input (-) can be used for one file only", fix="replace every other - by a file name")
    for path in paths:
        if path == "-" or exists(split_name(path)[1]):
            continue
        try:
            measures = parse_many(path)
        except JudgedError:
            continue
        fix = f"repeat -m: -m {measures[0]}; or separate measures with commas: -m nDCG@10,{path}"
        raise InputError(f"a file is expected, got the measure {path}", fix=fix)


def keep_inputs(out: Path | None, inputs: Sequence[str]) -> None:
    """Raise an error if the output file is an input."""
    from judged.data.files import exists
    from judged.data.sources import split_name

    if out is None or not exists(out) or not out.is_file():
        return
    for path in (split_name(path)[1] for path in inputs):
        if exists(path) and out.samefile(path):
            raise InputError("the output file is also an input", fix="write the result to another file", path=str(out))


def form_of(out: Path | None, formats_by_suffix: Mapping[str, str]) -> str:
    """Return the format of a result from the extension of the file. A command with other outputs has ``--to``."""
    from judged.results.answer import form_by_suffix

    target_options = [param for param in click.get_current_context().command.params if "--to" in param.opts]
    alternatives = [
        f"--to {param.metavar}" for param in target_options if isinstance(param, click.Option) and param.metavar
    ]
    return form_by_suffix(
        out or "", formats_by_suffix, "a result", alternative=" or ".join(["--format", *alternatives])
    )


@contextmanager
def scoring(runs: Sequence[Run]) -> Generator[Callable[[str, int], None] | None]:
    """Show a progress bar, and suppress warnings, which are also in the result and printed with it."""
    with warnings.catch_warnings(), progress_bar(runs) as update:
        warnings.simplefilter("ignore", JudgedWarning)
        yield update


@contextmanager
def progress_bar(runs: Sequence[Run]) -> Generator[Callable[[str, int], None] | None]:
    """Show a progress bar on a terminal if the inputs are large."""
    from judged.data.files import exists
    from judged.data.part_rows import PartRows
    from judged.scoring.judging.join import is_in_memory

    files = [
        file.where
        for run in runs
        if not is_in_memory(run.rows)
        for file in ([rows for rows, _ in run.rows.selected_files] if isinstance(run.rows, PartRows) else [run])
    ]
    total = sum(Path(file).stat().st_size for file in files if exists(file))
    with bar("reading", total) if total >= _MIN_BYTES_FOR_BAR else nullcontext() as update:
        yield update


_WEB_LIBRARIES = ("fastapi", "uvicorn", "jinja2", "python_multipart")


def need_web() -> None:
    """Raise an error if a library for web pages is not installed."""
    for name in _WEB_LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            raise MissingExtraError(name.replace("_", "-"), "web") from None


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the names in texts with comma-separated names."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def documents_with_ages(options: dict[str, Any]) -> Any:
    """Return ``--documents`` with the ages of ``--as-of`` and ``--freshness-bands``, which are removed from options."""
    from judged.data.freshness import dated_documents

    documents, ages = options["documents"], {"as_of": options.pop("as_of"), "bands": options.pop("freshness_bands")}
    if ages == {"as_of": None, "bands": None}:
        return documents
    if documents is None:
        flag = "--as-of" if ages["as_of"] is not None else "--freshness-bands"
        raise InputError(f"{flag} requires --documents", fix="add --documents FILE")
    return dated_documents(documents, **ages)


def outcome_note(run: str) -> str:
    """Return the note that topics are selected or sliced by an outcome of a run."""
    from judged.comparison.slicing.derived import OUTCOME

    return (
        f"{OUTCOME} is computed from {run}. On topics where {run} scores low, other runs tend to score higher by chance"
        " (regression to the mean)"
    )


@dataclass(frozen=True)
class SliceOptions:
    """Values of the options for slices and for ``--where``."""

    attributes: str | None = None  # path
    by: tuple[str, ...] = ()  # names of attributes, possibly comma-separated
    slices: str | None = None  # path
    cross: bool = False  # whether to cross the slices of several attributes
    min_topics: int | None = None  # fewest topics of a tested slice; None for the default
    queries: str | None = None  # path
    where: str | None = None  # expression
    class_measures: str | None = None  # labels with measures, or path
    default_measure: str = ""  # of classes without their own measure

    @property
    def names(self) -> list[str]:
        """Names of the slicing attributes: those of ``--by``, or else of the file of class measures."""
        from judged.comparison.slicing.class_measures import read_class_measures

        names = names_in(self.by)
        if names or self.slices or self.class_measures is None:
            return names
        return names_in([read_class_measures(self.class_measures).by])

    @property
    def paths(self) -> tuple[str, ...]:
        """Input files."""
        return tuple(path for path in (self.attributes, self.queries, self.slices, self.class_measures) if path)

    def topic_attributes(
        self, qrels: Qrels, run: Run, *, names: Iterable[str] = (), documents: Any = None
    ) -> Attributes:
        """Return the attributes of the topics, read from the files or derived."""
        from judged.comparison.slicing.derived import read_topic_attributes

        files = {"attributes": self.attributes, "queries": self.queries, "documents": documents}
        return read_topic_attributes(qrels, needed=[*self._required_names(), *names], run=run, **files)

    def notes(self, run: Run) -> tuple[Note, ...]:
        """Return a note if the topics are selected or sliced by an outcome of this run."""
        from judged.comparison.slicing.derived import OUTCOME

        if OUTCOME not in self._required_names():
            return ()
        return (Note("cut-by-outcome", outcome_note(run.name)),)

    def apply(self, qrels: Qrels, run: Run, documents: Any = None) -> tuple[Qrels, Slicing | None]:
        """Filter topics by ``--where``. Return the qrels and the slicing, which is None without slicing options."""
        qrels = self.filter_topics(qrels, run, documents)
        if not (self.by or self.slices or self.class_measures):
            return qrels, None
        return qrels, self.slice_topics(self.topic_attributes(qrels, run, documents=documents), qrels.topics)

    def slice_topics(self, attributes: Attributes, query_ids: Sequence[str]) -> Slicing:
        """Slice topics by their attributes."""
        from judged.comparison.slicing.topic_slices import Slicing, slice_topics

        if not (self.names or self.slices):
            names = first_few(list(attributes.names))
            by = f"--by with one of {names}" if names else "--attributes FILE --by NAME, --queries FILE --by NAME"
            raise InputError("no slicing attribute", fix=f"use {by}, or --slices FILE")
        for name in self.names:
            if Path(name).is_file() and attributes.spelled(name) not in attributes.names:
                raise InputError(
                    f"--by expects names of attributes, got the file {name}", fix=f"use --attributes {name} --by NAME"
                )
        options: dict[str, Any] = {"min_topics": self.min_topics, "query_ids": query_ids}
        names = [attributes.spelled(name) for name in self.names]
        if self.cross:
            slicings = [slice_topics(attributes, name, **options) for name in names]
            slicings += [slice_topics(attributes, slices=self.slices, **options)] if self.slices else []
            if len(slicings) < 2:
                raise InputError("--cross requires two attributes", fix="use --by NAME,NAME")
            slicing = reduce(Slicing.cross, slicings)
        else:
            slicing = slice_topics(attributes, names, slices=self.slices, **options)
        return slicing.with_measures(self.class_measures or {}, self.default_measure)

    def filter_topics(self, qrels: Qrels, run: Run, documents: Any = None) -> Qrels:
        """Filter judgments by ``--where``, and warn of topics for which the expression is undefined."""
        from judged.scoring.evaluation.inputs import filter_topics

        attributes = self.topic_attributes(qrels, run, documents=documents) if self.where else None
        qrels, missing_notes = filter_topics(qrels, self.where, attributes)
        print_warnings(map(str, missing_notes))
        return qrels

    def _required_names(self) -> list[str]:
        """Return the names of the attributes in slices and in ``--where``."""
        from judged.comparison.slicing.topic_slices import read_slices

        texts = [slice_.expression for slice_ in read_slices(self.slices)] if self.slices else []
        return [*self.names, *(name for text in (*texts, self.where or "") for name in _names(text))]


def filter_by_where(
    qrels: Qrels,
    runs: list[Run],
    *,
    attributes: str | None,
    queries: str | None,
    where: str | None,
    baseline: str | None = None,
    measures: Sequence[str] = (),
) -> tuple[Qrels, Attributes | None]:
    """Filter topics by an expression. Return the judgments, and the attributes that measures require, or None."""
    from judged.scoring.evaluation.inputs import attributes_of

    required = attributes_of(measures)
    if where is None:
        if attributes is not None and not required:
            fix = "add --where \"kind == 'law'\", or -m \"P@5 where kind == 'law'\""
            raise InputError("--attributes requires --where", fix=fix)
        if not required:
            return qrels, None
    outcome_run = next((run for run in runs if run.name == baseline), runs[0])
    slicing_options = SliceOptions(attributes=attributes, queries=queries, where=where)
    print_warnings(map(str, slicing_options.notes(outcome_run)))
    filtered = slicing_options.filter_topics(qrels, outcome_run)
    return filtered, slicing_options.topic_attributes(qrels, outcome_run, names=required) if required else None


def _names(expression: str) -> tuple[str, ...]:
    from judged.data.expression import Expression

    return Expression(expression).names


def slicing_by(name: str | None, attributes: str | None, flag: str = "--by") -> Slicing | None:
    """Return the slicing by one attribute of a file, or None if both are None."""
    from judged.comparison.slicing import slice_topics

    if (name is None) != (attributes is None):
        raise InputError(f"{flag} and --attributes must be used together", fix="use both options, or neither")
    return None if name is None else slice_topics(attributes, name)


_SLICE_OPTIONS = with_options(
    shared("attributes", "by"),
    click.option("--slices", metavar="FILE", help="TOML file with [[slice]] tables that define slices."),
    click.option(
        "--cross", is_flag=True, help="With several --by attributes, form a slice for each combination of their values."
    ),
    click.option(
        "--min-topics",
        type=click.IntRange(1),
        metavar="N",
        help="Minimum number of topics of a slice. Smaller slices are shown but not tested.  [default: 10]",
    ),
    shared("queries", "where"),
)


def slice_options(command: Command) -> Command:
    """Add the slicing options to a command, which gets them as the parameter `slicing_options`."""

    @wraps(command)
    def call(*args: Any, **options: Any) -> Any:
        names = [field.name for field in fields(SliceOptions) if field.name in options]
        slicing_options = SliceOptions(**{name: options.pop(name) for name in names})
        return command(*args, slicing_options=slicing_options, **options)

    return _SLICE_OPTIONS(call)  # pyright: ignore[reportReturnType]


_ASCII_REPLACEMENTS = str.maketrans("↑↓│…█▉▊▋▌▍▎▏", "^v|~#######|")


_FILE_ONLY_FORMATS = {*PICTURES, "parquet"}


@dataclass(frozen=True)
class OutputOptions:
    """Format and file of a command's result."""

    format: str
    out: Path | None
    own_formats: Mapping[str, str] = field(default_factory=dict)  # formats of only this command, with their suffixes
    digits: int | None = None  # decimals in tables; None for the default of the result
    verbose: bool = False  # whether to show every note separately, and folded sections

    def keep(self, *paths: str | None) -> None:
        """Raise an error if the output file is an input."""
        keep_inputs(self.out, [path for path in paths if path])

    def inputs(
        self, qrels: str, runs: Sequence[str], options: dict[str, Any], *others: str | None
    ) -> tuple[Qrels, list[Run]]:
        """Return judgments and runs, and protect all inputs from overwriting. Remove the formats from `options`."""
        from judged.data.qrels import Qrels

        refuse_measures(qrels, *runs)
        run_list = runs_at(runs, options.pop("run_format"))
        self.keep(qrels, *others, *(run.where for run in run_list))
        return Qrels.read(qrels, format=options.pop("qrels_format")), run_list

    def __call__(
        self,
        answer: Answer,
        *,
        unfold: Iterable[str] = (),
        table: str | None = None,
        chart: str | None = None,
        notes: Iterable[str] = (),
        ascii_only: bool = False,
        own_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a result, and its notes to standard error unless the format is JSON."""
        # `own_options`: options of the formats in `own_formats`
        if self.format in _FILE_ONLY_FORMATS and (self.out is None or str(self.out) == "-"):
            raise InputError(
                f"the format {self.format} cannot be printed", fix=f"write to a file: -o {answer.kind}.{self.format}"
            )
        if self.format in self.own_formats:
            content: str | bytes = getattr(answer, self.format)(**(own_options or {}))
        elif self.format == "table":
            to_terminal = self.out is None
            color = to_terminal and is_colored(sys.stdout.isatty())
            content = answer.text(
                terminal_width() if to_terminal else None, unfold=unfold, digits=self.digits, color=color
            )
            if ascii_only or (to_terminal and not (sys.stdout.encoding or "").lower().startswith("utf")):
                content = content.translate(_ASCII_REPLACEMENTS).encode("ascii", "replace").decode()
        else:
            content = answer.written(self.format, unfold=unfold, table=table, chart=chart, digits=self.digits)
        write_result(content, self.out)
        if self.format != "json":
            print_warnings((*(map(str, answer.notes) if self.verbose else answer.warnings), *notes))


def answer_options(*unless: str, usual: str = "table", **more: str) -> Callable[[Command], Command]:
    """Add ``--format``, ``-o`` and ``--digits`` to a command, which gets them as the parameter `output`.

    `usual` is the default format. `more` are methods of the result that write other formats, each with its file
    extension. With an option in `unless`, the command has no result, and any file name is valid.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, form: str | None, out: Path | None, **options: Any) -> Any:
            digits, verbose = options.pop("digits"), options.pop("verbose")
            suffixes = {**SUFFIXES, "": usual, **{suffix: name for name, suffix in more.items()}}
            has_other_output = any(options[name] is not None for name in unless)
            output = OutputOptions(
                form or ("" if has_other_output else form_of(out, suffixes)), out, more, digits, verbose
            )
            return command(*args, output=output, **options)

        return with_options(  # pyright: ignore[reportReturnType]
            click.option(
                "--format",
                "form",
                type=Choice((*FORMS, *more)),
                help=f"Output format.  [default: the format of the extension of the -o file, otherwise {usual}]",
            ),
            click.option(
                "-o",
                "--output",
                "out",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Output file.  [default: standard output]",
            ),
            click.option(
                "--digits",
                type=click.IntRange(1, 17),
                metavar="N",
                help="Number of decimals in tables. Numbers that would be rounded to 0 or 1 get more decimals. CSV,"
                " JSON, and Parquet have full precision.",
            ),
            click.option(
                "-v",
                "--verbose",
                is_flag=True,
                help="Show each warning separately, and show the sections that are hidden by default.",
            ),
        )(call)

    return decorate


def write_result(content: str | bytes, output: Path | None) -> None:
    """Print a result, or write it to a file atomically."""
    if output is None or str(output) == "-":
        click.echo(content)
        return
    from judged.results.files import atomic_write

    with atomic_write(output) as temporary:
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        else:
            temporary.write_text(content + "\n", encoding="utf-8", errors="backslashreplace")


def print_warnings(texts: Iterable[str]) -> None:
    """Print warnings to standard error."""
    label = click.style("warning:", fg="yellow") if is_colored(sys.stderr.isatty()) else "warning:"
    for text in texts:
        click.echo(f"{label} {on_terminal(text)}", err=True)


def is_colored(terminal: bool) -> bool:
    """Return whether to use colors: only on a terminal, unless NO_COLOR is set."""
    return terminal and not os.environ.get("NO_COLOR")


def terminal_width() -> int | None:
    """Return the width of the terminal or COLUMNS; None for a pipe or a file."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        import shutil  # slow: it imports all compression modules

        return shutil.get_terminal_size().columns
    return None
