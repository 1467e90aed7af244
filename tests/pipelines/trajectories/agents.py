"""Simulated agents with planted defects, and random trajectories."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

Defect: TypeAlias = Literal["none", "corpus", "queries", "opened", "cited", "stopped", "looped"]


def simulated(
    defect: Defect, *, questions: int = 60, trials: int = 3, rate: float = 0.6, seed: int = 0, run: str = "agent"
) -> tuple[list[dict[str, Any]], dict[str, dict[str, int]], set[str]]:
    """Return trials of an agent with one planted defect, judgments, and the corpus.

    A sound agent finds the evidence at its fourth search, opens it, cites it, and answers right in 90% of the trials.
    With the defect, a share `rate` of the trials fails at that stage.
    """
    rng = np.random.default_rng(seed)
    qrels = {f"q{q}": {f"e{q}": 1} for q in range(questions)}
    gaps = {q for q in range(questions) if defect == "corpus" and rng.random() < rate}
    corpus = {f"e{q}" for q in range(questions) if q not in gaps} | {f"d{i}" for i in range(500)}
    records: list[dict[str, Any]] = []
    for q in range(questions):
        for _ in range(trials):
            is_bad, evidence = rng.random() < rate, f"e{q}"
            steps: list[dict[str, Any]] = []
            count = 1 if defect == "stopped" and is_bad else 5
            is_lost = q in gaps or (is_bad and defect in ("queries", "looped"))
            for t in range(1, count + 1):
                query = "same" if defect == "looped" and is_bad else f"query {t}"
                documents = [f"d{i}" for i in rng.choice(500, 5, replace=False)]
                if t == 4 and not is_lost:
                    documents[2] = evidence
                steps.append({"kind": "search", "query": query, "documents": documents, "tokens": 100})
            found = any(evidence in step["documents"] for step in steps)
            opens = found and not (defect == "opened" and is_bad)
            steps.append({"kind": "open", "documents": [evidence if opens else steps[0]["documents"][0]]})
            cites = opens and not (defect == "cited" and is_bad)
            right = cites and rng.random() < 0.9
            records.append({
                "query_id": f"q{q}", "run_id": run, "steps": steps, "answer": "yes", "correct": bool(right),
                "citations": [evidence] if cites else [steps[0]["documents"][1]],
            })  # fmt: skip
    return records, qrels, corpus


def random_trials(
    rng: np.random.Generator, questions: int = 3
) -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
    """Return random trials of a small world: repeated queries and documents, failures, and unrecorded lists."""
    documents = [f"d{i}" for i in range(8)]
    qrels = {
        f"q{q}": {doc: int(rng.integers(0, 4)) for doc in rng.choice(documents, rng.integers(0, 6), replace=False)}
        for q in range(questions)
    }
    records: list[dict[str, Any]] = []
    for q in range(questions):
        for _ in range(int(rng.integers(1, 4))):
            steps: list[dict[str, Any]] = []
            for _ in range(int(rng.integers(0, 6))):
                kind = str(rng.choice(["search", "search", "search", "open", "reason"]))
                step: dict[str, Any] = {"kind": kind}
                if kind == "search":
                    step["query"] = str(rng.choice(["Cat  food", "cat food", "dog", "bird"]))
                    step["documents"] = [str(d) for d in rng.choice(documents, rng.integers(0, 5), replace=False)]
                    if rng.random() < 0.1:
                        step |= {"failed": True, "documents": []}
                    elif rng.random() < 0.1:
                        del step["documents"]
                elif kind == "open":
                    step["documents"] = [str(rng.choice(documents))]
                steps.append(step)
            record: dict[str, Any] = {
                "query_id": f"q{q}", "steps": steps, "answer": "x", "correct": bool(rng.random() < 0.5),
                "citations": [str(d) for d in rng.choice(documents, rng.integers(0, 3), replace=False)],
            }  # fmt: skip
            if rng.random() < 0.8:
                record |= {"confidence": float(rng.integers(0, 11)) / 10, "tokens": int(rng.integers(1, 5000))}
            records.append(record)
    return records, qrels
