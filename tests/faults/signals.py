"""Signals at random moments: kills, Ctrl-C, and SIGTERM."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from faults.processes import Ended, Measured, folders, run
from faults.state import is_new, prepare, problems

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from faults.commands import Command

NAMES = {signal.SIGKILL: "SIGKILL", signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}
TOO_LATE = "too late"  # the command had ended before the signal
_CODES = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (143, -signal.SIGTERM)}  # -: while Python starts


def send(
    command: Command, start: str, measured: Measured, inputs: Path, place: Path, number: signal.Signals, chance: Random
) -> tuple[str, list[str]]:
    """Run a command, send it a signal at a random moment, and return the outcome and the errors.

    Half of the moments are after the first change in the folder, the others in the last 60% of the running time.
    """
    from_change = chance.random() < 0.5
    if from_change:  # many early ones: many commands write one file in a millisecond
        wait = chance.random() ** chance.choice((1, 3)) * measured.writing
    else:
        wait = (0.4 + 0.65 * chance.random()) * measured.seconds
    with folders(place) as (out, temporary):
        prepare(command, start, inputs, out, tuple(measured.new))
        ended = run(command, inputs, out, temporary, number=number, wait=wait, from_change=from_change)
        if number == signal.SIGKILL:
            _wait_for_children(temporary)
        wrong = problems(command, out, measured.old, measured.new, killed=number == signal.SIGKILL)
        new = is_new(command, out, measured.new)
        if number != signal.SIGKILL:
            wrong += _wrong_end(ended, number, measured, new=new)
            wrong += [f"left behind in TMPDIR: {path.name}" for path in temporary.iterdir()]
        elif not ended.signaled:
            wrong += [] if new and ended.code == measured.code else [f"it ends with {ended.code}: {ended.err[-200:]}"]
        elif not wrong and not (new and (command.adds or (start == "empty" and command.name == "demo"))):
            wrong += _again(command, measured, inputs, out, temporary)
        outcome = "finished" if ended.code == measured.code else "new" if new else "old"
        outcome = outcome if ended.signaled else TOO_LATE
    where = f"{start}, {'after the first change' if from_change else 'after the start'} {1000 * wait:.0f} ms"
    return outcome, [f"{NAMES[number]} ({where}): {text}" for text in wrong]


def _wrong_end(ended: Ended, number: signal.Signals, measured: Measured, *, new: bool) -> list[str]:
    if ended.code == measured.code:
        swallowed = [f"it goes on: {ended.err.strip()[-300:]}"] if "KeyboardInterrupt" in ended.err else []
        return swallowed if new else [f"it ends with {ended.code} without its output"]
    wrong = [] if ended.code in _CODES[number] else [f"it ends with {ended.code}: {ended.err.strip()[-300:]}"]
    if ended.code > 0 and ("Traceback" in ended.err or "Exception ignored" in ended.err or "bug" in ended.err):
        wrong.append(f"it prints {ended.err.strip()[-300:]}")
    return wrong


def _again(command: Command, measured: Measured, inputs: Path, out: Path, temporary: Path) -> list[str]:
    """Run a command again after it was killed, and check that it succeeds."""
    ended = run(command, inputs, out, temporary)
    if ended.code not in command.codes:
        return [f"it ends with {ended.code} when it is run again: {ended.err.strip()[-300:]}"]
    return [f"run again: {text}" for text in problems(command, out, measured.new, measured.new, killed=True)]


def _wait_for_children(temporary: Path) -> None:
    """Wait for processes that a killed command has started: they end when it does."""
    mark = os.fsencode(f"TMPDIR={temporary}")
    for _ in range(200):
        if not any(_has(process, mark) for process in os.listdir("/proc") if process.isdecimal()):  # noqa: PTH208
            return
        time.sleep(0.02)


def _has(process: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except OSError:
        return False
