"""How the command ends: whatever goes wrong becomes one line and an exit code."""

from __future__ import annotations

import errno
import os
import traceback
from contextlib import suppress

import click

from judged.errors import JudgedError, OutputError
from judged.tables import on_terminal

WRONG, FAULT, STOPPED, UNREAD = 2, 70, 130, 141
"""Wrong input; a fault of judged or of its output; Ctrl-C; nobody reads the output (what a shell says of SIGPIPE)."""

CODES = """\
Exit codes: 0 fine; 1 the answer is "no" (a gate that fails, a check that finds errors); 2 wrong input; 70 a fault
of judged itself, or an output that takes nothing; 130 stopped by Ctrl-C; 141 nobody reads the output any more.
trec_eval has its own. JUDGED_TRACEBACK=1 shows where a fault arose.
"""
_TRACEBACK = "JUDGED_TRACEBACK"
_LONGEST = 200  # characters of somebody else's message


def ended(error: BaseException) -> int:
    """Say what is wrong, if anything can still be said, and give the exit code."""
    if isinstance(error, OutputError) and error.errno == errno.EPIPE:
        return UNREAD
    if isinstance(error, click.Abort) and isinstance(error.__context__, EOFError):
        error = error.__context__  # Click takes every end of a file for Ctrl-D
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return STOPPED
    code, sentence = _told(error)
    with suppress(OutputError):
        click.echo(on_terminal(sentence), err=True)
        if code == FAULT and os.environ.get(_TRACEBACK):
            traceback.print_exception(error)
    return code


def _told(error: BaseException) -> tuple[int, str]:
    if isinstance(error, JudgedError):
        return FAULT if isinstance(error, OutputError) else WRONG, f"error: {error}"
    if isinstance(error, click.UsageError):
        return WRONG, _usage(error)
    if isinstance(error, MemoryError):
        return FAULT, "error: there is not enough memory. Fix: fewer runs or measures at a time, or a larger machine."
    what = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:_LONGEST]
    fix = f"set {_TRACEBACK}=1 to see where, and report it with what you typed"
    return FAULT, f"error: this is a fault of judged, not of your input ({what}). Fix: {fix}."


def _usage(error: click.UsageError) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    command = error.ctx.command_path if error.ctx else "judged"
    problem = error.format_message().rstrip(".")
    return f"error: {problem}{'' if problem.endswith('?') else '.'} Fix: see '{command} --help'."
