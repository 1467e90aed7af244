"""`judged fuse`: what is written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judged.comparison.fusion import fuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

    Run = Callable[..., Ended]

RUNS = {
    "a": {"q1": {"x": 3.0, "y": 2.0}, "q2": {"x": 1.0}},
    "b": {"q1": {"y": 0.9, "z": 0.4}, "q2": {"z": 0.2, "x": 0.1}},
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, topics in RUNS.items():
        lines = [f"{q} Q0 {doc} 0 {score} {name}\n" for q, docs in topics.items() for doc, score in docs.items()]
        Path(f"{name}.run").write_text("".join(lines))
    Path("qrels.txt").write_text("q1 0 y 1\nq2 0 z 1\nq1 0 x 0\n")


def test_another_form_names_the_option_that_writes_a_run(run: Run) -> None:
    done = run("fuse", "a.run", "b.run", "-o", "fused.run")
    assert done.code == 2
    assert "--to FILE" in done.err
    assert not Path("fused.run").exists()


def rows(path: str) -> list[tuple[str, str, float]]:
    return [
        (q, doc, float(score))
        for q, _, doc, _, score, _ in (line.split() for line in Path(path).read_text().splitlines())
    ]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), {}),
        (("--rrf-k", "0", "--cutoff", "1"), {"rrf_k": 0, "cutoff": 1}),
        (("--algorithm", "sum", "--normalize", "rank", "--weight", "b=2", "--weight", "a=0.5"),
         {"algorithm": "sum", "normalize": "rank", "weights": {"a": 0.5, "b": 2}}),
        (("--algorithm", "borda", "--missing", "skip", "--depth", "1"),
         {"algorithm": "borda", "missing": "skip", "depth": 1}),
    ],
)  # fmt: skip
def test_the_file_holds_what_python_gives(run: Run, options: tuple[str, ...], asked: dict[str, Any]) -> None:
    done = run("fuse", "a.run", "b.run", "--to", "fused.run", *options)
    assert (done.code, done.out) == (0, "")
    table = fuse(RUNS, **asked).table
    expected = list(zip(*(table[name].to_pylist() for name in ("query_id", "doc_id", "score")), strict=True))
    assert rows("fused.run") == expected


def test_weights_are_chosen_and_written(run: Run) -> None:
    done = run("fuse", "a.run", "b.run", "--qrels", "qrels.txt", "-m", "RR", "--to", "f.run", "--format", "json")
    assert done.code == 0
    document = json.loads(done.out)
    weights = {row["run"]: row["weight"] for row in document["weights"]}
    assert weights == {"a": 0.5, "b": 0.5}  # all score the same: the nearest to equal ones
    assert [row[1] for row in rows("f.run")][:1] == ["y"]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--to", "a.run"),
        ("--to", "f.run", "--weight", "a"),
        ("--to", "f.run", "--weight", "a=x"),
        ("--to", "f.run", "--weight", "a=1"),
        ("--qrels", "qrels.txt", "--weight", "a=1", "--weight", "b=1"),
        ("--to", "f.run", "--algorithm", "mnz", "--normalize", "z-score"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, options: tuple[str, ...]) -> None:
    before = Path("a.run").read_bytes()
    done = run("fuse", "a.run", "b.run", *options)
    assert done.code == 2
    assert "Fix:" in done.err
    assert not Path("f.run").exists()
    assert Path("a.run").read_bytes() == before
