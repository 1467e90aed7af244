"""End of the command: output streams, error messages of one line, and exit codes."""

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

from judged.errors import JudgedError, OutputError, is_full, mask_passwords, one_line
from judged.results.escaping import on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Descriptor(io.FileIO):
    """File descriptor whose write errors are an `OutputError`.

    Click would exit with 1 for an OSError of a closed pipe, but exit code 1 means "no" here.
    """

    def __init__(self, descriptor: int, label: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._label = label

    def write(self, content: object, /) -> int:  # type: ignore[override]
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputError(self._label, error) from None


class _Terminal(io.TextIOWrapper):
    """Terminal stream that removes control sequences, which names in files could contain."""

    def write(self, text: str, /) -> int:
        super().write(on_terminal(text))
        return len(text)


def wrap_streams() -> None:
    """Replace standard output and error by streams that raise `OutputError`, and escape unencodable characters."""
    if os.name != "posix":  # a console of Windows is not a file descriptor
        return
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  None if it was closed (>&-)
        sys.stdout = stream(os.open(os.devnull, os.O_RDONLY), "utf-8", "strict")
    else:
        sys.stdout = stream(sys.stdout.fileno(), sys.stdout.encoding, sys.stdout.errors or "strict")
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = stream(sys.stderr.fileno(), sys.stderr.encoding, sys.stderr.errors or "strict", "standard error")


def stream(descriptor: int, encoding: str, errors: str, label: str = "standard output") -> TextIO:
    """Open a stream on a file descriptor, with write errors as `OutputError`."""
    file = _Descriptor(descriptor, label)
    error_handler = "backslashreplace" if errors in {"strict", "surrogateescape"} else errors
    is_line_buffered = file.isatty() or label == "standard error"
    wrapper = _Terminal if file.isatty() and label == "standard output" else io.TextIOWrapper
    return wrapper(io.BufferedWriter(file), encoding, error_handler, line_buffering=is_line_buffered)


WRONG_INPUT, INTERNAL_ERROR, OUT_OF_MEMORY, CANNOT_WRITE, INTERRUPTED, CLOSED_OUTPUT, TERMINATED = (
    2,
    70,
    71,
    74,
    130,
    141,
    143,
)
"""Exit codes: wrong input; a bug; out of memory; write error; Ctrl-C; closed pipe (SIGPIPE); SIGTERM."""

CODES = """\
Exit codes: 0 success; 1 negative result (a gate fails, a check finds errors); 2 invalid input; 70 bug in judged;
71 out of memory; 74 write error, such as a full disk; 130 interrupted by Ctrl-C; 141 output pipe closed; 143 ended by
SIGTERM. The command trec_eval has other exit codes. Set JUDGED_TRACEBACK=1 to print the traceback of a bug.
"""
_TRACEBACK = "JUDGED_TRACEBACK"
_MAX_MESSAGE_LENGTH = 200  # characters of a message of another library


def exit_code(error: BaseException) -> int:
    """Print the error message, if possible, and return the exit code."""
    if _received_signals:  # libraries convert an interrupt to other errors, so any later error is its consequence
        return TERMINATED if signal.SIGTERM in _received_signals else INTERRUPTED
    if isinstance(error, OutputError) and error.errno == errno.EPIPE:
        return CLOSED_OUTPUT
    if isinstance(error, click.Abort) and isinstance(error.__context__, EOFError):
        error = error.__context__  # Click treats any end of file as Ctrl-D
    if isinstance(error, KeyboardInterrupt | click.Abort) or _is_interrupt(error):
        return INTERRUPTED
    code, sentence = _code_and_message(error)
    with suppress(OutputError):
        click.echo(on_terminal(mask_passwords(sentence)), err=True)
        if code == INTERNAL_ERROR and os.environ.get(_TRACEBACK):
            import traceback  # only bugs need it

            traceback.print_exception(error)
    return code


_received_signals: set[int] = set()


def end_on_signals() -> None:
    """Handle SIGTERM like Ctrl-C, which leaves no partial files, but with a separate exit code."""

    def interrupt(number: int, _frame: object) -> None:
        _received_signals.add(number)
        logging: Any = sys.modules.get("logging")
        if logging is not None:
            logging.lastResort = logging.NullHandler()  # SQLAlchemy logs a traceback of an interrupt
        raise KeyboardInterrupt

    def interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)
        elif hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.001)

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored, as for background jobs
        numbers.append(signal.SIGINT)
    if hasattr(signal, "SIGALRM"):  # Python ignores exceptions in finalizers: interrupt again after a moment
        numbers.append(signal.SIGALRM)
        sys.unraisablehook = interrupt_again
    for number in numbers:
        signal.signal(number, interrupt)


