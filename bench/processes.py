"""Run programs in separate processes, and measure their time and memory.

This module and its importers use only the standard library: on Linux, the peak memory of a child starts at that of its
parent, so the parent must be small.
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
_UNIT = 1 if sys.platform == "darwin" else 1024  # unit of `ru_maxrss` in bytes


@dataclass(frozen=True)
class Sample:
    """Measurements of one process: wall and CPU seconds, peak memory in MB, and its output."""

    seconds: float
    cpu: float
    megabytes: float
    output: str


@dataclass(frozen=True)
class Job:
    """A command to run repeatedly.

    Parameters
    ----------
    name
        Name in tables.
    command
        Command with arguments.
    rounds
        Number of runs.
    own_cache
        Whether each run starts with an empty cache of compiled functions. Later jobs without it use the cache of the
        last job with it.
    """

    name: str
    command: Sequence[str]
    rounds: int
    own_cache: bool = False


@dataclass(frozen=True)
class JobResult:
    """Samples of one job."""

    name: str
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """Median wall time."""
        return median(sample.seconds for sample in self.samples)

    @property
    def cpu(self) -> float:
        """Median CPU time of all threads."""
        return median(sample.cpu for sample in self.samples)

    @property
    def megabytes(self) -> float:
        """Maximum of the peaks, because memory limits must always hold."""
        return max(sample.megabytes for sample in self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        """Shortest and longest wall time."""
        return min(sample.seconds for sample in self.samples), max(sample.seconds for sample in self.samples)


def measure_jobs(jobs: Sequence[Job], title: str) -> dict[str, JobResult]:
    """Run all jobs in rounds, so that noise affects all jobs equally."""
    samples: dict[str, list[Sample]] = {job.name: [] for job in jobs}
    with tempfile.TemporaryDirectory(prefix="judged-bench-") as folder:
        cache = folder
        for round_index in range(max(job.rounds for job in jobs)):
            for job in jobs:
                if round_index >= job.rounds:
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
    return {name: JobResult(name, tuple(job_samples)) for name, job_samples in samples.items()}


def run(command: Sequence[str], env: Mapping[str, str] | None = None) -> Sample:
    """Run a process to its end, and measure it.

    Raises
    ------
    RuntimeError
        If the process fails; the message contains its error output.
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
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{errors.read()}")
        return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _UNIT / _MB, output.read())


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with additions, without the setting that prevents bytecode caching."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **added}
