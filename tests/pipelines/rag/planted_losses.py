"""Answers whose evidence is lost by known shares at each step: what the waterfall has to find again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

CHAIN = ("corpus", "retrieved", "ranked", "context", "cited", "supported", "covered")
OF_ANSWERS = ("correct", "satisfied")


class Planted(NamedTuple):
    """What `waterfall` takes."""

    responses: dict[str, list[dict[str, Any]]]
    qrels: dict[str, dict[str, int]]
    runs: dict[str, dict[str, dict[str, float]]]
    corpus: list[str]


def planted(
    losses: Mapping[str, Mapping[str, float]],
    *,
    topics: int = 40,
    relevant: int = 4,
    spread: float = 20.0,
    seed: int = 0,
) -> Planted:
    """Lose relevant documents, each with one nugget, by system and step; shares vary over topics (beta).

    Systems share corpus and retrieval: those of the first one count. The larger `spread`, the more alike topics are.
    """
    rng = np.random.default_rng(seed)
    names = "answers context citations support nuggets evidence assignments correctness feedback"
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in names.split()}
    qrels, first, last, corpus = {}, {}, {}, list[str]()

    def kept(loss: float, count: int) -> Any:
        share = rng.beta(spread * (1 - loss), spread * loss) if 0 < loss < 1 else 1 - loss
        return rng.random(count) < share

    shared = next(iter(losses.values()))
    for at in range(topics):
        topic = f"q{at:03}"
        docs = [f"{topic}-{place}" for place in range(relevant)]
        qrels[topic] = dict.fromkeys(docs, 1)
        there, found, ranked = (kept(shared.get(step, 0.0), relevant) for step in CHAIN[:3])
        corpus += [doc for doc, keep in zip(docs, there, strict=True) if keep]
        found &= there
        first[topic] = {doc: 1.0 - place / 10 for place, doc in enumerate(docs) if found[place]} | {"other": -1.0}
        last[topic] = {doc: score for doc, score in first[topic].items() if doc == "other" or ranked[docs.index(doc)]}
        tables["nuggets"] += [{"query_id": topic, "nugget_id": doc} for doc in docs]
        tables["evidence"] += [{"query_id": topic, "nugget_id": doc, "doc_id": doc} for doc in docs]
        for run, own in losses.items():
            answer = {"query_id": topic, "run_id": run}
            tables["answers"].append({**answer, "text": "x"})
            given, cited, supported, covered = (kept(own.get(step, 0.0), relevant) for step in CHAIN[3:])
            for place, doc in enumerate(docs):
                if found[place] and ranked[place] and given[place]:
                    tables["context"].append({**answer, "doc_id": doc})
                    if cited[place]:
                        tables["citations"].append({**answer, "sentence": place, "doc_id": doc})
                        verdict = "support" if supported[place] else "not"
                        tables["support"].append({**answer, "sentence": place, "doc_id": doc, "verdict": verdict})
                verdict = "support" if covered[place] else "not"
                tables["assignments"].append({**answer, "nugget_id": doc, "verdict": verdict})
            correct, satisfied = (bool(kept(own.get(step, 0.0), 1)[0]) for step in OF_ANSWERS)
            tables["correctness"].append({**answer, "verdict": "support" if correct else "not"})
            tables["feedback"].append({**answer, "satisfied": satisfied})
    return Planted(tables, qrels, {"first": first, "last": last}, corpus)
