"""Format the benchmark page: tables of medians and ratios, targets, machine, and versions."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from processes import JobResult

BEGIN, END = "<!-- written by bench/run.py: begin -->", "<!-- written by bench/run.py: end -->"
FIRST, FLOOR = "ranx, first call", "floor: three columns parsed by pyarrow"
_PACKAGES = ("judged", "pytrec-eval-terrier", "ir-measures", "ranx", "numba", "numpy", "pyarrow")


@dataclass(frozen=True)
class Results:
    """All measurements of a benchmark.

    Parameters
    ----------
    load
        Load average of the machine before the benchmark.
    sizes
        Size of each run file in MB.
    start, small, many, large, ties, shuffled
        Whole processes: start-up, and evaluation of files.
    memory
        Seconds of calls on dicts in memory, by file and tool.
    calls
        Processor seconds of calls for a batch of a training loop.
    """

    load: float
    sizes: dict[str, float]
    start: dict[str, JobResult]
    small: dict[str, JobResult]
    many: dict[str, JobResult]
    large: dict[str, JobResult]
    ties: dict[str, JobResult]
    shuffled: dict[str, JobResult]
    memory: dict[str, dict[str, list[float]]]
    calls: dict[str, list[float]]

    def times_judged_in_memory(self, data: str) -> float:
        """Return the time of pytrec_eval on dicts as a multiple of judged's."""
        return median(self.memory[data]["pytrec_eval"]) / median(self.memory[data]["judged"])

    @property
    def import_seconds(self) -> float:
        """Seconds that `import judged` adds to the start of Python."""
        return self.start["import judged"].seconds - self.start["python"].seconds


def page(results: Results) -> str:
    """Format all sections as Markdown."""
    large, small = results.sizes["large"], results.sizes["small"]
    files = {
        f"large: 6,980 topics x 1000 documents ({large:.0f} MB), one to three judged": results.large,
        "large, a fifth of the rows tied with the row above": results.ties,
        "large, rows in random order": results.shuffled,
        f"small: 50 topics x 1000 documents ({small:.1f} MB), 400 judged": results.small,
        "20 small runs in one process, with ties": results.many,
    }
    parts = [_machine(results.load), "### Targets", _targets(results)]
    for title, results_by_tool in files.items():
        parts += [f"### From file, {title}", _processes(results_by_tool.values(), results_by_tool["judged"])]
    parts += ["### Dicts already in memory", _memory(results), "### nDCG@10 of 32 queries x 10 documents"]
    parts += [_calls(results), "### Start-up", _start(results)]
    return "\n\n".join(parts)


def write(path: Path, text: str, begin_mark: str = BEGIN, end_mark: str = END) -> None:
    """Replace the text between two markers of a page.

    Raises
    ------
    ValueError
        If the page has no markers.
    """
    before, begin, remainder = path.read_text(encoding="utf-8").partition(begin_mark)
    _, end, after = remainder.partition(end_mark)
    if not (begin and end):
        raise ValueError(f"{path.name} must have the markers {begin_mark} and {end_mark}")
    path.write_text(f"{before}{begin_mark}\n\n{text}\n\n{end_mark}{after}", encoding="utf-8")


