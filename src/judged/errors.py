"""Exceptions and the warning class of judged.

Each message has the problem, its place, and a fix.
"""

from __future__ import annotations

import copyreg
import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


class JudgedError(Exception):
    """Base class of all errors that judged raises.

    Examples
    --------
    >>> MeasureError("no measure 'x'. Fix: did you mean R?").parts
    ("no measure 'x'", 'did you mean R?')
    """

    field = ""
    """Name of the form field with the invalid value, if known."""

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling: recreate the error without calling ``__init__``, whose parameters differ from ``args``."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    @property
    def parts(self) -> tuple[str, str]:
        """Problem and fix: the two parts of the message."""
        problem, _, fix = str(self).partition(" Fix: ")
        return problem.rstrip("."), fix.rstrip(".")


_PASSWORD = re.compile(r"(:/{1,2}[^\s/@:]*:)[^\s/]*@")  # a path leaves one of two slashes


def mask_passwords(text: str) -> str:
    """Replace the passwords of addresses in a text by asterisks.

    >>> mask_passwords("postgresql://ann:a@b@host/db: there is no such file")
    'postgresql://ann:***@host/db: there is no such file'
    """
    return _PASSWORD.sub(r"\1***@", text) if ":/" in text else text


def one_line(text: str) -> str:
    r"""Return a message as one line, with line breaks escaped.

    >>> print(one_line("a\nb.run: there is no such file"))
    a\nb.run: there is no such file
    """
    return _LINE_END.sub(lambda match: repr(match[0])[1:-1], text)


_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
NO_CONTENT = "no-content"
"""Rule of problems that do not concern the content of a file: it does not exist or is not readable."""


class InputError(JudgedError, ValueError):
    """An input is invalid.

    Parameters
    ----------
    problem
        The problem as a clause without a full stop.
    fix
        The fix.
    path, line
        File (or ``<stdin>``, ``<dict>``...) and 1-based line.
    rule
        Kind of problem: the rule of the `Finding` that `judged check` would report.

    Examples
    --------
    >>> print(InputError("the score 'abc' is not a number", fix="write a number", path="a.run", line=3))
    a.run:3: the score 'abc' is not a number. Fix: write a number.
    """

    def __init__(self, problem: str, *, fix: str = "", path: str = "", line: int | None = None, rule: str = "") -> None:
        self.problem = mask_passwords(problem)
        self.fix = fix
        self.path = mask_passwords(path)
        self.line = line
        self.rule = rule
        super().__init__(self._message())

    def _message(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        text = f"{place}: {self.problem}" if place else self.problem
        return one_line(f"{text}. Fix: {self.fix}." if self.fix else f"{text}.")


@contextmanager
def add_path_to_errors(path: object) -> Generator[None]:
    """Add the path of a file to an InputError without a path."""
    try:
        yield
    except InputError as error:
        if error.path:
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path), rule=error.rule) from None


_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_full(error: BaseException) -> bool:
    """Return whether an error means that a disk is full.

    The operating system and SQLite use error codes; DuckDB, PostgreSQL, tantivy, and shutil quote the system's message.
    """
    number, name = getattr(error, "errno", None), getattr(getattr(error, "orig", error), "sqlite_errorname", "")
    return number in _DISK_FULL or name == "SQLITE_FULL" or any(os.strerror(code) in str(error) for code in _DISK_FULL)


class OutputError(JudgedError):
    """A result cannot be written, because the disk is full or the output is closed.

    >>> print(OutputError("results.csv", OSError(28, "No space left on device")))
    results.csv: no space left on this disk. Fix: free disk space, or write to another place.
    """

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        reason = error.strerror or str(error)
        problem = "no space left on this disk" if is_full(error) else f"this file cannot be written ({reason})"
        super().__init__(f"{path}: {problem}. Fix: free disk space, or write to another place.")


class MeasureError(JudgedError, ValueError):
    """A measure's name or parameters are invalid, or it cannot be computed on the input."""


class MissingExtraError(JudgedError, ImportError):
    """An optional library is not installed: `library`, which the extra `extra` of judged installs, if there is one."""

    def __init__(self, library: str, extra: str = "") -> None:
        package = f"'judged[{extra}]'" if extra else library
        super().__init__(f"{library} is not installed. Fix: pip install {package}.")


class JudgedWarning(UserWarning):
    """A condition that affects the interpretation of a result, such as topics missing from a run."""
