"""Click models of a million pages: CPU seconds of each fit, and pages per second and step.

The argument is the number of pages. PyClick 0.2 fits 33,000 pages per second and step of PBM on a comparable machine.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

from judged.online.clicks import compare_models, fit_model
from judged.online.engine import Database
from judged.online.log import InteractionLog

_PYCLICK = 33_000
_STEPS = 50
_QUERIES, _DOCS, _RANKERS, _DEPTH = 2_000, 20, 6, 10


def simulate_log(pages: int) -> InteractionLog:
    """Simulate a log of PBM users: Zipf-distributed queries, each with one of six orders of its results."""
    rng = np.random.default_rng(1)
    weight = 1 / np.arange(1, _QUERIES + 1)
    query = rng.choice(_QUERIES, pages, p=weight / weight.sum())
    orders = np.argsort(rng.random((_RANKERS, _QUERIES, _DOCS)), axis=2)[:, :, :_DEPTH]
    docs = query[:, None] * _DOCS + orders[rng.integers(_RANKERS, size=pages), query]
    alpha = rng.beta(1, 4, _QUERIES * _DOCS)
    serp, click_position = np.nonzero(rng.random(docs.shape) < alpha[docs] / np.arange(1, _DEPTH + 1) ** 0.7)
    key, texts = np.arange(pages), pa.array([f"query number {i}" for i in range(_QUERIES)])
    ids = pa.array([f"doc{i}" for i in range(_QUERIES * _DOCS)])
    tables = {
        "serp": {"serp": key, "query_id": pa.array(key).cast(pa.string()), "session": key // 2, "user": key // 8,
                 "page": np.ones(pages, np.int32), "query_norm": texts.take(pa.array(query))},
        "shown": {"serp": np.repeat(key, _DEPTH), "rank": np.tile(np.arange(1, _DEPTH + 1, dtype=np.int32), pages),
                  "object_id": ids.take(pa.array(docs.ravel()))},
        "event": {"event": np.arange(len(serp)), "serp": serp, "rank": (click_position + 1).astype(np.int32),
                  "action": pa.array(["click"] * len(serp))},
        "session": {"session": [0]},
    }  # fmt: skip
    engine = Database()
    tables_by_name = {
        name: engine.keep(f"FROM {engine.register(pa.table(columns))}", name) for name, columns in tables.items()
    }
    return InteractionLog(**tables_by_name, has=frozenset({"shown", "clicks", "ranks", "unclicked"}))


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    log = simulate_log(pages)
    print(f"{pages:,} pages of {_DEPTH} results, at most {_STEPS} steps")
    print("CPU s, wall s, steps, million pages a CPU s and step")
    for shrink in ("none", "empirical"):
        for model in ("PBM", "UBM", "DBN", "CCM"):
            wall, cpu = time.perf_counter(), time.process_time()
            fit = fit_model(log, model, shrink=shrink, iterations=_STEPS)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            rate = pages * fit.iterations / cpu
            ratio_note = f"  {rate / _PYCLICK:,.0f} times PyClick's" if model == "PBM" else ""
            print(f"{model:4} {shrink:10} {cpu:6.2f} {wall:6.2f} {fit.iterations:4} {rate / 1e6:7.1f}{ratio_note}")
    if pages <= 100_000:
        cpu = time.process_time()
        best_model = compare_models(log, folds=2).selected
        print(f"comparison of all nine models in 2 folds: {best_model}, {time.process_time() - cpu:.1f} CPU s")


if __name__ == "__main__":
    main()
