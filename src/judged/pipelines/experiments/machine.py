"""What an experiment ran on, and what a process took of it; what cannot be seen is None, never 0."""

from __future__ import annotations

import os
import platform
import re
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

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
