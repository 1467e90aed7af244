"""Measure the workbench as its readers meet it: a server of its own, and Chromium before it.

From start to first chart, first paint of every page when it is asked for first and again, what pages fetch (packed),
and the memory of the server: over the files that are named, or over ten runs of 7,000 topics drawn by a seed.
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

AGAIN = 5
_PAINT = "performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint')?.startTime ?? NaN"
_FETCHED = """performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .map((one) => [new URL(one.name).pathname, one.encodedBodySize])"""


class Server(NamedTuple):
    """A workbench that runs."""

    address: str
    process: subprocess.Popen[str]
    seconds: float  # from the command to the address

    def memory(self, name: str) -> float:
        """Give megabytes: VmHWM, the most so far, or VmRSS, now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024


@contextmanager
def served(arguments: Sequence[str]) -> Iterator[Server]:
    """Serve files, and end."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "judged", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            found = (re.search(r"http://[^/]+", line) for line in process.stdout or ())
            address = next(one[0] for one in found if one)
            yield Server(address, process, time.perf_counter() - begun)
        finally:
            process.terminate()


def pages(runs: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Name the pages that are asked for."""
    first, second = (*runs, *runs)[:2]
    two = urlencode({"first": first, "second": second})
    return [
        "/",
        "/leaderboard",
        "/leaderboard?where=relevant >= 3",
        "/leaderboard?curve=nDCG",
        f"/compare?{two}",
        "/topics",
        "/topics?sort=-spread&page=2",
        *(f"/topic?{urlencode({'topic': topic})}&{two}" for topic in topics[:2]),
        f"/matrix?{urlencode({'run': first})}",
        f"/matrix?{urlencode({'run': first, 'baseline': second})}&by=relevant_band",
        "/slices?by=relevant_band",
        "/search?q=nDCG",
        "/choose",
        "/learn",
        f"/evaluator?{urlencode({'run': first, 'topic': topics[0]})}",
    ]


def drawn(folder: Path, topics: int, runs: int, depth: int, seed: int = 0) -> list[str]:
    """Write judgments and runs, graded, skewed, each run of another quality; give what they are served with."""
    rng = np.random.default_rng(seed)
    names, judged = [f"q{at:04}" for at in range(topics)], 20
    grade = rng.choice([0, 1, 2, 3], size=topics * judged, p=[0.7, 0.15, 0.1, 0.05])
    documents = [f"d{at}" for at in range(max(depth, judged))]
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
    known = {"query_id": names, "text": words, "kind": ["abcd"[at % 4] for at in range(topics)]}
    csv.write_csv(pa.table(known), folder / "queries.csv")
    place = [str(folder / name) for name in ("qrels.parquet", *(f"run{number}.parquet" for number in range(runs)))]
    return [*place, "--queries", str(folder / "queries.csv"), "--attributes", str(folder / "queries.csv")]


def main() -> None:
    """Serve, look, print."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("files", nargs="*", help="QRELS RUN..., as for judged serve; drawn ones without.")
    read.add_argument("--topics", type=int, default=7000)
    read.add_argument("--runs", type=int, default=10)
    read.add_argument("--depth", type=int, default=100)
    asked = read.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = asked.files or drawn(Path(folder), asked.topics, asked.runs, asked.depth)
        with chromium() as browser, served(files) as server:
            _measured(browser, server)


def _measured(browser: Any, server: Server) -> None:
    begun = time.perf_counter()
    page = browser.new_context().new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{server.address}/leaderboard", wait_until="commit")
    page.wait_for_selector(".chart svg")
    chart = time.perf_counter() - begun
    print(f"load {os.getloadavg()[0]:.1f}; address after {server.seconds:.2f} s, first chart {chart:.2f} s after that")
    data = [page.request.get(f"{server.address}/api/v1/{name}").json() for name in ("open", "topics")]
    names = [row["name"] for row in data[0]["runs"]], [row["query_id"] for row in data[1]["topics"]]
    print(f"{len(names[0])} runs, {data[0]['n']} topics; first paint, seconds:")
    sizes: dict[str, int] = {}
    for path in pages(*names):
        first, *later = (_painted(browser, server.address + path, sizes) for _ in range(1 + AGAIN))
        middle, most = statistics.median(later), max(later)
        print(f"{path:60.60} first {first:6.2f}, again {middle:6.2f}, at most {most:6.2f}", flush=True)
    print(f"memory of the server: {server.memory('VmHWM'):.0f} MB at most, {server.memory('VmRSS'):.0f} MB now")
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])
    print("fetched, packed, the largest of each address:")
    for name, size in largest[:8]:
        print(f"{size / 1000:8.0f} kB {name}")


def _painted(browser: Any, address: str, sizes: dict[str, int]) -> float:
    """Give the seconds from asking for a page to its first paint, with nothing kept by the browser before."""
    context = browser.new_context(bypass_csp=True)  # playwright waits by eval
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function(f"!Number.isNaN({_PAINT})")
    for name, size in page.evaluate(_FETCHED):
        sizes[name] = max(sizes.get(name, 0), size)
    seconds = page.evaluate(_PAINT) / 1000
    context.close()
    return seconds


if __name__ == "__main__":
    main()
