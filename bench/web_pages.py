"""Measure the workbench with its server in a separate process, and Chromium.

Measures time from start to first chart, first paint of each page at the first and later requests, the longest stall of
each page (a task in which the page does not react), transferred bytes (compressed), and server memory, for the given
files or for ten simulated runs of 7,000 topics.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from browser import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPEATS = 5
_PAINT = (
    "performance.getEntriesByType('paint').find((entry) => entry.name === 'first-contentful-paint')?.startTime ?? NaN"
)
_STALL = """new Promise((resolve) => {
  let longest = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
  }).observe({ type: "longtask", buffered: true });
  setTimeout(() => resolve(longest), 300);
})"""
_FETCHED = """performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .map((entry) => [new URL(entry.name).pathname, entry.encodedBodySize])"""


class Server(NamedTuple):
    """A running workbench."""

    address: str
    process: subprocess.Popen[str]
    seconds: float  # from start to the printed URL

    def memory(self, name: str) -> float:
        """Return megabytes: VmHWM for the peak, or VmRSS for the current memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024


@contextmanager
def served(arguments: Sequence[str]) -> Iterator[Server]:
    """Serve files, and stop the server at the end."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "judged", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            matches = (re.search(r"http://[^/]+", line) for line in process.stdout or ())
            address = next(match[0] for match in matches if match)
            yield Server(address, process, time.perf_counter() - start)
        finally:
            process.terminate()


def pages(runs: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Return the paths of the measured pages."""
    first, second = (*runs, *runs)[:2]
    pair_query = urlencode({"first": first, "second": second})
    return [
        "/",
        "/leaderboard",
        "/leaderboard?where=relevant >= 3",
        "/leaderboard?curve=nDCG",
        f"/compare?{pair_query}",
        "/topics",
        "/topics?sort=-spread&page=2",
        *(f"/topic?{urlencode({'topic': topic})}&{pair_query}" for topic in topics[:2]),
        f"/matrix?{urlencode({'run': first})}",
        f"/matrix?{urlencode({'run': first, 'baseline': second})}&by=relevant_band",
        "/slices?by=relevant_band",
        "/search?q=nDCG",
        "/choose",
        "/learn",
        f"/evaluator?{urlencode({'run': first, 'topic': topics[0]})}",
    ]


def write_simulated_runs(folder: Path, topics: int, runs: int, depth: int, seed: int = 0) -> list[str]:
    """Write simulated judgments and runs of varying quality; return the arguments to serve them."""
    rng = np.random.default_rng(seed)
    names, judged = [f"q{i:04}" for i in range(topics)], 20
    grade = rng.choice([0, 1, 2, 3], size=topics * judged, p=[0.7, 0.15, 0.1, 0.05])
    documents = [f"d{i}" for i in range(max(depth, judged))]
    qrels = {"query_id": np.repeat(names, judged), "doc_id": np.tile(documents[:judged], topics), "relevance": grade}
    parquet.write_table(pa.table(qrels), folder / "qrels.parquet")
    for number in range(runs):
        noise = rng.normal(size=(topics, depth)) * (1 + number / runs)
        noise[:, :judged] += grade.reshape(topics, judged)[:, :depth]
        run = {
            "query_id": np.repeat(names, depth),
            "doc_id": np.tile(documents[:depth], topics),
            "score": noise.ravel(),
        }
        parquet.write_table(pa.table(run), folder / f"run{number}.parquet")
    words = [" ".join(["word"] * int(count)) for count in rng.integers(1, 9, size=topics)]
    query_columns = {"query_id": names, "text": words, "kind": ["abcd"[i % 4] for i in range(topics)]}
    csv.write_csv(pa.table(query_columns), folder / "queries.csv")
    files = [str(folder / name) for name in ("qrels.parquet", *(f"run{number}.parquet" for number in range(runs)))]
    return [*files, "--queries", str(folder / "queries.csv"), "--attributes", str(folder / "queries.csv")]


def main() -> None:
    """Serve the files, measure the pages, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="QRELS RUN..., as for judged serve (default: simulated files)")
    parser.add_argument("--topics", type=int, default=7000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--depth", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = options.files or write_simulated_runs(Path(folder), options.topics, options.runs, options.depth)
        with chromium() as browser, served(files) as server:
            _measure(browser, server)


def _measure(browser: Any, server: Server) -> None:
    start = time.perf_counter()
    page = browser.new_context().new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{server.address}/leaderboard?curve=nDCG", wait_until="commit")
    page.wait_for_selector(".chart svg")
    chart = time.perf_counter() - start
    print(f"load {os.getloadavg()[0]:.1f}; address after {server.seconds:.2f} s, first chart {chart:.2f} s later")
    data = [page.request.get(f"{server.address}/api/v1/{name}").json() for name in ("open", "topics")]
    names = [row["name"] for row in data[0]["runs"]], [row["query_id"] for row in data[1]["topics"]]
    print(f"{len(names[0])} runs, {data[0]['n']} topics; first paint, seconds:")
    sizes: dict[str, int] = {}
    for path in pages(*names):
        times = [_first_paint(browser, server.address + path, sizes) for _ in range(1 + REPEATS)]
        (first, *later), stalls = zip(*times, strict=True)
        numbers = f"later {statistics.median(later):6.2f}, maximum {max(later):6.2f}"
        print(f"{path:60.60} first {first:6.2f}, {numbers}, stall {statistics.median(stalls):4.0f} ms", flush=True)
    print(f"server memory: peak {server.memory('VmHWM'):.0f} MB, now {server.memory('VmRSS'):.0f} MB")
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])
    print("largest responses, compressed:")
    for name, size in largest[:8]:
        print(f"{size / 1000:8.0f} kB {name}")


def _first_paint(browser: Any, address: str, sizes: dict[str, int]) -> tuple[float, float]:
    """Return seconds to the first paint, with an empty browser cache, and the longest stall in milliseconds."""
    context = browser.new_context(bypass_csp=True)  # playwright waits by eval
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function(f"!Number.isNaN({_PAINT})")
    for name, size in page.evaluate(_FETCHED):
        sizes[name] = max(sizes.get(name, 0), size)
    seconds, stall = page.evaluate(_PAINT) / 1000, page.evaluate(_STALL)
    context.close()
    return seconds, stall


if __name__ == "__main__":
    main()
