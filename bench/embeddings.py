"""Time exact search and evaluation of embeddings, as ratios to the NumPy product and partition they need.

500 queries, 10,000 documents, 256 dimensions, k = 100; the best of five runs. Encoding is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from judged.scoring.evaluation.embeddings import evaluate_embeddings, nearest

QUERIES, DOCUMENTS, DIMENSIONS, K = 500, 10_000, 256, 100


def main() -> None:
    source = np.random.default_rng(0)
    queries, documents = (source.standard_normal((n, DIMENSIONS)).astype(np.float32) for n in (QUERIES, DOCUMENTS))
    vectors = {**{f"q{i}": row for i, row in enumerate(queries)}, **{f"d{i}": row for i, row in enumerate(documents)}}
    query_texts = {f"q{i}": f"q{i}" for i in range(QUERIES)}
    document_texts = {f"d{i}": f"d{i}" for i in range(DOCUMENTS)}
    qrels = {name: {f"d{j}": 1 for j in source.integers(0, DOCUMENTS, 20)} for name in query_texts}

    def encode(texts: list[str]) -> Any:
        return np.stack([vectors[text] for text in texts])

    def product() -> None:
        np.argpartition(queries @ documents.T, DOCUMENTS - K, axis=1)

    def call() -> None:
        evaluate_embeddings(encode, query_texts, document_texts, qrels, ["nDCG@10", "R@100"], cutoff=K)

    base, encoding = _best(product), _best(lambda: (encode(list(query_texts)), encode(list(document_texts))))
    print(f"search: {_best(lambda: nearest(queries, documents, K)) / base:.2f} times product and partition")
    print(f"whole call without encoding: {(_best(call) - encoding) / base:.2f} times product and partition")


def _best(function: Callable[[], object]) -> float:
    seconds = list[float]()
    for _ in range(5):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
