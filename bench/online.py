"""Measure CPU time and memory of the analysis of a large interaction log, from UBI Parquet to metrics with intervals.

The log is simulated, two arms of 10 million events by default, and saved in bench/data. Each measurement is a new
process; memory is its peak resident set. Ten metrics are compared with plain SQL without intervals; if values differ,
the program stops. The table is written into docs/benchmarks.md.
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
from processes import Job, JobResult, measure_jobs, run

HERE = Path(__file__).parent
DATA = HERE / "data"
PAGE = HERE.parent / "docs" / "benchmarks.md"
JUDGED, LIMITED, TENTH = (
    "judged, everything",
    "judged, everything, memory=1GB",
    "judged, everything, a tenth of the log",
)
SAME, SQL = "judged, ten metrics", "plain SQL, the same ten metrics without intervals"
RATIOS, TEST = "judged, every ratio by device", "judged, an A/B test of every ratio by device, any day"
TEN_METRICS = (
    "PageCTR", "ClicksPerPage", "FirstClickRR", "TopmostClickRR", "SatisfiedClicks", "Abandonment", "ZeroResults",
    "AddToCart", "Conversion", "Latency",
)  # fmt: skip
_MAX_CPU, _MAX_GIGABYTES, _MAX_LIMITED, _MAX_SQL_RATIO, _MAX_TEST_RATIO = 32.0, 2.5, 1.0, 2.0, 1.3
_TOLERANCE = 1e-9


def main() -> None:
    """Simulate missing logs, measure, compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _run_worker(*options.worker)
        return
    load = os.getloadavg()[0]
    large, small = (_simulated_log(events) for events in (options.events, options.events // 10))
    results = measure_jobs(
        [
            Job(JUDGED, _worker("judged", str(large)), options.rounds),
            Job(LIMITED, _worker("judged", str(large), "1GB"), 1),
            Job(TENTH, _worker("judged", str(small)), options.rounds),
            Job(SAME, _worker("judged", str(large), "", *TEN_METRICS), options.rounds),
            Job(RATIOS, _worker("judged", str(large), "", *_ratio_metrics()), options.rounds),
            Job(TEST, _worker("abtest", str(large), "", *_ratio_metrics()), options.rounds),
            Job(SQL, [sys.executable, str(HERE / "online_sql.py"), str(large)], options.rounds),
        ],
        "online",
    )
    outputs = {name: json.loads(result.samples[0].output) for name, result in results.items()}
    for name in (LIMITED, SAME, SQL):
        _check_agreement(name, outputs[name]["estimates"], outputs[JUDGED]["estimates"])
    text = "\n".join(_report(results, outputs, load))
    print(text)
    report.write(PAGE, text, "<!-- logs: begin -->", "<!-- logs: end -->")


def _simulated_log(events: int) -> Path:
    """Return the folder of a log with this number of events; simulate it if it is missing."""
    folder = DATA / f"online-{events}"
    done_file = folder / "drawn.json"
    if not done_file.exists():
        sample = run(_worker("draw", str(folder), str(events)))
        print(f"simulated: {events:,} events in {sample.seconds:.0f} s, {sample.megabytes:.0f} MB", file=sys.stderr)
        done_file.write_text(sample.output, encoding="utf-8")
    return folder


def _ratio_metrics() -> list[str]:
    """Return the names of all default metrics that are ratios."""
    from judged.online.metrics import default_metrics

    return [str(metric) for metric in default_metrics() if metric.kind == "ratio"]


def _worker(*arguments: str) -> list[str]:
    return [sys.executable, str(HERE / "online.py"), "--worker", *arguments]


def _run_worker(job: str, folder: str, *arguments: str) -> None:
    """Run one measured job and print its result. Heavy imports must stay in here: see `processes`."""
    if job == "draw":
        from judged.online.simulation.simulated import write_large

        simulated = write_large(folder, events=int(arguments[0]), seed=1)
        print(json.dumps({"queries": simulated.queries, "events": simulated.events, "users": simulated.users}))
        return
    from judged.online import abtest, online_metrics, read_log
    from judged.online.differences import comparable_metrics

    start = perf_counter()
    files = [str(Path(folder) / f"ubi_{name}.parquet") for name in ("queries", "events")]
    log = read_log(files, memory=(arguments[0] or None) if arguments else None)
    read_time = perf_counter()
    if job == "abtest":
        goal, *guardrails = (metric for metric in comparable_metrics(arguments[1:], log, "user")[0] if metric.better)
        test = abtest(log, goal, guardrails=guardrails, metrics=arguments[1:], by="device")
        print(json.dumps({"differences": len(test.differences) + len(test.sliced)}))
        return
    scores = online_metrics(log, arguments[1:] or None, by="device")
    end = perf_counter()
    estimates = {f"{row.metric} {row.slice or 'all'}": [row.value, row.error] for row in scores.estimates}
    times = {"reading": read_time - start, "metrics": end - read_time}
    print(json.dumps({"estimates": estimates, "times": times, "counts": dict(scores.counts)}))


def _check_agreement(name: str, actual: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, pair in actual.items():
        for field, value, expected_value in zip(("value", "error"), pair, expected[key], strict=True):
            if value is None or (math.isnan(value) and math.isnan(expected_value)):
                continue
            if not math.isclose(value, expected_value, rel_tol=_TOLERANCE):
                sys.exit(f"{key}: the {field} is {value} in {name}, but {expected_value} in judged")


def _report(results: dict[str, JobResult], outputs: dict[str, Any], load: float) -> list[str]:
    """Format the times as a table, and compare them with the targets."""
    counts, n_estimates = outputs[JUDGED]["counts"], len(outputs[JUDGED]["estimates"])
    heads = ("whole process", "CPU s", "median s", "min to max", "peak GB", "runs")
    rows = [
        (
            result.name,
            f"{result.cpu:.1f}",
            f"{result.seconds:.1f}",
            "{:.1f} to {:.1f}".format(*result.spread),
            f"{result.megabytes / 1e3:.2f}",
            str(len(result.samples)),
        )
        for result in results.values()
    ]
    targets = [
        ("everything, CPU seconds", _MAX_CPU, results[JUDGED].cpu),
        ("everything, peak GB", _MAX_GIGABYTES, results[JUDGED].megabytes / 1e3),
        ("everything with memory=1GB, peak GB", _MAX_LIMITED, results[LIMITED].megabytes / 1e3),
        ("ten metrics, times the CPU of plain SQL", _MAX_SQL_RATIO, results[SAME].cpu / results[SQL].cpu),
        (
            "an A/B test by slice, times the CPU of its metrics",
            _MAX_TEST_RATIO,
            results[TEST].cpu / results[RATIOS].cpu,
        ),
    ]
    sizes = ", ".join(f"{counts[name]:,} {name}" for name in ("events", "pages", "users"))
    return [
        f"{sizes}; {n_estimates} estimates by device; {os.cpu_count()} cores, load {load:.1f} before the first run.",
        "",
        *("| " + " | ".join(row) + " |" for row in (heads, ("---", *("---:",) * (len(heads) - 1)), *rows)),
        "",
        "| target | at most | result |",
        "| --- | ---: | ---: |",
        *(
            f"| {name} | {limit:g} | {value:.2f}{'' if value <= limit else ', missed'} |"
            for name, limit, value in targets
        ),
    ]


if __name__ == "__main__":
    main()
