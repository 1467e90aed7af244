"""Measure how long each page of the workbench takes with ten runs over 7,000 topics: first, and asked again.

Times are those of a whole answer, HTML or JSON, of the application itself, without a network. Data are drawn by a seed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

from judged import Qrels, Run
from judged.web.app import make_app
from judged.web.workspace import Workspace, open_workspace

PAGES = (
    "/",
    "/leaderboard",
    "/leaderboard?where=words %3E 4",
    "/leaderboard?curve=nDCG",
    "/compare?first=run0&second=run5",
    "/topics",
    "/topics?sort=-spread&page=20",
    "/topic?topic=q0042&first=run0&second=run5",
    "/topic?topic=q0043&first=run0&second=run5",
    "/matrix?run=run0",
    "/matrix?run=run0&baseline=run5&by=kind",
    "/slices?by=kind",
    "/slices?by=words&run=run0",
    "/choose",
    "/evaluator?run=run0&topic=q0042",
)


def made(topics: int, runs: int, depth: int, seed: int = 0) -> Workspace:
    """Draw judgments and runs: graded, skewed, each run of another quality."""
    rng = np.random.default_rng(seed)
    names = [f"q{at:04}" for at in range(topics)]
    judged = 20
    query = np.repeat(names, judged)
    doc = [f"d{at}" for at in np.tile(np.arange(judged), topics)]
    grade = rng.choice([0, 1, 2, 3], size=topics * judged, p=[0.7, 0.15, 0.1, 0.05]).astype(float)
    qrels = Qrels(pa.table({"query_id": query, "doc_id": doc, "relevance": grade}))
    worth = grade.reshape(topics, judged)
    given: dict[str, Run] = {}
    for number in range(runs):
        noise = rng.normal(size=(topics, depth)) * (1 + number / runs)
        noise[:, :judged] += worth
        columns = {
            "query_id": np.repeat(names, depth),
            "doc_id": [f"d{at}" for at in np.tile(np.arange(depth), topics)],
            "score": noise.ravel(),
        }
        given[f"run{number}"] = Run.of(pa.table(columns), name=f"run{number}")
    words = rng.integers(1, 9, size=topics)
    queries: dict[str, Any] = {
        name: {"text": " ".join(["word"] * int(count)), "kind": "abcd"[at % 4], "domain": f"domain {at % 8}"}
        for at, (name, count) in enumerate(zip(names, words, strict=True))
    }
    from judged import Topics

    known = Topics.of(queries)
    return open_workspace(qrels, given, queries=known, attributes=known, title="made")


def main() -> None:
    """Draw, ask, print."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--topics", type=int, default=7000)
    read.add_argument("--runs", type=int, default=10)
    read.add_argument("--depth", type=int, default=100)
    asked = read.parse_args()
    workspace = made(asked.topics, asked.runs, asked.depth)
    client = TestClient(make_app(workspace), base_url="http://127.0.0.1")
    print(f"{asked.runs} runs, {asked.topics} topics, {asked.depth} documents each; load {os.getloadavg()[0]:.1f}")
    for path in PAGES:
        times = [_seconds(client, path) for _ in range(6)]
        print(f"{path:48} first {times[0]:6.2f} s, again {1000 * sorted(times[1:])[2]:6.0f} ms")


def _seconds(client: Any, path: str) -> float:
    begun = time.perf_counter()
    answer = client.get(path)
    if answer.status_code != 200:
        raise SystemExit(f"{path}: {answer.status_code}")
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
