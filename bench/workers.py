"""What the benchmark runs: each subcommand is one tool doing one job, and prints what it found as JSON.

`python workers.py TOOL QRELS RUN` is a whole process: it reads both files, computes the five measures
and prints their means. judged itself is not here, because its own command does exactly this.
`python workers.py in-memory ROUNDS five|all QRELS RUN` times calls on dicts that are already in memory.

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


def in_memory(rounds: str, which: str, qrels: str, run: str) -> dict[str, Any]:
    """Time pytrec_eval and judged in turns on the same dicts; the means are taken outside the time.

    `which` is ``five`` measures, or ``all`` that pytrec_eval supports (the numbers among trec_eval 9's all_trec).
    """
    import pytrec_eval as tool

    import judged

    with open(qrels) as file:  # noqa: PTH123
        grades = tool.parse_qrel(file)
    with open(run) as file:  # noqa: PTH123
        rankings = tool.parse_run(file)
    ours, theirs = dict(zip(MEASURES, _TREC_EVAL, strict=True)), set(_TREC_EVAL)
    if which == "all":
        ours, theirs = _every_measure()
    evaluator, judgments = tool.RelevanceEvaluator(grades, theirs), judged.Qrels.of(grades)
    calls: dict[str, Callable[[], Any]] = {
        "judged": partial(judged.evaluate, judgments, rankings, list(ours)),
        "pytrec_eval": partial(evaluator.evaluate, rankings),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found: dict[str, Any] = {}
    for _ in range(int(rounds)):
        for name, call in calls.items():
            start = perf_counter()
            found[name] = call()
            seconds[name].append(perf_counter() - start)
    aggregates = found["judged"].aggregate()["run"]
    topics = found["pytrec_eval"].values()
    mean = [name for name in ours if judged.measures.parse(name).entry.aggregate == "mean"]
    means = {
        "judged": {name: aggregates[name] for name in mean},
        "pytrec_eval": {name: fmean(scores[ours[name]] for scores in topics) for name in mean},
    }
    return {"seconds": seconds, "means": means, "measures": len(ours)}


def _every_measure() -> tuple[dict[str, str], set[str]]:
    """Give all that pytrec_eval computes: our name to trec_eval's for each number, and the names to ask it for."""
    import pytrec_eval as tool

    from judged.peers.trec_eval import expand

    lines = [line for line in expand("all_trec", dialect="trec_eval-9") if line.measure is not None]
    ours = {str(line.measure): line.name for line in lines if line.root in tool.supported_measures}
    return ours, {line.root for line in lines} & set(tool.supported_measures)


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
