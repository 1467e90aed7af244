"""Simulated RAG answers with a known share of evidence lost at each step, as ground truth for the waterfall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

CHAIN = ("corpus", "retrieved", "ranked", "context", "cited", "supported", "covered")
ANSWER_STEPS = ("correct", "satisfied")


class Planted(NamedTuple):
    """Arguments of `waterfall`."""

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
    """Simulate losses of relevant documents, each with one nugget, by system and step.

    Shares vary over topics (beta distribution; a larger `spread` means less variation). Systems share corpus and
    retrieval, with the losses of the first system.
    """
    rng = np.random.default_rng(seed)
    names = "answers context citations support nuggets evidence assignments correctness feedback"
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in names.split()}
    qrels, first_stage, last_stage, corpus = {}, {}, {}, list[str]()

    def sample_passed(loss: float, count: int) -> Any:
        share = rng.beta(spread * (1 - loss), spread * loss) if 0 < loss < 1 else 1 - loss
        return rng.random(count) < share

    shared_losses = next(iter(losses.values()))
    for topic_index in range(topics):
        topic = f"q{topic_index:03}"
        docs = [f"{topic}-{i}" for i in range(relevant)]
        qrels[topic] = dict.fromkeys(docs, 1)
        in_corpus, is_retrieved, is_ranked = (
            sample_passed(shared_losses.get(step, 0.0), relevant) for step in CHAIN[:3]
        )
        corpus += [doc for doc, is_in_corpus in zip(docs, in_corpus, strict=True) if is_in_corpus]
        is_retrieved &= in_corpus
        first_stage[topic] = {doc: 1.0 - i / 10 for i, doc in enumerate(docs) if is_retrieved[i]} | {"other": -1.0}
        last_stage[topic] = {
            doc: score for doc, score in first_stage[topic].items() if doc == "other" or is_ranked[docs.index(doc)]
        }
        tables["nuggets"] += [{"query_id": topic, "nugget_id": doc} for doc in docs]
        tables["evidence"] += [{"query_id": topic, "nugget_id": doc, "doc_id": doc} for doc in docs]
        for run, run_losses in losses.items():
            answer = {"query_id": topic, "run_id": run}
            tables["answers"].append({**answer, "text": "x"})
            in_context, is_cited, is_supported, is_covered = (
                sample_passed(run_losses.get(step, 0.0), relevant) for step in CHAIN[3:]
            )
            for i, doc in enumerate(docs):
                if is_retrieved[i] and is_ranked[i] and in_context[i]:
                    tables["context"].append({**answer, "doc_id": doc})
                    if is_cited[i]:
                        tables["citations"].append({**answer, "sentence": i, "doc_id": doc})
                        verdict = "support" if is_supported[i] else "not"
                        tables["support"].append({**answer, "sentence": i, "doc_id": doc, "verdict": verdict})
                verdict = "support" if is_covered[i] else "not"
                tables["assignments"].append({**answer, "nugget_id": doc, "verdict": verdict})
            correct, satisfied = (bool(sample_passed(run_losses.get(step, 0.0), 1)[0]) for step in ANSWER_STEPS)
            tables["correctness"].append({**answer, "verdict": "support" if correct else "not"})
            tables["feedback"].append({**answer, "satisfied": satisfied})
    return Planted(tables, qrels, {"first": first_stage, "last": last_stage}, corpus)
