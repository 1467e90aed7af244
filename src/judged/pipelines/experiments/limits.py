"""Time limits. The process of a configuration records its current step, and the parent process ends it at the limit.

The record is a small memory-mapped file. A thread in the same process could not stop an engine that never releases the
GIL, such as a function in C.
"""

from __future__ import annotations

import mmap
import os
import platform
import re
import struct
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Generator

    from judged.results.types import Floats


STEP_FILE = "step.bin"
LIMITS = {"build_seconds": (3600, 1, 31 * 86_400), "query_seconds": (300, 1, 86_400)}
"""Default, minimum, and maximum of each limit of a plan, in seconds: one build of an index; one query or answer."""
_SLOW_SECONDS = 1.0  # shorter steps are not reported
_LAYOUT = struct.Struct("<dd200s")


class TimedStep(NamedTuple):
    """The current step of a configuration."""

    label: str  # such as ``query q1``
    limit: float  # seconds
    started: float  # seconds since the epoch

    def is_over(self, now: float) -> bool:
        """Return whether it takes longer than its limit."""
        return now - self.started > self.limit

    @property
    def error(self) -> InputError:
        """Error for a step that was stopped at its limit."""
        setting = "build_seconds" if self.label.startswith("build") else "query_seconds"
        return InputError(
            f"{self.label}: no result after {self.limit:g} seconds, so judged stopped this step",
            fix=f"correct the engine, or increase the limit in the plan: {setting} = ...",
        )


