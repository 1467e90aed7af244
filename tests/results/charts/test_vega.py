"""The library that draws charts: made once, and kept for the next start."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judged.results.charts import _LIBRARIES, library


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Count how often it is made, and make next to nothing."""
    calls: list[Any] = []

    def run(command: list[str], **_: Any) -> Any:
        calls.append(command)
        return SimpleNamespace(stdout=gzip.compress(b"drawn"))

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def started() -> str:
    """Ask as a process that has just begun."""
    _LIBRARIES.clear()
    try:
        return library()
    finally:
        _LIBRARIES.clear()


def test_it_is_made_at_the_first_start_alone(made: list[Any], monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    assert [started(), started(), len(made)] == ["drawn", "drawn", 1]
    (file,) = (tmp_path / "new" / "judged").iterdir()
    assert gzip.decompress(file.read_bytes()) == b"drawn"


def test_another_version_of_what_draws_is_made_anew(made: list[Any], monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started()
    monkeypatch.setattr("judged.results.charts.version", lambda _: "99")
    started()
    assert len(made) == 2


def test_a_place_where_nothing_can_be_kept(made: list[Any], monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [started(), started(), len(made)] == ["drawn", "drawn", 2]


def test_a_damaged_file_is_made_anew(made: list[Any], monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started()
    (file,) = (tmp_path / "judged").iterdir()
    for damaged in (b"", file.read_bytes()[:-9], b"not packed"):
        file.write_bytes(damaged)
        assert started() == "drawn"
    assert len(made) == 4


def test_a_user_without_a_home(made: list[Any], monkeypatch: Any) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert [started(), started(), len(made)] == ["drawn", "drawn", 2]
