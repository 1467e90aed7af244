"""One decision on a rollback: rules, dates, and agreement with its sources."""

from __future__ import annotations

import itertools
from datetime import date, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import judged
from judged import InputError
from judged.data.write import write_qrels, write_run
from judged.online.watch.watched import Rollback
from judged.reports.changes.rollback import decide_rollback
from judged.reports.commands import rollback_command

if TYPE_CHECKING:
    from pathlib import Path

DAY = date(2025, 2, 12)
ACTIONS = {"harm": "roll back", "no harm": "keep", "inconclusive": "wait"}


def gate_result(state: str) -> Any:
    status = {"harm": "fail", "no harm": "pass", "inconclusive": "inconclusive"}[state]
    return SimpleNamespace(status=status, verdict=f"the gate has the status {status}")


def watch_result(state: str, since: date | None = None) -> Any:
    decision = {"harm": "roll back", "no harm": "keep", "inconclusive": "keep watching"}[state]
    event = SimpleNamespace(description="ranker 2", date=DAY)
    earlier = Rollback(event, "roll back", (), 0.05)  # type: ignore[arg-type]
    return SimpleNamespace(rollbacks=(earlier, Rollback(event, decision, (), 0.05, since)))  # type: ignore[arg-type]


def ab_test_result(verdict: str, *rows: tuple[str, float, float, float]) -> Any:
    """Return a test of one arm with rows of role, lower and upper limit of the benefit, and of the relative benefit."""
    differences = tuple(
        SimpleNamespace(arm="new", role=role, benefit=(low, high), relative_benefit=(low, relative_high))
        for role, low, high, relative_high in rows
    )
    verdicts = (SimpleNamespace(arm="new", decision=verdict, reasons=("A reason.",)),)
    return SimpleNamespace(verdicts=verdicts, differences=differences, margin_relative=0.05)


@pytest.mark.parametrize(("gate", "watch"), list(itertools.product(ACTIONS, repeat=2)))
def test_one_source_with_harm_is_enough(gate: str, watch: str) -> None:
    decision = decide_rollback(gate=gate_result(gate), watch=watch_result(watch))
    states = {gate, watch}
    worst = next(state for state in ("harm", "inconclusive", "no harm") if state in states)
    assert decision.action == ACTIONS[worst]
    assert decision.exit_code == (decision.action == "roll back")
    assert [row.state for row in decision.evidence] == [gate, watch]
    # No sentence names another action than the decision.
    text = " ".join([*decision.blocks()[0].texts, decision.alert, *(row.finding for row in decision.evidence)]).lower()
    assert all(action not in text for action in ACTIONS.values() if action != decision.action)


@pytest.mark.parametrize(
    ("verdict", "rows", "state"),
    [
        ("ship", [("primary", 0.01, 0.2, 0.2), ("guardrail", -0.01, 0.1, 0.1)], "no harm"),
        ("do not ship", [("primary", -0.2, -0.1, -0.1)], "harm"),  # significantly worse
        ("do not ship", [("primary", 0.01, 0.2, 0.2), ("guardrail", -0.3, -0.1, -0.1)], "harm"),  # beyond the margin
        ("do not ship", [("primary", -0.01, 0.02, 0.02)], "no harm"),  # too small to matter
        ("keep running", [("primary", -0.2, 0.2, 0.2)], "inconclusive"),
        ("keep running", [("primary", -0.01, 0.2, 0.2)], "inconclusive"),  # too few users
        ("invalid", [("primary", -0.2, -0.1, -0.1)], "inconclusive"),
    ],
)
def test_states_of_a_test(verdict: str, rows: Any, state: str) -> None:
    decision = decide_rollback(test=ab_test_result(verdict, *rows))
    assert decision.evidence[0].state == state
    assert decision.action == ACTIONS[state]


def test_the_first_day_with_harm() -> None:
    decision = decide_rollback(gate=gate_result("harm"), watch=watch_result("harm", DAY + timedelta(3)))
    assert decision.since == decision.facts()["since"] == DAY + timedelta(3)
    assert str(DAY + timedelta(3)) in decision.alert
    assert decide_rollback(gate=gate_result("harm")).since is None


def test_invalid_sources() -> None:
    with pytest.raises(InputError, match="no evidence"):
        decide_rollback()
    with pytest.raises(InputError, match="no deployment"):
        decide_rollback(watch=SimpleNamespace(rollbacks=()))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="arm"):
        decide_rollback(test=ab_test_result("ship"), arm="old")
    several = SimpleNamespace(verdicts=(SimpleNamespace(arm="a"), SimpleNamespace(arm="b")))
    with pytest.raises(InputError, match="has the arms a and b"):
        decide_rollback(test=several)  # type: ignore[arg-type]


def test_command(tmp_path: Path) -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(12)}
    runs = {name: dict.fromkeys(qrels, docs) for name, docs in (("good", ["d"]), ("bad", ["x", "d"]))}
    write_qrels(judged.Qrels.of(qrels), tmp_path / "qrels.txt")
    for name, run in runs.items():
        write_run(judged.Run.of(run), tmp_path / f"{name}.run")
    (tmp_path / "gate.toml").write_text('[[check]]\nmeasure = "RR"\nmargin = 0.1\n')
    files = {name: str(tmp_path / name) for name in ("qrels.txt", "good.run", "bad.run", "gate.toml")}

    def exit_code(*arguments: str) -> int:
        return CliRunner().invoke(rollback_command, arguments).exit_code

    gate = ("--gate", files["gate.toml"])
    assert exit_code(files["qrels.txt"], files["good.run"], files["bad.run"], *gate) == 1
    assert exit_code(files["qrels.txt"], files["bad.run"], files["good.run"], *gate) == 0
    assert isinstance(CliRunner().invoke(rollback_command, gate).exception, InputError)
