"""Run one job of one tool per subcommand, and print its result as JSON.

`python workers.py TOOL QRELS RUN` reads both files, computes the five measures, and prints their means. There is no
subcommand for judged, because its own command does the same. `python workers.py in-memory ROUNDS five|all QRELS RUN`
times calls on dicts in memory, and `python workers.py small-calls ROUNDS` times calls for a batch of a training loop.

Imports are inside the functions, so that a process imports only its own tool.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from statistics import fmean
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
_TREC_EVAL = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100")
_CALLS = 100
_RANX = ("ndcg@10", "map", "mrr", "precision@10", "recall@100")


def pytrec_eval(qrels: str, *runs: str) -> dict[str, float]:
    """Evaluate runs; return the means over all runs."""
    import pytrec_eval as tool

    with open(qrels) as file:  # noqa: PTH123 - as in its documentation
        evaluator = tool.RelevanceEvaluator(tool.parse_qrel(file), set(_TREC_EVAL))
    means: list[dict[str, float]] = []
    for run in runs:
        with open(run) as file:  # noqa: PTH123
            means.append(_means(evaluator.evaluate(tool.parse_run(file))))
    return {name: fmean(run_means[name] for run_means in means) for name in MEASURES}


def trec_eval(qrels: str, run: str) -> dict[str, float]:
    """Call the C code of trec_eval 9.0.8, which pytrec_eval contains, like its main program."""
    import ctypes
    from pathlib import Path

    import pytrec_eval_ext

    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from trec_eval_c import evaluated

    names = ("ndcg_cut", "map", "recip_rank", "P", "recall")
    return _means(evaluated(ctypes.CDLL(pytrec_eval_ext.__file__), Path(qrels), Path(run), "qrels", names))


def floor(_: str, run: str) -> dict[str, float]:
    """Parse the three columns that each evaluation needs, with threads. This is the lower bound of all tools."""
    import pyarrow as pa
    from pyarrow import csv

    table = csv.read_csv(
        run,
        csv.ReadOptions(column_names=["query_id", "Q0", "doc_id", "rank", "score", "run_id"], block_size=1 << 21),
        csv.ParseOptions(delimiter=" ", quote_char=False),
        csv.ConvertOptions(
            include_columns=["query_id", "doc_id", "score"],
            column_types={"query_id": pa.string(), "doc_id": pa.string(), "score": pa.float64()},
            null_values=[],
            check_utf8=False,
        ),
    )
    return {"rows": table.num_rows}


def ir_measures(qrels: str, run: str) -> dict[str, float]:
    import ir_measures as tool

    measures = [tool.parse_measure(name) for name in MEASURES]
    values = tool.calc_aggregate(measures, tool.read_trec_qrels(qrels), tool.read_trec_run(run))
    return {str(measure): value for measure, value in values.items()}


def ranx(qrels: str, run: str) -> dict[str, float]:
    import ranx as tool

    judgments = tool.Qrels.from_file(qrels, kind="trec")
    means: Any = tool.evaluate(judgments, tool.Run.from_file(run, kind="trec"), list(_RANX))
    return {judged_names: float(means[peer_names]) for judged_names, peer_names in zip(MEASURES, _RANX, strict=True)}


def in_memory(rounds: str, measure_set: str, qrels: str, run: str) -> dict[str, Any]:
    """Time alternating calls of pytrec_eval and judged on the same dicts, without the computation of means.

    `measure_set` is ``five``, or ``all`` for each measure of trec_eval 9's all_trec that pytrec_eval supports.
    """
    import pytrec_eval as tool

    import judged

    with open(qrels) as file:  # noqa: PTH123
        grades = tool.parse_qrel(file)
    with open(run) as file:  # noqa: PTH123
        rankings = tool.parse_run(file)
    judged_names, peer_names = dict(zip(MEASURES, _TREC_EVAL, strict=True)), set(_TREC_EVAL)
    if measure_set == "all":
        judged_names, peer_names = _all_measures()
    evaluator, judgments = tool.RelevanceEvaluator(grades, peer_names), judged.Qrels.of(grades)
    calls: dict[str, Callable[[], Any]] = {
        "judged": partial(judged.evaluate, judgments, rankings, list(judged_names)),
        "pytrec_eval": partial(evaluator.evaluate, rankings),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    for _ in range(int(rounds)):
        for name, call in calls.items():
            start = perf_counter()
            results[name] = call()
            seconds[name].append(perf_counter() - start)
    aggregates = results["judged"].aggregate()["run"]
    topics = results["pytrec_eval"].values()
    mean = [name for name in judged_names if judged.measures.parse(name).entry.aggregate == "mean"]
    means = {
        "judged": {name: aggregates[name] for name in mean},
        "pytrec_eval": {name: fmean(scores[judged_names[name]] for scores in topics) for name in mean},
    }
    return {"seconds": seconds, "means": means, "measures": len(judged_names)}


def small_calls(rounds: str) -> dict[str, list[float]]:
    """Time nDCG@10 of 32 queries x 10 documents: processor seconds per call, in each round."""
    import numpy as np

    import judged
    from judged.scoring import arrays

    rng = np.random.default_rng(0)
    scores, grades = rng.normal(size=(32, 10)), rng.integers(0, 4, (32, 10))
    run = {str(query): {f"d{doc}": score for doc, score in enumerate(row)} for query, row in enumerate(scores.tolist())}
    labels = {
        str(query): {f"d{doc}": grade for doc, grade in enumerate(row)} for query, row in enumerate(grades.tolist())
    }
    qrels = judged.Qrels.of(labels)
    jobs: dict[str, Callable[[], object]] = {
        "judged.arrays, ties by position": partial(arrays.ndcg, scores, grades, cutoff=10),
        "judged.arrays, ties averaged": partial(arrays.ndcg, scores, grades, cutoff=10, ties="averaged"),
        "judged.evaluate, prepared qrels": partial(judged.evaluate, qrels, run, "nDCG@10"),
        "judged.evaluate, dicts": partial(judged.evaluate, labels, run, "nDCG@10"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(int(rounds)):
        for name, job in jobs.items():
            start = process_time()
            for _ in range(_CALLS):
                job()
            seconds[name].append((process_time() - start) / _CALLS)
    return seconds


def _all_measures() -> tuple[dict[str, str], set[str]]:
    """Return all measures of pytrec_eval: our names by trec_eval's, and the names to request."""
    import pytrec_eval as tool

    from judged.scoring.peers.trec_eval import expand

    lines = [line for line in expand("all_trec", dialect="trec_eval-9") if line.measure is not None]
    judged_names = {str(line.measure): line.name for line in lines if line.root in tool.supported_measures}
    return judged_names, {line.root for line in lines} & set(tool.supported_measures)


def _means(topics: dict[str, dict[str, float]]) -> dict[str, float]:
    return {
        judged_names: fmean(scores[peer_names] for scores in topics.values())
        for judged_names, peer_names in zip(MEASURES, _TREC_EVAL, strict=True)
    }


WORKERS: dict[str, Callable[..., Any]] = {
    "pytrec_eval": pytrec_eval,
    "trec_eval": trec_eval,
    "floor": floor,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "in-memory": in_memory,
    "small-calls": small_calls,
}

if __name__ == "__main__":
    print(json.dumps(WORKERS[sys.argv[1]](*sys.argv[2:])))
