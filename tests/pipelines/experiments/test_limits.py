"""Time limits: the record of a process, and steps beyond their limit."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from judged.pipelines.experiments.limits import LIMITS, StepRecord, TimedStep, read_step, watch


def test_a_step_is_over_beyond_its_limit_only() -> None:
    step = TimedStep("query q1", 2.0, 100.0)
    assert [step.is_over(now) for now in (101.0, 102.0, 102.5)] == [False, False, True]


@pytest.mark.parametrize(("label", "setting"), [("build", "build_seconds"), ("query q1", "query_seconds"),
                                                ("concurrent queries", "query_seconds")])  # fmt: skip
def test_the_setting_to_change_is_named(label: str, setting: str) -> None:
    problem, fix = TimedStep(label, 2.5, 0.0).error.parts
    assert problem.startswith(f"{label}: no result after 2.5 seconds")
    assert setting in fix
    assert setting in LIMITS


def test_steps_can_be_read_until_they_end(tmp_path: Path) -> None:
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
    record, labels = StepRecord(path), list[str]()
    has_ended = iter([False, False, True])
    assert watch(path, lambda _: next(has_ended), labels.append) is None  # ended before the limit
    record.begin("build", 0.05)
    event = threading.Event()
    start = time.monotonic()
    step = watch(path, event.wait, labels.append, poll=0.02)
    assert step is not None
    assert step.label == "build"
    assert 0.03 <= time.monotonic() - start < 2
    assert labels == []  # steps below one second are not reported


def test_long_steps_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reports = tmp_path / "step.bin", list[str]()
    StepRecord(path).begin("query q1", 60.0)
    start, seconds = time.time(), iter([0.5, 0.9, 1.5, 2.0, 3.0])
    now = start

    def wait_for_end(_: float) -> bool:
        nonlocal now
        elapsed = next(seconds, None)
        now = start + (elapsed or 0.0)
        return elapsed is None

    monkeypatch.setattr("judged.pipelines.experiments.limits.time.time", lambda: now)
    assert watch(path, wait_for_end, lambda label: reports.append(f"{label} at {now - start:.1f}")) is None
    assert reports == ["query q1 at 1.5"]
