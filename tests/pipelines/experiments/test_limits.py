"""Time limits: what a process records, and when it is found to take too long."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from judged.pipelines.experiments.limits import LIMITS, Step, StepRecord, read_step, watch


def test_a_step_is_over_beyond_its_limit_only() -> None:
    step = Step("query q1", 2.0, 100.0)
    assert [step.is_over(now) for now in (101.0, 102.0, 102.5)] == [False, False, True]


@pytest.mark.parametrize(("label", "setting"), [("build", "build_seconds"), ("query q1", "query_seconds"),
                                                ("queries at once", "query_seconds")])  # fmt: skip
def test_the_setting_to_change_is_named(label: str, setting: str) -> None:
    problem, fix = Step(label, 2.5, 0.0).error.parts
    assert problem.startswith(f"{label}: no result after 2.5 seconds")
    assert setting in fix
    assert setting in LIMITS


def test_steps_are_read_while_they_last(tmp_path: Path) -> None:
    path = tmp_path / "step.bin"
    assert read_step(path) is None
    record = StepRecord(path)
    assert read_step(path) is None
    before = time.time()
    with record.step("query \N{GREEK SMALL LETTER ALPHA}", 7.5):
        step = read_step(path)
        assert step is not None
        assert (step.label, step.limit) == ("query \N{GREEK SMALL LETTER ALPHA}", 7.5)
        assert before <= step.started <= time.time()
    assert read_step(path) is None
    with pytest.raises(ZeroDivisionError), record.step("query q2", 1.0):
        raise ZeroDivisionError
    assert read_step(path) is None  # also after an error
    record.begin("q" * 500, 1.0)
    step = read_step(path)
    assert step is not None
    assert step.label == "q" * 200


def test_watching_ends_with_the_process_or_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "step.bin"
    record, told = StepRecord(path), list[str]()
    looks = iter([False, False, True])
    assert watch(path, lambda _: next(looks), told.append) is None  # it ended by itself
    record.begin("build", 0.05)
    event = threading.Event()
    begun = time.monotonic()
    step = watch(path, event.wait, told.append, poll=0.02)
    assert step is not None
    assert step.label == "build"
    assert 0.03 <= time.monotonic() - begun < 2
    assert told == []  # it took less than a second


def test_only_long_steps_are_told_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, told = tmp_path / "step.bin", list[str]()
    StepRecord(path).begin("query q1", 60.0)
    begun, looks = time.time(), iter([0.5, 0.9, 1.5, 2.0, 3.0])
    now = begun

    def ended(_: float) -> bool:
        nonlocal now
        later = next(looks, None)
        now = begun + (later or 0.0)
        return later is None

    monkeypatch.setattr("judged.pipelines.experiments.limits.time.time", lambda: now)
    assert watch(path, ended, lambda label: told.append(f"{label} at {now - begun:.1f}")) is None
    assert told == ["query q1 at 1.5"]
