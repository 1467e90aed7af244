"""Kill processes that write to a store, and report what they acknowledged before."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def kill_writers(write: Callable[[int, int], None], times: int, longest: float) -> None:
    """Start `times` writers, kill each at a random time, and print the lines that they acknowledged.

    `write(i, pipe)` writes the line "open" to the pipe when the store is open, and then the name of each stored row.
    `longest`: most seconds until a writer is killed.
    """
    delays = random.Random(0)  # noqa: S311  no secret
    for i in range(times):
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            write(i, write_end)
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            first_lines = [lines.readline() for _ in range(i % 4)]  # 0: kill it possibly while it opens the store
            time.sleep(delays.uniform(0.0, longest))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = (line for line in (*first_lines, *lines) if line.endswith("\n") and line != "open\n")
            sys.stdout.write("".join(acknowledged))
