"""The command `judged` as a function of the test's process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def process(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
    """Run the command as its users do."""
    done = subprocess.run(
        [sys.executable, "-m", "judged", *arguments],
        input=stdin, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)
