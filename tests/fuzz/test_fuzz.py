"""Whatever bytes a file holds, reading it ends in a result or in an error that names it: some seconds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz import plain, web
from fuzz.cases import run
from fuzz.workers import OF, run_all

if TYPE_CHECKING:
    from pathlib import Path

_CASES = {
    "files": 500, "logs": 32, "labels": 64, "traces": 40, "rag": 48, "studies": 16, "settings": 45, "saved": 24,
    "commands": 30,
}  # fmt: skip


@pytest.mark.parametrize(("of", "cases"), _CASES.items())
def test_damaged_files_and_commands_end_in_a_result_or_in_an_error_that_names_them(of: str, cases: int) -> None:
    report = run_all(iter(range(cases)), 1, of=of)
    assert report.failures == []
    assert report.cases == cases


@pytest.mark.parametrize("of", [of for of in OF if of != "commands"])  # they are all run elsewhere
def test_files_that_are_intact_are_read(tmp_path: Path, of: str) -> None:
    """Else a fuzz of refusals would pass."""
    for reader in OF[of].readers(tmp_path):
        outcomes: set[str] = set()
        for original in reader.originals:
            path = tmp_path / f"intact{original.ending}"
            path.write_bytes(original.data)
            outcomes.add(run(reader, path).kind)
        assert "result" in outcomes, reader.name
        assert "wrong" not in outcomes, reader.name


def test_what_kills_hangs_or_fills_a_process_is_caught() -> None:
    deaths = {
        0: ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        1: ("raise KeyError('x')", "KeyError"),
        2: ("found = bytearray(1200 << 20)", "MB"),
        3: ("while True: pass", "processor time"),
    }
    report = run_all(iter(deaths), 1, seconds=10, instead={seed: code for seed, (code, _) in deaths.items()})
    reasons = {seed: why for seed, _, why in report.failures}
    assert [seed for seed, (_, words) in deaths.items() if words not in reasons.get(seed, "")] == [], reasons


def test_the_plain_parser_reads_what_trec_eval_reads() -> None:
    run_lines = b"\xef\xbb\xbfq1 Q0 d1 1 0.5 tag\r\n# comment\n\nq2\tQ0  d2 2 1e-3 tag"
    assert [("q1", "d1", 0.5), ("q2", "d2", 0.001)] in list(plain.rows(run_lines, "run"))
    assert list(plain.rows(b"q1 0 d1 1\rq1 0 d2 2 3\r", "qrels")) == []


def test_a_workbench_is_not_at_fault_whatever_is_sent() -> None:
    with web.server() as port:
        report = web.attack(port, requests=80, uploads=12, seed=1)
    assert report.faults == []
    assert sum(report.answers.values()) == 92
    assert report.page_seconds