def _targets(results: Results) -> str:
    large, start, small = results.large, results.start, results.small
    calls = {name: median(times) * 1e3 for name, times in results.calls.items()}
    small_ties = 1 / results.times_judged_in_memory("small, ties")
    rows = [
        _at_least("large file, times trec_eval (C)", 7, _times(large, "trec_eval 9.0.8 (C)")),
        _at_least("large file, times pytrec_eval", 7, _times(large, "pytrec_eval")),
        _at_least("large file, times ir_measures", 10, _times(large, "ir_measures")),
        _at_least("large file, times ranx, first call", 35, _times(large, FIRST)),
        _at_most("large file, relative to the floor", 2.5, 1 / _times(large, FLOOR), "x"),
        _at_most("large file, peak memory", 150, large["judged"].megabytes, " MB"),
        _at_least("large file with ties, times pytrec_eval", 3, _times(results.ties, "pytrec_eval")),
        _at_least("large file, shuffled, times pytrec_eval", 3, _times(results.shuffled, "pytrec_eval")),
        _at_most("small file, relative to pytrec_eval", 1.3, 1 / _times(small, "pytrec_eval"), "x"),
        _at_least("large dicts, times `RelevanceEvaluator.evaluate`", 12, results.times_judged_in_memory("large")),
        _at_most("small dicts with ties, relative to `RelevanceEvaluator.evaluate`", 1.2, small_ties, "x"),
        _at_most("32 x 10, `judged.arrays`, ties by position", 0.15, calls["judged.arrays, ties by position"], " ms"),
        _at_most("32 x 10, `judged.arrays`, ties averaged", 0.35, calls["judged.arrays, ties averaged"], " ms"),
        _at_most("32 x 10, `evaluate`, prepared qrels", 0.4, calls["judged.evaluate, prepared qrels"], " ms"),
        _at_most("`import judged`", 60, results.import_seconds * 1e3, " ms"),
        _at_most("`judged --help`", 150, start["judged --help"].seconds * 1e3, " ms"),
    ]
    return _table(("target", "limit", "this run", ""), rows)


def _times(results_by_tool: dict[str, JobResult], tool: str) -> float:
    """Return the time of a tool as a multiple of judged's."""
    return results_by_tool[tool].seconds / results_by_tool["judged"].seconds


def _at_least(label: str, target: float, value: float) -> tuple[str, ...]:
    return label, f"at least {target:g}x", f"{value:.1f}x", "PASS" if value >= target else "below"


def _at_most(label: str, target: float, value: float, unit: str) -> tuple[str, ...]:
    return label, f"at most {target:g}{unit}", f"{value:.3g}{unit}", "PASS" if value <= target else "above"


def _processes(results: Iterable[JobResult], judged: JobResult) -> str:
    heads = ("whole process", "median s", "min to max", "times judged", "CPU s", "peak MB", "runs")
    rows = [
        (
            result.name,
            f"{result.seconds:.2f}",
            "{:.2f} to {:.2f}".format(*result.spread),
            f"{result.seconds / judged.seconds:.1f}",
            f"{result.cpu:.2f}",
            f"{result.megabytes:.0f}",
            str(len(result.samples)),
        )
        for result in results
    ]
    return _table(heads, rows)


def _memory(results: Results) -> str:
    rows = [
        (data, tool, f"{median(times) * 1e3:.1f}", f"{min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}",
         f"{median(times) / median(tools['judged']):.1f}", str(len(times)))
        for data, tools in results.memory.items()
        for tool, times in tools.items()
    ]  # fmt: skip
    return _table(("dicts and measures", "call", "median ms", "min to max", "times judged", "calls"), rows)


def _calls(results: Results) -> str:
    rows = [(f"`{name}`", f"{median(times) * 1e3:.3f}", str(len(times))) for name, times in results.calls.items()]
    return _table(("call", "median processor ms", "rounds of 100"), rows)


def _start(results: Results) -> str:
    python_seconds = results.start["python"].seconds
    rows = [
        (
            f"`{name}`",
            f"{result.seconds * 1e3:.0f}",
            f"{(result.seconds - python_seconds) * 1e3:.0f}" if name != "python" else "",
            f"{result.megabytes:.0f}",
            str(len(result.samples)),
        )
        for name, result in results.start.items()
    ]
    return _table(("whole process", "median ms", "without Python's own start", "peak MB", "runs"), rows)


def _machine(load: float) -> str:
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return (
        f"Measured on {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; load average before the run {load:.1f}.\n"
        f"{versions}."
    )


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "an unknown processor"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; all columns but the first are right-aligned."""
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
