"""Run the command `judged` in the process of the test, or in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from judged.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def process(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
    """Run the command in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "judged", *arguments],
        input=stdin, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Return a function that runs the command in this process, without start-up time."""

    monkeypatch.delenv("COLUMNS", raising=False)  # a test that wants a width sets it

    def command(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["judged", *arguments])
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, *capsys.readouterr())

    return command
