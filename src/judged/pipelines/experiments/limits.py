"""Time limits of a configuration: its process records what it is doing, and whoever started it ends it if that hangs.

The record is a small memory-mapped file. A thread in the same process could not end an engine that never lets go of the
interpreter, as a function in C may do.
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


STEP = "step.bin"
LIMITS = {"build_seconds": (3600, 1, 31 * 86_400), "query_seconds": (300, 1, 86_400)}
"""Default, minimum, and maximum of each limit of a plan, in seconds: one build of an index; one query or answer."""
_SLOW = 1.0  # seconds: shorter steps are not shown
_LAYOUT = struct.Struct("<dd200s")


class Step(NamedTuple):
    """What a configuration is doing.

    Parameters
    ----------
    label
        For example ``query q1``.
    limit
        Seconds that it may take.
    started
        When it began, in seconds since the epoch.
    """

    label: str
    limit: float
    started: float

    def is_over(self, now: float) -> bool:
        """Return whether it takes longer than its limit."""
        return now - self.started > self.limit

    @property
    def error(self) -> InputError:
        """What went wrong if it was ended at its limit."""
        setting = "build_seconds" if self.label.startswith("build") else "query_seconds"
        return InputError(
            f"{self.label}: no result after {self.limit:g} seconds, so it was stopped",
            fix=f"correct the engine, or set a higher limit in the plan: {setting} = ...",
        )


class StepRecord:
    """The step that a process is at, in a file that others can read at any moment."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_LAYOUT.size))  # written into a hole of a file, a full disk would be SIGBUS
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size)

    @contextmanager
    def step(self, label: str, limit: float) -> Generator[None]:
        """Record a step while it lasts."""
        self.begin(label, limit)
        try:
            yield
        finally:
            self.end()

    def begin(self, label: str, limit: float) -> None:
        """Record the begin of a step."""
        _LAYOUT.pack_into(self._map, 0, time.time(), limit, label.encode()[: _LAYOUT.size - 16])

    def end(self) -> None:
        """Record that no step with a limit is under way."""
        _LAYOUT.pack_into(self._map, 0, 0.0, 0.0, b"")


def read_step(path: Path) -> Step | None:
    """Return the step that a process recorded; None if there is none, or the record is being written."""
    try:
        first, second = path.read_bytes(), path.read_bytes()
    except OSError:
        return None
    if first != second or len(first) < _LAYOUT.size:
        return None
    started, limit, label = _LAYOUT.unpack_from(first)
    return Step(label.rstrip(b"\0").decode(errors="replace"), limit, started) if started else None


def watch(path: Path, ended: Callable[[float], bool], tell: Callable[[str], None], poll: float = 0.1) -> Step | None:
    """Wait until a process has ended; return the step that took longer than its limit, or None.

    Parameters
    ----------
    path
        Where the process records its steps.
    ended
        Wait so many seconds, and return whether the process has ended.
    tell
        Called with the label of each step that takes longer than a second.
    poll
        Seconds between two looks.
    """
    told = ""
    while not ended(poll):
        step, now = read_step(path), time.time()
        if step is None:
            continue
        if step.is_over(now):
            return step
        if step.label != told and now - step.started > _SLOW:
            told = step.label
            tell(told)
    return None


_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def machine() -> dict[str, Any]:
    """Name processor, cores, memory and software, and how busy the machine is."""
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
        found = re.search(pattern, path.read_text(errors="replace"))
        return None if found is None else found[1].strip()
    return None


class Memory:
    """The most that this process held at any time, beyond what it held at first; Linux alone tells that."""

    def __init__(self) -> None:
        self._known = False
        with suppress(OSError):
            _REFS.write_text("5")  # the peak counts from here
            self._known = True
        self._before = _read(_STATUS, r"VmRSS:\s*(\d+)")

    def peak_mb(self) -> float | None:
        """Give megabytes (of 10^6 bytes)."""
        peak = _read(_STATUS, r"VmHWM:\s*(\d+)")
        if not self._known or peak is None or self._before is None:
            return None
        return max(int(peak) - int(self._before), 0) * 1024 / 1e6


class Energy:
    """What the processor took while something was done; known only where tirex-tracker is installed and can see it."""

    joules: float | None = None


