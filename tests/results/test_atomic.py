"""Folders that are replaced: the old or the new one, whole, whenever the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.results.files import atomic_folder

WRITER = """
import sys, time
from judged.results.files import atomic_folder
for version in range(1_000_000):
    with atomic_folder(sys.argv[1]) as folder:
        for name in "abc":
            (folder / name).write_text(str(version))
    print(version, flush=True)
"""


def test_a_failure_leaves_the_old_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "x"
    with atomic_folder(target) as folder:
        (folder / "a").write_text("old")
    made = atomic_folder(target)
    (made.__enter__() / "b").write_text("new")
    assert not made.__exit__(RuntimeError, RuntimeError(), None)
    assert [path.name for path in target.iterdir()] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    with atomic_folder(target) as folder:
        (folder / "b").write_text("new")
    assert [path.name for path in target.iterdir()] == ["b"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    with pytest.raises(InputError, match="exists already"), atomic_folder(target, new=True):
        pass
    with pytest.raises(InputError), atomic_folder(target / "b" / "below"):
        pass


def test_without_renameat2_the_folder_is_replaced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judged.results.files._RENAME_EXCHANGE", 1 << 20)  # an unknown flag is refused
    for text in ("old", "new"):
        with atomic_folder(tmp_path / "x") as folder:
            (folder / "a").write_text(text)
    assert (tmp_path / "x" / "a").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_process_that_is_killed_leaves_one_version_whole(tmp_path: Path) -> None:
    target = tmp_path / "x"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for wait in (0.0, 0.003, 0.011, 0.02):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, env=env) as started:
            assert started.stdout
            started.stdout.readline()
            time.sleep(wait)
            started.send_signal(signal.SIGKILL)
        texts = {path.name: path.read_text() for path in target.iterdir()}
        assert set(texts) == {"a", "b", "c"}
        assert len(set(texts.values())) == 1
