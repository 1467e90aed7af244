"""Every option that takes a number, of every command: a senseless one is wrong input, and is seen before any work."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NoReturn

import click
import pytest

from every_command import ARGUMENTS, commands, write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from command_line import Ended

NUMBERS = [
    (name, option.opts[0], "." if isinstance(option.type, click.types.FloatParamType) else "")
    for name, command in commands()
    for option in command.params
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    and name not in {"serve", "study run"}
    and not name.startswith(("online", "logs"))
]
STRANGE = ("0", "-1", "nan", "inf", "-inf", "1e400", "1000000000000000000000")
SECONDS = 30


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)

    def late(*_: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("name", "option", "kind"), NUMBERS)
def test_a_senseless_number_is_no_fault_and_no_hang(
    name: str, option: str, kind: str, run: Callable[..., Ended]
) -> None:
    for value in STRANGE:
        signal.alarm(SECONDS)
        done = run(
            *name.split(), *ARGUMENTS[name], f"{option}={value}" if option.startswith("--") else f"{option}{value}"
        )
        signal.alarm(0)
        assert done.code in {0, 1, 2}, (value, done.err)
        if not kind and value in {"nan", "inf", "1e400"}:
            assert done.code == 2
