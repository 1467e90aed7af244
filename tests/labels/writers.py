"""Processes that write labels and are killed, for tests of the store: `python writers.py STORE kill|write ...`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from judged.labels import LabelStore


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
    """Start `times` writers, kill each at a random time, and print the IDs that they acknowledged."""
    rng = random.Random(0)  # noqa: S311 - random delays
    LabelStore.open(where).close()  # import before fork
    for i in range(times):
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            write(where, f"j{i}", 10_000, write_end)
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            first_lines = [lines.readline() for _ in range(i % 4)]  # 0: kill it possibly while it opens the store
            time.sleep(rng.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = (line for line in (*first_lines, *lines) if line.endswith("\n") and line != "open\n")
            sys.stdout.write("".join(acknowledged))


if __name__ == "__main__":
    if sys.argv[2] == "kill":
        kill(sys.argv[1], int(sys.argv[3]))
    else:
        write(sys.argv[1], sys.argv[3], int(sys.argv[4]))
