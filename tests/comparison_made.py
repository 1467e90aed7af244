"""Scores made to order: the reciprocal rank of one relevant document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged import evaluate

if TYPE_CHECKING:
    from judged.scoring.evaluation import Scores

DEPTH = 20


def lists(**ranks: list[int | None]) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, list[str]]]]:
    """Give qrels with one relevant document a topic, and runs that return it at these ranks; 0: not at all.

    None: the run lacks the topic.
    """
    topics = len(next(iter(ranks.values())))
    qrels = {f"q{at:02}": {"rel": 1} for at in range(topics)}
    runs = {
        name: {f"q{at:02}": _list(rank) for at, rank in enumerate(places) if rank is not None}
        for name, places in ranks.items()
    }
    return qrels, runs


def _list(rank: int) -> list[str]:
    documents = [f"d{at}" for at in range(1, DEPTH)]
    return [*documents[: rank - 1], "rel", *documents[rank - 1 :]] if rank else documents


def scores(measures: object = "RR", topics: str = "qrels", **ranks: list[int | None]) -> Scores:
    """Evaluate such lists."""
    return evaluate(*lists(**ranks), measures, topics=topics)
