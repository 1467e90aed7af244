"""Measure CPU time and memory of a large interaction log, from UBI Parquet to metrics with intervals.

The log is simulated, two arms of 10 million events by default, and kept in bench/data. Each measurement is a fresh
process; memory is its peak, as the system counts it. Ten metrics are compared with plain SQL that computes them without
intervals; no time is reported for values that differ. The table is written into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import report
from processes import Job, Measured, measured, run

HERE = Path(__file__).parent
DATA = HERE / "data"
PAGE = HERE.parent / "docs" / "benchmarks.md"
JUDGED, LIMITED, TENTH = (
    "judged, everything",
    "judged, everything, memory=1GB",
    "judged, everything, a tenth of the log",
)
SAME, SQL = "judged, ten metrics", "plain SQL, the same ten without intervals"
RATIOS, TEST = "judged, every ratio by device", "judged, an A/B test of every ratio by device, any day"
TEN = (
    "PageCTR", "ClicksPerPage", "FirstClickRR", "TopmostClickRR", "SatisfiedClicks", "Abandonment", "ZeroResults",
    "AddToCart", "Conversion", "Latency",
)  # fmt: skip
_CPU, _GIGABYTES, _LIMIT, _RATIO, _TEST = 32.0, 2.5, 1.0, 2.0, 1.3
_TOLERANCE = 1e-9


def main() -> None:
    """Draw the logs where they are missing, measure, compare, write."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--events", type=int, default=10_000_000)
    read.add_argument("--rounds", type=int, default=3)
    read.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    asked = read.parse_args()
    if asked.worker:
        _work(*asked.worker)
        return
    load = os.getloadavg()[0]
    large, small = (_drawn(events) for events in (asked.events, asked.events // 10))
    found = measured(
        [
            Job(JUDGED, _worker("judged", str(large)), asked.rounds),
            Job(LIMITED, _worker("judged", str(large), "1GB"), 1),
            Job(TENTH, _worker("judged", str(small)), asked.rounds),
            Job(SAME, _worker("judged", str(large), "", *TEN), asked.rounds),
            Job(RATIOS, _worker("judged", str(large), "", *_ratios()), asked.rounds),
            Job(TEST, _worker("abtest", str(large), "", *_ratios()), asked.rounds),
            Job(SQL, [sys.executable, str(HERE / "online_sql.py"), str(large)], asked.rounds),
        ],
        "online",
    )
    outputs = {name: json.loads(one.samples[0].output) for name, one in found.items()}
    for name in (LIMITED, SAME, SQL):
        _refuse_disagreement(name, outputs[name]["estimates"], outputs[JUDGED]["estimates"])
    text = "\n".join(_report(found, outputs, load))
    print(text)
    report.write(PAGE, text, "<!-- logs: begin -->", "<!-- logs: end -->")


def _drawn(events: int) -> Path:
    """Give the folder of a log of so many events; it is drawn once."""
    folder = DATA / f"online-{events}"
    done = folder / "drawn.json"
    if not done.exists():
        sample = run(_worker("draw", str(folder), str(events)))
        print(f"drawn: {events:,} events in {sample.seconds:.0f} s, {sample.megabytes:.0f} MB", file=sys.stderr)
        done.write_text(sample.output, encoding="utf-8")
    return folder


def _ratios() -> list[str]:
    """Name every usual metric that is a ratio."""
    from judged.online.metrics import usual_metrics

    return [str(one) for one in usual_metrics() if one.kind == "ratio"]


def _worker(*arguments: str) -> list[str]:
    return [sys.executable, str(HERE / "online.py"), "--worker", *arguments]


def _work(what: str, folder: str, *more: str) -> None:
    """Do one measured thing and print what came of it. Only here is anything heavy imported: see `processes`."""
    if what == "draw":
        from judged.online.simulation.simulated import write_large

        made = write_large(folder, events=int(more[0]), seed=1)
        print(json.dumps({"queries": made.queries, "events": made.events, "users": made.users}))
        return
    from judged.online import abtest, online_metrics, read_log
    from judged.online.differences import comparable

    begun = perf_counter()
    files = [str(Path(folder) / f"ubi_{name}.parquet") for name in ("queries", "events")]
    log = read_log(files, memory=(more[0] or None) if more else None)
    opened = perf_counter()
    if what == "abtest":
        goal, *guardrails = (one for one in comparable(more[1:], log, "user")[0] if one.better)
        test = abtest(log, goal, guardrails=guardrails, metrics=more[1:], by="device")
        print(json.dumps({"differences": len(test.differences) + len(test.sliced)}))
        return
    scores = online_metrics(log, more[1:] or None, by="device")
    done = perf_counter()
    estimates = {f"{one.metric} {one.slice or 'all'}": [one.value, one.error] for one in scores.estimates}
    times = {"reading": opened - begun, "metrics": done - opened}
    print(json.dumps({"estimates": estimates, "times": times, "counts": dict(scores.counts)}))


def _refuse_disagreement(name: str, found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, pair in found.items():
        for what, one, other in zip(("value", "error"), pair, expected[key], strict=True):
            if one is None or (math.isnan(one) and math.isnan(other)):
                continue
            if not math.isclose(one, other, rel_tol=_TOLERANCE):
                sys.exit(f"{key}: the {what} is {one} by {name}, and {other} by judged")


def _report(found: dict[str, Measured], outputs: dict[str, Any], load: float) -> list[str]:
    """Write the times as a table, and what was wanted of them."""
    counts, many = outputs[JUDGED]["counts"], len(outputs[JUDGED]["estimates"])
    heads = ("whole process", "CPU s", "median s", "min to max", "peak GB", "runs")
    rows = [
        (
            one.name,
            f"{one.cpu:.1f}",
            f"{one.seconds:.1f}",
            "{:.1f} to {:.1f}".format(*one.spread),
            f"{one.megabytes / 1e3:.2f}",
            str(len(one.samples)),
        )
        for one in found.values()
    ]
    promises = [
        ("everything, CPU seconds", _CPU, found[JUDGED].cpu),
        ("everything, peak GB", _GIGABYTES, found[JUDGED].megabytes / 1e3),
        ("everything with memory=1GB, peak GB", _LIMIT, found[LIMITED].megabytes / 1e3),
        ("ten metrics, times the CPU of plain SQL", _RATIO, found[SAME].cpu / found[SQL].cpu),
        ("an A/B test by slice, times the CPU of its metrics", _TEST, found[TEST].cpu / found[RATIOS].cpu),
    ]
    sizes = ", ".join(f"{counts[name]:,} {name}" for name in ("events", "pages", "users"))
    return [
        f"{sizes}; {many} estimates by device; {os.cpu_count()} cores, load {load:.1f} before the first run.",
        "",
        *("| " + " | ".join(row) + " |" for row in (heads, ("---", *("---:",) * (len(heads) - 1)), *rows)),
        "",
        "| wanted | at most | found |",
        "| --- | ---: | ---: |",
        *(
            f"| {name} | {most:g} | {value:.2f}{'' if value <= most else ', missed'} |"
            for name, most, value in promises
        ),
    ]


if __name__ == "__main__":
    main()
