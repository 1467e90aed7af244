"""What a log may take of memory is a promise about the process: it is held where the system gives no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.online.engine import Engine
from judged.online.simulation.simulated import write_large

MOST, ADDRESSES = 600_000_000, 650_000_000
"""Bytes that the process may take, and that the system lets it ask for: some it asks for and never uses."""
PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
from judged.online import online_metrics, read_log
scores = online_metrics(read_log(sys.argv[2:4], memory=sys.argv[4] or None, threads=2), by="device")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(scores.estimates), int(peak.split()[1]) * 1024)
"""
PLAIN = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Without them libraries ask for gigabytes of addresses that they never use, and these are what the system limits."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_large(tmp_path_factory.mktemp("large"), events=1_000_000, seed=1).files


def metrics_of(files: tuple[Path, Path], memory: str, most: int) -> list[int]:
    """Compute every metric by device where the system gives no more: how many there are, and the bytes that it took."""
    command = [sys.executable, "-c", PROGRAM, str(most), *map(str, files), memory]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | PLAIN, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [*map(int, done.stdout.split())]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process may ask for")
def test_a_million_events_fit_where_the_system_gives_no_more(files: tuple[Path, Path]) -> None:
    estimates, taken = metrics_of(files, "600MB", ADDRESSES)
    assert estimates > 200
    assert taken < MOST
    assert metrics_of(files, "", 10 * ADDRESSES)[1] > taken + 50_000_000  # or the limit would show nothing


def test_the_database_gets_all_but_what_is_needed_beside_it() -> None:
    def limit(memory: str) -> str:
        return Engine(memory=memory, threads=1).rows("SELECT current_setting('memory_limit') AS size")[0]["size"]

    assert (limit("600MB"), limit("1.4GB")) == ("190.7 MiB", "953.6 MiB")
    with pytest.raises(InputError, match=r"500MB is too little .* give 600MB or more"):
        Engine(memory="500MB")


def test_the_database_prints_no_progress_of_its_own() -> None:
    shown = "SELECT current_setting('enable_progress_bar') AS shown"
    program = f"from judged.online.engine import Engine; print(Engine().rows({shown!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[{'shown': False}]\n"  # DuckDB shows one where there is no file: python -c, notebooks
