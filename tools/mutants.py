"""Mutation testing: change the sources at random places, and report changes that no test detects.

``mutants.py --packages clicks stats/cusum.py --sample 100`` samples places uniformly from these packages, mutates each
in a copy of the sources, and runs related tests that execute its lines. An equivalent mutant counts as a survivor. The
lines that each test executes are traced once and saved in build/mutants. Ctrl-C ends the run with a report.
"""

from __future__ import annotations

import argparse
import ast
import functools
import json
import math
import multiprocessing
import random
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from mutation.places import Place, find_places, replaced_lines
from mutation.running import Copy, load_libraries
from mutation.tracing import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parents[1]
_SURVIVED = {"survived", "not executed"}
_PRODUCT_TESTS = {"web", "cli", "docs", "fuzz", "words"}  # folders whose tests run the whole product


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place."""

    package: str
    source: str
    place: Place
    replacement: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of the tests for a mutant."""

    package: str
    where: str
    old: str
    new: str
    outcome: str
    tests: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample mutants, run them, and print the rate and the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--packages", nargs="+", metavar="PATH", help="folders or files below the package; default all")
    parser.add_argument("--sample", type=int, default=400, metavar="N", help="number of mutants (default: 400)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--budget", type=float, default=60, help="CPU seconds of tests that do not execute the line")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    [sources] = [path.parent for path in (root / "src").glob("*/__init__.py")]
    packages = options.packages or sorted(path.name for path in sources.glob("*/"))
    mutants = draw(sources, packages, options.sample, options.seed)
    load_libraries()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = Runner(root, sources, Path(folder), options.budget)
        outcomes = runner.run(mutants, files_of(sources, packages), options.jobs)
    print(report(outcomes, packages))
    if options.json:
        rows = [asdict(outcome) for outcome in outcomes]
        document = {"seed": options.seed, "packages": packages, "outcomes": rows}
        options.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def draw(sources: Path, packages: Iterable[str], sample: int, seed: int) -> list[Mutant]:
    """Sample places uniformly from the packages, and a replacement for each."""
    places: list[tuple[str, str, Place]] = []
    for package in packages:
        for source in files_of(sources, [package]):
            places.extend((package, source, place) for place in find_places((sources / source).read_bytes()))
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    sampled = rng.sample(places, min(sample, len(places)))
    return [Mutant(*place_with_source, rng.choice(place_with_source[2].replacements)) for place_with_source in sampled]


def files_of(sources: Path, packages: Iterable[str]) -> list[str]:
    """Return the source files of folders and files below the sources."""
    files: list[Path] = []
    for package in packages:
        path = sources / package
        if not path.exists():
            raise SystemExit(f"{package}: expected a folder or file below {sources}. Fix: --packages clicks stats")
        files.extend(sorted(path.rglob("*.py")) if path.is_dir() else [path])
    return [file.relative_to(sources).as_posix() for file in files]


