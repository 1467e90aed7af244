"""Compare judged with trec_eval, pytrec_eval, ir_measures and ranx, and write the result into docs/benchmarks.md.

Every number of the page comes from one run of this program. No number is ever reported for tools that
disagree: the means of the five measures must be the same to 1e-6.
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
from processes import Job, Measured, measured, run
from workers import MEASURES

from data import MANY

HERE = Path(__file__).parent
DATA = HERE / "data"
PAGE = HERE.parent / "docs" / "benchmarks.md"
JUDGED = str(Path(sysconfig.get_path("scripts")) / "judged")
FIRST, FLOOR = report.FIRST, report.FLOOR
_TOLERANCE = 1e-6


class _Rounds(NamedTuple):
    """How often each tool runs: what takes a minute runs less often than what takes a second."""

    judged: int  # and pytrec_eval, which it is compared with most closely
    trec_eval: int = 0  # and the floor
    ir_measures: int = 0
    ranx: int = 0
    ranx_first: int = 0


def main() -> None:
    """Measure everything, then write the page."""
    load = os.getloadavg()[0]
    run([sys.executable, str(HERE / "data.py")])
    large, small, large_ties, small_ties = (_files(name) for name in ("large", "small", "large-ties", "small-ties"))
    shuffled = large[0], str(DATA / "large-shuffled.run")
    many = small[0], *(str(DATA / f"many-{at:02}.run") for at in range(MANY))
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


def _from_file(name: str, qrels: str, *runs: str, rounds: _Rounds) -> dict[str, Measured]:
    """Time whole processes that read the files and print five means."""
    wanted = [part for measure in MEASURES for part in ("-m", measure)]
    judged = [JUDGED, "evaluate", qrels, *runs, *wanted, "--format", "json"]
    for path in runs:
        _read(path)
    run(judged)  # so that no time holds the writing of bytecode
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
    found = measured([job for job in jobs if job.rounds], name)
    for at in range(max(len(one.samples) for one in found.values())):
        outputs = {tool: one.samples[at % len(one.samples)].output for tool, one in found.items() if tool != FLOOR}
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
    """Read what a process printed; judged's document lists its results, of several runs one after the other."""
    found = json.loads(output)
    if "results" not in found:
        return found
    return {name: fmean(one["value"] for one in found["results"] if one["measure"] == name) for name in MEASURES}


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
