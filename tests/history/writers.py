"""Processes that add evaluations and are killed: `python writers.py STORE kill|write ...`."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from judged.history import HistoryStore

sys.path.append(str(Path(__file__).parents[1]))  # this file is a program
from killed_writers import kill_writers

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
    """Kill writers of a store, of which the first may be killed while it creates the store."""
    HistoryStore.open(":memory:", new=True).add(QRELS, {"first": run(0)}, "RR")  # import before fork
    kill_writers(lambda i, pipe: write(where, f"s{i}", 10_000, pipe), times, 0.03)


if __name__ == "__main__":
    if sys.argv[2] == "kill":
        kill(sys.argv[1], int(sys.argv[3]))
    else:
        write(sys.argv[1], sys.argv[3], int(sys.argv[4]))
