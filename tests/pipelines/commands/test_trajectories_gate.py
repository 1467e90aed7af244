"""`judged trajectories gate`: exit codes, measures for which lower is better, and missing trials."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.trajectories.agents import simulated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

    Run = Callable[..., Ended]
    Gate = Callable[..., Ended]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a sound agent, a worse one, one that costs more, one without two questions, and judgments."""
    records, qrels, _ = simulated("none", questions=30)
    sound = [record | {"cost": 0.02} for record in records]
    worse = [record | {"correct": record["correct"] and i % 3 > 0, "cost": 0.02} for i, record in enumerate(records)]
    costly = [record | {"cost": 0.03} for record in records]
    for name, rows in {"sound": sound, "worse": worse, "costly": costly, "lost": sound[6:]}.items():
        write(tmp_path / f"{name}.jsonl", rows)
    (tmp_path / "qrels.json").write_text(json.dumps(qrels))
    return tmp_path


@pytest.fixture
def gate(folder: Path, run: Run) -> Gate:
    """Return a function that compares a candidate with the sound agent."""
    paths = (str(folder / "sound.jsonl"), "--qrels", str(folder / "qrels.json"))

    def compare(candidate: str, *options: str) -> Ended:
        return run("trajectories", "gate", *paths, str(folder / f"{candidate}.jsonl"), "--format", "json", *options)

    return compare


def checks(result: Ended) -> dict[str, Any]:
    return {check["measure"]: check for check in json.loads(result.out)["checks"]}


def test_accuracy_must_not_fall(gate: Gate) -> None:
    assert gate("sound", "--margin", "0.05").code == 0
    result = gate("worse", "--margin", "0.05")
    assert result.code == 1
    assert set(checks(result)) == {"AnswerAccuracy"}  # the default
    passed = gate("worse", "-m", "SeenR", "--margin", "0.05")
    assert passed.code == 0
    assert checks(passed)["SeenR"]["difference"] == 0


def test_effort_must_not_rise(gate: Gate) -> None:
    options = ("-m", "AnswerAccuracy", "-m", "Effort(of=cost)", "--margin-relative")
    result = gate("costly", *options, "0.1")
    assert result.code == 1
    found = checks(result)
    assert (found["AnswerAccuracy"]["status"], found["Effort(of=cost)"]["status"]) == ("pass", "fail")
    assert found["Effort(of=cost)"]["difference"] == pytest.approx(0.01)
    assert gate("costly", *options, "0.6").code == 0  # the cost rises by half


def test_a_cheaper_agent_passes_without_judgments(folder: Path, run: Run) -> None:
    paths = [str(folder / f"{name}.jsonl") for name in ("costly", "sound")]
    assert run("trajectories", "gate", *paths, "-m", "Effort(of=cost)", "--margin", "0.001").code == 0
    assert run("trajectories", "gate", *paths[::-1], "-m", "Effort(of=cost)", "--margin", "0.001").code == 1


def test_effort_needs_no_verdicts(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "a.jsonl", [{"query_id": f"q{i}", "tokens": 10 + i, "steps": []} for i in range(12)])
    assert run("trajectories", "gate", path, path, "--margin", "1", "-m", "Effort").code == 0
    assert run("trajectories", "gate", path, path, "--margin", "1").code == 2  # no verdict, so no accuracy


def test_wrong_input(gate: Gate, folder: Path, run: Run) -> None:
    result = gate("lost", "--margin", "0.05")
    assert result.code == 2
    assert "q0, q1" in result.err
    assert gate("sound").code == 2  # no margin
    assert gate("worse", "--margin", "0.05", "-o", str(folder / "sound.jsonl")).code == 2
    rows = [json.loads(line) for line in (folder / "sound.jsonl").read_text().splitlines()]
    both = write(folder / "both.jsonl", [row | {"run_id": name} for name in "ab" for row in rows])
    assert gate("both", "--margin", "0.05").code == 2
    assert run("trajectories", "gate", f"a={both}", f"b={both}", "--margin", "0.05").code == 0


def test_a_configuration_sets_a_margin_for_each_measure(gate: Gate, folder: Path) -> None:
    config = folder / "gate.toml"
    config.write_text(
        '[[check]]\nmeasure = "AnswerAccuracy"\nmargin = 0.05\n'
        '[[check]]\nmeasure = "Effort(of=cost)"\nmargin_relative = 0.2\n'
    )
    result = gate("costly", "--config", str(config), "--junit", str(folder / "junit.xml"))
    assert result.code == 1
    assert (folder / "junit.xml").read_text().count("<failure") == 1
