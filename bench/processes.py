"""Run programs as whole processes and take their time and memory.

This module and those that import it use the standard library only, on purpose: on Linux the peak
memory of a child starts at that of the process that made it, so the maker has to be small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MB = 1e6
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes that `ru_maxrss` counts in


@dataclass(frozen=True)
class Sample:
    """What one process took: wall and CPU seconds, peak memory in MB, and what it printed."""

    seconds: float
    cpu: float
    megabytes: float
    output: str


@dataclass(frozen=True)
class Job:
    """One command that is run several times.

    Parameters
    ----------
    name
        How tables call it.
    command
        What is run.
    rounds
        How often.
    own_cache
        Each run starts with a new, empty cache of compiled functions; jobs without it that run later
        use what the last such run has left.
    """

    name: str
    command: Sequence[str]
    rounds: int
    own_cache: bool = False


@dataclass(frozen=True)
class Measured:
    """The samples of one job."""

    name: str
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """Median wall time."""
        return median(sample.seconds for sample in self.samples)

    @property
    def cpu(self) -> float:
        """Median CPU time, of all threads together."""
        return median(sample.cpu for sample in self.samples)

    @property
    def megabytes(self) -> float:
        """The highest of the peaks: memory is a promise, not an average."""
        return max(sample.megabytes for sample in self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        """Shortest and longest wall time."""
        return min(sample.seconds for sample in self.samples), max(sample.seconds for sample in self.samples)


def measured(jobs: Sequence[Job], title: str) -> dict[str, Measured]:
    """Run all jobs in rounds, one after the other in each round, so that noise hits all alike."""
    samples: dict[str, list[Sample]] = {job.name: [] for job in jobs}
    with tempfile.TemporaryDirectory(prefix="judged-bench-") as folder:
        cache = folder
        for at in range(max(job.rounds for job in jobs)):
            for job in jobs:
                if at >= job.rounds:
                    continue
                if job.own_cache:
                    cache = tempfile.mkdtemp(dir=folder)
                sample = run(job.command, {"NUMBA_CACHE_DIR": cache})
                samples[job.name].append(sample)
                print(
                    f"{title}: {job.name}: {sample.seconds:.3f} s, {sample.megabytes:.0f} MB",
                    file=sys.stderr,
                    flush=True,
                )
    return {name: Measured(name, tuple(found)) for name, found in samples.items()}


def run(command: Sequence[str], env: Mapping[str, str] | None = None) -> Sample:
    """Run one process to its end and measure it.

    Raises
    ------
    RuntimeError
        If it fails; the message holds what it said.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=_environment(env or {}))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{errors.read()}")
        return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _UNIT / _MB, output.read())


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    """Give ours and what is added, less what would have every process compile its modules again."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **added}
