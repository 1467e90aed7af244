"""What the benchmark runs: each subcommand is one tool doing one job, and prints what it found as JSON.

`python workers.py TOOL QRELS RUN` is a whole process: it reads both files, computes the five measures
and prints their means. judged itself is not here, because its own command does exactly this.
`python workers.py in-memory ROUNDS QRELS RUN` times calls on dicts that are already in memory.

Imports stand inside the functions: a process pays for its own tool only.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
_TREC_EVAL = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100")
_RANX = ("ndcg@10", "map", "mrr", "precision@10", "recall@100")


def pytrec_eval(qrels: str, run: str) -> dict[str, float]:
    import pytrec_eval as tool

    with open(qrels) as file:  # noqa: PTH123 - as its documentation does it
        judgments = tool.parse_qrel(file)
    with open(run) as file:  # noqa: PTH123
        rankings = tool.parse_run(file)
    return _means(tool.RelevanceEvaluator(judgments, set(_TREC_EVAL)).evaluate(rankings))


def ir_measures(qrels: str, run: str) -> dict[str, float]:
    import ir_measures as tool

    wanted = [tool.parse_measure(name) for name in MEASURES]
    found = tool.calc_aggregate(wanted, tool.read_trec_qrels(qrels), tool.read_trec_run(run))
    return {str(measure): value for measure, value in found.items()}


def ranx(qrels: str, run: str) -> dict[str, float]:
    import ranx as tool

    judgments = tool.Qrels.from_file(qrels, kind="trec")
    found: Any = tool.evaluate(judgments, tool.Run.from_file(run, kind="trec"), list(_RANX))
    return {ours: float(found[theirs]) for ours, theirs in zip(MEASURES, _RANX, strict=True)}


def in_memory(rounds: str, qrels: str, run: str) -> dict[str, Any]:
    """Time pytrec_eval and judged in turns on the same dicts; the means are taken outside the time."""
    import pytrec_eval as tool

    import judged

    with open(qrels) as file:  # noqa: PTH123
        grades = tool.parse_qrel(file)
    with open(run) as file:  # noqa: PTH123
        rankings = tool.parse_run(file)
    evaluator, judgments = tool.RelevanceEvaluator(grades, set(_TREC_EVAL)), judged.Qrels.of(grades)
    calls: dict[str, Callable[[], Any]] = {
        "judged": partial(judged.evaluate, judgments, rankings, MEASURES),
        "pytrec_eval": partial(evaluator.evaluate, rankings),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found: dict[str, Any] = {}
    for _ in range(int(rounds)):
        for name, call in calls.items():
            start = perf_counter()
            found[name] = call()
            seconds[name].append(perf_counter() - start)
    scores = found["judged"]
    means = {"judged": {name: scores.value(name) for name in MEASURES}, "pytrec_eval": _means(found["pytrec_eval"])}
    return {"seconds": seconds, "means": means}


def _means(topics: dict[str, dict[str, float]]) -> dict[str, float]:
    return {
        ours: fmean(scores[theirs] for scores in topics.values())
        for ours, theirs in zip(MEASURES, _TREC_EVAL, strict=True)
    }


WORKERS: dict[str, Callable[..., dict[str, Any]]] = {
    "pytrec_eval": pytrec_eval,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "in-memory": in_memory,
}

if __name__ == "__main__":
    print(json.dumps(WORKERS[sys.argv[1]](*sys.argv[2:])))
