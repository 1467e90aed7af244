"""Processes that add evaluations and are killed: `python writers.py STORE kill|write ...`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from judged.history import HistoryStore

QRELS = {f"q{i}": {"d0": 1, "d1": 0} for i in range(4)}


def run(seed: int) -> dict[str, dict[str, float]]:
    """Return a run that differs with the seed."""
    rng = random.Random(seed)  # noqa: S311  no secret
    return {query: {"d0": rng.random(), "d1": rng.random()} for query in QRELS}


def write(where: str, system: str, count: int, pipe: int | None = None) -> None:
    """Add evaluations one by one, and write the tag of each stored one to `pipe`."""
    store = HistoryStore.open(where, new=True)
    if pipe is not None:
        os.write(pipe, b"open\n")
    for i in range(count):
        store.add(QRELS, {system: run(i)}, "RR", commit="", tag=f"{system}-{i}")
        if pipe is not None:
            os.write(pipe, f"{system}-{i}\n".encode())


def kill(where: str, times: int) -> None:
    """Start `times` writers, kill each at a random time, and print the tags that they acknowledged."""
    delays = random.Random(0)  # noqa: S311  no secret
    HistoryStore.open(":memory:", new=True).add(QRELS, {"first": run(0)}, "RR")  # import before fork
    for i in range(times):
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            write(where, f"s{i}", 10_000, write_end)
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            first_lines = [lines.readline() for _ in range(i % 4)]  # 0: kill it possibly while it creates the store
            time.sleep(delays.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = (line for line in (*first_lines, *lines) if line.endswith("\n") and line != "open\n")
            sys.stdout.write("".join(acknowledged))


if __name__ == "__main__":
    if sys.argv[2] == "kill":
        kill(sys.argv[1], int(sys.argv[3]))
    else:
        write(sys.argv[1], sys.argv[3], int(sys.argv[4]))
