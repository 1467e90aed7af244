"""Time small calls: judged.arrays, and evaluate with prepared qrels, in medians of processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import judged
from judged import arrays

ROUNDS, CALLS = 15, 100


def main() -> None:
    """Print milliseconds a call for nDCG@10 of 32 queries x 10 documents."""
    rng = np.random.default_rng(0)
    scores, grades = rng.normal(size=(32, 10)), rng.integers(0, 4, (32, 10))
    run = {str(query): {f"d{doc}": score for doc, score in enumerate(row)} for query, row in enumerate(scores.tolist())}
    labels = {str(at): {f"d{doc}": grade for doc, grade in enumerate(row)} for at, row in enumerate(grades.tolist())}
    qrels = judged.Qrels.of(labels)
    jobs: dict[str, Callable[[], object]] = {
        "arrays, ties by position": lambda: arrays.ndcg(scores, grades, cutoff=10),
        "arrays, ties averaged": lambda: arrays.ndcg(scores, grades, cutoff=10, ties="averaged"),
        "evaluate, prepared qrels": lambda: judged.evaluate(qrels, run, "nDCG@10"),
        "evaluate, dicts": lambda: judged.evaluate(labels, run, "nDCG@10"),
    }
    samples: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            begin = time.process_time()
            for _ in range(CALLS):
                job()
            samples[name].append((time.process_time() - begin) / CALLS * 1000)
    for name, found in samples.items():
        print(f"{name:26} {statistics.median(found):.3f} ms")


if __name__ == "__main__":
    main()
