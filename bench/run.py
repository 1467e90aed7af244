"""Compare judged with trec_eval, pytrec_eval, ir_measures, and ranx, and write the results into docs/benchmarks.md.

All numbers of the page are from one run of this program. It stops if tools disagree: the means of the five measures
must be equal to 1e-6.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import report
from processes import Job, JobResult, measure_jobs, run
from workers import MEASURES

from data import MANY

HERE = Path(__file__).parent
DATA = HERE / "data"
PAGE = HERE.parent / "docs" / "benchmarks.md"
JUDGED = str(Path(sysconfig.get_path("scripts")) / "judged")
FIRST, FLOOR = report.FIRST, report.FLOOR
_TOLERANCE = 1e-6


class _Rounds(NamedTuple):
    """Number of runs of each tool; slow tools run less often."""

    judged: int  # also for pytrec_eval, the closest competitor
    trec_eval: int = 0  # also for the floor
    ir_measures: int = 0
    ranx: int = 0
    ranx_first: int = 0


def main() -> None:
    """Measure all tools, and write the page."""
    load = os.getloadavg()[0]
    run([sys.executable, str(HERE / "data.py")])
    large, small, large_ties, small_ties = (_files(name) for name in ("large", "small", "large-ties", "small-ties"))
    shuffled = large[0], str(DATA / "large-shuffled.run")
    many = small[0], *(str(DATA / f"many-{number:02}.run") for number in range(MANY))
    results = report.Results(
        load=load,
        sizes={name: Path(pair[1]).stat().st_size / 1e6 for name, pair in (("large", large), ("small", small))},
        start=_start_up(),
        small=_from_file("small", *small, rounds=_Rounds(11, 11, ir_measures=11, ranx=2, ranx_first=1)),
        many=_from_file("many", *many, rounds=_Rounds(5)),
        large=_from_file("large", *large, rounds=_Rounds(9, 5, ir_measures=3, ranx=2, ranx_first=1)),
        ties=_from_file("ties", *large_ties, rounds=_Rounds(5, 3)),
        shuffled=_from_file("shuffled", *shuffled, rounds=_Rounds(3, 1)),
        memory={
            "large": _in_memory("15", "five", *large),
            "small": _in_memory("25", "five", *small),
            "small, ties": _in_memory("25", "five", *small_ties),
            "large, all": _in_memory("5", "all", *large),
            "small, all": _in_memory("25", "all", *small),
        },
        calls=json.loads(run(_worker("small-calls", "15")).output),
    )
    text = report.page(results)
    print(text)
    report.write(PAGE, text)


def _files(name: str) -> tuple[str, str]:
    return str(DATA / f"{name}.qrels"), str(DATA / f"{name}.run")


def _from_file(name: str, qrels: str, *runs: str, rounds: _Rounds) -> dict[str, JobResult]:
    """Time processes that read files and print five means."""
    measure_options = [part for measure in MEASURES for part in ("-m", measure)]
    judged = [JUDGED, "evaluate", qrels, *runs, *measure_options, "--format", "json"]
    for path in runs:
        _read(path)
    run(judged)  # writes the bytecode, so that measured runs do not
    jobs = [
        Job("judged", [*judged, "--ci", "none"], rounds.judged),
        Job("judged, with intervals", judged, rounds.judged),
        Job("pytrec_eval", _worker("pytrec_eval", qrels, *runs), rounds.judged),
        Job("trec_eval 9.0.8 (C)", _worker("trec_eval", qrels, *runs), rounds.trec_eval),
        Job(FLOOR, _worker("floor", qrels, *runs), rounds.trec_eval),
        Job("ir_measures", _worker("ir_measures", qrels, *runs), rounds.ir_measures),
        Job(FIRST, _worker("ranx", qrels, *runs), rounds.ranx_first, own_cache=True),
        Job("ranx, later calls", _worker("ranx", qrels, *runs), rounds.ranx),
    ]
    results = measure_jobs([job for job in jobs if job.rounds], name)
    for i in range(max(len(result.samples) for result in results.values())):
        outputs = {
            tool: result.samples[i % len(result.samples)].output for tool, result in results.items() if tool != FLOOR
        }
        _check_agreement({tool: _means(output) for tool, output in outputs.items()})
    return results


def _in_memory(rounds: str, measure_set: str, qrels: str, run_file: str) -> dict[str, list[float]]:
    """Time alternating calls on dicts in one process."""
    result = json.loads(run(_worker("in-memory", rounds, measure_set, qrels, run_file)).output)
    _check_agreement(result["means"])
    return result["seconds"]


def _start_up() -> dict[str, JobResult]:
    python = [sys.executable, "-c"]
    jobs = [
        Job("python", [*python, "pass"], 20),
        Job("import judged", [*python, "import judged"], 20),
        Job("judged --help", [JUDGED, "--help"], 20),
        *(Job(f"import {tool}", [*python, f"import {tool}"], 4) for tool in ("pytrec_eval", "ir_measures", "ranx")),
    ]
    for job in jobs:
        run(job.command)  # writes the bytecode, so that measured runs do not
    return measure_jobs(jobs, "start")


def _worker(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", str(HERE / "workers.py"), *arguments]


def _means(output: str) -> dict[str, float]:
    """Parse the output of a process. judged prints one result per run and measure."""
    document = json.loads(output)
    if "results" not in document:
        return document
    return {
        name: fmean(result["value"] for result in document["results"] if result["measure"] == name) for name in MEASURES
    }


def _check_agreement(means: dict[str, dict[str, float]]) -> None:
    expected = means["pytrec_eval"]
    for tool, tool_means in means.items():
        for measure in expected:
            if not abs(tool_means[measure] - expected[measure]) <= _TOLERANCE:
                sys.exit(f"{measure}: {tool} has {tool_means[measure]}, but pytrec_eval has {expected[measure]}")


def _read(path: str) -> None:
    """Read a file once, so that it is in the page cache for all tools."""
    with Path(path).open("rb") as file:
        while file.read(1 << 20):
            pass


if __name__ == "__main__":
    main()
