"""Second implementation of the measures of trajectories: plain loops over the records of one trial."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

Record = dict[str, Any]


def searches(trial: Record) -> list[Record]:
    return [step for step in trial["steps"] if step["kind"] == "search"]


def listed(step: Record) -> list[str]:
    return step.get("documents") or []


def seen(trial: Record, k: float = math.inf) -> list[str]:
    order: list[str] = []
    for t, step in enumerate(searches(trial), 1):
        order += [doc for doc in listed(step) if t <= k and doc not in order]
    return order


def relevant(qrels: dict[str, int], rel: float) -> set[str]:
    return {doc for doc, grade in qrels.items() if grade >= rel}


def seen_recall(trial: Record, qrels: dict[str, int], k: float = math.inf, rel: float = 1) -> float:
    wanted = relevant(qrels, rel)
    return len(wanted & set(seen(trial, k))) / len(wanted) if wanted else math.nan


def seen_precision(trial: Record, qrels: dict[str, int], k: float = math.inf, rel: float = 1) -> float:
    docs = seen(trial, k)
    return len(relevant(qrels, rel) & set(docs)) / len(docs) if docs else 0.0


def dcg(gains: list[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def seen_ndcg(trial: Record, qrels: dict[str, int], k: float = math.inf) -> float:
    ideal = dcg(sorted(qrels.values(), reverse=True))
    return dcg([qrels.get(doc, 0) for doc in seen(trial, k)]) / ideal if ideal else math.nan


def to_evidence(trial: Record, qrels: dict[str, int], rel: float, *, every: bool) -> float:
    wanted = relevant(qrels, rel)
    if not wanted:
        return math.nan
    count = len(searches(trial))
    for t in range(1, count + 1):
        if len(wanted & set(seen(trial, t))) >= (len(wanted) if every else 1):
            return t
    return count + 1


def flags(trial: Record, qrels: dict[str, int], rel: float) -> list[set[str]]:
    """Return the kinds of waste of each search."""
    wanted, result = relevant(qrels, rel), list[set[str]]()
    used = set(trial["citations"]) | {doc for step in trial["steps"] if step["kind"] == "open" for doc in listed(step)}
    earlier: list[Record] = []
    for t, step in enumerate(searches(trial), 1):
        before, after = wanted & set(seen(trial, t - 1)), wanted & set(seen(trial, t))
        kinds, failed = set[str](), bool(step.get("failed"))
        if before == after and after < wanted and not failed and "documents" in step:
            kinds.add("redundant")
        if wanted and before == wanted:
            kinds.add("late")
        if not used & set(listed(step)):
            kinds.add("unused")
        for other in earlier:
            same_query = other["query"].lower().split() == step["query"].lower().split()
            if not failed and (same_query or (listed(step) and listed(other) == listed(step))):
                kinds.add("repeated")
        if not failed:
            earlier.append(step)
        result.append(kinds)
    return result


def weight(rank: int, number: int, b: float, bq: float, form: str) -> float:
    if form == "trec":
        return 1 / (math.log(rank + b - 1, b) * math.log(number + bq - 1, bq))
    return 1 / (max(1.0, math.log(rank, b)) * (1 + math.log(number, bq)))


def session_dcg(
    trial: Record, qrels: dict[str, int], *, cutoff: float = math.inf, b: float = 2, bq: float = 4,
    form: str = "original", repeats: bool = False,
) -> float:  # fmt: skip
    total, known = 0.0, set[str]()
    for number, step in enumerate(searches(trial), 1):
        for rank, doc in enumerate(listed(step), 1):
            if rank <= cutoff and (repeats or doc not in known):
                total += qrels.get(doc, 0) * weight(rank, number, b, bq, form)
            known.add(doc)
    return total


def ideal_session(
    trial: Record, qrels: dict[str, int], *, cutoff: float = math.inf, b: float = 2, bq: float = 4,
    form: str = "original", repeats: bool = False,
) -> float:  # fmt: skip
    grades = sorted(qrels.values(), reverse=True)
    if repeats:
        return sum(
            grade * weight(rank, number, b, bq, form)
            for number, step in enumerate(searches(trial), 1)
            for rank, (grade, _) in enumerate(zip(grades, listed(step), strict=False), 1) if rank <= cutoff
        )  # fmt: skip
    weights = [
        weight(rank, number, b, bq, form)
        for number, step in enumerate(searches(trial), 1)
        for rank in range(1, len(listed(step)) + 1) if rank <= cutoff
    ]  # fmt: skip
    return sum(grade * w for grade, w in zip(grades, sorted(weights, reverse=True), strict=False))


def drawn(rights: list[bool], k: int, *, every: bool) -> float:
    draws = list(combinations(rights, k))
    return sum(all(draw) if every else any(draw) for draw in draws) / len(draws)
