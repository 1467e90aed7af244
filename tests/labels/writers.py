"""Programs that write labels and are killed, for the tests of the store: `python writers.py STORE kill|write ...`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from judged.labels import LabelStore


def write(where: str, judge: str, count: int, said: int | None = None) -> None:
    """Give labels one by one, and say of each that it is kept."""
    store = LabelStore.open(where)
    if said is not None:
        os.write(said, b"open\n")
    for at in range(count):
        store.add(judge, "q", f"{judge}-{at}", float(at % 4))
        if said is not None:
            os.write(said, f"{judge}-{at}\n".encode())


def kill(where: str, times: int) -> None:
    """Begin to write so often, and stop it at random moments; print what was said to be kept."""
    rng = random.Random(0)  # noqa: S311 - moments
    LabelStore.open(where).close()  # children need not import what this did
    for at in range(times):
        heard, said = os.pipe()
        child = os.fork()
        if not child:
            write(where, f"j{at}", 10_000, said)
        os.close(said)
        with os.fdopen(heard) as lines:
            first = [lines.readline() for _ in range(at % 4)]  # for 0 it may be stopped while it opens the store
            time.sleep(rng.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            sys.stdout.write("".join(line for line in (*first, *lines) if line.endswith("\n") and line != "open\n"))


if __name__ == "__main__":
    if sys.argv[2] == "kill":
        kill(sys.argv[1], int(sys.argv[3]))
    else:
        write(sys.argv[1], sys.argv[3], int(sys.argv[4]))
