"""The progress bar, as a terminal of the operating system gets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pty = pytest.importorskip("pty")

if TYPE_CHECKING:
    from pathlib import Path

ERASED = "\x1b[?25h\r\n\x1b[1A\r\x1b[2K"


def run_with_output(code: str, folder: Path, **environment: str) -> tuple[str, str]:
    """Run Python with standard error on a terminal, and give what it printed and what the terminal got."""
    ours, terminal = pty.openpty()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", **environment}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=terminal, text=True, env=env, cwd=folder
    ) as started:
        os.close(terminal)
        parts: list[bytes] = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # this is how a terminal of Linux ends
            pass
        os.close(ours)
        assert started.stdout
        return started.stdout.read(), b"".join(parts).decode()


EVALUATE = """
import sys
from judged.interface import arguments as inputs
from judged.cli import main
inputs._MIN_BYTES_FOR_BAR = 1
sys.argv = ["judged", "evaluate", "qrels.txt", "a\\x1b[31m.run", "bad.run", "-m", "AP"]
main.main()
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    for name in ("a\x1b[31m.run", "bad.run"):
        (tmp_path / name).write_text("q Q0 d 1 0.5 x\n")
    return tmp_path


def test_a_bar_is_drawn_for_each_run_and_taken_away(files: Path) -> None:
    printed, terminal = run_with_output(EVALUATE, files)
    assert [line.split() for line in printed.splitlines()[:3]][2] == ["bad", "1.0000"]
    bar, _, after = terminal.partition(ERASED)
    assert "\ra\\x1b[31m  [#############-------------]   50%" in bar.replace("\x1b[?25l", "")
    assert "\rbad  [##########################]  100%" in bar.replace("\x1b[?25l", "")
    assert "\x1b[31m" not in bar
    assert "%" not in after


def test_the_bar_of_scattered_parts_that_are_judged_in_processes_ends_where_all_is_done(tmp_path: Path) -> None:
    """Read twice, and then ranked: it is full once, in the end."""
    (tmp_path / "qrels.txt").write_text("q 0 d02 1\n")
    for run in ("a", "b"):
        (tmp_path / "runs" / run).mkdir(parents=True)
        for part in range(3):
            rows = [f"{'qp'[i % 2]} Q0 d{part}{i} 1 {i / 7} x\n" for i in range(2000)]
            (tmp_path / "runs" / run / f"part-{part}").write_text("".join(rows))
    code = EVALUATE.replace('"a\\x1b[31m.run", "bad.run"', '"runs", "--processes", "2"')
    printed, terminal = run_with_output(f'if __name__ == "__main__":{code}'.replace("\n", "\n    "), tmp_path)
    assert [line.split()[0] for line in printed.splitlines()[1:3]] == ["a", "b"]
    shares = [int(share) for share in re.findall(r"(\d+)%", terminal.partition(ERASED)[0])]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert set(range(1, 100)) & set(shares)


def test_an_error_stands_alone(files: Path) -> None:
    (files / "bad.run").write_text("q Q0 d 1 high x\n")
    printed, terminal = run_with_output(EVALUATE, files)
    assert printed == ""
    assert terminal.rpartition(ERASED)[2].startswith("error: bad.run:1: ")


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"JPY_PARENT_PID": "1"}], ids=["dumb", "notebook"])
def test_no_bar_on_a_terminal_that_cannot_erase(environment: dict[str, str], files: Path) -> None:
    assert "[?25" not in run_with_output(EVALUATE, files, **environment)[1]


def test_warnings_stand_above_and_long_labels_lose_their_middle(tmp_path: Path) -> None:
    code = """
import warnings
from threading import Thread
from judged.interface.arguments import bar
with bar("reading", 400) as tell:
    tell("one of " + 100 * "very " + "many", 100)
    warnings.warn("odd")
    tell("counting", None)
    threads = [Thread(target=lambda: [tell("more", 1) for _ in range(75)]) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
warnings.warn("after")
"""
    terminal = run_with_output(code, tmp_path)[1].replace("\x1b[?25l", "")
    assert "\rone of very ver... very very many  [######--------------------]   25%\r\x1b[2K" in terminal
    assert re.search(r"\r\x1b\[2K<string>:\d+: UserWarning: odd\r\n\rcounting ", terminal)
    assert "\rmore  [##########################]  100%" in terminal
    assert terminal.endswith("UserWarning: after\r\n")
