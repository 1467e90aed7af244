"""Time nDCG@10 of judged.arrays beside scikit-learn, torchmetrics and rax: those that are installed, in one process.

Prints Markdown: processor milliseconds of one thread's call (medians), and how many times as long as judged it takes.
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
    """Print a table for whatever is installed."""
    names = [name for name in ("scikit-learn", "torch", "torchmetrics", "jax", "rax") if find_spec(_module(name))]
    print(", ".join(f"{name} {version(name)}" for name in ("numpy", *names)))
    print("| queries x documents | judged.arrays | ms | beside it | times judged |\n| --- | --- | ---: | --- | ---: |")
    for shape in SHAPES:
        rng = np.random.default_rng(0)
        scores, grades = rng.normal(size=shape).astype(np.float32), rng.integers(0, 4, shape)
        calls = max(1, WORK // scores.size)
        for ours, call, theirs, other in _pairs(scores, grades, names):
            one, two = _times(call, other, calls)
            print(f"| {shape[0]} x {shape[1]} | {ours} | {one * 1e3:.2f} | {theirs} | {two / one:.1f} |", flush=True)


def _pairs(scores: Any, grades: Any, names: list[str]) -> Iterator[Row]:
    position, averaged = (partial(arrays.ndcg, cutoff=10, ties=ties) for ties in ("position", "averaged"))
    if "scikit-learn" in names:
        from sklearn.metrics import ndcg_score

        their = partial(ndcg_score, grades, scores, k=10)
        yield "NumPy, averaged", partial(averaged, scores, grades), "`ndcg_score`", their
        other = partial(their, ignore_ties=True)
        yield "NumPy, position", partial(position, scores, grades), "`ndcg_score(ignore_ties=True)`", other
    if "torchmetrics" in names:
        import torch
        from torchmetrics.retrieval import RetrievalNormalizedDCG

        torch.set_num_threads(1)
        given = torch.asarray(scores), torch.asarray(grades)
        index = torch.arange(len(scores)).repeat_interleave(scores.shape[1])
        metric = RetrievalNormalizedDCG(top_k=10)
        other = partial(metric, given[0].flatten(), given[1].flatten(), indexes=index)
        yield "PyTorch, averaged", partial(averaged, *given), "`RetrievalNormalizedDCG`", other
        compiled = torch.compile(averaged)
        yield (
            "PyTorch, averaged",
            partial(averaged, *given),
            "the same under `torch.compile`",
            partial(compiled, *given),
        )
    if "rax" in names:
        import jax
        import rax

        given = jax.numpy.asarray(scores), jax.numpy.asarray(grades, dtype=scores.dtype)
        ours = partial(jax.jit(partial(position, gain="exp2")), *given)
        theirs = partial(jax.jit(partial(rax.ndcg_metric, topn=10, reduce_fn=None)), *given)
        yield "JAX under `jit`, position", ours, "`rax.ndcg_metric` under `jit`", theirs


def _times(first: Callable[[], object], second: Callable[[], object], calls: int) -> tuple[float, float]:
    """Take the median time of each, in turns."""
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS + 1):
        for call, taken in zip((first, second), seconds, strict=True):
            start = process_time()
            for _ in range(calls):
                made = call()
            getattr(made, "block_until_ready", lambda: None)()
            taken.append((process_time() - start) / calls)
    return median(seconds[0][1:]), median(seconds[1][1:])  # the first round compiles


def _module(name: str) -> str:
    return {"scikit-learn": "sklearn"}.get(name, name)


if __name__ == "__main__":
    main()