class StepRecord:
    """The current step of a process, in a file that other processes can read at any time."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_LAYOUT.size))  # allocate the file: a write into a hole is SIGBUS if the disk is full
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size)

    @contextmanager
    def step(self, label: str, limit: float) -> Generator[None]:
        """Record a step for the duration of the context."""
        self.begin(label, limit)
        try:
            yield
        finally:
            self.end()

    def begin(self, label: str, limit: float) -> None:
        """Record the start of a step."""
        _LAYOUT.pack_into(self._map, 0, time.time(), limit, label.encode()[: _LAYOUT.size - 16])

    def end(self) -> None:
        """Record that no step with a limit is active."""
        _LAYOUT.pack_into(self._map, 0, 0.0, 0.0, b"")


def read_step(path: Path) -> TimedStep | None:
    """Return the recorded step; None if there is none, or the record changes during the read."""
    try:
        first, second = path.read_bytes(), path.read_bytes()
    except OSError:
        return None
    if first != second or len(first) < _LAYOUT.size:
        return None
    started, limit, label = _LAYOUT.unpack_from(first)
    return TimedStep(label.rstrip(b"\0").decode(errors="replace"), limit, started) if started else None


def watch(
    path: Path, wait_for_end: Callable[[float], bool], report: Callable[[str], None], poll: float = 0.1
) -> TimedStep | None:
    """Wait until a process ends. Return the step that exceeded its limit, or None.

    Parameters
    ----------
    path
        File in which the process records its steps.
    wait_for_end
        Function that waits for a number of seconds and returns whether the process has ended.
    report
        Called with the label of each step that takes longer than a second.
    poll
        Seconds between two reads of the record.
    """
    last_label = ""
    while not wait_for_end(poll):
        step, now = read_step(path), time.time()
        if step is None:
            continue
        if step.is_over(now):
            return step
        if step.label != last_label and now - step.started > _SLOW_SECONDS:
            last_label = step.label
            report(last_label)
    return None


_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def machine() -> dict[str, Any]:
    """Return processor, cores, memory, software versions, and load of the machine."""
    return {
        "cpu": _read(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.processor() or None,
        "cores": os.cpu_count(),
        "memory_gb": _gigabytes(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _gigabytes() -> float | None:
    kilobytes = _read(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")
    return None if kilobytes is None else round(int(kilobytes) / 2**20, 1)


def _read(path: Path, pattern: str) -> str | None:
    with suppress(OSError):
        match = re.search(pattern, path.read_text(errors="replace"))
        return None if match is None else match[1].strip()
    return None


class PeakMemory:
    """Peak memory of this process above its initial memory; available on Linux only."""

    def __init__(self) -> None:
        self._is_reset = False
        with suppress(OSError):
            _CLEAR_REFS.write_text("5")  # reset the peak
            self._is_reset = True
        self._initial_kb = _read(_STATUS, r"VmRSS:\s*(\d+)")

    def peak_mb(self) -> float | None:
        """Return the peak in megabytes (10^6 bytes)."""
        peak = _read(_STATUS, r"VmHWM:\s*(\d+)")
        if not self._is_reset or peak is None or self._initial_kb is None:
            return None
        return max(int(peak) - int(self._initial_kb), 0) * 1024 / 1e6


class Energy:
    """Energy used by the processor; None unless tirex-tracker is installed and supports the machine."""

    joules: float | None = None


@contextmanager
def energy() -> Generator[Energy]:
    """Measure the energy used inside the context."""
    used = Energy()
    try:
        tracker: Any = import_module("tirex_tracker")
    except ImportError:
        yield used
        return
    measure = tracker.Measure.CPU_ENERGY_SYSTEM_JOULES
    with tracker.tracking(measures=[measure]) as tracked:
        yield used
    joules_entry = dict(tracked).get(measure)
    used.joules = parse_joules(None if joules_entry is None else joules_entry.value)


def parse_joules(value: Any) -> float | None:
    """Parse a value of the tracker; an unsupported machine reports nothing, null, or 0.

    >>> parse_joules(b"12.5"), parse_joules(b"null"), parse_joules("0"), parse_joules(None)
    (12.5, None, None, None)
    """
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    try:
        return float(text) or None
    except ValueError:
        return None


Clock: TypeAlias = Callable[[], float]
"""Returns seconds since any fixed time."""
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


def measure_rounds(
    search: Callable[[str], Any],
    queries: Iterable[str],
    *,
    rounds: int,
    warm_up: int,
    seed: int,
    clock: Clock = time.perf_counter,
) -> Floats:
    """Measure the latency of each query in each round, in random order, in milliseconds, (R, Q)."""
    rng, query_list = np.random.default_rng(seed), list(queries)
    for i in rng.permutation(len(query_list))[:warm_up].tolist():
        search(query_list[i])
    milliseconds = np.empty((rounds, len(query_list)))
    for row in milliseconds:
        for i in rng.permutation(len(query_list)).tolist():
            start = clock()
            search(query_list[i])
            row[i] = 1000 * (clock() - start)
    return milliseconds


def throughput(
    search: Callable[[str], Any], queries: Iterable[str], *, concurrency: int, clock: Clock = time.perf_counter
) -> float:
    """Return queries per second with `concurrency` threads."""
    query_list = list(queries)
    with ThreadPoolExecutor(concurrency) as pool:
        start = clock()
        list(pool.map(search, query_list))
        return len(query_list) / (clock() - start)


class Quantile(NamedTuple):
    """A quantile of the latency over queries, in milliseconds."""

    value: float
    ci: tuple[float, float] | None  # over queries; None if there are too few queries
    # Variation between rounds: the range over rounds, extended to Student's interval of the mean logarithm over rounds.
    # None with fewer than three rounds.
    noise: tuple[float, float] | None


def quantile(milliseconds: Floats, share: float, level: float = 0.95) -> Quantile:
    """Return the median over rounds of a quantile over queries, with its confidence interval and its noise.

    In each round, the interval has order statistics as its ends (David and Nagaraja 2003, section 7.1); the median over
    rounds of each end is returned. It makes no assumption on the distribution. It does not exist for small samples: the
    0.95 quantile needs at least 72 queries.

    Parameters
    ----------
    milliseconds
        Latencies, (R, Q).
    share
        Probability of the quantile, between 0 and 1.
    level
        Confidence level of the interval over queries.

    Examples
    --------
    >>> quantile(np.array([[4.0, 1.0, 2.0, 8.0, 3.0, 5.0], [6.0, 1.0, 2.0, 8.0, 3.0, 5.0]]), 0.5)
    Quantile(value=3.75, ci=(1.0, 8.0), noise=None)
    """
    from scipy.special import bdtr

    n = milliseconds.shape[1]
    below = bdtr(np.arange(n, dtype=np.float64), n, share)  # P(at most i of n latencies are below the quantile)
    low_rank = int(np.searchsorted(below, (1 - level) / 2, side="right")) - 1
    high_rank = int(np.searchsorted(below, (1 + level) / 2))
    ci = None
    if low_rank >= 0 and high_rank < n:
        low, high = np.median(np.sort(milliseconds, axis=1)[:, [low_rank, high_rank]], axis=0).tolist()
        ci = (low, high)
    by_round = np.quantile(milliseconds, share, axis=1)
    return Quantile(float(np.median(by_round)), ci, _noise(by_round, level))


def _noise(by_round: Floats, level: float) -> tuple[float, float] | None:
    if insufficiency(len(by_round)):
        return None
    low, high = float(by_round.min()), float(by_round.max())
    if low > 0:
        logs = np.log(by_round)
        margin = student_quantile((1 + level) / 2, len(logs) - 1) * float(logs.std(ddof=1)) / len(logs) ** 0.5
        low, high = min(low, float(np.exp(logs.mean() - margin))), max(high, float(np.exp(logs.mean() + margin)))
    return low, high
