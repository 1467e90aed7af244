"""Run cases in worker processes, and report cases that end a worker."""

from __future__ import annotations

import importlib
import multiprocessing
import re
import resource
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fuzz.cases import Outcome, damaged, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.connection import Connection

    from fuzz.readers import Reader

_WAITING = 60  # of the clock: a case that waits for something
MEMORY = 1 << 30
_ADDRESSES = 12 << 30  # where a process that asks for more is told no: the machine belongs to others too
_DEATHS = {signal.SIGPROF: "too much processor time", signal.SIGALRM: f"over {_WAITING} s, waiting"}


@dataclass(frozen=True)
class Readers:
    """Readers to fuzz: the module and function that create them, and the processor time that a case may take.

    `share` is the weight of these readers among all cases: slow readers have a small share.
    """

    module: str
    function: str
    seconds: float
    share: int = 1

    def readers(self, folder: Path) -> list[Reader]:
        """Return the readers; `folder` holds their temporary files."""
        return getattr(importlib.import_module(self.module), self.function)(folder)


OF = {
    "files": Readers("fuzz.readers", "readers", 5, 30),
    "logs": Readers("fuzz.logs", "log_readers", 20, 1),
    "labels": Readers("fuzz.labels", "label_readers", 20, 4),
    "traces": Readers("fuzz.traces", "trace_readers", 20, 3),
    "rag": Readers("fuzz.traces", "rag_readers", 20, 3),
    "studies": Readers("fuzz.settings", "study_readers", 20, 1),
    "settings": Readers("fuzz.settings", "setting_readers", 20, 3),
    "saved": Readers("fuzz.settings", "saved_readers", 20, 2),
    "commands": Readers("fuzz.commands", "command_readers", 60),
}


@dataclass
class Report:
    """Outcomes of many cases."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    largest: tuple[int, int] = (0, 0)

    @property
    def cases(self) -> int:
        """Number of cases run."""
        return sum(self.outcomes.values())

    def add(self, seed: int, name: str, outcome: Outcome, seconds: float = 0.0, size: int = 0) -> None:
        """Count one case."""
        self.outcomes[name, outcome.kind] += 1
        self.slowest = max(self.slowest, (seconds, seed))
        self.largest = max(self.largest, (size, seed))
        if outcome.kind == "wrong":
            self.failures.append((seed, name, outcome.reason))

    def text(self) -> str:
        """Return the counts by reader."""
        names = list(dict.fromkeys(name for name, _ in sorted(self.outcomes)))
        kinds = ("result", "refused", "wrong")
        rows = [f"{name:26}" + "".join(f"{self.outcomes[name, kind]:>9,}" for kind in kinds) for name in names]
        total = [sum(self.outcomes[name, kind] for name in names) for kind in kinds]
        rows = [
            f"{'':26}" + "".join(f"{kind:>9}" for kind in kinds),
            *rows,
            f"{self.cases:<26,}" + "".join(f"{count:>9,}" for count in total),
        ]
        slowest = f"slowest: {self.slowest[0]:.2f} s of processor time (seed {self.slowest[1]})"
        return "\n".join([*rows, f"{slowest}; largest: {self.largest[0] >> 20} MB more (seed {self.largest[1]})"])


def run_all(
    seeds: Iterator[int],
    processes: int,
    most_failures: int = 50,
    *,
    of: str = "files",
    seconds: float | None = None,
    instead: Mapping[int, str] | None = None,
) -> Report:
    """Run cases in some processes until there are no more seeds, or too many failures.

    `of` is a key of `OF`. `instead` is Python to run in place of the reading, by seed: how this program is tested.
    """
    report, lock = Report(), threading.Lock()

    def next_seed() -> int | None:
        with lock:
            return None if len(report.failures) >= most_failures else next(seeds, None)

    def drive() -> None:
        seed = next_seed()
        while seed is not None:
            with _Worker(of, OF[of].seconds if seconds is None else seconds, instead or {}) as worker:
                while seed is not None:
                    name, outcome, *used = worker.run(seed)
                    with lock:
                        report.add(seed, name, outcome, *used)
                    seed = next_seed()
                    if not worker.alive:
                        break

    threads = [threading.Thread(target=drive) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


class _Worker:
    """A process that runs one case after the other."""

    def __init__(self, of: str, seconds: float, instead: Mapping[int, str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([OF[of].module])
        self._pipe, self._end = context.Pipe()
        self._process = context.Process(target=_work, args=(self._end, of, seconds, instead), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._end.close()
        self._names: list[str] = self._pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join(10)
        self._process.kill()

    @property
    def alive(self) -> bool:
        """Return whether the worker can run another case."""
        return self._process.is_alive()

    def run(self, seed: int) -> tuple[Any, ...]:
        """Run a case: the reader's name, the outcome, and where the process lives the time and memory that it took."""
        try:
            self._pipe.send(seed)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(10)
            code = self._process.exitcode or 0
            reason = _DEATHS.get(-code, f"the process died ({signal.Signals(-code).name if code < 0 else code})")  # type: ignore[call-overload]
            return self._names[seed % len(self._names)], Outcome("wrong", reason)


def _work(pipe: Connection, of: str, limit: float, instead: Mapping[int, str]) -> None:
    if of != "commands":  # the engine that draws charts reserves more addresses than any machine has memory
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="judged-fuzz-") as folder:
        readers = OF[of].readers(Path(folder))
        pipe.send([reader.name for reader in readers])
        while True:
            try:
                seed: int = pipe.recv()
            except EOFError:
                return
            reader, ending, data = damaged(seed, readers)
            path = Path(folder) / f"case{ending}"
            path.write_bytes(data)
            Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
            memory_before = _memory("VmRSS")
            signal.setitimer(signal.ITIMER_PROF, limit)  # nobody handles them: they end the process
            signal.alarm(_WAITING)
            start = time.process_time()
            if seed in instead:
                reader = reader._replace(read=lambda _, code=instead[seed]: exec(code))  # noqa: S102
            outcome = run(reader, path)
            seconds = time.process_time() - start
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            size = _memory("VmHWM") - memory_before
            if size > MEMORY:
                outcome = Outcome("wrong", f"{size >> 20} MB")
            pipe.send((reader.name, outcome, seconds, size))


def _memory(name: str) -> int:
    """Return a value of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def save(seeds: list[int], folder: Path, of: str = "files") -> list[tuple[Reader, Path]]:
    """Write the files of some cases for inspection; `folder` also holds temporary files of readers."""
    folder.mkdir(parents=True, exist_ok=True)
    reader_paths: list[tuple[Reader, Path]] = []
    readers = OF[of].readers(folder)
    for seed in seeds:
        reader, ending, data = damaged(seed, readers)
        name = re.sub(r"[ /,]+", "-", reader.name)
        path = folder / f"{seed}-{name}{ending}"
        path.write_bytes(data)
        reader_paths.append((reader, path))
    return reader_paths