@contextmanager
def energy() -> Generator[Energy]:
    """Measure the energy of what is done inside."""
    found = Energy()
    try:
        tracker: Any = import_module("tirex_tracker")
    except ImportError:
        yield found
        return
    measure = tracker.Measure.CPU_ENERGY_SYSTEM_JOULES
    with tracker.tracking(measures=[measure]) as seen:
        yield found
    said = dict(seen).get(measure)
    found.joules = joules_of(None if said is None else said.value)


def joules_of(said: Any) -> float | None:
    """Read what the tracker says; a machine that cannot tell says nothing, null or 0.

    >>> joules_of(b"12.5"), joules_of(b"null"), joules_of("0"), joules_of(None)
    (12.5, None, None, None)
    """
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    try:
        return float(text) or None
    except ValueError:
        return None


Clock: TypeAlias = Callable[[], float]
"""Gives seconds, from any beginning."""
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95}


def rounds_of(
    search: Callable[[str], Any],
    queries: Iterable[str],
    *,
    rounds: int,
    warm_up: int,
    seed: int,
    clock: Clock = time.perf_counter,
) -> Floats:
    """Ask every query once a round, in random order, one at a time: milliseconds, (R, Q)."""
    rng, asked = np.random.default_rng(seed), list(queries)
    for at in rng.permutation(len(asked))[:warm_up].tolist():
        search(asked[at])
    taken = np.empty((rounds, len(asked)))
    for row in taken:
        for at in rng.permutation(len(asked)).tolist():
            begun = clock()
            search(asked[at])
            row[at] = 1000 * (clock() - begun)
    return taken


def throughput(
    search: Callable[[str], Any], queries: Iterable[str], *, concurrency: int, clock: Clock = time.perf_counter
) -> float:
    """Ask all queries with so many threads: queries a second."""
    asked = list(queries)
    with ThreadPoolExecutor(concurrency) as pool:
        begun = clock()
        list(pool.map(search, asked))
        return len(asked) / (clock() - begun)


class Quantile(NamedTuple):
    """A quantile of the latency over queries, in milliseconds."""

    value: float
    ci: tuple[float, float] | None  # over queries; None where there are too few of them to have one
    # how much rounds vary: from the least to the most that it was in one round, and at least Student's interval of its
    # logarithm over rounds; None where fewer than three rounds cannot tell
    noise: tuple[float, float] | None


def quantile(taken: Floats, share: float, level: float = 0.95) -> Quantile:
    """Give the median, over rounds, of a quantile over queries: what a round is like, within the noise of rounds.

    In a round, the interval stands between two order statistics (David and Nagaraja 2003, 7.1); both of its ends are
    medians over rounds too. It assumes nothing of how latencies are distributed, and a few queries have none: fewer
    than 72 say too little of the slowest twentieth.

    Parameters
    ----------
    taken
        Milliseconds, (R, Q).
    share
        Between 0 and 1.
    level
        Of the interval, over queries.

    Examples
    --------
    >>> quantile(np.array([[4.0, 1.0, 2.0, 8.0, 3.0, 5.0], [6.0, 1.0, 2.0, 8.0, 3.0, 5.0]]), 0.5)
    Quantile(value=3.75, ci=(1.0, 8.0), noise=None)
    """
    from scipy.special import bdtr

    n = taken.shape[1]
    below = bdtr(np.arange(n, dtype=np.float64), n, share)  # the chance that at most so many lie below the quantile
    first = int(np.searchsorted(below, (1 - level) / 2, side="right")) - 1
    last = int(np.searchsorted(below, (1 + level) / 2))
    ci = None
    if first >= 0 and last < n:
        low, high = np.median(np.sort(taken, axis=1)[:, [first, last]], axis=0).tolist()
        ci = (low, high)
    by_round = np.quantile(taken, share, axis=1)
    return Quantile(float(np.median(by_round)), ci, _noise(by_round, level))


def _noise(by_round: Floats, level: float) -> tuple[float, float] | None:
    if insufficiency(len(by_round)):
        return None
    low, high = float(by_round.min()), float(by_round.max())
    if low > 0:
        logs = np.log(by_round)
        far = student_quantile((1 + level) / 2, len(logs) - 1) * float(logs.std(ddof=1)) / len(logs) ** 0.5
        low, high = min(low, float(np.exp(logs.mean() - far))), max(high, float(np.exp(logs.mean() + far)))
    return low, high
