"""Create scores with known values: the reciprocal rank of one relevant document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged import evaluate

if TYPE_CHECKING:
    from judged.scoring.evaluation import Scores

DEPTH = 20


def lists(**ranks: list[int | None]) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, list[str]]]]:
    """Return qrels with one relevant document per topic, and runs that return it at these ranks.

    If a rank is 0, the run does not return the document. If it is None, the topic is missing from the run.
    """
    topics = len(next(iter(ranks.values())))
    qrels = {f"q{i:02}": {"rel": 1} for i in range(topics)}
    runs = {
        name: {f"q{i:02}": _list(rank) for i, rank in enumerate(places) if rank is not None}
        for name, places in ranks.items()
    }
    return qrels, runs


def _list(rank: int) -> list[str]:
    documents = [f"d{i}" for i in range(1, DEPTH)]
    return [*documents[: rank - 1], "rel", *documents[rank - 1 :]] if rank else documents


def scores(measures: object = "RR", topics: str = "qrels", **ranks: list[int | None]) -> Scores:
    """Evaluate the lists with these ranks."""
    return evaluate(*lists(**ranks), measures, topics=topics)
