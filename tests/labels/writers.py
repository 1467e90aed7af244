"""Processes that write labels and are killed, for tests of the store: `python writers.py STORE kill|write ...`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from judged.labels import LabelStore

sys.path.append(str(Path(__file__).parents[1]))  # this file is a program
from killed_writers import kill_writers


def write(where: str, judge: str, count: int, pipe: int | None = None) -> None:
    """Add labels one by one, and write the ID of each stored label to `pipe`."""
    store = LabelStore.open(where)
    if pipe is not None:
        os.write(pipe, b"open\n")
    for i in range(count):
        store.add(judge, "q", f"{judge}-{i}", float(i % 4))
        if pipe is not None:
            os.write(pipe, f"{judge}-{i}\n".encode())


def kill(where: str, times: int) -> None:
    """Kill writers of a store."""
    LabelStore.open(where).close()  # import before fork
    kill_writers(lambda i, pipe: write(where, f"j{i}", 10_000, pipe), times, 0.02)


if __name__ == "__main__":
    if sys.argv[2] == "kill":
        kill(sys.argv[1], int(sys.argv[3]))
    else:
        write(sys.argv[1], sys.argv[3], int(sys.argv[4]))
