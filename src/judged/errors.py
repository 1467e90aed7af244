"""What judged raises, and the one warning class that it emits.

Every message says what is wrong, where, and what to do about it.
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
    """Base of all errors that judged raises on purpose.

    Examples
    --------
    >>> MeasureError("no measure 'x'. Fix: did you mean R?").parts
    ("no measure 'x'", 'did you mean R?')
    """

    field = ""
    """Which of the fields of a form is to blame, where that is known."""

    def __reduce__(self) -> tuple[object, ...]:
        """Make it anew without asking ``__init__``, which takes other arguments than `Exception` thinks."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    @property
    def parts(self) -> tuple[str, str]:
        """What is wrong, and what to do about it: the two halves of the message, for whoever shows them apart."""
        problem, _, fix = str(self).partition(" Fix: ")
        return problem.rstrip("."), fix.rstrip(".")


_PASSWORD = re.compile(r"(:/{1,2}[^\s/@:]*:)[^\s/]*@")  # a path leaves one of two slashes


def masked(text: str) -> str:
    """Return a text without the passwords of addresses in it.

    >>> masked("postgresql://ann:a@b@host/db: there is no such file")
    'postgresql://ann:***@host/db: there is no such file'
    """
    return _PASSWORD.sub(r"\1***@", text) if ":/" in text else text


def one_line(text: str) -> str:
    r"""Return a message in one line: the ends of lines that a quoted text has are written as escapes.

    >>> print(one_line("a\nb.run: there is no such file"))
    a\nb.run: there is no such file
    """
    return _LINE_END.sub(lambda end: repr(end[0])[1:-1], text)


_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
NO_CONTENT = "no-content"
"""The rule of problems that are not about what a file holds: there is none, or it may not be read."""


class InputError(JudgedError, ValueError):
    """Something given to judged cannot be used.

    Parameters
    ----------
    problem
        What is wrong, as a clause without a full stop.
    fix
        What to do about it.
    path, line
        Where: a file (or ``<stdin>``, ``<dict>``...) and its 1-based line.
    rule
        What kind of problem it is: the rule of a `Finding`, where `judged check` would say it.

    Examples
    --------
    >>> print(InputError("the score 'abc' is not a number", fix="write a number", path="a.run", line=3))
    a.run:3: the score 'abc' is not a number. Fix: write a number.
    """

    def __init__(self, problem: str, *, fix: str = "", path: str = "", line: int | None = None, rule: str = "") -> None:
        self.problem = masked(problem)
        self.fix = fix
        self.path = masked(path)
        self.line = line
        self.rule = rule
        super().__init__(self._message())

    def _message(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        text = f"{place}: {self.problem}" if place else self.problem
        return one_line(f"{text}. Fix: {self.fix}." if self.fix else f"{text}.")


@contextmanager
def named_in_errors(path: object) -> Generator[None]:
    """Add the path of a file to an InputError that names none."""
    try:
        yield
    except InputError as error:
        if error.path:
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path), rule=error.rule) from None


_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_full(error: BaseException) -> bool:
    """Return whether an error says that a disk is full.

    The system and SQLite have numbers for it; other libraries (DuckDB, PostgreSQL, tantivy, shutil) quote the system.
    """
    number, name = getattr(error, "errno", None), getattr(getattr(error, "orig", error), "sqlite_errorname", "")
    return number in _FULL or name == "SQLITE_FULL" or any(os.strerror(full) in str(error) for full in _FULL)


class OutputError(JudgedError):
    """A result is there, and the place where it should go does not take it: a full disk, a closed output.

    >>> print(OutputError("results.csv", OSError(28, "No space left on device")))
    results.csv: no space left on this disk. Fix: make room, or write elsewhere.
    """

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        said = error.strerror or str(error)
        problem = "no space left on this disk" if is_full(error) else f"this file cannot be written ({said})"
        super().__init__(f"{path}: {problem}. Fix: make room, or write elsewhere.")


class MeasureError(JudgedError, ValueError):
    """A measure's name or parameters make no sense, or it cannot be computed on this input."""


class MissingExtraError(JudgedError, ImportError):
    """An optional library is not installed; the message gives the command that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed. Fix: pip install 'judged[{extra}]'.")


class JudgedWarning(UserWarning):
    """Something that changes how a result should be read, such as topics missing from a run."""
