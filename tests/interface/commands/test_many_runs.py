"""What commands say of many runs: one line for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = 12
LACKING = {"run05": 7, "run10": 5, "run03": 3}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write judgments and twelve runs that lack topics, and give the names of the runs."""
    monkeypatch.chdir(tmp_path)
    topics = [f"q{at:02}" for at in range(TOPICS)]
    (tmp_path / "qrels").write_text("".join(f"{query} 0 d 1\n{query} 0 e 0\n" for query in topics))
    names = [f"run{at:02}" for at in range(12)]
    for name in names:
        kept = topics[LACKING.get(name, 1) :]
        rows = [f"{query} Q0 {doc} {at} {3 - at} t\n" for query in kept for at, doc in enumerate("de", 1)]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    return [f"{name}.run" for name in names]


@pytest.mark.parametrize("command", ["evaluate", "compare", "report", "check"])
def test_each_kind_of_warning_is_one_line(command: str, files: list[str], run: Callable[..., Ended]) -> None:
    measures = () if command == "check" else ("-m", "AP")
    done = run(command, "qrels", *files, *measures)
    said = [line for line in (done.err + done.out).splitlines() if "no documents returned for" in line]
    assert len(said) == 1, said
    assert all(name in said[0] for name in ("12 ", *LACKING))


def test_every_error_in_a_file_is_listed(files: list[str], run: Callable[..., Ended], tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).write_text("q00 Q0 d 1 x t\nq01 Q0 d 1 2 t\n")
    done = run("check", "qrels", *files)
    assert all(f"{name}:1: error" in done.out for name in files)
