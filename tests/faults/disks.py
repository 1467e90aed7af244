"""Full disks: a tmpfs for the results or for temporary files, filled up to some bytes."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from faults.processes import Measured, folders, run
from faults.state import is_new, prepare, problems, snapshot

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from faults.commands import Command

_PAGE = 4096


@contextmanager
def _disk(place: Path, size: int) -> Generator[None]:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)  # noqa: S607
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


def _fill(place: Path, room: int) -> None:
    """Fill a disk, except for this number of bytes."""
    disk = os.statvfs(place)
    with (place / "filling").open("wb", buffering=0) as file:
        for _ in range(disk.f_bavail - room // _PAGE):
            file.write(bytes(_PAGE))


def rooms(measured: Measured) -> list[int]:
    """Return the free space of the disks: none, one page, half of the output of the command, and more for stores."""
    half = sum(map(_size, measured.new.values())) // 2
    more = (16 * _PAGE, 40 * _PAGE) if any(name.endswith(".db") for name in measured.new) else ()
    return sorted({0, _PAGE, half // _PAGE * _PAGE, *more})


def _size(content: Any) -> int:
    return len(content if isinstance(content, bytes) else str(content))


def fill_target(
    command: Command, start: str, measured: Measured, inputs: Path, place: Path, room: int
) -> tuple[str, list[str]]:
    """Run a command with its folder on a disk with this free space."""
    with folders(place) as (unused, temporary):
        disk = unused.parent / "disk"
        out = disk / "out"
        with _disk(disk, 64 << 20):
            prepare(command, start, inputs, out, tuple(measured.new))
            old = snapshot(command, out)
            _fill(disk, room)
            ended = run(command, inputs, out, temporary)
            (disk / "filling").unlink()  # a store is not read without room
            outcome, wrong = _outcome(command, measured, old, out, ended.code, ended.err, str(disk))
            wrong += [f"left behind in TMPDIR: {path.name}" for path in temporary.iterdir()]
    return outcome, [f"target with {room:,} bytes of room ({start}): {text}" for text in wrong]


def fill_temporary(
    command: Command, start: str, measured: Measured, inputs: Path, place: Path, room: int
) -> tuple[str, list[str]]:
    """Run a command with its temporary files on a disk with this free space."""
    with folders(place) as (out, temporary):
        prepare(command, start, inputs, out, tuple(measured.new))
        with _disk(temporary, 64 << 20):
            _fill(temporary, room)
            ended = run(command, inputs, out, temporary)
            outcome, wrong = _outcome(command, measured, measured.old, out, ended.code, ended.err, str(temporary))
            wrong += [f"left behind in TMPDIR: {path.name}" for path in temporary.iterdir() if path.name != "filling"]
    return outcome, [f"TMPDIR with {room:,} bytes of room ({start}): {text}" for text in wrong]


def _outcome(
    command: Command, measured: Measured, old: dict[str, Any], out: Path, code: int, err: str, disk: str
) -> tuple[str, list[str]]:
    wrong = problems(command, out, old, measured.new)
    # Without room SQLite cannot move its log into the store; the log is a part of the store then.
    wrong = [text for text in wrong if not (text.startswith("left behind") and text.endswith(("-wal", "-shm")))]
    if code == measured.code:
        return "enough room", wrong if is_new(command, out, measured.new) else [*wrong, "it ends well, without results"]
    if code != 74:
        wrong.append(f"it ends with {code}: {err.strip()[-300:]}")
    elif "no space left" not in err or "Fix: " not in err or disk not in err:
        wrong.append(f"it says {err.strip()[-300:]}")
    return str(code), wrong
