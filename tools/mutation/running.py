"""Run tests in a forked child of a process that has loaded the libraries, on a copy of the sources."""

from __future__ import annotations

import compileall
import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mutation.tracing import SelectedTests, Trace, Tracer, hashes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MEMORY = 6 << 30  # bytes of data; a mutant may allocate any amount
_LIBRARIES = ("numpy", "scipy.stats", "scipy.optimize", "scipy.sparse", "pyarrow.compute", "pyarrow.parquet",
              "pyarrow.csv", "hypothesis", "pandas", "duckdb", "click", "statsmodels.api")  # fmt: skip
_OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--disable-warnings", "--tb=short")


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of the sources in a separate folder, where one process runs mutants in sequence."""

    root: Path
    folder: Path
    package: str

    @classmethod
    def create(cls, root: Path, folder: Path, package: str) -> Copy:
        """Copy the package with its bytecode, because the processes of mutants do not write bytecode."""
        source = root / "src" / package
        compileall.compile_dir(source, quiet=2)
        shutil.copytree(source, folder / "src" / package)
        return cls(root, folder, package)

    @property
    def sources(self) -> Path:
        """Folder of the copied package."""
        return self.folder / "src" / self.package

    def trace(self, test_file: str, sources: Sequence[str], saved: Path) -> None:
        """Run a test file, and save the lines of the sources that each test executes."""

        def traced() -> int:
            tracer = Tracer(self.sources, sources)
            tracer.start()
            code = pytest.main([*self._options(), test_file], plugins=[tracer])
            tracer.stop()
            tracer.trace.hashes = hashes_of([test_file, *tracer.trace.lines], self.root, self.sources)
            tracer.trace.save(saved)
            return int(code)

        log = self.folder / "log"
        self._in_child(traced, cpu=1200, wall=3600, log=log)
        if not saved.exists():
            print(f"{test_file}: its tests cannot be traced.\n{log.read_text()[-2000:]}", file=sys.stderr)
            Trace(traced=list(sources)).save(saved)

    def outcome(self, source: str, mutated: bytes, tests: Sequence[str], cpu: float) -> str:
        """Return whether the tests kill the mutated source: "killed", "survived", or "timeout"."""
        path = self.sources / source
        original = path.read_bytes()
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        path.write_bytes(mutated)
        try:
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            options = [*self._options(), "-x", *files]
            code = self._in_child(
                lambda: int(pytest.main(options, plugins=[SelectedTests(list(tests))])), cpu=cpu, wall=8 * cpu + 60
            )
        finally:
            path.write_bytes(original)
        if code is None:
            return "timeout"
        return "survived" if code in {0, 5} else "killed"

    def _options(self) -> list[str]:
        return [*_OPTIONS, f"--basetemp={self.folder / 'tmp'}", f"--rootdir={self.root}"]

    def _in_child(self, run: Callable[[], int], *, cpu: float, wall: float, log: Path | None = None) -> int | None:
        """Return the exit code of a child that runs a function, or None if it exceeds its seconds."""
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                self._prepare_child(int(cpu) + 1, log)
                code = run()
            except BaseException:  # noqa: BLE001 - after any exception, the child must not continue as its parent
                traceback.print_exc()
            finally:
                os._exit(code)
        parent, deadline = os.getppid(), time.monotonic() + wall
        while not (waited := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline or os.getppid() != parent:
                break
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with its own children
        if not waited[0]:
            os.waitpid(child, 0)
            if os.getppid() != parent:  # the program has ended, so no process waits for this one
                os._exit(1)
            return None
        status = waited[1]
        if os.WIFSIGNALED(status):
            return None if os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL} else 1
        return os.WEXITSTATUS(status)

    def _prepare_child(self, cpu: int, log: Path | None) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        output = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # Python uses a compiled file if time and size of the source agree, and two mutants can have the same
        sys.dont_write_bytecode = log is None
        os.environ.update(PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(self.folder / "src"))
        sys.path[:] = [str(self.folder / "src"), *(path for path in sys.path if path != str(self.root / "src"))]
        importlib.invalidate_caches()
        os.chdir(self.root)


def load_libraries() -> None:
    """Import libraries that many tests need, before processes are forked."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ARROW_DEFAULT_MEMORY_POOL="system")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest warns about plugins' libraries that are already loaded
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
