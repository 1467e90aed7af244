"""Time nDCG@10 of judged.arrays and of the installed ones of scikit-learn, torchmetrics, and rax, in one process.

Prints Markdown: median processor time in ms of a call in one thread, and its ratio to judged.
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring import arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS, WORK = 9, 20_000
SHAPES = ((32, 10), (256, 100), (256, 1000))
Row = tuple[str, "Callable[[], object]", str, "Callable[[], object]"]


def main() -> None:
    """Print a table for the installed libraries."""
    names = [name for name in ("scikit-learn", "torch", "torchmetrics", "jax", "rax") if find_spec(_module(name))]
    print(", ".join(f"{name} {version(name)}" for name in ("numpy", *names)))
    print(
        "| queries x documents | judged.arrays | ms | other library | times judged |\n| --- | --- | ---: | --- | ---: |"
    )
    for shape in SHAPES:
        rng = np.random.default_rng(0)
        scores, grades = rng.normal(size=shape).astype(np.float32), rng.integers(0, 4, shape)
        calls = max(1, WORK // scores.size)
        for our_name, our_call, their_name, their_call in _pairs(scores, grades, names):
            our_seconds, their_seconds = _times(our_call, their_call, calls)
            ratio = their_seconds / our_seconds
            row = (f"{shape[0]} x {shape[1]}", our_name, f"{our_seconds * 1e3:.2f}", their_name, f"{ratio:.1f}")
            print(f"| {' | '.join(row)} |", flush=True)


def _pairs(scores: Any, grades: Any, names: list[str]) -> Iterator[Row]:
    position, averaged = (partial(arrays.ndcg, cutoff=10, ties=ties) for ties in ("position", "averaged"))
    if "scikit-learn" in names:
        from sklearn.metrics import ndcg_score

        scikit_ndcg = partial(ndcg_score, grades, scores, k=10)
        yield "NumPy, averaged", partial(averaged, scores, grades), "`ndcg_score`", scikit_ndcg
        their_call = partial(scikit_ndcg, ignore_ties=True)
        yield "NumPy, position", partial(position, scores, grades), "`ndcg_score(ignore_ties=True)`", their_call
    if "torchmetrics" in names:
        import torch
        from torchmetrics.retrieval import RetrievalNormalizedDCG

        torch.set_num_threads(1)
        tensors = torch.asarray(scores), torch.asarray(grades)
        index = torch.arange(len(scores)).repeat_interleave(scores.shape[1])
        metric = RetrievalNormalizedDCG(top_k=10)
        their_call = partial(metric, tensors[0].flatten(), tensors[1].flatten(), indexes=index)
        yield "PyTorch, averaged", partial(averaged, *tensors), "`RetrievalNormalizedDCG`", their_call
        compiled = torch.compile(averaged)
        yield (
            "PyTorch, averaged",
            partial(averaged, *tensors),
            "`judged.arrays` under `torch.compile`",
            partial(compiled, *tensors),
        )
    if "rax" in names:
        import jax
        import rax

        tensors = jax.numpy.asarray(scores), jax.numpy.asarray(grades, dtype=scores.dtype)
        our_call = partial(jax.jit(partial(position, gain="exp2")), *tensors)
        their_call = partial(jax.jit(partial(rax.ndcg_metric, topn=10, reduce_fn=None)), *tensors)
        yield "JAX under `jit`, position", our_call, "`rax.ndcg_metric` under `jit`", their_call


def _times(first: Callable[[], object], second: Callable[[], object], calls: int) -> tuple[float, float]:
    """Return the median time of each of two alternating calls."""
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS + 1):
        for call, times in zip((first, second), seconds, strict=True):
            start = process_time()
            for _ in range(calls):
                result = call()
            getattr(result, "block_until_ready", lambda: None)()
            times.append((process_time() - start) / calls)
    return median(seconds[0][1:]), median(seconds[1][1:])  # the first round compiles


def _module(name: str) -> str:
    return {"scikit-learn": "sklearn"}.get(name, name)


if __name__ == "__main__":
    main()
