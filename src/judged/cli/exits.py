"""How the command ends: its streams, one line for whatever goes wrong, and an exit code."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from judged.errors import JudgedError, OutputError, is_full, masked, one_line
from judged.results.escaping import on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Descriptor(io.FileIO):
    """A file descriptor whose failures are told apart from those of every other file.

    These are not an OSError, which Click would end with 1 for a reader that left: that means "no" here.
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
    if os.name != "posix":  # a console of Windows is not a file descriptor
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


WRONG, FAULT, NO_MEMORY, UNWRITTEN, STOPPED, UNREAD, TERMINATED = 2, 70, 71, 74, 130, 141, 143
"""Wrong input; a bug; no memory; no place to write; Ctrl-C; nobody reads the output (SIGPIPE); SIGTERM."""

CODES = """\
Exit codes: 0 success; 1 the answer is "no" (a gate fails, a check finds errors); 2 wrong input; 70 a bug in judged;
71 out of memory; 74 something cannot be written, as on a full disk; 130 interrupted by Ctrl-C; 141 the reader of the
output has gone; 143 ended by SIGTERM. trec_eval has its own. JUDGED_TRACEBACK=1 shows where a bug arose.
"""
_TRACEBACK = "JUDGED_TRACEBACK"
_LONGEST = 200  # characters of somebody else's message


def ended(error: BaseException) -> int:
    """Say what is wrong, if anything can still be said, and give the exit code."""
    if _received:  # libraries make errors of their own of an interrupt: whatever goes wrong after one came of it
        return TERMINATED if signal.SIGTERM in _received else STOPPED
    if isinstance(error, OutputError) and error.errno == errno.EPIPE:
        return UNREAD
    if isinstance(error, click.Abort) and isinstance(error.__context__, EOFError):
        error = error.__context__  # Click takes every end of a file for Ctrl-D
    if isinstance(error, KeyboardInterrupt | click.Abort) or _interrupted(error):
        return STOPPED
    code, sentence = _told(error)
    with suppress(OutputError):
        click.echo(on_terminal(masked(sentence)), err=True)
        if code == FAULT and os.environ.get(_TRACEBACK):
            import traceback  # only faults need it

            traceback.print_exception(error)
    return code


_received: set[int] = set()


def end_on_signals() -> None:
    """Let SIGTERM end the command as Ctrl-C does, with nothing half written, and an exit code of its own."""

    def end(number: int, _frame: object) -> None:
        _received.add(number)
        logging: Any = sys.modules.get("logging")
        if logging is not None:
            logging.lastResort = logging.NullHandler()  # SQLAlchemy logs a traceback of an interrupt
        raise KeyboardInterrupt

    def repeat(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)
        elif hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.001)

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        numbers.append(signal.SIGINT)
    if hasattr(signal, "SIGALRM"):  # Python ignores exceptions of finalizers: interrupt once more, a moment later
        numbers.append(signal.SIGALRM)
        sys.unraisablehook = repeat
    for number in numbers:
        signal.signal(number, end)


_OF_NAMES = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EROFS, errno.ENOTEMPTY,
}  # fmt: skip
"""Numbers of system errors that a name gives rise to that somebody wrote."""


def ignore_signals() -> None:
    """Let no signal interrupt the end of the command, where temporary files are removed."""
    for name in {"SIGINT", "SIGTERM", "SIGALRM"} & set(dir(signal)):
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def _interrupted(error: BaseException) -> bool:
    """Whether an error came of Ctrl-C: DuckDB has one of its own, and others hide that they were interrupted."""
    database = sys.modules.get("duckdb")
    if database is not None and isinstance(error, database.InterruptException):
        return True
    cause = error.__cause__ or error.__context__
    return isinstance(cause, KeyboardInterrupt) or (cause is not None and _interrupted(cause))


def _told(error: BaseException) -> tuple[int, str]:
    if isinstance(error, JudgedError):
        return UNWRITTEN if isinstance(error, OutputError) else WRONG, f"error: {one_line(str(error))}"
    database = sys.modules.get("duckdb")
    unwritten = database is not None and isinstance(error, database.Error) and "Could not write file" in str(error)
    if unwritten or is_full(error):  # where nobody names the file, it is a temporary one
        where = getattr(error, "filename", None) or tempfile.gettempdir()
        number = errno.ENOSPC if is_full(error) else errno.EIO
        return UNWRITTEN, f"error: {OutputError(str(where), OSError(number, ' '.join(str(error).split())))}"
    if isinstance(error, click.UsageError):
        return WRONG, _usage(error)
    if isinstance(error, OSError) and error.filename is not None and error.errno in _OF_NAMES:
        name, said = os.fsdecode(error.filename), error.strerror or str(error)
        return WRONG, f"error: {one_line(name)}: this file cannot be used ({said}). Fix: check the path."
    if isinstance(error, MemoryError):
        return NO_MEMORY, "error: out of memory. Fix: use fewer runs or measures at a time, or a larger machine."
    what = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:_LONGEST]
    fix = f"set {_TRACEBACK}=1 to see where, and report it with the command you ran"
    return FAULT, f"error: this is a bug in judged, not a fault of your input ({what}). Fix: {fix}."


def _usage(error: click.UsageError) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    command = error.ctx.command_path if error.ctx else "judged"
    fix = str(getattr(error, "fix", ""))
    problem = one_line(error.format_message().rstrip("."))
    if isinstance(error, click.NoSuchOption) and (fix := fix_of(error)):
        problem = one_line(error.message.rstrip("."))
    if fix:
        return f"error: {problem}. Fix: {fix}."
    takes_files = error.ctx and any(isinstance(param, click.Argument) for param in error.ctx.command.params)
    if error.ctx and takes_files and (type(error) is click.UsageError or _lacks_argument(error)):
        shape = " ".join([command, *error.ctx.command.collect_usage_pieces(error.ctx)])
        return f"error: {problem}. Fix: write {shape}; see '{command} --help'."
    return f"error: {problem}{'' if problem.endswith('?') else '.'} Fix: see '{command} --help'."


def _lacks_argument(error: click.UsageError) -> bool:
    return isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument)


_RUNS = ("run", "runs", "qrels", "judgments", "candidate")


def fix_of(error: click.NoSuchOption) -> str:
    """Say which option of the command is meant; empty where nobody can tell."""
    written = error.option_name.lstrip("-").replace("_", "-")
    if error.ctx is None:
        return ""
    parameters = error.ctx.command.params
    found = list(_meant(written, parameters))
    if len(found) == 1:
        return f"write {found[0][0]}"
    if found:
        return "write " + ", or ".join(f"{flag} ({about})" for flag, about in found)
    arguments = [param.make_metavar(error.ctx) for param in parameters if isinstance(param, click.Argument)]
    if written in _RUNS and arguments:
        return f"files stand without an option: {error.ctx.command_path} {' '.join(arguments)}"
    return ""


def _meant(written: str, parameters: list[click.Parameter]) -> Iterator[tuple[str, str]]:
    """Give the options that may be meant, each with the beginning of its help."""
    from judged.results.spelling import OTHER_NAMES  # only wrong options need it

    for param in parameters:
        flag = max(param.opts, key=len)
        name = flag.removeprefix("--")
        if isinstance(param, click.Option) and written in OTHER_NAMES.get(name, "").split():
            takes_it = name == "format" and isinstance(param.type, click.Choice) and written in param.type.choices
            about = re.split(r"[.:;](?:\s|$)", param.help or "")[0]
            yield f"{flag} {written}" if takes_it else flag, about[:1].lower() + about[1:]
