"""History of the sample: thirty nights of one ranker, with noise, a change of the judgments, and a worse version."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from judged.data import sample
from judged.data.qrels import Qrels
from judged.history.store import HistoryStore

_NIGHTS = 30
_RELEASES = (1, 16)  # nights
_MORE_JUDGMENTS, _WORSE = 12, 21  # first nights with more judgments, and with a worse version
_NOISE = 0.03  # standard deviation of the score of a document, as a share of it


def write_sample_history(path: str | Path) -> None:
    """Write the history: an SQLite file. Nights before the change of the judgments omit every twentieth judgment."""
    runs = {run.name: run.table.to_pylist() for run in sample.runs() if run.name in {"bm25", "tfidf"}}
    qrels = sample.qrels()
    fewer = Qrels.of(qrels.table.filter([row % 20 > 0 for row in range(len(qrels))]))
    random = Random(1)  # noqa: S311  no secret
    store = HistoryStore.open(path, new=True)
    for night in range(1, _NIGHTS + 1):
        rows = runs["bm25" if night < _WORSE else "tfidf"]
        noisy = [(row["query_id"], row["doc_id"], row["score"] * random.gauss(1.0, _NOISE)) for row in rows]
        ranking: dict[str, dict[str, float]] = {}
        for query_id, doc_id, score in noisy:
            ranking.setdefault(query_id, {})[doc_id] = score
        store.add(
            qrels if night >= _MORE_JUDGMENTS else fewer,
            {"bm25": ranking},
            ["nDCG@10", "AP"],
            time=f"2026-03-{night:02d}T02:00",
            commit=f"{night // 5:07x}",
            tag="release" if night in _RELEASES else "",
        )
    store.close()


@cache
def sample_history() -> HistoryStore:
    """Open the history of the sample in a temporary folder, which is removed at the end of the process."""
    path = Path(_folder().name) / "history.db"
    write_sample_history(path)
    return HistoryStore.open(path)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory()