class Runner:
    """Finds the tests of mutants and runs them."""

    def __init__(self, root: Path, sources: Path, folder: Path, budget: float) -> None:
        self.root, self.sources, self.folder, self.budget = root, sources, folder, budget
        self.traces = root / "build" / "mutants"

    def run(self, mutants: Sequence[Mutant], traced: Sequence[str], jobs: int) -> list[Outcome]:
        """Return the outcome of each mutant from tests that execute its lines, by traces of the sources."""
        related_files = {source: self.related_tests(source) for source in {mutant.source for mutant in mutants}}
        files = sorted({file for tests in related_files.values() for file in tests})
        context = multiprocessing.get_context("fork")
        with context.Pool(jobs, _create_copy, (self.root, self.folder, self.sources.name)) as pool:
            untraced = [file for file in files if not self._is_traced(file, traced)]
            tracing = pool.imap_unordered(_trace, [(file, traced, self._saved(file)) for file in untraced])
            for number, _ in enumerate(tracing, 1):
                print(f"\rtraced {number}/{len(untraced)} test files", end="", file=sys.stderr, flush=True)
            if untraced:
                print(file=sys.stderr)
            traces = {file: Trace.load(self._saved(file)) for file in files}
            for file, trace in traces.items():
                for test in trace.failed:
                    print(f"{file}: {test} fails without a mutation, and is excluded", file=sys.stderr)
            work = [
                (mutant, *self._tests(mutant, [traces[file] for file in related_files[mutant.source]]))
                for mutant in mutants
            ]
            outcomes: list[Outcome] = []
            try:
                for outcome in pool.imap_unordered(_run, work):
                    outcomes.append(outcome)
                    if outcome.outcome in _SURVIVED:
                        print(f"\r{describe(outcome)}", file=sys.stderr)
                    print(f"\rran {len(outcomes)}/{len(mutants)} mutants  ", end="", file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                pool.terminate()
            print(file=sys.stderr)
        return outcomes

    def _saved(self, test_file: str) -> Path:
        return self.traces / (test_file.replace("/", "-") + ".json")

    def _is_traced(self, test_file: str, traced: Iterable[str]) -> bool:
        saved = self._saved(test_file)
        return saved.exists() and Trace.load(saved).is_valid(self.root, self.sources, traced)

    def _tests(self, mutant: Mutant, traces: Iterable[Trace]) -> tuple[list[str], float]:
        """Return the tests to run, those that execute the line first, and their CPU seconds."""
        place = mutant.place
        lines = range(place.first, place.last + 1) if place.in_function else None
        executing: dict[str, float] = {}
        others: dict[str, float] = {}
        for trace in traces:
            for tests, selected in zip(trace.tests_of(mutant.source, lines), (executing, others), strict=True):
                selected.update((test, trace.seconds[test]) for test in tests)
        seconds = sum(executing.values())
        other_tests: list[str] = []
        for test in sorted(others, key=others.__getitem__):
            seconds += others[test]
            if seconds > self.budget:
                break
            other_tests.append(test)
        return [*sorted(executing, key=executing.__getitem__), *other_tests], seconds

    @functools.cached_property
    def _test_files(self) -> dict[str, set[str]]:
        """Modules and names that are imported by each test file."""
        files = sorted((self.root / "tests").rglob("test_*.py"))
        return {file.relative_to(self.root).as_posix(): self._imports(file) for file in files}

    @functools.cached_property
    def _exported(self) -> dict[str, str]:
        """Module of each name that a package exports."""
        modules: dict[str, str] = {}
        for file in self.sources.rglob("__init__.py"):
            package = _dotted(file.parent.relative_to(self.sources.parent))
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Dict):
                    for key, names in zip(node.keys, node.values, strict=True):
                        module = getattr(key, "value", None)
                        for name in getattr(names, "elts", ()):
                            modules[f"{package}.{getattr(name, 'value', '')}"] = str(module)
        return modules

    @functools.cache  # noqa: B019 - a runner lives as long as the program
    def _imports(self, file: Path) -> set[str]:
        imported: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{name.name}" for name in node.names]
                imported.update([node.module, *names, *(self._exported.get(name, name) for name in names)])
        return imported

    def related_tests(self, source: str) -> list[str]:
        """Return the test files in the folder of the source's package, and test files that import the source.

        For a module of statistics, these are the tests of the packages that import it, not all tests of statistics.
        """
        path = Path(source)
        module = _dotted(
            Path(self.sources.name) / (path.parent if path.name == "__init__.py" else path.with_suffix(""))
        )
        folders = {self._folder(path.parent)} if len(path.parts) > 1 else set()
        if path.parts[0] == "stats":
            importers = [file for file in self.sources.rglob("*.py") if module in self._imports(file)]
            users = {file.relative_to(self.sources).parent.as_posix() for file in importers}
            folders = {user for user in users if user.partition("/")[0] not in {*_PRODUCT_TESTS, "stats"}}
        return [
            file
            for file, imported in self._test_files.items()
            if (folder := file.removeprefix("tests/")).partition("/")[0] not in _PRODUCT_TESTS
            or path.parts[0] in _PRODUCT_TESTS
            if module in imported or any(folder.startswith(f"{name}/") for name in folders)
        ]

    def _folder(self, package: Path) -> str:
        """Return the deepest folder of tests that has the name of the package or of one of its parents."""
        while package.parts and not any((self.root / "tests" / package).rglob("test_*.py")):
            package = package.parent
        return package.as_posix()


_copies: list[Copy] = []  # the copy of this process


def _create_copy(root: Path, folder: Path, package: str) -> None:
    _copies.append(Copy.create(root, Path(tempfile.mkdtemp(dir=folder)), package))


def _trace(work: tuple[str, Sequence[str], Path]) -> None:
    _copies[0].trace(*work)


def _run(work: tuple[Mutant, list[str], float]) -> Outcome:
    mutant, tests, seconds = work
    copy, place = _copies[0], mutant.place
    source = (copy.sources / mutant.source).read_bytes()
    outcome = "not executed"
    if tests:
        mutated = place.mutated(source, mutant.replacement)
        outcome = copy.outcome(mutant.source, mutated, tests, cpu=20 + 3 * seconds)
    where = f"src/{copy.package}/{mutant.source}:{place.line}"
    return Outcome(mutant.package, where, *replaced_lines(source, place, mutant.replacement), outcome, len(tests))


def _dotted(path: Path) -> str:
    return ".".join(path.parts)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson)."""
    z = NormalDist().inv_cdf(0.975)
    share = successes / n
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def report(outcomes: Sequence[Outcome], packages: Sequence[str]) -> str:
    """Return the rates of killed mutants, in total and by package, and the survivors."""
    lines = [
        f"{'package':32} {'mutants':>7} {'killed':>6} {'timeout':>7} {'not executed':>12} {'rate':>6}  95% interval"
    ]
    for package in ["all", *packages]:
        counts = Counter(outcome.outcome for outcome in outcomes if package in {"all", outcome.package})
        if n := counts.total():
            killed = counts["killed"] + counts["timeout"]
            low, high = wilson(killed, n)
            numbers = f"{n:7} {killed:6} {counts['timeout']:7} {counts['not executed']:12} {killed / n:6.1%}"
            lines.append(f"{package:32} {numbers}  [{low:.1%}, {high:.1%}]")
    survivors = [outcome for outcome in outcomes if outcome.outcome in _SURVIVED]
    return "\n".join([*lines, *map(describe, sorted(survivors, key=lambda outcome: _sort_key(outcome.where)))])


def describe(outcome: Outcome) -> str:
    """Return the place of a mutant, the number of tests, and its line before and after the change."""
    note = "not executed" if outcome.outcome == "not executed" else f"{outcome.tests} tests"
    return f"{outcome.where} ({note})\n  - {outcome.old}\n  + {outcome.new}"


def _sort_key(where: str) -> tuple[str, int]:
    path, _, line = where.rpartition(":")
    return path, int(line)


if __name__ == "__main__":
    main()
