"""Trace the lines that each test executes. Traces are saved until the test file or a traced source changes."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from types import FrameType

SHARED = ""  # context of lines executed outside of tests: imports, and fixtures of wider scope


@dataclass(slots=True)
class Trace:
    """Tests of one file with their CPU seconds, and the tests that execute each line of each source."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    traced: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the trace as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        numbers = {test: number for number, test in enumerate([SHARED, *self.seconds])}
        lines = {
            source: {str(line): [numbers[test] for test in tests if test in numbers] for line, tests in by_line.items()}
            for source, by_line in self.lines.items()
        }
        content = {"seconds": self.seconds, "failed": self.failed, "lines": lines}
        path.write_text(json.dumps({**content, "hashes": self.hashes, "traced": self.traced}))

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Read a trace from JSON."""
        content = json.loads(path.read_text())
        names = [SHARED, *content["seconds"]]
        lines = {
            source: {int(line): [names[number] for number in numbers] for line, numbers in by_line.items()}
            for source, by_line in content["lines"].items()
        }
        return cls(content["seconds"], content["failed"], lines, content["hashes"], content["traced"])

    def is_valid(self, root: Path, sources: Path, needed: Iterable[str]) -> bool:
        """Return whether the needed sources were traced, and neither they nor the test file changed since."""
        return (
            bool(self.hashes)
            and set(needed) <= set(self.traced)
            and all(
                _hash(path) == value
                for name, value in self.hashes.items()
                for path in [(root if name.startswith("tests/") else sources) / name]
            )
        )

    def tests_of(self, source: str, lines: Iterable[int] | None) -> tuple[list[str], list[str]]:
        """Return the tests that execute any of the lines, and the other tests of the file, both fastest first.

        The other tests matter if a line is executed once for several tests: at import, in a fixture of wider scope, or
        in a function with cached results. Both lists are empty if no test of the file executes a line. If `lines` is
        None, the statement is at the level of a module or class, and all lines count.
        """
        by_line = self.lines.get(source, {})
        executing = {test for line in (by_line if lines is None else lines) for test in by_line.get(line, ())}
        if not executing:
            return [], []
        usable = sorted(set(self.seconds).difference(self.failed), key=lambda test: self.seconds[test])
        return [test for test in usable if test in executing], [test for test in usable if test not in executing]


class Tracer:
    """Pytest plugin that records the executed lines of some of the sources."""

    def __init__(self, sources: Path, traced: Iterable[str]) -> None:
        self.sources = str(sources) + "/"
        self.trace = Trace(traced=sorted(traced))
        self._paths = {self.sources + name for name in self.trace.traced}
        self._by_context: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._current = self._by_context[SHARED]

    def start(self) -> None:
        """Trace this thread and all threads that start later."""
        threading.settrace(self._global)
        sys.settrace(self._global)

    def stop(self) -> None:
        """Stop tracing, and group the executed lines by source."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        by_source: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for context, places in self._by_context.items():
            for path, line in places:
                by_source[path.removeprefix(self.sources)][line].append(context)
        self.trace.lines = {source: dict(by_line) for source, by_line in by_source.items()}

    def _global(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._local if frame.f_code.co_filename in self._paths else None

    def _local(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self._current.add((frame.f_code.co_filename, frame.f_lineno))
        return self._local

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Attribute lines to the test, and measure its CPU time."""
        self._current, start = self._by_context[item.nodeid], time.process_time()
        try:
            return (yield)
        finally:
            self._current = self._by_context[SHARED]
            self.trace.seconds[item.nodeid] = round(time.process_time() - start, 3)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Attribute lines of fixtures that several tests share to all these tests."""
        before = self._current
        if fixturedef.scope != "function":
            self._current = self._by_context[SHARED]
        try:
            return (yield)
        finally:
            self._current = before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record tests that fail without a mutation."""
        if report.failed and report.nodeid not in self.trace.failed:
            self.trace.failed.append(report.nodeid)


class SelectedTests:
    """Pytest plugin that runs only the selected tests, in the order of the selection."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Remove tests that are not selected, and sort the others."""
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda i: self.order[i.nodeid])


def hashes_of(names: Iterable[str], root: Path, sources: Path) -> dict[str, str]:
    """Return the hash of each test file and source."""
    return {name: _hash((root if name.startswith("tests/") else sources) / name) for name in names}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
