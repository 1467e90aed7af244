"""Memory limits of logs, tested in a process with a limit of the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.online.engine import Database
from judged.online.simulation.simulated import write_large

MAX_RESIDENT, MAX_ADDRESS_SPACE = 600_000_000, 650_000_000
"""Bytes of resident memory that the process may use, and of address space, of which some is never used."""
PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
from judged.online import online_metrics, read_log
scores = online_metrics(read_log(sys.argv[2:4], memory=sys.argv[4] or None, threads=2), by="device")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(scores.estimates), int(peak.split()[1]) * 1024)
"""
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Settings without which libraries reserve gigabytes of unused address space, which the system limit includes."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_large(tmp_path_factory.mktemp("large"), events=1_000_000, seed=1).files


def metrics_of(files: tuple[Path, Path], memory: str, limit: int) -> list[int]:
    """Compute all metrics by device under a system limit; return their number and the peak memory in bytes."""
    command = [sys.executable, "-c", PROGRAM, str(limit), *map(str, files), memory]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | ENVIRONMENT, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [*map(int, done.stdout.split())]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces this limit")
def test_a_million_events_fit_into_the_memory_limit(files: tuple[Path, Path]) -> None:
    estimates, peak = metrics_of(files, "600MB", MAX_ADDRESS_SPACE)
    assert estimates > 200
    assert peak < MAX_RESIDENT
    assert (
        metrics_of(files, "", 10 * MAX_ADDRESS_SPACE)[1] > peak + 50_000_000
    )  # without a limit it uses more, so the test is effective


def test_the_database_gets_the_limit_minus_the_overhead() -> None:
    def limit(memory: str) -> str:
        return Database(memory=memory, threads=1).rows("SELECT current_setting('memory_limit') AS size")[0]["size"]

    assert (limit("600MB"), limit("1.4GB")) == ("190.7 MiB", "953.6 MiB")
    with pytest.raises(InputError, match=r"at least 600MB, got 500MB. Fix: use 600MB or more"):
        Database(memory="500MB")


def test_the_database_prints_no_progress_bar() -> None:
    sql = "SELECT current_setting('enable_progress_bar') AS enabled"
    program = f"from judged.online.engine import Database; print(Database().rows({sql!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[{'enabled': False}]\n"  # DuckDB would print it with python -c and in notebooks
