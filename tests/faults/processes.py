"""Processes that are started, watched, and ended."""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from faults.commands import Command, command_line, environment
from faults.state import prepare, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_LONGEST = 120.0  # seconds
_CHANGES = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200  # of inotify: modified, attributes, moved, created, deleted


@dataclass(frozen=True)
class Ended:
    code: int
    err: str
    seconds: float
    first_change: float | None
    signaled: bool


@contextmanager
def _changes(folder: Path) -> Generator[Callable[[float], bool]]:
    """Return a function that waits for a change in a folder, and whether there was one."""
    library = ctypes.CDLL(None, use_errno=True)
    watcher = library.inotify_init1(os.O_NONBLOCK)
    try:
        library.inotify_add_watch(watcher, os.fsencode(folder), _CHANGES)
        yield lambda seconds: bool(select.select([watcher], [], [], seconds)[0])
    finally:
        os.close(watcher)


def run(
    command: Command,
    inputs: Path,
    out: Path,
    temporary: Path,
    *,
    number: int | None = None,
    wait: float = 0.0,
    from_change: bool = False,
) -> Ended:
    """Run a command, and send it a signal some seconds after its start, or after the first change in its folder."""
    with (
        tempfile.TemporaryFile() as err,
        _changes(out) as changed,
        (
            (inputs / command.stdin).open("rb") if command.stdin else open(os.devnull, "rb")  # noqa: PTH123
        ) as stdin,
    ):
        begun, first, sent = time.monotonic(), None, False
        started = subprocess.Popen(
            command_line(command, out), cwd=inputs, env=environment(temporary), stdin=stdin,
            stdout=subprocess.DEVNULL, stderr=err, start_new_session=True,
        )  # fmt: skip
        try:
            deadline = begun + _LONGEST
            while first is None and (number is None or from_change) and started.poll() is None:
                first = time.monotonic() - begun if changed(0.02) else None
                if time.monotonic() > deadline:
                    break
            if number is not None:
                _wait(started, wait if from_change else begun + wait - time.monotonic())
                if started.poll() is None:
                    started.send_signal(number)
                    sent = True
            code = started.wait(max(deadline - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            code = -999  # it hung
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        seconds = time.monotonic() - begun
        err.seek(0)
        return Ended(code, err.read().decode(errors="replace"), seconds, first, sent)


def _wait(started: subprocess.Popen[bytes], seconds: float) -> None:
    if seconds > 0.05:  # poll for its end, not to wait in vain
        try:
            started.wait(seconds)
        except subprocess.TimeoutExpired:
            return
    else:
        time.sleep(max(seconds, 0))


@dataclass(frozen=True)
class Measured:
    """Completed run of a command: its duration, and the content of its folder before and after."""

    seconds: float
    writing: float  # seconds from the first change to the end
    old: dict[str, Any]
    new: dict[str, Any]
    code: int

    def scaled(self, scale: float) -> Measured:
        """Return the same command with all times multiplied by a factor."""
        return replace(self, seconds=scale * self.seconds, writing=scale * self.writing)


def measure(command: Command, start: str, inputs: Path, place: Path) -> Measured:
    """Run a command undisturbed, twice, and raise ValueError where the results are unequal."""
    results: list[tuple[Ended, dict[str, Any]]] = []
    old: dict[str, Any] = {}
    for _ in range(2):
        names = tuple(results[0][1]) if results else ()
        if start == "old" and command.old is None and not names:  # what it writes is not known yet
            names = tuple(measure(command, "empty", inputs, place).new) if command.empty else ()
        with folders(place) as (out, temporary):
            prepare(command, start, inputs, out, names)
            old = snapshot(command, out)
            ended = run(command, inputs, out, temporary)
            if ended.code not in command.codes:
                raise ValueError(f"it ends with {ended.code}: {ended.err.strip()[-300:]}")
            results.append((ended, snapshot(command, out)))
    (first, new), (second, again) = results
    if new != again:
        odd = [name for name in new if new[name] != again.get(name)]
        raise ValueError(f"two runs differ: {', '.join(odd)}")
    if new == old:
        raise ValueError("it changes nothing")
    seconds = min(first.seconds, second.seconds)
    writing = max(ended.seconds - (ended.first_change or 0.0) for ended in (first, second))
    return Measured(seconds, writing, old, new, first.code)


@contextmanager
def folders(place: Path) -> Generator[tuple[Path, Path]]:
    """Create a folder for temporary files, and yield it with a path for results; remove both at the end."""
    temporary_folder = Path(tempfile.mkdtemp(dir=place))
    (temporary_folder / "tmp").mkdir()
    try:
        yield temporary_folder / "out", temporary_folder / "tmp"
    finally:
        shutil.rmtree(temporary_folder, ignore_errors=True)
