"""Compare judged with pytrec_eval, ir_measures and ranx, and write the result into docs/benchmarks.md.

Every number of the page comes from one run of this program. No number is ever reported for tools that
disagree: the means of the five measures must be the same to 1e-6.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import report
from processes import Job, Measured, measured, run
from workers import MEASURES

HERE = Path(__file__).parent
DATA = HERE / "data"
PAGE = HERE.parent / "docs" / "benchmarks.md"
JUDGED = str(Path(sysconfig.get_path("scripts")) / "judged")
FIRST = "ranx, first call"
_TOLERANCE = 1e-6


class _Rounds(NamedTuple):
    """How often each tool runs: what takes a minute runs less often than what takes a second."""

    judged: int  # and pytrec_eval, which it is compared with most closely
    ir_measures: int
    ranx: int
    ranx_first: int


def main() -> None:
    """Measure everything, then write the page."""
    load = os.getloadavg()[0]
    run([sys.executable, str(HERE / "data.py")])
    files = {name: (str(DATA / f"{name}.qrels"), str(DATA / f"{name}.run")) for name in ("large", "small")}
    results = report.Results(
        load=load,
        sizes={name: Path(pair[1]).stat().st_size / 1e6 for name, pair in files.items()},
        start=_start_up(),
        small=_from_file("small", *files["small"], _Rounds(judged=11, ir_measures=11, ranx=2, ranx_first=1)),
        large=_from_file("large", *files["large"], _Rounds(judged=5, ir_measures=3, ranx=2, ranx_first=1)),
        memory={
            "large": _in_memory("15", "five", *files["large"]),
            "small": _in_memory("25", "five", *files["small"]),
            "large, all": _in_memory("5", "all", *files["large"]),
            "small, all": _in_memory("25", "all", *files["small"]),
        },
    )
    text = report.page(results)
    print(text)
    report.write(PAGE, text)


def _from_file(name: str, qrels: str, run_file: str, rounds: _Rounds) -> dict[str, Measured]:
    """Time whole processes that read both files and print five means."""
    wanted = [part for measure in MEASURES for part in ("-m", measure)]
    judged = [JUDGED, "evaluate", qrels, run_file, *wanted, "--format", "json"]
    _read(run_file)
    run(judged)  # so that no time holds the writing of bytecode
    found = measured(
        [
            Job("judged", [*judged, "--ci", "none"], rounds.judged),
            Job("judged, with intervals", judged, rounds.judged),
            Job("pytrec_eval", _worker("pytrec_eval", qrels, run_file), rounds.judged),
            Job("ir_measures", _worker("ir_measures", qrels, run_file), rounds.ir_measures),
            Job(FIRST, _worker("ranx", qrels, run_file), rounds.ranx_first, own_cache=True),
            Job("ranx, later calls", _worker("ranx", qrels, run_file), rounds.ranx),
        ],
        name,
    )
    for at in range(max(len(one.samples) for one in found.values())):
        outputs = {tool: one.samples[at % len(one.samples)].output for tool, one in found.items()}
        _refuse_disagreement({tool: _means(output) for tool, output in outputs.items()})
    return found


def _in_memory(rounds: str, which: str, qrels: str, run_file: str) -> dict[str, list[float]]:
    """Time calls on dicts, in turns within one process."""
    found = json.loads(run(_worker("in-memory", rounds, which, qrels, run_file)).output)
    _refuse_disagreement(found["means"])
    return found["seconds"]


def _start_up() -> dict[str, Measured]:
    python = [sys.executable, "-c"]
    jobs = [
        Job("python", [*python, "pass"], 20),
        Job("import judged", [*python, "import judged"], 20),
        Job("judged --help", [JUDGED, "--help"], 20),
        *(Job(f"import {tool}", [*python, f"import {tool}"], 4) for tool in ("pytrec_eval", "ir_measures", "ranx")),
    ]
    for job in jobs:
        run(job.command)  # so that no time holds the writing of bytecode
    return measured(jobs, "start")


def _worker(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", str(HERE / "workers.py"), *arguments]


def _means(output: str) -> dict[str, float]:
    """Read what a process printed; judged's document lists its results."""
    found = json.loads(output)
    return {one["measure"]: one["value"] for one in found["results"]} if "results" in found else found


def _refuse_disagreement(means: dict[str, dict[str, float]]) -> None:
    expected = means["pytrec_eval"]
    for tool, found in means.items():
        for measure in expected:
            if not abs(found[measure] - expected[measure]) <= _TOLERANCE:
                sys.exit(f"{measure}: {tool} says {found[measure]}, pytrec_eval {expected[measure]}")


def _read(path: str) -> None:
    """Read a file once, so that the first tool finds it in the page cache like all others."""
    with Path(path).open("rb") as file:
        while file.read(1 << 20):
            pass


if __name__ == "__main__":
    main()
