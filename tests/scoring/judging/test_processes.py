"""Runs judged in processes: the same values and the same complaints, and nothing left of what was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import judged
from judged import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from judged.scoring.evaluation import Scores

TOPICS = 5


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Five runs as files, some of them shuffled."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "runs"
    folder.mkdir()
    for at in range(5):
        lines = [f"q{q} Q0 d{d} 0 {s!r} t\n" for q in range(TOPICS) for d, s in enumerate(rng.normal(size=40).tolist())]
        (folder / f"r{at}.run").write_text("".join(rng.permutation(lines) if at % 2 else lines))
    return folder


QRELS = {f"q{topic}": {f"d{doc}": doc % 3 for doc in range(topic, 30)} for topic in range(TOPICS)}


def test_any_number_of_processes_gives_the_same_scores_and_the_first_complaint(runs: Path) -> None:
    told: list[dict[str, int]] = []

    def scores(processes: int) -> Scores:
        seen: dict[str, int] = {}
        told.append(seen)
        tell = lambda name, more: seen.update({name: seen.get(name, 0) + more})  # noqa: E731
        given = [runs, {query: {"d7": 1.0, "d8": 0.5} for query in QRELS}]
        return judged.evaluate(QRELS, given, ["nDCG@10", "AP"], processes=processes, progress=tell)

    wanted = scores(1)
    for processes in (2, 3):
        found = scores(processes)
        assert found.values.tobytes() == wanted.values.tobytes()
        assert found.runs == wanted.runs
    assert told[0] == {path.stem: path.stat().st_size for path in runs.iterdir()}
    assert told[1] == told[2] == told[0]
    for name in ("r3", "r1"):  # the first in order is named, whichever is found first
        with (runs / f"{name}.run").open("a") as file:
            file.write("q1 Q0 d0 0 1 t\n")
    said: set[str] = set()
    for processes in (1, 2):
        with pytest.raises(InputError, match="returned twice") as complaint:
            scores(processes)
        said.add(str(complaint.value))
    assert len(said) == 1
    assert "r1.run:201: " in said.pop()


@pytest.mark.parametrize("processes", [0, -1, 1.5, "2"])
def test_what_is_no_number_of_processes(processes: int) -> None:
    with pytest.raises(InputError, match="`processes` must be"):
        judged.evaluate(QRELS, {"q0": {"d1": 1.0}}, "AP", processes=processes)


LONG = """
import sys
if __name__ == "__main__":
    import judged
    told = lambda name, more: print(more, flush=True)
    judged.evaluate({"q": {"d": 1}}, sys.argv[1:], "AP", processes=2, progress=told)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are counted in /proc")  # noqa: PTH112
def test_a_killed_evaluation_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    long = [tmp_path / f"{name}.run" for name in "ab"]
    for path in long:  # long enough that nobody is done before the end
        with path.open("w") as file:
            for block in range(50):
                file.write("".join(f"q{at % 7} Q0 d{block * 10_000 + at} 0 1 t\n" for at in range(10_000)))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "main.py").write_text(LONG)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, str(tmp_path / "main.py"), *map(str, long)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, start_new_session=True) as started:
        assert started.stdout
        assert started.stdout.readline()  # somebody is reading
        children = _descendants(started.pid)
        assert len(children) >= 2
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
    until = time.monotonic() + 60
    while any(map(_alive, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [child for child in children if _alive(child)]
    assert not list((tmp_path / "tmp").iterdir())


def _descendants(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        found = [int(child) for child in file.read().split()]
    return found + [below for child in found for below in _descendants(child)]


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
