"""Make the benchmark's data: two pairs of qrels and run, from a fixed seed.

`large` has the shape of MS MARCO passage ranking (6,980 topics x 1000 documents, one to three judged),
`small` that of a TREC test collection (50 topics x 1000 documents, 400 judged each, grades 0 to 3).
Scores fall strictly, also as 32-bit floats, so that no tool's rule for ties touches the numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

FOLDER = Path(__file__).parent / "data"
DEPTH = 1000
_PASSAGES = 8_841_823  # ids of MS MARCO's passages are below it
_JUDGED = 400


def main() -> None:
    """Write the files that are not there yet."""
    FOLDER.mkdir(exist_ok=True)
    for name, write in (("large", _large), ("small", _small)):
        targets = [FOLDER / f"{name}.qrels", FOLDER / f"{name}.run"]
        if all(target.exists() for target in targets):
            continue
        unfinished = [target.with_suffix(target.suffix + ".part") for target in targets]
        with unfinished[0].open("w", newline="\n") as qrels, unfinished[1].open("w", newline="\n") as run:
            write(np.random.default_rng(20), qrels, run)
        for part, target in zip(unfinished, targets, strict=True):
            part.rename(target)


def _large(rng: Generator, qrels: TextIO, run: TextIO) -> None:
    for topic in np.sort(rng.choice(1_100_000, 6980, replace=False) + 1000).tolist():
        ids = rng.choice(_PASSAGES, DEPTH + 3, replace=False).tolist()
        docs, others = [str(doc) for doc in ids[:DEPTH]], [str(doc) for doc in ids[DEPTH:]]
        _write_ranking(run, str(topic), docs, rng)
        ranks = np.minimum(rng.exponential(60, size=3), DEPTH - 1).astype(int).tolist()
        found = rng.random(3) < 0.85  # the rest is judged and not returned
        picked = [docs[rank] if here else other for rank, here, other in zip(ranks, found, others, strict=True)]
        qrels.writelines(f"{topic} 0 {doc} 1\n" for doc in sorted(set(picked[: rng.choice([1, 1, 1, 2, 3])])))


def _small(rng: Generator, qrels: TextIO, run: TextIO) -> None:
    for topic in range(301, 351):
        ids = rng.choice(500_000, DEPTH + _JUDGED, replace=False).tolist()
        docs = [f"LA{doc // 1000:06d}-{doc % 1000:04d}" for doc in ids]
        _write_ranking(run, str(topic), docs[:DEPTH], rng)
        near_top = np.where(np.arange(len(docs)) < DEPTH, np.exp(-np.arange(len(docs)) / 200), 0.05)
        judged = rng.choice(len(docs), _JUDGED, replace=False, p=near_top / near_top.sum())
        for place in np.sort(judged).tolist():
            grade = rng.choice(4, p=(0.7, 0.15, 0.1, 0.05))
            qrels.write(f"{topic} 0 {docs[place]} {grade}\n")


def _write_ranking(run: TextIO, topic: str, docs: list[str], rng: Generator) -> None:
    falls = 0.001 + rng.exponential(0.04, size=len(docs))
    scores = np.cumsum(falls)[::-1].tolist()
    rows = enumerate(zip(docs, scores, strict=True), 1)
    run.write("".join(f"{topic} Q0 {doc} {rank} {score:.5f} bench\n" for rank, (doc, score) in rows))


if __name__ == "__main__":
    main()