_PATH_ERRORS = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EROFS, errno.ENOTEMPTY,
}  # fmt: skip
"""Error numbers that a wrong path causes."""


def ignore_signals() -> None:
    """Ignore signals at the end of the command, so that temporary files are removed."""
    for name in {"SIGINT", "SIGTERM", "SIGALRM"} & set(dir(signal)):
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def _is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C caused an error. DuckDB has its own error, and other libraries wrap KeyboardInterrupt."""
    database = sys.modules.get("duckdb")
    if database is not None and isinstance(error, database.InterruptException):
        return True
    cause = error.__cause__ or error.__context__
    return isinstance(cause, KeyboardInterrupt) or (cause is not None and _is_interrupt(cause))


def _code_and_message(error: BaseException) -> tuple[int, str]:
    if isinstance(error, JudgedError):
        return CANNOT_WRITE if isinstance(error, OutputError) else WRONG_INPUT, f"error: {one_line(str(error))}"
    database = sys.modules.get("duckdb")
    is_unwritable = database is not None and isinstance(error, database.Error) and "Could not write file" in str(error)
    if is_unwritable or is_full(error):  # without a file name, it is a temporary file
        path = getattr(error, "filename", None) or tempfile.gettempdir()
        number = errno.ENOSPC if is_full(error) else errno.EIO
        return CANNOT_WRITE, f"error: {OutputError(str(path), OSError(number, ' '.join(str(error).split())))}"
    if isinstance(error, click.UsageError):
        return WRONG_INPUT, _usage(error)
    if isinstance(error, OSError) and error.filename is not None and error.errno in _PATH_ERRORS:
        name, reason = os.fsdecode(error.filename), error.strerror or str(error)
        return WRONG_INPUT, f"error: {one_line(name)}: the file cannot be used ({reason}). Fix: check the path."
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY, "error: out of memory. Fix: use fewer runs or measures at a time, or a larger machine."
    description = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:_MAX_MESSAGE_LENGTH]
    fix = f"set {_TRACEBACK}=1 to print the traceback, and report it with your command"
    return INTERNAL_ERROR, f"error: this is a bug in judged, not a problem of your input ({description}). Fix: {fix}."


def _usage(error: click.UsageError) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    command = error.ctx.command_path if error.ctx else "judged"
    fix = str(getattr(error, "fix", ""))
    problem = one_line(error.format_message().rstrip("."))
    if isinstance(error, click.NoSuchOption) and (fix := suggest_option(error)):
        problem = one_line(error.message.rstrip("."))
    if fix:
        return f"error: {problem}. Fix: {fix}."
    takes_files = error.ctx and any(isinstance(param, click.Argument) for param in error.ctx.command.params)
    if error.ctx and takes_files and (type(error) is click.UsageError or _lacks_argument(error)):
        usage = " ".join([command, *error.ctx.command.collect_usage_pieces(error.ctx)])
        return f"error: {problem}. Fix: write {usage}; see '{command} --help'."
    return f"error: {problem}{'' if problem.endswith('?') else '.'} Fix: see '{command} --help'."


def _lacks_argument(error: click.UsageError) -> bool:
    return isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument)


_FILE_WORDS = ("run", "runs", "qrels", "judgments", "candidate")


def suggest_option(error: click.NoSuchOption) -> str:
    """Return a fix with the intended option of the command, or an empty text."""
    option_name = error.option_name.lstrip("-").replace("_", "-")
    if error.ctx is None:
        return ""
    parameters = error.ctx.command.params
    candidates = list(_candidates(option_name, parameters))
    if len(candidates) == 1:
        return f"write {candidates[0][0]}"
    if candidates:
        return "write " + ", or ".join(f"{flag} ({about})" for flag, about in candidates)
    arguments = [param.make_metavar(error.ctx) for param in parameters if isinstance(param, click.Argument)]
    if option_name in _FILE_WORDS and arguments:
        return f"pass files without an option: {error.ctx.command_path} {' '.join(arguments)}"
    return ""


def _candidates(option_name: str, parameters: list[click.Parameter]) -> Iterator[tuple[str, str]]:
    """Yield the options that may be intended, each with the beginning of its help."""
    from judged.results.spelling import OTHER_NAMES  # only wrong options need it

    for param in parameters:
        flag = max(param.opts, key=len)
        name = flag.removeprefix("--")
        if isinstance(param, click.Option) and option_name in OTHER_NAMES.get(name, "").split():
            is_choice = name == "format" and isinstance(param.type, click.Choice) and option_name in param.type.choices
            description = re.split(r"[.:;](?:\s|$)", param.help or "")[0]
            yield f"{flag} {option_name}" if is_choice else flag, description[:1].lower() + description[1:]
