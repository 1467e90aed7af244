"""The sample's log is what its tool makes, and what its README says of it is true and is found."""

from __future__ import annotations

import gzip
import importlib.util
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from judged.data import sample
from judged.online import over_time, read_log
from judged.online.findings import unfit_reasons
from judged.online.log import InteractionLog

ROOT = Path(__file__).resolve().parents[2]
README = (sample.FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("sample_log", ROOT / "tools" / "sample" / "log.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "sample_log", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(tool: Any) -> tuple[str, dict[str, int]]:
    return tool.make(sample.FOLDER)


@pytest.fixture(scope="module")
def log() -> InteractionLog:
    return read_log(sample.LOG)


def test_the_tool_makes_it(made: tuple[str, dict[str, int]]) -> None:
    assert gzip.decompress(sample.LOG.read_bytes()).decode() == made[0], "run tools/sample/log.py"
    assert sample.LOG.stat().st_size < 150_000


def test_the_tool_makes_the_mixed_one(tool: Any) -> None:
    text = tool.make_mixed(sample.FOLDER)
    assert gzip.decompress(sample.INTERLEAVED.read_bytes()).decode() == text, "run tools/sample/log.py"
    assert sample.INTERLEAVED.stat().st_size < 60_000


def test_the_readme_says_what_was_planted(made: tuple[str, dict[str, int]]) -> None:
    truth = made[1]
    before, after = (
        f"{truth[f'satisfied clicks {when}']} of {truth[f'clicks {when}']}" for when in ("before", "after")
    )
    assert before in README
    assert after in README
    assert f"| {truth['zero']}; {truth['rescued']} |" in README
    assert f"| 4, and {truth['events of lost pages']} |" in README


def test_what_is_broken_is_found_to_the_row(log: InteractionLog) -> None:
    found = {one.rule: one.rows for one in log.findings}
    planted = {"facet-request": 30, "bot": 24, "duplicate-event": 60, "clock-skew": 8, "unknown-query-id": 7}
    assert found == planted | {"broken-json": 1}
    for rows in (30, 24, 60, 8):
        assert re.search(rf"\| {rows} \|", README)
    assert not unfit_reasons(log.accounts, log.findings)


def test_the_planted_change_is_found_on_its_day(log: InteractionLog, made: tuple[str, dict[str, int]]) -> None:
    series, truth = over_time(log, "SatisfiedClicks").series[0], made[1]
    (change,) = series.changes
    assert datetime.fromtimestamp(series.points[change.point].start_ms / 1000, UTC) == datetime(2026, 3, 11, tzinfo=UTC)
    for found, when in ((change.before, "before"), (change.after, "after")):
        assert found == pytest.approx(truth[f"satisfied clicks {when}"] / truth[f"clicks {when}"], abs=0.02)


def test_what_did_not_change_is_not_found_to_have_changed(log: InteractionLog) -> None:
    found = over_time(log, ["PageCTR", "ZeroResults"])
    assert [str(one.metric) for one in found.series] == ["PageCTR", "ZeroResults"]
    assert all(one.changes == () for one in found.series)
