"""The command line as a function."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from command_line import Ended
from judged.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Give the command as a function of this process, which starts in no time."""

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
